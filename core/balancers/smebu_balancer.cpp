#include "core/balancers/smebu_balancer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "core/arithmetic/functions.h"

namespace ballast {

namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw std::invalid_argument("smebu balancing " + message);
}

bool is_positive(double value) { return value > 0.0 && std::isfinite(value); }

}  // namespace

SmebuBalancer::SmebuBalancer(std::size_t experts, const SmebuSettings& settings)
    : LoadBiasBalancer(experts, settings.loads), settings_(settings), momentum_(experts) {
  require(is_positive(settings.rate),
          "needs a finite rate > 0, not " + std::to_string(settings.rate));
  require(is_positive(settings.kappa),
          "needs a finite kappa > 0, not " + std::to_string(settings.kappa));
  require(settings.momentum >= 0.0 && settings.momentum < 1.0,
          "needs 0 <= momentum < 1, not " + std::to_string(settings.momentum));
}

std::vector<double> SmebuBalancer::moves(std::span<const std::int64_t> counts) {
  const auto total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  std::vector<double> d;
  for (const std::int64_t short_by : shortfalls(counts)) {
    const double v = static_cast<double>(short_by) / static_cast<double>(total);
    d.push_back(settings_.rate * arithmetic::tanh(settings_.kappa * v));
  }
  centre(d);
  for (std::size_t j = 0; j < d.size(); ++j) {
    momentum_[j] = settings_.momentum * momentum_[j] + (1.0 - settings_.momentum) * d[j];
  }
  return momentum_;
}

void SmebuBalancer::save(StateDict& state, const std::string& prefix) const {
  LoadBiasBalancer::save(state, prefix);
  state.put(prefix + "momentum", momentum_);
}

void SmebuBalancer::load(const StateDict& state, const std::string& prefix) {
  const auto& momentum = state.get<double>(prefix + "momentum", momentum_.size());
  require(std::ranges::all_of(momentum, [](double m) { return std::isfinite(m); }),
          "cannot have the momentum of the state under \"" + prefix + "\", which is not finite");
  LoadBiasBalancer::load(state, prefix);
  momentum_ = momentum;
}

}  // namespace ballast
