#include "core/balancers/bracketed_quantile.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/kernels/kernels.h"

namespace ballast {

namespace {

constexpr std::size_t room_behind = 16;  ///< kernels write whole vectors
constexpr std::size_t tokens_at_once = 1024;
constexpr std::size_t first_tokens = 65536;  ///< for as many there is room at first
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
      kept_(below_.size()),
      ends_(below_.size()) {}

void BracketedQuantile::observe(const ScoreTile& tile) {
  const std::size_t experts = below_.size();
  for (std::size_t first = 0; first < tile.tokens; first += tokens_at_once) {
    const std::size_t count = std::min(tokens_at_once, tile.tokens - first);
    const ScoreTile part = tile.part(first, count);
    const std::size_t first_capacity = brackets_.expected + count + room_behind;
    for (std::size_t j = 0; j < experts; ++j) {
      kept_[j].make_room(count, first_capacity);
      ends_[j] = kept_[j].values.get() + kept_[j].count;
    }
    kernels::active().collect_inside({.tile = part,
                                      .low = brackets_.low.data(),
                                      .high = brackets_.high.data(),
                                      .below = below_.data(),
                                      .ends = ends_.data()});
    for (std::size_t j = 0; j < experts; ++j) {
      kept_[j].count = static_cast<std::size_t>(ends_[j] - kept_[j].values.get());
    }
  }
  tokens_ += static_cast<std::int64_t>(tile.observed_tokens());
}

void BracketedQuantile::merge(BracketedQuantile& other) {
  if (tokens_ == 0) {
    std::swap(*this, other);
    return;
  }
  for (std::size_t j = 0; j < below_.size(); ++j) below_[j] += other.below_[j];
  merged_.push_back(std::move(other.kept_));
  std::ranges::move(other.merged_, std::back_inserter(merged_));
  other.merged_.clear();
  tokens_ += other.tokens_;
}

std::size_t BracketedQuantile::inside(std::size_t expert) const {
  std::size_t count = kept_[expert].count;
  for (const auto& kept : merged_) count += kept[expert].count;
  return count;
}

bool BracketedQuantile::has(std::size_t expert, std::int64_t position) const {
  return position >= below_[expert] &&
         position < below_[expert] + static_cast<std::int64_t>(inside(expert));
}

float BracketedQuantile::value(std::size_t expert, std::int64_t position, Scratch& scratch) const {
  const std::size_t count = inside(expert), room = count + room_behind;
  scratch.values.resize(std::max(scratch.values.size(), room));
  scratch.others.resize(std::max(scratch.others.size(), room));
  float* end = scratch.values.data();
  const auto add = [&](const Kept& kept) { end = std::copy_n(kept.values.get(), kept.count, end); };
  add(kept_[expert]);
  for (const auto& kept : merged_) add(kept[expert]);
  return kernels::active().order_statistic(scratch.values.data(), scratch.others.data(), count,
                                           static_cast<std::size_t>(position - below_[expert]));
}

float BracketedQuantile::value(std::size_t expert, std::int64_t position) const {
  Scratch scratch;
  return value(expert, position, scratch);
}

Brackets open_brackets(std::size_t experts, std::size_t tokens) {
  return {std::vector<float>(experts, -infinity), std::vector<float>(experts, infinity), tokens};
}

double bracket_reach(double n, double share, double deviations) {
  return deviations * std::sqrt(n * share * (1.0 - share)) + 1.0;
}

void for_each_expert(std::size_t experts, const Executor& executor,
                     const std::function<void(std::size_t, BracketedQuantile::Scratch&)>& work) {
  constexpr std::size_t pieces_wanted = 8, most = 16;
  const std::size_t at_once = std::clamp(experts / pieces_wanted, std::size_t{1}, most);
  executor.for_each((experts + at_once - 1) / at_once, [&](std::size_t i) {
    BracketedQuantile::Scratch scratch;
    for (std::size_t j = i * at_once; j < std::min(experts, (i + 1) * at_once); ++j)
      work(j, scratch);
  });
}

/// Positions before the first value and behind the last one are at infinity.
bool BracketedQuantile::is_known(std::size_t expert, std::int64_t position) const {
  return position < 0 || position >= tokens_ || has(expert, position);
}

float BracketedQuantile::end(std::size_t expert, std::int64_t position, Scratch& scratch) const {
  if (position < 0) return -infinity;
  return position >= tokens_ ? infinity : value(expert, position, scratch);
}

std::optional<Brackets> BracketedQuantile::narrowed(std::int64_t position, std::int64_t tokens,
                                                    double deviations, std::size_t coming,
                                                    const Executor& executor) const {
  if (tokens_ == 0) return std::nullopt;
  const auto size = static_cast<double>(tokens_);
  const double share = (static_cast<double>(position) + 0.5) / static_cast<double>(tokens);
  const double reach = bracket_reach(size, share, deviations);
  const auto low = static_cast<std::int64_t>(std::floor(size * share - reach));
  const auto high = static_cast<std::int64_t>(std::ceil(size * share + reach));
  const std::size_t experts = below_.size();
  for (std::size_t j = 0; j < experts; ++j)
    if (!is_known(j, low) || !is_known(j, high)) return std::nullopt;
  const auto first = static_cast<double>(std::min(coming, first_tokens));
  const double part_inside = std::min(1.0, 2.0 * reach / size);
  Brackets brackets = open_brackets(experts, static_cast<std::size_t>(part_inside * first));
  for_each_expert(experts, executor, [&](std::size_t j, Scratch& scratch) {
    brackets.low[j] = end(j, low, scratch);
    brackets.high[j] = end(j, high, scratch);
  });
  return brackets;
}

}  // namespace ballast
