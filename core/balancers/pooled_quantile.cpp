#include "core/balancers/pooled_quantile.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "core/balancers/ordered_bits.h"

namespace ballast {

namespace {

constexpr std::size_t digits = 2048;
constexpr std::array<int, PooledQuantile::rounds> digit_bits = {11, 11, 10};
constexpr std::array<int, PooledQuantile::rounds> bits_behind = {21, 10, 0};

}  // namespace

PooledQuantile::PooledQuantile(std::vector<std::size_t> experts,
                               std::vector<std::int64_t> positions)
    : experts_(std::move(experts)),
      positions_(std::move(positions)),
      prefixes_(experts_.size()),
      counts_(experts_.size() * digits) {}

PooledQuantile PooledQuantile::fork() const {
  PooledQuantile fork = *this;
  std::ranges::fill(fork.counts_, 0);
  return fork;
}

void PooledQuantile::observe(const ScoreTile& tile) {
  const auto round = static_cast<std::size_t>(round_);
  const std::uint32_t digit_mask = (1u << digit_bits[round]) - 1u;
  for (std::size_t t = 0; t < tile.tokens; ++t) {
    if (tile.observed != nullptr && tile.observed[t] == 0) continue;
    for (std::size_t i = 0; i < experts_.size(); ++i) {
      const float r =
          (tile.cutoffs[t] - tile.scores[t * tile.stride + experts_[i]]) + 0.0f;  // no -0
      const std::uint32_t digit = ordered_bits(r) >> bits_behind[round];
      if (digit >> digit_bits[round] == prefixes_[i]) ++counts_[i * digits + (digit & digit_mask)];
    }
  }
}

void PooledQuantile::merge(std::span<const std::int64_t> counts) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += counts[i];
}

void PooledQuantile::end_round() {
  for (std::size_t i = 0; i < experts_.size(); ++i) {
    const auto counts = std::span(counts_).subspan(i * digits, digits);
    std::size_t digit = 0;
    while (digit < digits && positions_[i] >= counts[digit]) positions_[i] -= counts[digit++];
    if (digit == digits) {
      throw std::invalid_argument("pooled quantile: fewer values of expert " +
                                  std::to_string(experts_[i]) +
                                  " than the position that is wanted");
    }
    prefixes_[i] = prefixes_[i] << digit_bits[static_cast<std::size_t>(round_)] |
                   static_cast<std::uint32_t>(digit);
  }
  std::ranges::fill(counts_, 0);
  ++round_;
}

std::vector<float> PooledQuantile::values() const {
  std::vector<float> values;
  for (const std::uint32_t bits : prefixes_) values.push_back(from_ordered_bits(bits));
  return values;
}

}  // namespace ballast
