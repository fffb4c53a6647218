#include "core/balancers/required_biases.h"

#include <algorithm>
#include <cmath>
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

bool is_valid(const RoutedBatch& batch, std::size_t token) {
  return batch.valid.empty() || batch.valid[token] != 0;
}

std::size_t count_valid(const RoutedBatch& batch) {
  if (batch.valid.empty()) return batch.scores.rows();
  return batch.valid.size() - static_cast<std::size_t>(std::count(
                                  batch.valid.begin(), batch.valid.end(), std::uint8_t{0}));
}

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

void subtract_from_cutoff(float cutoff, std::span<const float> scores, std::span<float> required) {
  // -0 + 0 is +0; every other value stays as it is.
  for (std::size_t j = 0; j < scores.size(); ++j) required[j] = (cutoff - scores[j]) + 0.0f;
}

}  // namespace

Matrix<float> required_biases(const RoutedBatch& batch, std::size_t experts, std::size_t top_k) {
  check_shapes(batch, experts, top_k);
  Matrix<float> required(count_valid(batch), experts);
  std::size_t row = 0;
  for (std::size_t token = 0; token < batch.scores.rows(); ++token) {
    if (!is_valid(batch, token)) continue;
    subtract_from_cutoff(batch.cutoffs[token], batch.scores.row(token), required.row(row));
    if (!all_finite(required.row(row))) {
      throw std::invalid_argument("routed batch: token " + std::to_string(token) +
                                  " is marked valid, but its cutoff or a score is not finite");
    }
    ++row;
  }
  return required;
}

void check_required_biases(std::span<const float> values, std::size_t experts,
                           const std::string& name) {
  if (values.size() % experts == 0 && all_finite(values)) return;
  throw std::invalid_argument("state: entry \"" + name + "\" is not rows of " +
                              std::to_string(experts) + " finite required biases");
}

}  // namespace ballast
