#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/executor.h"
#include "core/model/glu.h"
#include "core/model/module.h"

namespace ballast {

/// Where each assignment of a batch lies once the tokens are gathered expert by expert: inside an expert in
/// the order of tokens.
struct Dispatch {
  /// `[tokens, slots]` experts, or no_expert, to rows. Linear in slots plus experts.
  Dispatch(MatrixView<const std::int32_t> indices, std::size_t experts);

  std::vector<std::size_t> first_row;  ///< `[experts + 1]`: rows of expert j are [first_row[j], first_row[j + 1])
  Matrix<std::size_t> row_of;          ///< `[tokens, slots]`: row of each assignment, or no_row
  std::vector<std::size_t> token_of;   ///< `[assignments]`: token of each row

  static constexpr std::size_t no_row = static_cast<std::size_t>(-1);
};

/// What the way back of RoutedExperts needs, a row an assignment in the order of Dispatch.
template <class Real>
struct RoutedExpertsCache {
  std::unique_ptr<Dispatch> dispatch;
  Matrix<Real> inputs;   ///< gathered z, `[assignments, latent]`
  Matrix<Real> outputs;  ///< E_j(z), `[assignments, latent]`
  GluCache<Real> glu;
};

/// The routed experts of one layer:  u_i = sum over chosen j of p_ij E_j(z_i), added best expert first.
/// Experts run as independent pieces of the executor's work.
template <class Real>
class RoutedExperts : public Module {
 public:
  RoutedExperts(std::size_t experts, std::size_t latent, std::size_t inner, Activation activation);

  /// z `[tokens, latent]`, indices and weights p `[tokens, slots]`, to u `[tokens, latent]`.
  void forward(MatrixView<const Real> z, MatrixView<const std::int32_t> indices,
               MatrixView<const Real> weights, RoutedExpertsCache<Real>& cache, MatrixView<Real> u,
               const Executor& executor) const;
  /// From du: adds the gradients of the experts, writes dz `[tokens, latent]` and dp `[tokens, slots]`,
  /// which is 0 where no expert ran. Uses up the cache: gradients take the place of what it holds.
  void backward(RoutedExpertsCache<Real>& cache, MatrixView<const Real> weights,
                MatrixView<const Real> du, MatrixView<Real> dz, MatrixView<Real> dp,
                const Executor& executor);

  std::size_t size() const { return experts_.size(); }
  Glu<Real>& expert(std::size_t j) { return *experts_[j]; }

 private:
  void differentiate_sum(const RoutedExpertsCache<Real>& cache, MatrixView<const Real> weights,
                         MatrixView<const Real> du, MatrixView<Real> dp);

  std::size_t inner_;
  Matrix<Real> douts_;  ///< gradients of the last batch's outputs
  std::vector<std::unique_ptr<Glu<Real>>> experts_;
};

}  // namespace ballast
