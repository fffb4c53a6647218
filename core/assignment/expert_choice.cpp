#include "core/assignment/expert_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace ballast {

namespace {

std::vector<std::size_t> valid_tokens(std::size_t tokens, std::span<const std::uint8_t> valid) {
  std::vector<std::size_t> out;
  for (std::size_t t = 0; t < tokens; ++t) {
    if (valid.empty() || valid[t] != 0) out.push_back(t);
  }
  return out;
}

/// Larger values first, NaN last, equal ones by token.
template <class Real>
struct Preference {
  std::vector<Real> values;

  bool operator()(std::size_t t, std::size_t u) const {
    const Real a = values[t], b = values[u];
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b) ? t < u : std::isnan(b);
    return a > b || (a == b && t < u);
  }
};

}  // namespace

template <class Real>
Matrix<std::int32_t> choose_by_expert(MatrixView<const Real> scores, std::span<const float> biases,
                                      std::span<const std::uint8_t> valid, std::size_t top_k) {
  const std::size_t experts = scores.cols();
  auto tokens = valid_tokens(scores.rows(), valid);
  const std::size_t share = std::min(tokens.size(), (tokens.size() * top_k + experts - 1) / experts);
  const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(share);
  Preference<Real> preference{std::vector<Real>(scores.rows())};
  ChosenExperts chosen(scores.rows());
  for (std::size_t j = 0; j < experts; ++j) {
    for (const std::size_t t : tokens) preference.values[t] = scores(t, j) + static_cast<Real>(biases[j]);
    std::partial_sort(tokens.begin(), end, tokens.end(), std::cref(preference));
    for (auto t = tokens.begin(); t != end; ++t) chosen.add(*t, j);
  }
  return chosen.indices();
}

template <class Real>
Matrix<std::int32_t> choose_above_threshold(MatrixView<const Real> scores, std::span<const float> biases) {
  ChosenExperts chosen(scores.rows());
  for (std::size_t t = 0; t < scores.rows(); ++t) {
    const auto s = scores.row(t);
    for (std::size_t j = 0; j < s.size(); ++j) {
      if (s[j] + static_cast<Real>(biases[j]) > Real{0}) chosen.add(t, j);
    }
  }
  return chosen.indices();
}

template Matrix<std::int32_t> choose_by_expert(MatrixView<const float>, std::span<const float>,
                                               std::span<const std::uint8_t>, std::size_t);
template Matrix<std::int32_t> choose_by_expert(MatrixView<const double>, std::span<const float>,
                                               std::span<const std::uint8_t>, std::size_t);
template Matrix<std::int32_t> choose_above_threshold(MatrixView<const float>, std::span<const float>);
template Matrix<std::int32_t> choose_above_threshold(MatrixView<const double>, std::span<const float>);

}  // namespace ballast
