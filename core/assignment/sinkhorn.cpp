#include "core/assignment/sinkhorn.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "core/arithmetic/functions.h"
#include "core/arithmetic/reductions.h"

namespace ballast {

namespace {

constexpr double guard = 1e-8;

template <class Real>
Matrix<double> costs(MatrixView<const Real> logits) {
  Matrix<double> c(logits.rows(), logits.cols());
  for (std::size_t t = 0; t < c.rows(); ++t) {
    const auto z = logits.row(t);
    const Real highest = *std::ranges::max_element(z);
    for (std::size_t j = 0; j < z.size(); ++j) {
      c(t, j) = static_cast<double>(z[j]) - static_cast<double>(highest);
    }
  }
  arithmetic::exp(std::span<const double>(c.values()), c.values());
  return c;
}

class Scaling {
 public:
  Scaling(Matrix<double>& costs, std::span<const std::uint8_t> valid)
      : costs_(costs), valid_(valid), rows_(costs.rows()), columns_(costs.cols(), 1.0) {
    for (std::size_t t = 0; t < costs.rows(); ++t) tokens_ += is_valid(t);
  }

  /// The mean |change| of the column factors.
  double iterate() {
    std::vector<double> sums(columns_.size());
    for (std::size_t t = 0; t < rows_.size(); ++t) {
      scale_row(t);
      if (!is_valid(t)) continue;
      const auto c = costs_.row(t);
      for (std::size_t j = 0; j < sums.size(); ++j) sums[j] = std::fma(rows_[t], c[j], sums[j]);
    }
    double change = 0.0;
    for (std::size_t j = 0; j < sums.size(); ++j) {
      const double factor = 1.0 / (static_cast<double>(sums.size()) * (sums[j] + guard));
      change += std::abs(factor - columns_[j]);
      columns_[j] = factor;
    }
    return change / static_cast<double>(sums.size());
  }

  void apply() {
    for (std::size_t t = 0; t < rows_.size(); ++t) {
      const auto c = costs_.row(t);
      for (std::size_t j = 0; j < c.size(); ++j) c[j] = rows_[t] * c[j] * columns_[j];
    }
  }

 private:
  bool is_valid(std::size_t t) const { return valid_.empty() || valid_[t] != 0; }

  void scale_row(std::size_t t) {
    const double sum = arithmetic::dot(std::span<const double>(costs_.row(t)), columns_);
    rows_[t] = 1.0 / (static_cast<double>(tokens_) * (sum + guard));
  }

  Matrix<double>& costs_;
  std::span<const std::uint8_t> valid_;
  std::size_t tokens_ = 0;
  std::vector<double> rows_, columns_;  ///< d0, d1
};

}  // namespace

template <class Real>
SinkhornPlan sinkhorn_plan(MatrixView<const Real> logits, std::span<const std::uint8_t> valid,
                           const SinkhornSettings& settings) {
  if (settings.iterations_max < 1) {
    throw std::invalid_argument("sinkhorn: needs at least one iteration");
  }
  SinkhornPlan out{.plan = costs(logits)};
  Scaling scaling(out.plan, valid);
  for (double change = settings.tolerance + 1.0;
       change > settings.tolerance && out.iterations < settings.iterations_max; ++out.iterations) {
    change = scaling.iterate();
  }
  scaling.apply();
  return out;
}

template SinkhornPlan sinkhorn_plan(MatrixView<const float>, std::span<const std::uint8_t>, const SinkhornSettings&);
template SinkhornPlan sinkhorn_plan(MatrixView<const double>, std::span<const std::uint8_t>, const SinkhornSettings&);

}  // namespace ballast
