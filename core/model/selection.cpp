#include "core/model/selection.h"

#include <cmath>

namespace ballast {

namespace {

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

 private:
  std::vector<Real> values_;
  std::vector<std::int32_t> experts_;
  std::size_t size_ = 0;
};

}  // namespace

template <class Real>
Selection<Real> select_top_k(MatrixView<const Real> scores, std::span<const float> biases,
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
    for (std::size_t slot = 0; slot < top_k; ++slot) {
      selection.indices(t, slot) = best.expert(slot);
    }
    if (has_cutoff) selection.cutoffs[t] = best.value(top_k);
  }
  return selection;
}

void count_assignments(MatrixView<const std::int32_t> indices, std::span<const std::uint8_t> valid,
                       std::span<std::int64_t> counts) {
  for (std::size_t t = 0; t < indices.rows(); ++t) {
    if (!valid.empty() && valid[t] == 0) continue;
    for (const std::int32_t j : indices.row(t)) ++counts[static_cast<std::size_t>(j)];
  }
}

template Selection<float> select_top_k(MatrixView<const float>, std::span<const float>, std::size_t);
template Selection<double> select_top_k(MatrixView<const double>, std::span<const float>, std::size_t);

}  // namespace ballast
