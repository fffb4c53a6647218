#include "sim/command/target_limit.h"

#include "core/kernels/kernels.h"

namespace ballast::sim {

bool limit_target(const char* wanted, std::ostream& err) {
  if (wanted == nullptr) return true;
  for (const auto* const kernels : kernels::available()) {
    if (kernels::name(kernels->target) != wanted) continue;
    kernels::limit_target(kernels->target);
    return true;
  }
  err << "ballast: BALLAST_TARGET=" << wanted << " is none of those that run here:";
  for (const auto* const kernels : kernels::available())
    err << ' ' << kernels::name(kernels->target);
  err << '\n';
  return false;
}

}  // namespace ballast::sim
