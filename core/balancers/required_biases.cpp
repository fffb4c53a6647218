#include "core/balancers/required_biases.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace ballast {

namespace {

void check_size(const char* what, std::size_t is, std::size_t should) {
  if (is == should) return;
  throw std::invalid_argument("routed batch: " + std::string(what) + " is " + std::to_string(is) +
                              ", not " + std::to_string(should));
}

void check_shapes(const RoutedBatch& batch, std::size_t experts, std::size_t top_k) {
  const std::size_t tokens = batch.scores.rows();
  check_size("the number of score columns", batch.scores.cols(), experts);
  check_size("the number of cutoffs", batch.cutoffs.size(), tokens);
  check_size("the number of index rows", batch.indices.rows(), tokens);
  check_size("the number of index columns", batch.indices.cols(), top_k);
  if (!batch.valid.empty()) check_size("the length of the valid mask", batch.valid.size(), tokens);
}

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

/// Whether cutoff - s is finite for all scores; without branches, so that it takes little time
/// beside counting.
bool is_finite_row(float cutoff, std::span<const float> scores) {
  constexpr std::uint32_t size = 0x7fffffff, infinity = 0x7f800000;
  std::uint32_t largest = 0;
  for (const float s : scores) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(cutoff - s) & size);
  }
  return largest < infinity;
}

void check_finite(const ScoreTile& tile) {
  for (std::size_t t = 0; t < tile.tokens; ++t) {
    if (!tile.observes(t) || is_finite_row(tile.cutoffs[t], {tile.row(t), tile.experts})) continue;
    throw std::invalid_argument("routed batch: token " + std::to_string(t) +
                                " is marked valid, but its cutoff or a score is not finite");
  }
}

}  // namespace

ScoreTile required_tile(const RoutedBatch& batch, std::size_t experts, std::size_t top_k) {
  check_shapes(batch, experts, top_k);
  const ScoreTile tile{.tokens = batch.scores.rows(),
                       .experts = experts,
                       .scores = batch.scores.data(),
                       .stride = experts,
                       .cutoffs = batch.cutoffs.data(),
                       .observed = batch.valid.empty() ? nullptr : batch.valid.data()};
  check_finite(tile);
  return tile;
}

void append_required_biases(const ScoreTile& tile, std::vector<float>& rows) {
  std::size_t next = rows.size();
  rows.resize(next + tile.observed_tokens() * tile.experts);
  for (std::size_t t = 0; t < tile.tokens; ++t) {
    if (!tile.observes(t)) continue;
    // -0 + 0 is +0; every other value stays as it is.
    for (std::size_t j = 0; j < tile.experts; ++j) {
      rows[next + j] = (tile.cutoffs[t] - tile.row(t)[j]) + 0.0f;
    }
    next += tile.experts;
  }
}

Matrix<float> required_biases(const RoutedBatch& batch, std::size_t experts, std::size_t top_k) {
  const ScoreTile tile = required_tile(batch, experts, top_k);
  std::vector<float> rows;
  append_required_biases(tile, rows);
  Matrix<float> required(tile.observed_tokens(), experts);
  std::ranges::copy(rows, required.values().begin());
  return required;
}

void check_required_biases(std::span<const float> values, std::size_t experts,
                           const std::string& name) {
  if (values.size() % experts == 0 && all_finite(values)) return;
  throw std::invalid_argument("state: entry \"" + name + "\" is not rows of " +
                              std::to_string(experts) + " finite required biases");
}

}  // namespace ballast
