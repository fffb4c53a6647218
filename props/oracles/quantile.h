#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "props/cases/requests.h"

/// Slow and obvious references for quantile balancing, in double, by sorting. What a subject
/// computed in fp32 is held against them with the margins stated here.
namespace ballast::props::oracle {

/// 8 ulp of fp32, relative to the largest numbers that met: more than a score function, s + b,
/// alpha - s, an estimate and a mean lose in fp32 together.
inline constexpr double fp32_margin = 0x1p-20;
/// Below this, numbers may be flushed to zero.
inline constexpr double fp32_smallest = 0x1p-126;

/// What the balancer of one layer learns from between two moves of its biases: the valid tokens'
/// scores s and required biases r_ij = alpha_i - s_ij, alpha_i the (k+1)-th largest of s_i + b.
/// top_k < experts.
struct Observations {
  std::size_t experts = 0;
  std::size_t top_k = 0;
  std::vector<double> biases;                 ///< b in force, `[experts]`
  std::vector<std::vector<double>> scores;    ///< `[valid tokens][experts]`
  std::vector<std::vector<double>> required;  ///< r by expert, ascending, `[experts][valid tokens]`
  double margin = fp32_smallest;              ///< how far fp32 may stray from a required bias
  bool finite = true;  ///< false when a score is not; nothing else is then said

  std::size_t tokens() const { return scores.size(); }
  std::int64_t assignments() const {
    return static_cast<std::int64_t>(tokens() * top_k);
  }  ///< m k = q E
};

/// Score of every logit, `[tokens][experts]`. A NaN or infinity of the logits goes through as it
/// may.
std::vector<std::vector<double>> scores(ScoreFunction function, MatrixView<const float> logits);

Observations observe(const ModelSpec& model, std::span<const Forward* const> forwards,
                     std::span<const double> biases);

/// bhat_j before centring: the (floor(q) + 1)-th smallest r_:j. At least one token.
std::vector<double> exact_estimate(const Observations& observed);

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

/// w of App. D: (max b - min b + 2) / bins.
double bin_width(std::span<const double> biases, std::size_t bins);

/// How far fp32 may stray in r - lo and lo + x, lo and hi being 1 beyond the biases, however small
/// r is.
double range_margin(std::span<const double> biases);

/// Where App. D's bhat_j lies, before centring, when every r is known up to the margin: the
/// estimate is the place where the piecewise linear cumulative count reaches q, so it rises with
/// every r. At least one token.
std::vector<Interval> histogram_estimate(const Observations& observed, std::size_t bins);

/// D(b) = min over alpha of L(alpha, -b) = sum_i (sum of the k largest s_i + b) - q sum_j b_j (App.
/// C).
double dual_objective(const Observations& observed, std::span<const double> biases);

/// Loads under score + bias, ties to the lower index, `[experts]`.
std::vector<std::int64_t> loads(const std::vector<std::vector<double>>& scores,
                                std::span<const double> biases, std::size_t top_k);

}  // namespace ballast::props::oracle
