#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random/stream.h"

/// Random values from a Stream with the project's own arithmetic, so that they have the same bits
/// everywhere; known-answer tests pin them. Each function says how many draws it takes from the
/// stream. All run in constant time unless they say otherwise.
namespace ballast {

/// Uniform in [0, 1), a multiple of 2^-53: the high 53 bits of one draw.
double uniform(Stream& stream);
/// Uniform in [0, bound), bound > 0, without bias (Boost.Random's uniform_int_distribution). One
/// draw, and one more for each that is rejected, which happens with probability below bound / 2^64.
std::uint64_t uniform_index(Stream& stream, std::uint64_t bound);

/// The z with P(N(0, 1) < z) = p, for 0 < p < 1; NaN outside. Relative error about 1e-15 (Wichura,
/// "Algorithm AS 241", Applied Statistics 37, 1988, routine PPND16).
double normal_quantile(double p);
/// Standard normal, `normal_quantile` of (i + 1/2) / 2^52 with i the high 52 bits of one draw; so
/// no value lies beyond 8.21.
double normal(Stream& stream);
/// e^(sigma * N(0, 1)): median 1; one draw. `sigma` >= 0.
double log_normal(Stream& stream, double sigma);

/// Shares of `count` items under Zipf's law: proportional to 1 / rank^exponent, in rank order from
/// 1; they sum to 1 up to rounding. An exponent of 0 gives equal shares. Linear in `count`.
std::vector<double> zipf_shares(std::size_t count, double exponent);

/// Draws from a fixed finite distribution in constant time (Walker's alias table, built as in Vose,
/// "A linear algorithm for generating random numbers with a given distribution", 1991).
class Categorical {
 public:
  /// `weights`: finite, non-negative, at least one positive; they need not sum to 1.
  /// Throws std::invalid_argument otherwise. Linear in the number of weights.
  explicit Categorical(std::span<const double> weights);
  /// An index with probability weights[index] / sum, up to rounding; never one of weight 0. Two
  /// draws: the cell of the table, then the choice between the two indices in it.
  std::size_t operator()(Stream& stream) const;
  std::size_t size() const { return threshold_.size(); }

 private:
  std::vector<double> threshold_;   ///< the part of each cell that is its own index's
  std::vector<std::size_t> alias_;  ///< whose the rest of the cell is
};

}  // namespace ballast
