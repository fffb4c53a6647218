#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/score_tile.h"
#include "core/matrix.h"
#include "core/random/distributions.h"

namespace ballast::test {

/// Tokens for all collectors, with some that are to be passed over, and their required biases as
/// the estimators take them.
struct Tokens {
  Tokens(std::size_t tokens, std::size_t experts, double step, std::uint64_t seed)
      : scores(tokens, experts), cutoffs(tokens), observed(tokens) {
    Stream stream(seed);
    const auto drawn = [&] {
      return static_cast<float>(std::floor(uniform(stream) / step) * step);
    };
    for (float& s : scores.values()) s = drawn();
    for (float& alpha : cutoffs) alpha = drawn();
    for (auto& mark : observed) mark = uniform(stream) < 0.9;
  }

  ScoreTile tile(std::size_t first, std::size_t count) const {
    return {.tokens = count,
            .experts = scores.cols(),
            .scores = scores.data() + first * scores.cols(),
            .stride = scores.cols(),
            .cutoffs = cutoffs.data() + first,
            .observed = observed.data() + first};
  }
  ScoreTile tile() const { return tile(0, scores.rows()); }

  Matrix<float> required() const {
    Matrix<float> r(static_cast<std::size_t>(std::ranges::count(observed, std::uint8_t{1})),
                    scores.cols());
    std::size_t row = 0;
    for (std::size_t t = 0; t < scores.rows(); ++t) {
      if (observed[t] == 0) continue;
      for (std::size_t j = 0; j < scores.cols(); ++j)
        r(row, j) = (cutoffs[t] - scores(t, j)) + 0.0f;
      ++row;
    }
    return r;
  }

  Matrix<float> scores;
  std::vector<float> cutoffs;
  std::vector<std::uint8_t> observed;
};

}  // namespace ballast::test
