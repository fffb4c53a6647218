#include "core/balancers/bias_count.h"

#include <stdexcept>
#include <string>

namespace ballast {

void check_bias_count(std::size_t biases, std::size_t experts) {
  if (biases == experts) return;
  throw std::invalid_argument("balancer: " + std::to_string(biases) + " biases for " +
                              std::to_string(experts) + " routed experts; give one for each");
}

}  // namespace ballast
