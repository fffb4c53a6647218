#include "core/model/selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "core/assignment/chosen_experts.h"
#include "core/kernels/kernels.h"

namespace ballast {

namespace {

constexpr std::size_t few_experts = 64;

/// Whether a value comes before another in the total order; false for equal values, whose order is that of
/// the experts' indices.
template <class Real>
bool before(Real a, Real b) {
  return a > b || (std::isnan(b) && !std::isnan(a));
}

/// The best candidates of one row, kept in order.
template <class Real>
class BestOfRow {
 public:
  explicit BestOfRow(std::size_t count) : values_(count), experts_(count) {}

  void clear() { size_ = 0; }

  /// Candidates must come in ascending order of expert: an equal value then stays behind those before it.
  void offer(Real value, std::int32_t expert) {
    if (size_ == values_.size()) {
      if (!before(value, values_[size_ - 1])) return;
      --size_;
    }
    std::size_t place = size_;
    for (; place > 0 && before(value, values_[place - 1]); --place) {
      values_[place] = values_[place - 1];
      experts_[place] = experts_[place - 1];
    }
    values_[place] = value;
    experts_[place] = expert;
    ++size_;
  }

  Real value(std::size_t place) const { return values_[place]; }
  std::int32_t expert(std::size_t place) const { return experts_[place]; }
  std::span<const std::int32_t> experts() const { return {experts_.data(), size_}; }
  /// Of all values, the largest first.
  Real sum() const {
    Real total{0};
    for (std::size_t place = 0; place < size_; ++place) total += values_[place];
    return total;
  }

 private:
  std::vector<Real> values_;
  std::vector<std::int32_t> experts_;
  std::size_t size_ = 0;
};

}  // namespace

template <class Real>
Selection<Real> select_by_insertion(MatrixView<const Real> scores, std::span<const float> biases,
                             std::size_t top_k) {
  const std::size_t experts = scores.cols();
  const bool has_cutoff = top_k < experts;
  Selection<Real> selection{.indices = {scores.rows(), top_k},
                            .cutoffs = std::vector<Real>(has_cutoff ? scores.rows() : 0)};
  BestOfRow<Real> best(has_cutoff ? top_k + 1 : top_k);
  for (std::size_t t = 0; t < scores.rows(); ++t) {
    best.clear();
    const auto s = scores.row(t);
    for (std::size_t j = 0; j < experts; ++j) {
      best.offer(s[j] + static_cast<Real>(biases[j]), static_cast<std::int32_t>(j));
    }
    std::ranges::copy(best.experts().first(top_k), selection.indices.row(t).begin());
    if (has_cutoff) selection.cutoffs[t] = best.value(top_k);
  }
  return selection;
}

namespace {

Selection<float> select_by_kernels(MatrixView<const float> scores, std::span<const float> biases,
                                   std::size_t top_k) {
  const std::size_t experts = scores.cols();
  Selection<float> selection{.indices = {scores.rows(), top_k},
                             .cutoffs = std::vector<float>(top_k < experts ? scores.rows() : 0)};
  std::vector<float> scratch(kernels::row_scratch(experts));
  std::vector<std::int32_t> index_scratch(kernels::row_scratch(experts));
  std::vector<std::uint8_t> finite(scores.rows());
  kernels::active().route({.tokens = scores.rows(),
                           .experts = experts,
                           .top_k = top_k,
                           .biases = biases.data(),
                           .scores = const_cast<float*>(scores.data()),  // without logits they are only read
                           .scores_stride = experts,
                           .indices = selection.indices.data(),
                           .cutoffs = selection.cutoffs.empty() ? nullptr : selection.cutoffs.data(),
                           .finite = finite.data(),
                           .scratch = scratch.data(),
                           .index_scratch = index_scratch.data()});
  return selection;
}

}  // namespace

template <class Real>
Selection<Real> select_top_k(MatrixView<const Real> scores, std::span<const float> biases,
                             std::size_t top_k) {
  if constexpr (std::is_same_v<Real, float>) {
    return select_by_kernels(scores, biases, top_k);
  } else {
    return select_by_insertion<Real>(scores, biases, top_k);
  }
}

namespace {

/// Chooses for one token after the other; keeps its scratch between them.
template <class Real>
class GroupLimited {
 public:
  GroupLimited(std::size_t experts, std::size_t top_k, const ExpertGroups& groups)
      : size_(experts / groups.count),
        groups_(groups.count),
        biased_(experts),
        scored_(groups.scored(top_k)),
        best_groups_(groups.chosen),
        best_(top_k) {}

