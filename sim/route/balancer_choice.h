#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/balancers/balancer.h"
#include "core/model/settings.h"

namespace ballast::sim {

/// How `ballast route` moves the biases after a pass over the batch.
struct BalancerChoice {
  enum class Kind { none, exact, histogram, sign };
  Kind kind = Kind::histogram;
  std::size_t bins = 1000;  ///< of the histogram
  double rate = 0.001;      ///< of sign
};

/// "none", "quantile:exact", "quantile:histogram:BINS" or "sign:RATE"; nothing for other text.
std::optional<BalancerChoice> parse_balancer(const std::string& text);
/// The text that parses to it.
std::string text(const BalancerChoice& choice);

/// The core's balancer of that choice, without observations and with zero biases. Throws
/// std::invalid_argument when the choice does not go with the router.
std::unique_ptr<Balancer> make_balancer(const BalancerChoice& choice, const RouterSettings& router);

}  // namespace ballast::sim
