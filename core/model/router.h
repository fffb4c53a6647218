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
  Matrix<Real> logits;           ///< z, if the router keeps them, else empty
  Selection<Real> selection;     ///< by s + b
  Matrix<std::int32_t> kept;     ///< the indices with no_expert for what was dropped; empty without a capacity
  Matrix<Real> weights;          ///< p `[tokens, slots]`, in the order of the selection, from unbiased scores
  std::vector<Real> weight_sums;  ///< sum of the chosen gates, `[tokens]`, when weights are renormalised
  std::vector<std::uint8_t> finite;  ///< `[tokens]`: 1 when every score of the row is finite

  /// The experts that run, `[tokens, slots]`.
  const Matrix<std::int32_t>& dispatched() const { return kept.rows() > 0 ? kept : selection.indices; }
};

/// What weights are made of.
template <class Real>
const Matrix<Real>& gates_of(const Routing<Real>& routing) {
  return routing.gates.rows() != 0 ? routing.gates : routing.scores;
}

/// What a rule of assignment has to know of a batch.
struct RoutingContext {
  std::span<const std::uint8_t> valid = {};  ///< `[tokens]`, or empty: all are
  bool training = true;
};

/// s = score(W_r x);  T = the k largest of s + b (inside the best groups, if limited);  p_j = s_j / (sum over T of s + 1e-20) * routed_scale.
/// Source: Kimi K3 report Eq. 13 and its released inference code. Weights never see b.
///
/// A logit that is not finite is routed like any other value, by the total order of select_top_k: exactly k
/// distinct experts always. sigmoid takes +-infinity to 1 and 0, which are ordinary scores; a row in which a
/// score is not finite has `finite` 0, and the balancer does not observe it.
/// T is chosen by another rule if the settings say so (AssignmentRule), and then the number of experts can vary from
/// token to token. With a capacity, what goes beyond it gets weight 0 and does not run; the other weights of the token
/// stay as they are, divided by the sum of all that were chosen (Megatron-LM).
/// With score = logit the bias lives in logit space and weights are those of softmax.
template <class Real>
class Router : public Module {
 public:
  /// Throws std::invalid_argument unless 1 <= top_k <= routed_experts and the groups fit both.
  /// `keep_logits`: for who needs Routing::logits.
  explicit Router(const RouterSettings& settings, bool keep_logits = false);

  const RouterSettings& settings() const { return settings_; }

  /// Full-width tokens x `[tokens, hidden]`, biases `[experts]`.
  Routing<Real> forward(MatrixView<const Real> x, std::span<const float> biases,
                        const Executor& executor, const RoutingContext& context = {}) const;
  /// The same, into what holds an earlier batch, whose memory is used again where shapes allow.
  void forward_in_place(MatrixView<const Real> x, Routing<Real>& routing, std::span<const float> biases,
                        const Executor& executor, const RoutingContext& context = {}) const;
  /// The part after the product with W_r: logits `[tokens, experts]` to choices and weights.
  Routing<Real> route(Matrix<Real> logits, std::span<const float> biases,
                      const RoutingContext& context = {}) const;
  /// The same for the logits that `routing.scores` holds and loses. What else `routing` holds, of an earlier batch, is
  /// overwritten, and its memory used again where shapes allow.
  void route_in_place(Routing<Real>& routing, std::span<const float> biases,
                      const RoutingContext& context = {}) const;

  /// dz `[tokens, experts]` from the gradient of the weights dp `[tokens, slots]`.
  Matrix<Real> logit_gradient(const Routing<Real>& routing, MatrixView<const Real> dp) const;
  /// From dz: adds the gradient of W_r, writes dx.
  void backward(MatrixView<const Real> x, MatrixView<const Real> dz, MatrixView<Real> dx, const Executor& executor);

  Linear<Real> gate;

 private:
  bool chooses_by_token(const RoutingContext& context) const;
  Selection<Real> choose(const Routing<Real>& routing, std::span<const float> biases,
                         const RoutingContext& context) const;
  void route_by_kernels(Routing<float>& routing, std::span<const float> biases) const;

  RouterSettings settings_;
  bool keep_logits_;
};

}  // namespace ballast
