#include "core/assignment/capacity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/assignment/chosen_experts.h"

namespace ballast {

namespace {

template <class Real>
struct Claim {
  Real weight;
  std::size_t token, slot;
};

/// Larger weights first, NaN last, equal ones by token.
template <class Real>
bool goes_before(const Claim<Real>& a, const Claim<Real>& b) {
  if (std::isnan(a.weight) || std::isnan(b.weight)) {
    return std::isnan(a.weight) == std::isnan(b.weight) ? a.token < b.token : std::isnan(b.weight);
  }
  return a.weight > b.weight || (a.weight == b.weight && a.token < b.token);
}

/// The claims on each expert, in the order of tokens.
template <class Real>
std::vector<std::vector<Claim<Real>>> claims(MatrixView<const std::int32_t> indices, MatrixView<const Real> weights,
                                             std::span<const std::uint8_t> valid, std::size_t experts) {
  std::vector<std::vector<Claim<Real>>> on(experts);
  for (std::size_t t = 0; t < indices.rows(); ++t) {
    if (!valid.empty() && valid[t] == 0) continue;
    for (std::size_t slot = 0; slot < indices.cols(); ++slot) {
      const std::int32_t j = indices(t, slot);
      if (j != no_expert) on[static_cast<std::size_t>(j)].push_back({weights(t, slot), t, slot});
    }
  }
  return on;
}

}  // namespace

std::int64_t expert_capacity(double factor, std::int64_t tokens, std::size_t top_k, std::size_t experts) {
  const double share = static_cast<double>(tokens) * static_cast<double>(top_k) / static_cast<double>(experts);
  return static_cast<std::int64_t>(std::min(std::ceil(factor * share), static_cast<double>(tokens)));
}

template <class Real>
Matrix<std::int32_t> drop_beyond(std::int64_t capacity, DropPolicy policy, MatrixView<const std::int32_t> indices,
                                 MatrixView<const Real> weights, std::span<const std::uint8_t> valid,
                                 std::size_t experts) {
  Matrix<std::int32_t> kept(indices.rows(), indices.cols(), no_expert);
  for (auto& on_expert : claims(indices, weights, valid, experts)) {
    if (policy == DropPolicy::probs) std::ranges::sort(on_expert, goes_before<Real>);
    const bool full = policy != DropPolicy::none && std::ssize(on_expert) > capacity;
    if (full) on_expert.resize(static_cast<std::size_t>(capacity));
    for (const auto& claim : on_expert) kept(claim.token, claim.slot) = indices(claim.token, claim.slot);
  }
  return kept;
}

template Matrix<std::int32_t> drop_beyond(std::int64_t, DropPolicy, MatrixView<const std::int32_t>,
                                          MatrixView<const float>, std::span<const std::uint8_t>, std::size_t);
template Matrix<std::int32_t> drop_beyond(std::int64_t, DropPolicy, MatrixView<const std::int32_t>,
                                          MatrixView<const double>, std::span<const std::uint8_t>, std::size_t);

}  // namespace ballast
