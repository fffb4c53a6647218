#include "core/model/routed_experts.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/arithmetic/reductions.h"
#include "core/assignment/chosen_experts.h"
#include "core/model/elementwise.h"

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
  cache.inputs.reshape(assignments, z.cols());
  cache.outputs.reshape(assignments, z.cols());
  cache.glu.reshape(assignments, inner_);

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
void RoutedExperts<Real>::backward(RoutedExpertsCache<Real>& cache, MatrixView<const Real> weights,
                                   MatrixView<const Real> du, MatrixView<Real> dz, MatrixView<Real> dp,
                                   const Executor& executor) {
  const Dispatch& dispatch = *cache.dispatch;
  douts_.reshape(cache.outputs.rows(), cache.outputs.cols());
  differentiate_sum(cache, weights, du, dp);

  Matrix<Real>& dins = cache.outputs;  // which are needed no more
  executor.for_each(size(), [&](std::size_t j) {
    const std::size_t first = dispatch.first_row[j];
    const std::size_t count = dispatch.first_row[j + 1] - first;
    if (count == 0) return;
    experts_[j]->backward(cache.inputs.view().block(first, count), cache.glu, first,
                          douts_.view().block(first, count), dins.view().block(first, count),
                          serial_executor());
  });

  for (std::size_t t = 0; t < dz.rows(); ++t) {
    const auto sum = dz.row(t);
    std::ranges::fill(sum, Real{0});
    for (std::size_t slot = 0; slot < weights.cols(); ++slot) {
      if (dispatch.row_of(t, slot) == Dispatch::no_row) continue;
      add_to<Real>(sum, dins.row(dispatch.row_of(t, slot)));
    }
  }
}

/// From du: dp and the gradients of the experts' outputs.
template <class Real>
void RoutedExperts<Real>::differentiate_sum(const RoutedExpertsCache<Real>& cache,
                                            MatrixView<const Real> weights,
                                            MatrixView<const Real> du, MatrixView<Real> dp) {
  const auto slots = cache.dispatch->row_of.values();
  const std::size_t assignments = cache.outputs.rows();
  std::vector<const Real*> of_sum(assignments), of_expert(assignments);
  for (std::size_t row = 0; row < assignments; ++row) {
    of_sum[row] = du.row(cache.dispatch->token_of[row]).data();
    of_expert[row] = cache.outputs.row(row).data();
  }
  std::vector<Real> products(assignments);
  arithmetic::dots(of_sum, of_expert, du.cols(), std::span<Real>(products));
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const std::size_t row = slots[slot];
    dp.values()[slot] = row == Dispatch::no_row ? Real{0} : products[row];
    if (row == Dispatch::no_row) continue;
    const Real p = weights.values()[slot];
    const auto out = douts_.row(row);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = p * of_sum[row][i];
  }
}

template class RoutedExperts<float>;
template class RoutedExperts<double>;

}  // namespace ballast