  /// Best first, valid until the next call.
  std::span<const std::int32_t> choose(std::span<const Real> scores, std::span<const float> biases) {
    for (std::size_t j = 0; j < biased_.size(); ++j) biased_[j] = scores[j] + static_cast<Real>(biases[j]);
    choose_groups();
    best_.clear();
    for (const std::int32_t group : chosen_groups()) offer_group(static_cast<std::size_t>(group), best_);
    return best_.experts();
  }

 private:
  void choose_groups() {
    best_groups_.clear();
    for (std::size_t group = 0; group < groups_; ++group) {
      scored_.clear();
      offer_group(group, scored_);
      best_groups_.offer(scored_.sum(), static_cast<std::int32_t>(group));
    }
  }

  /// In ascending order, as experts have to be offered.
  std::vector<std::int32_t> chosen_groups() const {
    std::vector<std::int32_t> chosen(best_groups_.experts().begin(), best_groups_.experts().end());
    std::ranges::sort(chosen);
    return chosen;
  }

  void offer_group(std::size_t group, BestOfRow<Real>& best) const {
    for (std::size_t j = group * size_; j < (group + 1) * size_; ++j) {
      best.offer(biased_[j], static_cast<std::int32_t>(j));
    }
  }

  std::size_t size_;  ///< of a group
  std::size_t groups_;
  std::vector<Real> biased_;
  BestOfRow<Real> scored_, best_groups_, best_;
};

}  // namespace

template <class Real>
Selection<Real> select_group_limited_top_k(MatrixView<const Real> scores, std::span<const float> biases,
                                           std::size_t top_k, const ExpertGroups& groups) {
  Selection<Real> selection{.indices = {scores.rows(), top_k}, .cutoffs = {}};
  GroupLimited<Real> limited(scores.cols(), top_k, groups);
  for (std::size_t t = 0; t < scores.rows(); ++t) {
    std::ranges::copy(limited.choose(scores.row(t), biases), selection.indices.row(t).begin());
  }
  return selection;
}

namespace {

/// Of few experts the same ones come again and again, and each addition would wait for the last one to its counter: so
/// there are some counters for each.
void count_few(std::span<const std::int32_t> indices, std::span<std::int64_t> counts) {
  static_assert(no_expert == -1);
  std::array<std::array<std::int64_t, few_experts + 1>, 4> side_by_side{};  // that of no_expert is the first
  const auto place = [&](std::size_t i) { return static_cast<std::size_t>(indices[i] + 1); };
  std::size_t i = 0;
  for (; i + 4 <= indices.size(); i += 4) {
    for (std::size_t side = 0; side < 4; ++side) ++side_by_side[side][place(i + side)];
  }
  for (; i < indices.size(); ++i) ++side_by_side[0][place(i)];
  for (const auto& side : side_by_side) {
    for (std::size_t j = 0; j < counts.size(); ++j) counts[j] += side[j + 1];
  }
}

}  // namespace

void count_assignments(MatrixView<const std::int32_t> indices, std::span<const std::uint8_t> valid,
                       std::span<std::int64_t> counts) {
  if (valid.empty() && counts.size() <= kernels::count_few_max) {
    kernels::active().count_few(indices.data(), indices.values().size(), counts.data(), counts.size());
    return;
  }
  if (valid.empty() && counts.size() <= few_experts) {
    count_few(indices.values(), counts);
    return;
  }
  for (std::size_t t = 0; t < indices.rows(); ++t) {
    if (!valid.empty() && valid[t] == 0) continue;
    for (const std::int32_t j : indices.row(t)) {
      if (j != no_expert) ++counts[static_cast<std::size_t>(j)];
    }
  }
}

template Selection<float> select_by_insertion(MatrixView<const float>, std::span<const float>, std::size_t);
template Selection<float> select_top_k(MatrixView<const float>, std::span<const float>, std::size_t);
template Selection<double> select_top_k(MatrixView<const double>, std::span<const float>, std::size_t);
template Selection<float> select_group_limited_top_k(MatrixView<const float>, std::span<const float>, std::size_t,
                                                     const ExpertGroups&);
template Selection<double> select_group_limited_top_k(MatrixView<const double>, std::span<const float>,
                                                      std::size_t, const ExpertGroups&);

}  // namespace ballast
