#include "sim/scenario/work.h"

#include "sim/scenario/memory.h"
#include "sim/tokens/make_source.h"

namespace ballast::sim {
namespace {

double product(std::initializer_list<std::size_t> factors) {
  double result = 1.0;
  for (const std::size_t factor : factors) result *= static_cast<double>(factor);
  return result;
}

/// Multiply-adds of one token's forward.
double token_work(const Scenario& s) {
  const StableLatentMoESettings& moe = s.model.moe;
  const std::size_t hidden = moe.router.hidden;
  const double layer = product({hidden, moe.router.routed_experts}) +
                       product({2, moe.latent, hidden}) +
                       product({3, moe.router.top_k, moe.latent, moe.expert_inner}) +
                       product({3, moe.shared_experts, hidden, moe.shared_inner});
  return static_cast<double>(s.model.layers) * layer + product({vocabulary_of(s.tokens), hidden});
}

}  // namespace

double estimate_work(const Scenario& s) {
  // The way back takes twice the way forward; an optimizer step touches each parameter a few times.
  const double tokens = product(
      {s.training.ranks, s.training.micro_batches, s.training.sequences, s.tokens.sequence_length});
  const double step = 3.0 * tokens * token_work(s) + 10.0 * static_cast<double>(parameter_count(s));
  const double evaluation =
      s.training.evaluate_every == 0
          ? 0.0
          : product({s.training.evaluate_sequences, s.tokens.sequence_length}) * token_work(s) /
                static_cast<double>(s.training.evaluate_every);
  return static_cast<double>(s.training.steps) * (step + evaluation);
}

}  // namespace ballast::sim
