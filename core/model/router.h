#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/executor.h"
#include "core/model/linear.h"
#include "core/model/module.h"
#include "core/model/selection.h"
#include "core/model/settings.h"

namespace ballast {

/// What a router decided for a batch of tokens, and what its way back needs.
template <class Real>
struct Routing {
  Matrix<Real> scores;           ///< s, raw, `[tokens, experts]`: selection and biases live in this space
  Matrix<Real> gates;            ///< what weights are made of, if that is not s (score = logit), else empty
  Selection<Real> selection;     ///< by s + b
  Matrix<Real> weights;          ///< p `[tokens, top_k]`, in the order of the selection, from unbiased scores
  std::vector<Real> weight_sums;  ///< sum of the chosen gates, `[tokens]`, when weights are renormalised
  std::vector<std::uint8_t> finite;  ///< `[tokens]`: 1 when every score of the row is finite
};

/// s = score(W_r x);  T = the k largest of s + b (inside the best groups, if limited);  p_j = s_j / (sum over T of s + 1e-20) * routed_scale.
/// Source: Kimi K3 report Eq. 13 and its released inference code. Weights never see b.
///
/// A logit that is not finite is routed like any other value, by the total order of select_top_k: exactly k
/// distinct experts always. sigmoid takes +-infinity to 1 and 0, which are ordinary scores; a row in which a
/// score is not finite has `finite` 0, and the balancer does not observe it.
/// With score = logit the bias lives in logit space and weights are those of softmax.
template <class Real>
class Router : public Module {
 public:
  /// Throws std::invalid_argument unless 1 <= top_k <= routed_experts and the groups fit both.
  explicit Router(const RouterSettings& settings);

  const RouterSettings& settings() const { return settings_; }

  /// Full-width tokens x `[tokens, hidden]`, biases `[experts]`.
  Routing<Real> forward(MatrixView<const Real> x, std::span<const float> biases,
                        const Executor& executor) const;
  /// The part after the product with W_r: logits `[tokens, experts]` to choices and weights.
  Routing<Real> route(Matrix<Real> logits, std::span<const float> biases) const;

  /// From the gradient of the weights dp `[tokens, top_k]`: adds the gradient of W_r, writes dx.
  void backward(MatrixView<const Real> x, const Routing<Real>& routing, MatrixView<const Real> dp,
                MatrixView<Real> dx, const Executor& executor);

  Linear<Real> gate;

 private:
  Matrix<Real> logit_gradient(const Routing<Real>& routing, MatrixView<const Real> dp) const;

  RouterSettings settings_;
};

}  // namespace ballast
