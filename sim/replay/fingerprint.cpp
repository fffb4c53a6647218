#include "sim/replay/fingerprint.h"

#include "sim/digest.h"
#include "sim/signature/stage.h"

namespace ballast::sim {

std::string numerics_fingerprint() {
  Digest digest;
  for (const Stage& stage : arithmetic_stages()) stage.compute(digest, serial_executor());
  return digest.hex();
}

}  // namespace ballast::sim
