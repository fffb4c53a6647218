#include "core/model/routed_experts.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/arithmetic/reductions.h"
#include "core/assignment/chosen_experts.h"

namespace ballast {

Dispatch::Dispatch(MatrixView<const std::int32_t> indices, std::size_t experts)
    : first_row(experts + 1, 0),
      row_of(indices.rows(), indices.cols(), no_row) {
  for (const std::int32_t j : indices.values()) {
    if (j != no_expert) ++first_row[static_cast<std::size_t>(j) + 1];
  }
  for (std::size_t j = 0; j < experts; ++j) first_row[j + 1] += first_row[j];
  token_of.resize(first_row.back());
  std::vector<std::size_t> next(first_row.begin(), first_row.end() - 1);
  for (std::size_t t = 0; t < indices.rows(); ++t) {
    for (std::size_t slot = 0; slot < indices.cols(); ++slot) {
      if (indices(t, slot) == no_expert) continue;
      const std::size_t row = next[static_cast<std::size_t>(indices(t, slot))]++;
      row_of(t, slot) = row;
      token_of[row] = t;
    }
  }
}

template <class Real>
RoutedExperts<Real>::RoutedExperts(std::size_t experts, std::size_t latent, std::size_t inner,
                                   Activation activation)
    : inner_(inner) {
  for (std::size_t j = 0; j < experts; ++j) {
    experts_.push_back(std::make_unique<Glu<Real>>(latent, inner, activation));
    this->add_module(std::to_string(j), *experts_.back());
  }
}

template <class Real>
void RoutedExperts<Real>::forward(MatrixView<const Real> z, MatrixView<const std::int32_t> indices,
                                  MatrixView<const Real> weights, RoutedExpertsCache<Real>& cache,
                                  MatrixView<Real> u, const Executor& executor) const {
  cache.dispatch = std::make_unique<Dispatch>(indices, size());
  const Dispatch& dispatch = *cache.dispatch;
  const std::size_t assignments = dispatch.token_of.size();
  cache.inputs = {assignments, z.cols()};
  cache.outputs = {assignments, z.cols()};
  cache.glu = {assignments, inner_};

  executor.for_each(size(), [&](std::size_t j) {
    const std::size_t first = dispatch.first_row[j];
    const std::size_t count = dispatch.first_row[j + 1] - first;
    if (count == 0) return;
    const auto inputs = cache.inputs.view().block(first, count);
    for (std::size_t i = 0; i < count; ++i) {
      std::ranges::copy(z.row(dispatch.token_of[first + i]), inputs.row(i).begin());
    }
    experts_[j]->forward(inputs, cache.glu, first, cache.outputs.view().block(first, count),
                         serial_executor());
  });

  for (std::size_t t = 0; t < z.rows(); ++t) {
    const auto sum = u.row(t);
    std::ranges::fill(sum, Real{0});
    for (std::size_t slot = 0; slot < indices.cols(); ++slot) {
      if (dispatch.row_of(t, slot) == Dispatch::no_row) continue;
      const Real p = weights(t, slot);
      const auto out = cache.outputs.row(dispatch.row_of(t, slot));
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = std::fma(p, out[i], sum[i]);
    }
  }
}

template <class Real>
void RoutedExperts<Real>::backward(const RoutedExpertsCache<Real>& cache, MatrixView<const Real> weights,
                                   MatrixView<const Real> du, MatrixView<Real> dz, MatrixView<Real> dp,
                                   const Executor& executor) {
  const Dispatch& dispatch = *cache.dispatch;
  Matrix<Real> douts(cache.outputs.rows(), cache.outputs.cols());
  Matrix<Real> dins(cache.inputs.rows(), cache.inputs.cols());
  for (std::size_t t = 0; t < du.rows(); ++t) {
    for (std::size_t slot = 0; slot < weights.cols(); ++slot) {
      const std::size_t row = dispatch.row_of(t, slot);
      if (row == Dispatch::no_row) {
        dp(t, slot) = Real{0};
        continue;
      }
      dp(t, slot) = arithmetic::dot(du.row(t), cache.outputs.row(row));
      const auto out = douts.row(row);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = weights(t, slot) * du(t, i);
    }
  }

  executor.for_each(size(), [&](std::size_t j) {
    const std::size_t first = dispatch.first_row[j];
    const std::size_t count = dispatch.first_row[j + 1] - first;
    if (count == 0) return;
    experts_[j]->backward(cache.inputs.view().block(first, count), cache.glu, first,
                          douts.view().block(first, count), dins.view().block(first, count),
                          serial_executor());
  });

  for (std::size_t t = 0; t < dz.rows(); ++t) {
    const auto sum = dz.row(t);
    std::ranges::fill(sum, Real{0});
    for (std::size_t slot = 0; slot < weights.cols(); ++slot) {
      if (dispatch.row_of(t, slot) == Dispatch::no_row) continue;
      const auto in = dins.row(dispatch.row_of(t, slot));
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += in[i];
    }
  }
}

template class RoutedExperts<float>;
template class RoutedExperts<double>;

}  // namespace ballast
