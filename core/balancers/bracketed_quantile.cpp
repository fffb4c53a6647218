#include "core/balancers/bracketed_quantile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/kernels.h"

namespace ballast {

namespace {

constexpr std::size_t room_behind = 16;  ///< kernels write whole vectors
constexpr std::size_t tokens_at_once = 1024;
constexpr std::size_t first_tokens = 65536;  ///< for as many there is memory at first
constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace

void BracketedQuantile::Kept::make_room(std::size_t more, std::size_t first_capacity) {
  const std::size_t needed = count + more + room_behind;
  if (needed <= capacity) return;
  capacity = std::max({needed, first_capacity, 2 * capacity});
  auto larger = std::make_unique_for_overwrite<float[]>(capacity);
  std::copy_n(values.get(), count, larger.get());
  values = std::move(larger);
}

BracketedQuantile::BracketedQuantile(Brackets brackets)
    : brackets_(std::move(brackets)),
      below_(brackets_.low.size()),
      inside_(below_.size()),
      ends_(below_.size()) {}

void BracketedQuantile::observe(const ScoreTile& tile) {
  const std::size_t experts = below_.size();
  for (std::size_t first = 0; first < tile.tokens; first += tokens_at_once) {
    const std::size_t count = std::min(tokens_at_once, tile.tokens - first);
    const auto first_capacity =
        static_cast<std::size_t>(brackets_.share * static_cast<double>(first_tokens)) + count;
    for (std::size_t j = 0; j < experts; ++j) {
      inside_[j].make_room(count, first_capacity);
      ends_[j] = inside_[j].values.get() + inside_[j].count;
    }
    kernels::active().collect_inside(
        {.tokens = count,
         .experts = experts,
         .scores = tile.scores + first * tile.stride,
         .scores_stride = tile.stride,
         .cutoffs = tile.cutoffs + first,
         .observed = tile.observed == nullptr ? nullptr : tile.observed + first,
         .low = brackets_.low.data(),
         .high = brackets_.high.data(),
         .below = below_.data(),
         .ends = ends_.data()});
    for (std::size_t j = 0; j < experts; ++j) {
      inside_[j].count = static_cast<std::size_t>(ends_[j] - inside_[j].values.get());
    }
  }
  tokens_ += static_cast<std::int64_t>(tile.observed_tokens());
}

void BracketedQuantile::merge(BracketedQuantile& other) {
  if (tokens_ == 0) {
    std::swap(*this, other);
    return;
  }
  for (std::size_t j = 0; j < below_.size(); ++j) {
    below_[j] += other.below_[j];
    Kept& own = inside_[j];
    const Kept& more = other.inside_[j];
    own.make_room(more.count, 0);
    std::copy_n(more.values.get(), more.count, own.values.get() + own.count);
    own.count += more.count;
  }
  tokens_ += other.tokens_;
}

bool BracketedQuantile::has(std::size_t expert, std::int64_t position) const {
  return position >= below_[expert] &&
         position < below_[expert] + static_cast<std::int64_t>(inside_[expert].count);
}

float BracketedQuantile::value(std::size_t expert, std::int64_t position) {
  // The kernel leaves values in either array, so it works on a copy.
  const Kept& kept = inside_[expert];
  scratch_.resize(std::max(scratch_.size(), kept.count + room_behind));
  copy_.resize(std::max(copy_.size(), kept.count + room_behind));
  std::copy_n(kept.values.get(), kept.count, copy_.data());
  return kernels::active().order_statistic(copy_.data(), scratch_.data(), kept.count,
                                           static_cast<std::size_t>(position - below_[expert]));
}

Brackets open_brackets(std::size_t experts) {
  return {std::vector<float>(experts, -infinity), std::vector<float>(experts, infinity), 0.0};
}

double bracket_reach(double n, double share) {
  return 5.0 * std::sqrt(n * share * (1.0 - share)) + 1.0;
}

Brackets brackets_from_sample(BracketedQuantile& sample, std::size_t experts, std::int64_t position,
                              std::int64_t tokens) {
  const auto size = static_cast<double>(sample.tokens());
  const double share = (static_cast<double>(position) + 0.5) / static_cast<double>(tokens);
  const double reach = bracket_reach(size, share);
  const auto low = static_cast<std::int64_t>(std::floor(size * share - reach));
  const auto high = static_cast<std::int64_t>(std::ceil(size * share + reach));
  Brackets brackets = open_brackets(experts);
  brackets.share = 2.0 * reach / size;
  for (std::size_t j = 0; j < experts; ++j) {
    if (low >= 0) brackets.low[j] = sample.value(j, low);
    if (high < sample.tokens()) brackets.high[j] = sample.value(j, high);
  }
  return brackets;
}

}  // namespace ballast
