#include "core/model/router_losses.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "core/arithmetic/reductions.h"

namespace ballast {

namespace {

void check_coefficient(const char* name, double coefficient) {
  if (coefficient >= 0.0 && std::isfinite(coefficient)) return;
  throw std::invalid_argument(std::string("router losses: ") + name + " is " + std::to_string(coefficient) +
                              ", not finite and at least 0");
}

bool counts_top_1(AuxFormula formula) {
  return formula == AuxFormula::switch_top_1 || formula == AuxFormula::gshard;
}

/// w_j / (L_j / m).
double weight_of_share(const RouterLossSettings& settings, std::size_t experts, std::size_t top_k) {
  const auto n = static_cast<double>(experts);
  switch (settings.aux) {
    case AuxFormula::none:
      return 0.0;
    case AuxFormula::megatron:
      return settings.aux_coefficient * n / static_cast<double>(top_k);
    case AuxFormula::without_k:
    case AuxFormula::switch_top_1:
      return settings.aux_coefficient * n;
    case AuxFormula::gshard:
      return settings.aux_coefficient / n;
  }
  throw std::invalid_argument("router losses: there is no such formula");
}

constexpr double denominator_guard = 1e-20;  ///< as in Megatron-LM

}  // namespace

std::vector<double> aux_weights(const RouterLossSettings& settings, std::span<const std::int64_t> counts,
                                std::int64_t tokens, std::size_t top_k) {
  const double of_share = weight_of_share(settings, counts.size(), top_k);
  std::vector<double> weights;
  for (const std::int64_t count : counts) {
    weights.push_back(of_share * (static_cast<double>(count) / static_cast<double>(tokens)));
  }
  return weights;
}

template <class Real>
RouterLosses<Real>::RouterLosses(const RouterLossSettings& settings, const RouterSettings& router)
    : settings_(settings), router_(router), step_counts_(router.routed_experts) {
  check_coefficient("aux_coefficient", settings.aux_coefficient);
  check_coefficient("z_coefficient", settings.z_coefficient);
}

template <class Real>
std::size_t RouterLosses<Real>::counted_choices() const {
  return counts_top_1(settings_.aux) ? 1 : router_.top_k;
}

template <class Real>
void RouterLosses<Real>::forward(const Routing<Real>& routing, std::span<const std::uint8_t> valid,
                                 std::size_t sequence_length, bool recompute) {
  const std::size_t tokens = routing.scores.rows();
  const bool by_sequence = settings_.aux_scope == AuxScope::sequence && sequence_length > 0;
  rows_ = std::max<std::size_t>(1, by_sequence ? sequence_length : tokens);
  if (tokens % rows_ != 0) {
    throw std::invalid_argument("router losses: " + std::to_string(tokens) + " tokens are no whole sequences of " +
                                std::to_string(rows_));
  }
  valid_.assign(valid.begin(), valid.end());
  if (has_aux()) weigh_sequences(routing, recompute);
}

template <class Real>
void RouterLosses<Real>::weigh_sequences(const Routing<Real>& routing, bool recompute) {
  const std::size_t experts = router_.routed_experts;
  const std::vector<float> unbiased(experts, 0.0f);
  const auto selection = select_top_k<Real>(routing.scores, unbiased, counted_choices());
  const auto indices = selection.indices.view();
  weights_ = {valid_.size() / rows_, experts};
  for (std::size_t sequence = 0; sequence < weights_.rows(); ++sequence) {
    const auto valid = std::span<const std::uint8_t>(valid_).subspan(sequence * rows_, rows_);
    std::vector<std::int64_t> counts(experts);
    count_assignments(indices.block(sequence * rows_, rows_), valid, counts);
    const auto tokens = static_cast<std::int64_t>(valid.size()) - std::ranges::count(valid, std::uint8_t{0});
    if (tokens > 0) std::ranges::copy(weigh_counts(counts, tokens, recompute), weights_.row(sequence).begin());
  }
}

template <class Real>
std::vector<double> RouterLosses<Real>::weigh_counts(std::span<const std::int64_t> counts, std::int64_t tokens,
                                                     bool recompute) {
  if (settings_.aux_scope != AuxScope::global) return aux_weights(settings_, counts, tokens, router_.top_k);
  if (!recompute) {
    for (std::size_t j = 0; j < counts.size(); ++j) step_counts_[j] += counts[j];
    step_tokens_ += tokens;
  }
  return aux_weights(settings_, step_counts_, step_tokens_, router_.top_k);
}

template <class Real>
void RouterLosses<Real>::probabilities(const Routing<Real>& routing, std::size_t token, std::span<Real> p) const {
  if (router_.score != ScoreFunction::sigmoid) {
    std::ranges::copy(gates_of(routing).row(token), p.begin());
    return;
  }
  const auto s = routing.scores.row(token);
  const Real denominator = arithmetic::sum(s) + static_cast<Real>(denominator_guard);
  for (std::size_t j = 0; j < p.size(); ++j) p[j] = s[j] / denominator;
}

// d(sum_j w_j p_j) of one token. softmax: dz_j = p_j (w_j - sum_l w_l p_l);
// sigmoid: ds_j = (w_j - sum_l w_l p_l) / S with p = s / S, and dz_j = ds_j s_j (1 - s_j).
template <class Real>
void RouterLosses<Real>::add_aux_gradient(const Routing<Real>& routing, std::size_t token, Real scale,
                                          std::span<Real> dz) const {
  std::vector<Real> p(dz.size());
  probabilities(routing, token, p);
  const auto w = weights_of(token);
  Real mean{0};
  for (std::size_t j = 0; j < dz.size(); ++j) mean = std::fma(static_cast<Real>(w[j]), p[j], mean);
  const bool sigmoid = router_.score == ScoreFunction::sigmoid;
  const auto s = routing.scores.row(token);
  for (std::size_t j = 0; j < dz.size(); ++j) {
    const Real slope = sigmoid ? p[j] * (Real{1} - s[j]) : p[j];  // s / S is p
    dz[j] += scale * slope * (static_cast<Real>(w[j]) - mean);
  }
}

// d(c lse(z)^2) = 2 c lse(z) softmax(z).
template <class Real>
void RouterLosses<Real>::add_z_gradient(const Routing<Real>& routing, std::size_t token, Real scale,
                                        std::span<Real> dz) const {
  const auto z = routing.logits.row(token);
  std::vector<Real> p(z.size());
  arithmetic::softmax(z, p);
  const Real factor = scale * static_cast<Real>(2.0 * settings_.z_coefficient) * arithmetic::log_sum_exp(z);
  for (std::size_t j = 0; j < dz.size(); ++j) dz[j] = std::fma(factor, p[j], dz[j]);
}

template <class Real>
void RouterLosses<Real>::add_gradient(const Routing<Real>& routing, Real scale, MatrixView<Real> dz) const {
  for (std::size_t t = 0; t < valid_.size(); ++t) {
    if (valid_[t] == 0) continue;
    if (has_aux()) add_aux_gradient(routing, t, scale, dz.row(t));
    if (has_z()) add_z_gradient(routing, t, scale, dz.row(t));
  }
}

template <class Real>
RouterLossValues RouterLosses<Real>::values(const Routing<Real>& routing) const {
  RouterLossValues sum;
  std::vector<Real> p(router_.routed_experts);
  for (std::size_t t = 0; t < valid_.size(); ++t) {
    if (valid_[t] == 0) continue;
    if (has_aux()) {
      probabilities(routing, t, p);
      const auto w = weights_of(t);
      for (std::size_t j = 0; j < p.size(); ++j) sum.aux += w[j] * static_cast<double>(p[j]);
    }
    if (has_z()) {
      const auto lse = static_cast<double>(arithmetic::log_sum_exp(routing.logits.row(t)));
      sum.z += settings_.z_coefficient * lse * lse;
    }
  }
  const auto tokens = static_cast<double>(valid_.size()) - static_cast<double>(std::ranges::count(valid_, std::uint8_t{0}));
  if (tokens > 0.0) sum = {.aux = sum.aux / tokens, .z = sum.z / tokens};
  return sum;
}

template <class Real>
void RouterLosses<Real>::end_step() {
  std::ranges::fill(step_counts_, 0);
  step_tokens_ = 0;
}

template class RouterLosses<float>;
template class RouterLosses<double>;

}  // namespace ballast
