#include "sim/recordings/recorded_routing.h"

namespace ballast::sim {

std::string to_text(const LayerName& layer) {
  if (const auto* number = std::get_if<std::int64_t>(&layer)) return std::to_string(*number);
  return std::get<std::string>(layer);
}

}  // namespace ballast::sim
