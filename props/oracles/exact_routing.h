#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "props/cases/requests.h"

/// What a router has to choose and how it has to weigh, computed slowly in double, with the margin
/// that fp32 arithmetic of any kind may use up.
namespace ballast::props {

/// One token in exact arithmetic.
struct ExactToken {
  std::vector<double> values;   ///< s + b `[experts]`
  std::vector<double> margins;  ///< how far fp32 may be off; 0 where no rounding can enter
  std::vector<double> gates;  ///< what weights are made of: s, or the softmax if scores are logits
  std::vector<double> gate_errors;  ///< their relative error in fp32
  bool ordered = true;              ///< no value is NaN: the choice is defined
};

/// The scores' margins: sigmoid 4 ulp; softmax 8 ulp, one a unit of distance to the largest logit
/// (whose rounding the exponential multiplies), and half of one an expert in the sum; both one more
/// where they underflow. Logits have none. Then half an ulp of s + b, unless the sum is exact.
ExactToken exact_token(const ModelSpec& model, std::span<const float> logits,
                       std::span<const double> biases);

/// Whether a comes before b whatever the rounding: it is larger by more than both margins, or both
/// are exact and equal and a is the lower index.
bool surely_before(const ExactToken& token, std::size_t a, std::size_t b);

/// The choice of k experts, best first, if no rounding can change it. With `ties` false, nothing
/// where equal values meet either: then it does not depend on the experts' numbers.
std::optional<std::vector<std::int64_t>> sure_choice(const ExactToken& token, std::size_t top_k,
                                                     bool ties = true);

/// Experts by value, equal ones by index: a choice to show beside a wrong one.
std::vector<std::int64_t> best_choice(const ExactToken& token, std::size_t top_k);

/// Whether experts at ranks k and k + 1 tie exactly.
bool ties_at_cutoff(const ExactToken& token, std::size_t top_k);

/// What is wrong with distinct experts as a choice, best first: a line, or nothing.
std::optional<std::string> wrong_choice(const ExactToken& token,
                                        std::span<const std::int64_t> chosen);

/// Where a weight has to lie.
struct WeightRange {
  double low = 0.0;
  double high = 0.0;
};
/// Of each chosen expert. Denominators between the sum and the sum + 1e-8 are accepted, for
/// implementations guard it against zero in different ways. Nothing if a chosen gate is NaN.
std::optional<std::vector<WeightRange>> weight_ranges(const ModelSpec& model,
                                                      const ExactToken& token,
                                                      std::span<const std::int64_t> chosen);

}  // namespace ballast::props
