#include "sim/route/balancer_choice.h"

#include <charconv>
#include <string_view>

#include "core/balancers/no_balancer.h"
#include "core/balancers/quantile_balancer.h"
#include "core/balancers/sign_balancer.h"
#include "sim/text/numbers.h"

namespace ballast::sim {
namespace {

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// What follows `begin`, if the text begins so.
std::optional<std::string_view> after(std::string_view begin, std::string_view text) {
  if (!text.starts_with(begin)) return std::nullopt;
  return text.substr(begin.size());
}

}  // namespace

std::optional<BalancerChoice> parse_balancer(const std::string& text) {
  using Kind = BalancerChoice::Kind;
  if (text == "none") return BalancerChoice{.kind = Kind::none};
  if (text == "quantile:exact") return BalancerChoice{.kind = Kind::exact};
  if (const auto rest = after("quantile:histogram:", text)) {
    if (const auto bins = whole_number<std::size_t>(*rest)) return BalancerChoice{.bins = *bins};
  }
  if (const auto rest = after("sign:", text)) {
    if (const auto rate = whole_number<double>(*rest)) {
      return BalancerChoice{.kind = Kind::sign, .rate = *rate};
    }
  }
  return std::nullopt;
}

std::string text(const BalancerChoice& choice) {
  switch (choice.kind) {
    case BalancerChoice::Kind::none:
      return "none";
    case BalancerChoice::Kind::exact:
      return "quantile:exact";
    case BalancerChoice::Kind::histogram:
      return "quantile:histogram:" + std::to_string(choice.bins);
    default:
      return "sign:" + shortest(choice.rate);
  }
}

std::unique_ptr<Balancer> make_balancer(const BalancerChoice& choice,
                                        const RouterSettings& router) {
  const std::size_t experts = router.routed_experts;
  switch (choice.kind) {
    case BalancerChoice::Kind::none:
      return std::make_unique<NoBalancer>(experts);
    case BalancerChoice::Kind::sign:
      return std::make_unique<SignBalancer>(experts, SignSettings{.rate = choice.rate});
    default: {
      const auto estimator = choice.kind == BalancerChoice::Kind::exact
                                 ? QuantileEstimatorKind::exact
                                 : QuantileEstimatorKind::histogram;
      return std::make_unique<QuantileBalancer>(
          experts, router.top_k, QuantileSettings{.estimator = estimator, .bins = choice.bins});
    }
  }
}

}  // namespace ballast::sim
