#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random/stream.h"

/// Random values from a Stream with the project's own arithmetic; each sample consumes a fixed
/// number of draws, stated here.
namespace ballast {

/// Uniform in [0, 1), a multiple of 2^-53; one draw.
double uniform(Stream& stream);
/// Uniform in [0, bound), bound > 0, without bias.
std::uint64_t uniform_index(Stream& stream, std::uint64_t bound);
/// Standard normal, by inversion of the distribution function; one draw.
double normal(Stream& stream);
/// e^(sigma * N(0, 1)); one draw.
double log_normal(Stream& stream, double sigma);

/// Shares of `count` items under Zipf's law: proportional to 1 / rank^exponent, in rank order,
/// sum 1.
std::vector<double> zipf_shares(std::size_t count, double exponent);

/// Draws from a fixed finite distribution in constant time (Walker's alias table, Vose's
/// construction).
class Categorical {
 public:
  /// `weights`: finite, non-negative, at least one positive; they need not sum to 1.
  /// Throws std::invalid_argument otherwise. Linear in the number of weights.
  explicit Categorical(std::span<const double> weights);
  /// An index with probability weights[index] / sum; two draws.
  std::size_t operator()(Stream& stream) const;
  std::size_t size() const { return threshold_.size(); }

 private:
  std::vector<double> threshold_;
  std::vector<std::size_t> alias_;
};

}  // namespace ballast
