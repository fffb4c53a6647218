#include "core/model/stable_latent_moe.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "core/model/elementwise.h"

namespace ballast {

namespace {

/// Balancers are fp32, whatever the model computes in.
template <class Real, class Use>
void in_fp32(std::size_t rows, std::size_t cols, std::span<const Real> values, Use use) {
  if constexpr (std::is_same_v<Real, float>) {
    use(MatrixView<const float>(values.data(), rows, cols));
  } else {
    Matrix<float> converted(rows, cols);
    for (std::size_t i = 0; i < values.size(); ++i) {
      converted.values()[i] = static_cast<float>(values[i]);
    }
    use(MatrixView<const float>(converted));
  }
}

}  // namespace

template <class Real>
StableLatentMoE<Real>::StableLatentMoE(const StableLatentMoESettings& settings,
                                       std::unique_ptr<Balancer> balancer)
    : router(settings.router, settings.losses.z_coefficient > 0.0),
      down(settings.latent, settings.router.hidden),
      experts(settings.router.routed_experts, settings.latent, settings.expert_inner, settings.activation),
      up(settings.router.hidden, settings.latent),
      settings_(settings),
      balancer_(std::move(balancer)),
      losses_(settings.losses, settings.router) {
  if (balancer_ == nullptr || balancer_->biases().size() != settings.router.routed_experts) {
    throw std::invalid_argument("StableLatentMoE: the balancer is not of the model's " +
                                std::to_string(settings.router.routed_experts) + " routed experts");
  }
  this->add_module("router", router);
  this->add_module("down", down);
  this->add_module("experts", experts);
  if (settings.aggregate_norm) this->add_module("norm", norm.emplace(settings.latent, settings.norm_eps));
  this->add_module("up", up);
  if (settings.shared_experts > 0) {
    this->add_module("shared", shared.emplace(settings.router.hidden,
                                              settings.shared_experts * settings.shared_inner,
                                              settings.activation));
  }
}

template <class Real>
const Matrix<Real>& StableLatentMoE<Real>::forward(MatrixView<const Real> x,
                                                   const ForwardContext& context) {
  const std::size_t tokens = x.rows();
  const Executor& executor = context.executor;
  if (x.cols() != settings_.router.hidden ||
      (!context.valid.empty() && context.valid.size() != tokens)) {
    throw std::invalid_argument("StableLatentMoE: tokens or mask have another shape than [tokens, " +
                                std::to_string(settings_.router.hidden) + "] and [tokens]");
  }
  auto& [z, y, part, daggregate, dz, dp, dx] = scratch_;
  cache_.x.reshape(tokens, x.cols());
  std::ranges::copy(x.values(), cache_.x.data());
  router.forward_in_place(x, cache_.routing, balancer_->biases(), executor,
                          {.valid = context.valid, .training = this->training()});

  z.reshape(tokens, settings_.latent);
  down.forward(x, z, executor);
  cache_.aggregate.reshape(tokens, settings_.latent);
  experts.forward(z, cache_.routing.dispatched(), cache_.routing.weights, cache_.experts,
                  cache_.aggregate, executor);
  if (norm) {
    cache_.normed.reshape(tokens, settings_.latent);
    norm->forward(cache_.aggregate, cache_.normed, cache_.inverse_rms);
  } else {
    cache_.normed = cache_.aggregate;
  }
  y.reshape(tokens, x.cols());
  up.forward(cache_.normed, y, executor);
  if (shared) {
    cache_.shared.reshape(tokens, settings_.shared_experts * settings_.shared_inner);
    part.reshape(tokens, x.cols());
    shared->forward(x, cache_.shared, 0, part, executor);
    add_to<Real>(y.values(), part.values());
  }
  take_losses(context);
  if (this->training() && !context.recompute) {
    count(context);
    observe(context);
  }
  return y;
}

template <class Real>
void StableLatentMoE<Real>::count(const ForwardContext& context) {
  if (!expert_load_counts_) return;
  count_assignments(cache_.routing.selection.indices, context.valid, *expert_load_counts_);
}

template <class Real>
std::vector<std::uint8_t> StableLatentMoE<Real>::valid_rows(const ForwardContext& context) const {
  std::vector<std::uint8_t> valid = cache_.routing.finite;
  for (std::size_t t = 0; t < context.valid.size(); ++t) valid[t] = valid[t] && context.valid[t];
  return valid;
}

template <class Real>
void StableLatentMoE<Real>::take_losses(const ForwardContext& context) {
  cache_.loss_scale = static_cast<Real>(context.loss_scale);
  if (this->training() && losses_.on()) {
    losses_.forward(cache_.routing, valid_rows(context), context.sequence_length, context.recompute);
  } else {
    losses_.skip();
  }
}

template <class Real>
void StableLatentMoE<Real>::end_step(bool applied) {
  balancer_->end_step(applied);
  losses_.end_step();
}

template <class Real>
void StableLatentMoE<Real>::observe(const ForwardContext& context) {
  const auto& routing = cache_.routing;
  const auto valid = valid_rows(context);
  const auto& scores = routing.scores;
  in_fp32<Real>(scores.rows(), scores.cols(), scores.values(), [&](MatrixView<const float> s) {
    const auto& cutoffs = routing.selection.cutoffs;
    in_fp32<Real>(1, cutoffs.size(), cutoffs, [&](MatrixView<const float> alpha) {
      balancer_->observe({.scores = s,
                          .cutoffs = alpha.values(),
                          .indices = routing.selection.indices,
                          .valid = valid,
                          .rank = context.rank,
                          .sequence_length = context.sequence_length,
                          .kept = routing.kept});
    });
  });
}

template <class Real>
const Matrix<Real>& StableLatentMoE<Real>::backward(MatrixView<const Real> dy,
                                                    const Executor& executor) {
  const std::size_t tokens = cache_.x.rows(), hidden = cache_.x.cols();
  auto& [z, y, part, daggregate, dz, dp, dx] = scratch_;
  daggregate.reshape(tokens, settings_.latent);
  up.backward_weight(cache_.normed, dy, executor);
  up.backward_input(dy, daggregate, executor);
  if (norm) norm->backward(cache_.aggregate, cache_.inverse_rms, daggregate, daggregate);

  dz.reshape(tokens, settings_.latent);
  dp.reshape(tokens, cache_.routing.weights.cols());
  experts.backward(cache_.experts, cache_.routing.weights, daggregate, dz, dp, executor);

  dx.reshape(tokens, hidden);
  part.reshape(tokens, hidden);
  down.backward_weight(cache_.x, dz, executor);
  down.backward_input(dz, dx, executor);
  Matrix<Real> dlogits = router.logit_gradient(cache_.routing, dp);
  losses_.add_gradient(cache_.routing, cache_.loss_scale, dlogits);
  router.backward(cache_.x, dlogits, part, executor);
  add_to<Real>(dx.values(), part.values());
  if (shared) {
    shared->backward(cache_.x, cache_.shared, 0, dy, part, executor);
    add_to<Real>(dx.values(), part.values());
  }
  return dx;
}

template class StableLatentMoE<float>;
template class StableLatentMoE<double>;

}  // namespace ballast
