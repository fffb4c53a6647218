#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/executor.h"
#include "core/metrics/forward_backward_output.h"
#include "core/model/language_model.h"
#include "core/state.h"
#include "sim/scenario/scenario.h"
#include "sim/tokens/token_source.h"
#include "sim/trainer/adamw.h"
#include "sim/trainer/loss_scale.h"
#include "sim/trainer/routing_observer.h"

namespace ballast::sim {

/// Assignments by layer and expert, `[layers][experts]`, of valid tokens.
using Loads = std::vector<std::vector<std::int64_t>>;

/// What an optimizer step came to.
struct StepOutcome {
  bool applied = true;  ///< false: a gradient was not finite, nothing was updated
  double loss = 0.0;    ///< mean cross-entropy over the step's valid tokens, nat; NaN without any
  double loss_scale = 1.0;  ///< that was in force during the step
  std::int64_t tokens = 0;  ///< valid tokens of all micro-batches and ranks
  Loads loads;
  /// `drop_rate`, the share of assignments dropped for want of capacity; `unserved_tokens`, the share of tokens that no
  /// routed expert ran for, where that can be, mean over layers; `aux_loss` and `z_loss`, coefficients included
  /// and not part of `loss`, means over layers and valid tokens: only what the scenario turns on, and none without a
  /// valid token. `router_gradient`: the norm of the gradient of all router gates over that of all parameters.
  std::map<std::string, double> router_figures = {};
  /// Different inputs among the valid tokens: token ids, or rows of drawn scores; 0 when not counted.
  std::int64_t distinct_inputs = 0;
};

/// What an evaluation forward came to.
struct Evaluated {
  ForwardBackwardOutput output;  ///< as that of `forward_backward`
  double loss = 0.0;             ///< mean over valid tokens, nat; NaN without any
  Loads loads;
};

/// Trains the next-token model of a scenario, called as Tinker's training clients are:
/// `forward_backward` for every micro-batch of every simulated data-parallel rank, then
/// `optim_step`.
///
/// Router losses go into the gradients by their valid tokens, so that the step's mean over tokens is theirs too.
///
/// Ranks hold the same parameters, so one model stands for all. Gradients and losses are sums over valid
/// tokens that run on in token order from call to call, and the step divides by the number of tokens: how a
/// global batch is split into micro-batches and ranks changes no bit, as long as its tokens come in the same
/// order and the balancer pools them.
class Trainer {
 public:
  Trainer(const Scenario& scenario, std::size_t vocabulary, const Executor& executor);

  /// Adds the gradients of one micro-batch of one rank. One record a sequence: `logprobs`
  /// `[length]`, the log probability of each target (0 at padding); metrics: `loss:sum` and
  /// `tokens:sum` over valid tokens, and the five MoE keys of this micro-batch's loads.
  ForwardBackwardOutput forward_backward(const TokenBatch& batch, std::size_t rank);
  /// Closes the step: updates parameters by AdamW and lets the balancers update, unless a gradient
  /// is not finite.
  StepOutcome optim_step();

  /// A forward in evaluation mode: no balancer, collector or parameter sees it.
  Evaluated evaluate(const TokenBatch& batch);

  /// Shows the routing of every later training forward to `observer`, which outlives them; null: to nobody.
  void observe(RoutingObserver* observer) { observer_ = observer; }

  void set_learning_rate(double rate) { optimizer_.set_learning_rate(rate); }

  /// Makes the step under way overflow, as a fault to inject.
  void inject_overflow();

  /// Everything that later steps depend on: parameters, optimizer, balancers, loss scale. Between
  /// steps only: std::logic_error while gradients are pending. A collector's counts are no part of
  /// it.
  StateDict state() const;
  void load_state(const StateDict& state);

  LanguageModel<float>& model() { return model_; }
  const Executor& executor() const { return executor_; }

 private:
  const Matrix<float>& logit_gradient(const TokenBatch& batch, MatrixView<const float> logits,
                                      const std::vector<float>& log_sums);
  Loads loads_of(const TokenBatch& batch);
  void show_routing();
  void add_router_figures(const TokenBatch& batch);
  /// From the sums of squares of all gradients, as is the next.
  std::map<std::string, double> router_figures(std::span<const double> squares) const;
  void begin_step();
  double router_gradient(std::span<const double> squares) const;

  const Executor& executor_;
  RoutingObserver* observer_ = nullptr;
  mutable LanguageModel<float> model_;
  AdamW optimizer_;
  LossScale loss_scale_;
  std::size_t experts_;
  BalancerFault fault_;
  Matrix<float> dlogits_;

  // The step under way.
  bool pending_ = false;
  double loss_sum_ = 0.0;
  std::int64_t tokens_ = 0;
  Loads loads_;
  std::int64_t dropped_ = 0;   ///< sums over layers, like the next
  std::int64_t unserved_ = 0;
  RouterLossValues loss_values_;  ///< sums over layers and valid tokens
};

}  // namespace ballast::sim
