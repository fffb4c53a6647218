#include "props/oracles/exact_routing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/arithmetic/functions.h"

namespace ballast::props {

namespace {

constexpr double half_ulp = 0x1p-24;                                ///< of 1, in fp32
constexpr double least_normal = std::numeric_limits<float>::min();  ///< below it, all may vanish
constexpr double denominator_slack = 1e-8;

void set_sigmoid(ExactToken& token, std::span<const float> logits) {
  for (std::size_t j = 0; j < logits.size(); ++j) {
    token.gates[j] = arithmetic::sigmoid(static_cast<double>(logits[j]));
    token.gate_errors[j] = 8 * half_ulp;
  }
}

void set_softmax(ExactToken& token, std::span<const float> logits) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const float z : logits) largest = std::isnan(z) ? z : std::max<double>(largest, z);
  double sum = 0.0;
  for (std::size_t j = 0; j < logits.size(); ++j) {
    token.gates[j] = arithmetic::exp(static_cast<double>(logits[j]) - largest);
    sum += token.gates[j];
  }
  for (std::size_t j = 0; j < logits.size(); ++j) {
    const double distance = std::min(largest - static_cast<double>(logits[j]), 200.0);
    token.gates[j] /= sum;
    token.gate_errors[j] = (16 + 2 * distance + static_cast<double>(logits.size())) * half_ulp;
  }
}

/// Half an ulp of the sum, as fp32 rounds it; 0 when the sum is a float.
double rounding(double sum) {
  if (static_cast<double>(static_cast<float>(sum)) == sum) return 0.0;
  return half_ulp * std::abs(sum) + least_normal;
}

std::vector<std::size_t> by_value(const ExactToken& token) {
  std::vector<std::size_t> order(token.values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return token.values[a] > token.values[b] || (token.values[a] == token.values[b] && a < b);
  });
  return order;
}

std::string of_expert(std::size_t expert) {
  return "expert " + std::to_string(expert);
}

}  // namespace

ExactToken exact_token(const ModelSpec& model, std::span<const float> logits,
                       std::span<const double> biases) {
  const std::size_t experts = logits.size();
  ExactToken token{.values = std::vector<double>(experts),
                   .margins = std::vector<double>(experts),
                   .gates = std::vector<double>(experts),
                   .gate_errors = std::vector<double>(experts)};
  if (model.score == ScoreFunction::sigmoid) {
    set_sigmoid(token, logits);
  } else {
    set_softmax(token, logits);
  }
  const bool exact = model.score == ScoreFunction::logit;
  for (std::size_t j = 0; j < experts; ++j) {
    const double score = exact ? static_cast<double>(logits[j]) : token.gates[j];
    const double value = score + biases[j];
    token.values[j] = value;
    token.margins[j] =
        !std::isfinite(value) ? 0.0
        : exact               ? rounding(value)
                : token.gate_errors[j] * score + least_normal + half_ulp * std::abs(value);
    token.ordered &= !std::isnan(value);
  }
  return token;
}

bool surely_before(const ExactToken& token, std::size_t a, std::size_t b) {
  const double margin = token.margins[a] + token.margins[b];
  if (token.values[a] == token.values[b]) return margin == 0.0 && a < b;
  return token.values[a] > token.values[b] + margin;
}

std::vector<std::int64_t> best_choice(const ExactToken& token, std::size_t top_k) {
  const auto order = by_value(token);
  return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top_k)};
}

std::optional<std::vector<std::int64_t>> sure_choice(const ExactToken& token, std::size_t top_k,
                                                     bool ties) {
  if (!token.ordered) return std::nullopt;
  const auto order = by_value(token);
  const auto sure = [&](std::size_t a, std::size_t b) {
    return surely_before(token, a, b) && (ties || token.values[a] != token.values[b]);
  };
  for (std::size_t i = 0; i + 1 < top_k; ++i) {
    if (!sure(order[i], order[i + 1])) return std::nullopt;
  }
  for (std::size_t i = top_k; i < order.size(); ++i) {
    if (!sure(order[top_k - 1], order[i])) return std::nullopt;
  }
  return std::vector<std::int64_t>(order.begin(),
                                   order.begin() + static_cast<std::ptrdiff_t>(top_k));
}

bool ties_at_cutoff(const ExactToken& token, std::size_t top_k) {
  if (!token.ordered || top_k >= token.values.size()) return false;
  const auto order = by_value(token);
  const std::size_t last = order[top_k - 1], next = order[top_k];
  return token.values[last] == token.values[next] &&
         token.margins[last] + token.margins[next] == 0.0;
}

std::optional<std::string> wrong_choice(const ExactToken& token,
                                        std::span<const std::int64_t> chosen) {
  if (!token.ordered) return std::nullopt;
  std::vector<bool> is_chosen(token.values.size());
  for (std::size_t slot = 0; slot < chosen.size(); ++slot) {
    const auto expert = static_cast<std::size_t>(chosen[slot]);
    is_chosen[expert] = true;
    if (slot == 0) continue;
    const auto previous = static_cast<std::size_t>(chosen[slot - 1]);
    if (surely_before(token, expert, previous)) {
      return of_expert(previous) + " stands before " + of_expert(expert);
    }
  }
  for (std::size_t other = 0; other < is_chosen.size(); ++other) {
    if (is_chosen[other]) continue;
    for (const std::int64_t index : chosen) {
      const auto expert = static_cast<std::size_t>(index);
      if (surely_before(token, other, expert)) {
        return of_expert(expert) + " is chosen and " + of_expert(other) + " is not";
      }
    }
  }
  return std::nullopt;
}

std::optional<std::vector<WeightRange>> weight_ranges(const ModelSpec& model,
                                                      const ExactToken& token,
                                                      std::span<const std::int64_t> chosen) {
  double sum = 0.0, error = 0.0;
  for (const std::int64_t index : chosen) {
    const auto expert = static_cast<std::size_t>(index);
    if (std::isnan(token.gates[expert])) return std::nullopt;
    sum += token.gates[expert];
    error = std::max(error, token.gate_errors[expert]);
  }
  error = 2 * error + static_cast<double>(chosen.size() + 6) * half_ulp;
  const double scale = model.routed_scale;
  const bool vanishes =
      sum < 1e6 * least_normal;  // only the order of magnitude of the guard is left
  std::vector<WeightRange> ranges;
  for (const std::int64_t index : chosen) {
    const double gate = token.gates[static_cast<std::size_t>(index)];
    if (!model.renormalize) {
      ranges.push_back({(gate * (1 - error) - least_normal) * scale,
                        (gate * (1 + error) + least_normal) * scale});
    } else if (vanishes) {
      ranges.push_back({0.0, scale * (1 + error)});
    } else {
      ranges.push_back(
          {(gate * (1 - error) - least_normal) / (sum + denominator_slack) * scale - least_normal,
           (gate * (1 + error) + least_normal) / sum * scale + least_normal});
    }
  }
  return ranges;
}

}  // namespace ballast::props
