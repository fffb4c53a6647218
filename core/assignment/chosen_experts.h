#pragma once

#include <cstdint>
#include <vector>

#include "core/matrix.h"

namespace ballast {

/// In a row of chosen experts: a slot without one.
inline constexpr std::int32_t no_expert = -1;

/// Collects a varying number of experts a token.
class ChosenExperts {
 public:
  explicit ChosenExperts(std::size_t tokens) : of_token_(tokens) {}

  void add(std::size_t token, std::size_t expert) {
    of_token_[token].push_back(static_cast<std::int32_t>(expert));
  }
  /// `[tokens, slots]` with slots the largest number of a token, at least 1: the experts of a token in the order in
  /// which they were added, then no_expert.
  Matrix<std::int32_t> indices() const;

 private:
  std::vector<std::vector<std::int32_t>> of_token_;
};

}  // namespace ballast
