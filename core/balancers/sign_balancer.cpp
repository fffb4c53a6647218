#include "core/balancers/sign_balancer.h"

#include <cmath>
#include <stdexcept>

#include "core/arithmetic/reductions.h"

namespace ballast {

namespace {

std::vector<double> signs(std::span<const std::int64_t> shortfalls) {
  std::vector<double> out;
  for (const std::int64_t d : shortfalls) out.push_back(static_cast<double>((d > 0) - (d < 0)));
  return out;
}

std::vector<double> normalised(std::span<const std::int64_t> shortfalls) {
  std::vector<double> out(shortfalls.begin(), shortfalls.end());
  const double rms = std::sqrt(arithmetic::dot(std::span<const double>(out), out) /
                               static_cast<double>(out.size()));
  if (rms == 0.0) return out;
  for (double& d : out) d /= rms;
  return out;
}

}  // namespace

SignBalancer::SignBalancer(std::size_t experts, const SignSettings& settings)
    : LoadBiasBalancer(experts, settings.loads), settings_(settings) {
  if (!(settings.rate > 0.0) || !std::isfinite(settings.rate)) {
    throw std::invalid_argument("sign balancing needs a finite rate > 0, not " +
                                std::to_string(settings.rate));
  }
}

std::vector<double> SignBalancer::moves(std::span<const std::int64_t> counts) {
  const auto short_by = shortfalls(counts);
  auto d = settings_.step == SignStep::sign ? signs(short_by) : normalised(short_by);
  if (settings_.centred) centre(d);
  for (double& move : d) move *= settings_.rate;
  return d;
}

}  // namespace ballast
