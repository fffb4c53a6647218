#include "sim/scores/preferences.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "core/arithmetic/functions.h"
#include "core/arithmetic/reductions.h"
#include "core/random/distributions.h"
#include "sim/input_error.h"
#include "sim/scores/recorded_shares.h"
#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

/// A rate is finite only for a probability below 1 (sim/scores/race.h).
constexpr double most_certain = 1.0 - 0x1p-10;

double sum(const std::vector<double>& values) {
  return arithmetic::sum(std::span<const double>(values));
}

void scale_to(std::vector<double>& values, double total) {
  const double factor = total / sum(values);
  for (double& value : values) value *= factor;
}

/// Every order equally likely (Durstenfeld 1964).
void shuffle(std::vector<std::size_t>& items, Stream stream) {
  for (std::size_t left = items.size(); left > 1; --left) {
    std::swap(items[left - 1], items[uniform_index(stream, left)]);
  }
}

/// Scales the entries that are not at the limit until all sum to `total` <= limit * size.
void clip(std::vector<double>& values, double limit, double total) {
  for (std::size_t round = 0; round < values.size(); ++round) {
    double free = 0.0, fixed = 0.0;
    for (const double value : values) (value < limit ? free : fixed) += std::min(value, limit);
    const double factor = free > 0.0 ? (total - fixed) / free : 1.0;
    bool over = false;
    for (double& value : values) {
      value = value < limit ? value * factor : limit;
      over |= value > limit;
    }
    if (!over) return;
  }
}

/// Standard normal values; with drift between two draws, at variance 1.
std::vector<double> normals(std::size_t count, const Stream& stream, std::size_t step,
                            std::size_t drift_steps) {
  const std::size_t leg = drift_steps == 0 ? 0 : step / drift_steps;
  const double way =
      drift_steps == 0 ? 0.0
                       : static_cast<double>(step % drift_steps) / static_cast<double>(drift_steps);
  Stream from = stream.child(leg), to = stream.child(leg + 1);
  const double norm = std::sqrt((1.0 - way) * (1.0 - way) + way * way);
  std::vector<double> values(count);
  for (double& value : values) {
    value = normal(from);
    if (way > 0.0) value = ((1.0 - way) * value + way * normal(to)) / norm;
  }
  return values;
}

[[noreturn]] void refuse_shift(std::string_view field, double wanted, double most) {
  throw InputError({.what = "bad value of '" + std::string(field) + "'",
                    .where = "scenario",
                    .why = "a total variation of " + fixed(wanted, 3) +
                           " is asked for, and exchanging these shares makes at most " +
                           fixed(most, 3),
                    .right = "make it smaller, or the shares more uneven (scores.sigma)"});
}

/// Exchanges shares between random pairs of a hotter and a colder expert until the total variation
/// is `wanted`.
void exchange(std::vector<double>& shares, double wanted, Stream stream, std::string_view field) {
  if (wanted == 0.0) return;
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t j) { return -shares[j]; });
  const std::size_t pairs = shares.size() / 2;
  std::vector<std::size_t> hot(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(pairs));
  std::vector<std::size_t> cold(order.end() - static_cast<std::ptrdiff_t>(pairs), order.end());
  shuffle(hot, stream.child("hot"));
  shuffle(cold, stream.child("cold"));
  double left = wanted;
  for (std::size_t p = 0; p < pairs && left > 0.0; ++p) {
    double& high = shares[hot[p]];
    double& low = shares[cold[p]];
    const double moved = std::min(left, high - low);
    high -= moved;
    low += moved;
    left -= moved;
  }
  if (left > 1e-9) refuse_shift(field, wanted, wanted - left);
}

Stream preference_stream(std::uint64_t seed, std::size_t layer) {
  return Stream(seed).child("scores").child("preferences").child(layer);
}

}  // namespace

double total_variation(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> distances(a.size());
  for (std::size_t j = 0; j < a.size(); ++j) distances[j] = std::abs(a[j] - b[j]);
  return sum(distances) / 2.0;
}

Preferences::Preferences(std::size_t experts, std::size_t top_k, std::uint64_t seed)
    : experts_(experts), top_k_(top_k), seed_(seed) {}

std::vector<double> Preferences::law_shares(const ScoreSettings& settings, std::size_t layer,
                                            std::size_t step) const {
  const Stream stream = preference_stream(seed_, layer);
  switch (settings.preference) {
    case PreferenceLaw::uniform:
      break;
    case PreferenceLaw::recorded:
    case PreferenceLaw::recorded_rows: {
      const auto& recorded = recorded_shares(settings.file, experts_);
      return recorded[layer % recorded.size()];
    }
    case PreferenceLaw::zipf: {
      std::vector<std::size_t> order(experts_);
      std::iota(order.begin(), order.end(), std::size_t{0});
      shuffle(order, stream.child("order"));
      const auto ranked = zipf_shares(experts_, settings.exponent);
      std::vector<double> shares(experts_);
      for (std::size_t j = 0; j < experts_; ++j) shares[order[j]] = ranked[j];
      return shares;
    }
    case PreferenceLaw::log_normal: {
      auto shares = normals(experts_, stream.child("normal"), step, settings.drift_steps);
      for (double& share : shares) share = arithmetic::exp(settings.sigma * share);
      return shares;
    }
  }
  return std::vector<double>(experts_, 1.0);
}

Inclusions Preferences::inclusions(const ScoreSettings& settings, std::size_t layer,
                                   std::size_t rank, std::size_t step) const {
  const Stream stream = preference_stream(seed_, layer);
  const double k = static_cast<double>(top_k_);
  std::vector<double> shares = law_shares(settings, layer, step);
  if (settings.hot_share > 0.0) {
    Stream choice = stream.child("hot");
    const std::size_t hot = uniform_index(choice, experts_);
    shares[hot] = 0.0;
    scale_to(shares, 1.0 - settings.hot_share / k);
    shares[hot] = settings.hot_share / k;
  }
  scale_to(shares, 1.0);
  clip(shares, most_certain / k, 1.0);
  const std::vector<double> before = shares;
  exchange(shares, settings.shift, stream.child("shift"), "scores.shift");
  for (std::size_t j = 0; j < experts_; ++j) {
    shares[j] = before[j] + settings.shift_weight * (shares[j] - before[j]);
  }
  if (rank != 0) {
    exchange(shares, settings.rank_skew, stream.child("rank").child(rank), "scores.rank_skew");
  }
  for (double& share : shares) share *= k;
  return shares;
}

}  // namespace ballast::sim
