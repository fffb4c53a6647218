#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/balancers/histogram.h"
#include "core/kernels/kernels.h"
#include "core/matrix.h"
#include "core/random/distributions.h"

/// What kernels are tried on, and what they answer, so that versions of them can be compared to the
/// bit.
namespace ballast::test {

struct KernelShape {
  std::size_t experts;
  std::size_t top_k;
};

/// How logits are drawn.
enum class Draw {
  normal,
  wide,        ///< saturated sigmoids, and arguments whose e^-x underflows
  tied,        ///< few different values
  close,       ///< closer to each other than estimates of their scores are to those
  descending,  ///< rows in order: candidates have to be found all over
  ascending,
  edges,  ///< NaN, infinities, signed zeros, subnormals and the largest numbers among normal ones
};
inline constexpr Draw all_draws[] = {Draw::normal,     Draw::wide,      Draw::tied, Draw::close,
                                     Draw::descending, Draw::ascending, Draw::edges};

inline float drawn(Draw draw, Stream& stream) {
  using Limits = std::numeric_limits<float>;
  static constexpr float edges[] = {Limits::quiet_NaN(),
                                    Limits::infinity(),
                                    -Limits::infinity(),
                                    0.0f,
                                    -0.0f,
                                    Limits::denorm_min(),
                                    -Limits::denorm_min(),
                                    Limits::min(),
                                    Limits::max(),
                                    Limits::lowest(),
                                    17.4f,
                                    -87.0f,
                                    -87.1f,
                                    87.0f,
                                    -103.9f,
                                    -104.1f};
  const auto z = static_cast<float>(normal(stream));
  switch (draw) {
    case Draw::wide:
      return 60.0f * z;
    case Draw::tied:
      return std::floor(2.0f * z) * 0.5f;
    case Draw::close:
      return 0.02f * z;
    case Draw::edges: {
      const double u = uniform(stream);
      return u < 0.02 ? edges[static_cast<std::size_t>(u * 50.0 * 16.0)] : z;
    }
    default:
      return z;
  }
}

/// Logits `[tokens, experts]`.
inline Matrix<float> drawn_logits(std::size_t tokens, std::size_t experts, Draw draw,
                                  std::uint64_t seed) {
  Matrix<float> logits(tokens, experts);
  Stream stream(seed);
  for (float& z : logits.values()) z = drawn(draw, stream);
  for (std::size_t t = 0; t < tokens; ++t) {
    const auto row = logits.row(t);
    if (draw == Draw::ascending) std::ranges::sort(row);
    if (draw == Draw::descending) std::ranges::sort(row, std::greater<>());
  }
  return logits;
}

/// Inputs and outputs of RouteRows, with rows further apart than they are long where `padding` says
/// so.
struct RouteTrial {
  Matrix<float> logits;
  std::vector<float> biases;
  std::size_t top_k;
  bool sigmoid = true;
  bool renormalize = true;
  float scale = 1.0f;
  std::size_t padding = 0;
  bool keeps_scores = true;
};

struct RouteAnswer {
  std::vector<float> scores, weights, weight_sums, cutoffs;
  std::vector<std::int32_t> indices;
  std::vector<std::uint8_t> finite;
};

inline RouteAnswer route_by(const kernels::Kernels& kernels, const RouteTrial& trial) {
  const std::size_t tokens = trial.logits.rows(), experts = trial.logits.cols(), k = trial.top_k;
  const std::size_t stride = experts + trial.padding;
  RouteAnswer answer{.scores = std::vector<float>(tokens * stride),
                     .weights = std::vector<float>(tokens * k),
                     .weight_sums = std::vector<float>(tokens),
                     .cutoffs = std::vector<float>(k < experts ? tokens : 0),
                     .indices = std::vector<std::int32_t>(tokens * k),
                     .finite = std::vector<std::uint8_t>(tokens)};
  for (std::size_t t = 0; t < tokens && !trial.sigmoid; ++t) {
    std::ranges::copy(trial.logits.row(t), answer.scores.data() + t * stride);
  }
  std::vector<float> scratch(kernels::row_scratch(experts));
  std::vector<std::int32_t> index_scratch(kernels::row_scratch(experts));
  kernels.route({.tokens = tokens,
                 .experts = experts,
                 .top_k = k,
                 .biases = trial.biases.data(),
                 .logits = trial.sigmoid ? trial.logits.data() : nullptr,
                 .logits_stride = experts,
                 .scores = answer.scores.data(),
                 .scores_stride = stride,
                 .keeps_scores = trial.keeps_scores,
                 .gates = answer.scores.data(),
                 .gates_stride = stride,
                 .renormalize = trial.renormalize,
                 .scale = trial.scale,
                 .indices = answer.indices.data(),
                 .weights = answer.weights.data(),
                 .weight_sums = trial.renormalize ? answer.weight_sums.data() : nullptr,
                 .cutoffs = k < experts ? answer.cutoffs.data() : nullptr,
                 .finite = answer.finite.data(),
                 .scratch = scratch.data(),
                 .index_scratch = index_scratch.data()});
  if (!trial.keeps_scores) answer.scores.clear();
  return answer;
}

}  // namespace ballast::test
