#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "core/model/stable_latent_moe.h"

/// One StableLatentMoE layer written down as slowly and obviously as possible, straight from the equations
/// (Kimi K3 report Eq. 11-13, 18, 19), with the C library's functions: an oracle for the real one.
namespace ballast::test {

using Vector = std::vector<double>;

template <class Real>
Vector times(const Parameter<Real>& weight, const Vector& x) {
  Vector y(weight.value.rows(), 0.0);
  for (std::size_t o = 0; o < y.size(); ++o) {
    for (std::size_t i = 0; i < x.size(); ++i) y[o] += static_cast<double>(weight.value(o, i)) * x[i];
  }
  return y;
}

inline double logistic(double z) { return 1.0 / (1.0 + std::exp(-z)); }

template <class Real>
Vector reference_glu(const Glu<Real>& glu, Activation activation, const Vector& x) {
  const Vector g = times(glu.gate.weight, x), u = times(glu.up.weight, x);
  Vector h(g.size());
  for (std::size_t i = 0; i < h.size(); ++i) {
    h[i] = activation == Activation::situ
               ? 4.0 * std::tanh(g[i] / 4.0) * logistic(g[i]) * 25.0 * std::tanh(u[i] / 25.0)
               : g[i] * logistic(g[i]) * u[i];
  }
  return times(glu.down.weight, h);
}

struct ReferenceRouting {
  Vector scores, weights;
  std::vector<std::int32_t> experts;  ///< best first, chosen by a full sort
};

inline ReferenceRouting reference_routing(const RouterSettings& settings, const Vector& logits,
                                          std::span<const float> biases) {
  Vector sigmoid(logits.size()), softmax(logits.size());
  const double largest = *std::ranges::max_element(logits);
  double total = 0.0;
  for (const double z : logits) total += std::exp(z - largest);
  for (std::size_t j = 0; j < logits.size(); ++j) {
    sigmoid[j] = logistic(logits[j]);
    softmax[j] = std::exp(logits[j] - largest) / total;
  }
  const bool by_sigmoid = settings.score == ScoreFunction::sigmoid;
  ReferenceRouting routing;
  routing.scores = by_sigmoid ? sigmoid : settings.score == ScoreFunction::softmax ? softmax : logits;
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    return routing.scores[i] + biases[i] > routing.scores[j] + biases[j];
  });
  order.resize(settings.top_k);
  routing.experts = order;
  const Vector& gates = by_sigmoid ? sigmoid : softmax;
  double sum = 0.0;
  for (const std::int32_t j : order) sum += gates[static_cast<std::size_t>(j)];
  for (const std::int32_t j : order) {
    const double gate = gates[static_cast<std::size_t>(j)];
    routing.weights.push_back((settings.renormalize ? gate / (sum + 1e-20) : gate) * settings.routed_scale);
  }
  return routing;
}

template <class Real>
Vector reference_moe(StableLatentMoE<Real>& moe, const Vector& x) {
  const auto& settings = moe.settings();
  const auto routing = reference_routing(settings.router, times(moe.router.gate.weight, x), moe.biases());
  const Vector z = times(moe.down.weight, x);
  Vector u(settings.latent, 0.0);
  for (std::size_t slot = 0; slot < routing.experts.size(); ++slot) {
    const auto& expert = moe.experts.expert(static_cast<std::size_t>(routing.experts[slot]));
    const Vector out = reference_glu(expert, settings.activation, z);
    for (std::size_t i = 0; i < u.size(); ++i) u[i] += routing.weights[slot] * out[i];
  }
  if (moe.norm) {
    double mean = 0.0;
    for (const double v : u) mean += v * v / static_cast<double>(u.size());
    for (std::size_t i = 0; i < u.size(); ++i) {
      u[i] *= static_cast<double>(moe.norm->gain.value(0, i)) / std::sqrt(mean + settings.norm_eps);
    }
  }
  Vector y = times(moe.up.weight, u);
  if (moe.shared) {
    const Vector s = reference_glu(*moe.shared, settings.activation, x);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += s[i];
  }
  return y;
}

}  // namespace ballast::test
