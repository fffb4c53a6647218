#include "sim/scenario/memory.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <limits>

#include "sim/input_error.h"
#include "sim/text/printable.h"
#include "sim/tokens/make_source.h"

namespace ballast::sim {
namespace {

constexpr std::uint64_t beyond = std::numeric_limits<std::uint64_t>::max();

std::uint64_t sum(std::initializer_list<std::uint64_t> terms) {
  std::uint64_t total = 0;
  for (const std::uint64_t term : terms) total = term > beyond - total ? beyond : total + term;
  return total;
}

std::uint64_t product(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t total = 1;
  for (const std::uint64_t factor : factors) {
    if (factor == 0) return 0;
    total = total > beyond / factor ? beyond : total * factor;
  }
  return total;
}

std::uint64_t layer_parameters(const StableLatentMoESettings& moe) {
  const std::uint64_t hidden = moe.router.hidden;
  const std::uint64_t routed =
      product({moe.router.routed_experts, 3, moe.latent, moe.expert_inner});
  const std::uint64_t shared = product({moe.shared_experts, 3, hidden, moe.shared_inner});
  const std::uint64_t router = product({moe.router.routed_experts, hidden});
  const std::uint64_t projections = product({2, moe.latent, hidden});
  return sum({routed, shared, router, projections, moe.latent, hidden});
}

std::uint64_t parameters(const Scenario& s) {
  if (s.mode == Mode::router_only) return 0;
  const std::uint64_t hidden = s.model.moe.router.hidden;
  return sum({product({2, vocabulary_of(s.tokens), hidden}), hidden,
              product({s.model.layers, layer_parameters(s.model.moe)})});
}

/// A checkpoint holds values and both moments.
std::uint64_t checkpoints(const Scenario& s) {
  const bool any = s.training.checkpoint_every > 0 || !s.training.restart_after.empty();
  return any ? product({parameters(s), 3, sizeof(float)}) : 0;
}

/// Logits, probabilities and plans `[tokens, experts]` that rules and losses make of a token, in fp32.
std::uint64_t routing_extras(const Scenario& s) {
  const std::uint64_t experts = s.model.moe.router.routed_experts;
  switch (s.balancer.kind) {
    case BalancerKind::sinkhorn:  // logits, and the plan in double
      return product({3, experts});
    case BalancerKind::optimal:  // scores in 64 bits, and the assignment
      return product({3, experts});
    default:
      return s.model.moe.losses.z_coefficient > 0.0 ? experts : 0;
  }
}

std::uint64_t routing_extras_bytes(const Scenario& s) {
  return product({routing_extras(s), sizeof(float)});
}

/// Layers that are in memory together when routers alone run side by side, on as many threads.
std::uint64_t layers_at_once(const Scenario& s) {
  constexpr std::size_t threads = 8;
  return std::min(s.model.layers, threads);
}

/// Logits or scores of a micro-batch, choices and weights, in the layers that run side by side; and
/// the tokens of a step with their rows.
std::uint64_t drawn_scores(const Scenario& s) {
  constexpr std::uint64_t bytes_of_token = 40;
  const std::uint64_t tokens = product({s.training.sequences, s.tokens.sequence_length});
  const std::uint64_t of_token =
      sum({product({s.model.moe.router.routed_experts, sizeof(float)}),
           product({2, s.model.moe.router.top_k, sizeof(float)})});
  return sum({product({layers_at_once(s), tokens, sum({of_token, routing_extras_bytes(s)})}),
              product({bytes_of_token, tokens, s.training.ranks, s.training.micro_batches})});
}

/// Values that forward keeps for backward, and the gradients of as many.
std::uint64_t activations(const Scenario& s) {
  if (s.mode == Mode::router_only) return drawn_scores(s);
  const StableLatentMoESettings& moe = s.model.moe;
  const std::uint64_t routed =
      product({moe.router.top_k, sum({product({2, moe.latent}), product({3, moe.expert_inner})})});
  const std::uint64_t shared = product({moe.shared_experts, 3, moe.shared_inner});
  const std::uint64_t layer =
      sum({product({4, moe.router.hidden}), product({3, moe.router.routed_experts}),
           product({2, moe.latent}), routed, shared, routing_extras(s)});
  const std::uint64_t token = sum({product({s.model.layers, layer}), vocabulary_of(s.tokens)});
  const std::uint64_t sequences =
      std::max(s.training.sequences,
               s.training.evaluate_every > 0 ? s.training.evaluate_sequences : std::size_t{0});
  return product({2, sequences, s.tokens.sequence_length, token, sizeof(float)});
}

/// `exact` keeps each required bias of a step; the others sums or counts for each expert.
std::uint64_t observations(const Scenario& s, const QuantileSettings& quantile) {
  // Routers alone go through a step layer by layer, and keep nothing of it unless it is skipped.
  const bool in_turn = s.mode == Mode::router_only &&
                       (s.training.overflow_steps.empty() ||
                        quantile.on_skipped_step == SkippedStep::discard);
  const std::uint64_t layers = in_turn ? layers_at_once(s) : s.model.layers;
  const std::uint64_t experts = product({layers, s.model.moe.router.routed_experts});
  switch (quantile.estimator) {
    case QuantileEstimatorKind::exact:
      return product({experts, s.training.ranks, s.training.micro_batches, s.training.sequences,
                      s.tokens.sequence_length, sizeof(float)});
    case QuantileEstimatorKind::histogram:
      return product({experts, quantile.bins, sizeof(std::int64_t) + sizeof(std::uint16_t)});
    case QuantileEstimatorKind::microbatch_mean:
    case QuantileEstimatorKind::chunk_mean:
    case QuantileEstimatorKind::sequence_mean:
      break;
  }
  return product({experts, s.training.sequences, s.tokens.sequence_length, sizeof(float)});
}

std::uint64_t observations(const Scenario& s) {
  switch (s.balancer.kind) {
    case BalancerKind::quantile:
      return observations(s, s.balancer.quantile);
    case BalancerKind::threshold:
      return observations(s, s.balancer.threshold);
    case BalancerKind::sign:
    case BalancerKind::smebu:
      return product({s.model.layers, s.model.moe.router.routed_experts, sizeof(std::int64_t)});
    case BalancerKind::sinkhorn:
    case BalancerKind::expert_choice:
    case BalancerKind::optimal:
    case BalancerKind::none:
      break;
  }
  return 0;
}

/// What is remembered of every step to the end: its figures, and the loads of each layer.
std::uint64_t records(const Scenario& s) {
  constexpr std::uint64_t figures = 1200, vector = 32;
  const std::uint64_t loads =
      sum({product({s.model.moe.router.routed_experts, sizeof(std::int64_t)}), vector});
  return product({s.training.steps, sum({figures, product({s.model.layers, loads})})});
}

/// An order of the vocabulary for each topic, and one alias table.
std::uint64_t token_tables(const TokenSettings& tokens) {
  if (tokens.source != TokenSourceKind::mixture) return 0;
  return sum({product({tokens.topics, tokens.vocabulary, sizeof(std::int32_t)}),
              product({tokens.vocabulary, 4, sizeof(double)})});
}

std::uint64_t token_file(const TokenSettings& tokens) {
  const bool of_file =
      tokens.source == TokenSourceKind::text || tokens.source == TokenSourceKind::recorded;
  if (!of_file) return 0;
  std::error_code unknown;
  const auto bytes = std::filesystem::file_size(tokens.file, unknown);
  return unknown ? 0 : bytes;
}

std::string readable(std::uint64_t bytes) {
  if (bytes == beyond) return "more than 2^64 bytes";
  constexpr double mib = 1024.0 * 1024.0, gib = 1024.0 * mib;
  const auto size = static_cast<double>(bytes);
  return size < gib ? fixed(size / mib, 0) + " MiB" : fixed(size / gib, 1) + " GiB";
}

/// About how much runs take together, and of what most of it is.
std::string described(std::uint64_t total, const MemoryTerm& largest) {
  return "about " + readable(total) + ", most of it for " + largest.name + " (" +
         readable(largest.bytes) + ")";
}

struct Together {
  std::uint64_t total = 0;
  MemoryTerm largest;
};

Together estimate_together(std::span<const Scenario> runs) {
  Together all;
  for (const Scenario& run : runs) {
    const MemoryEstimate estimate = estimate_memory(run);
    all.total = sum({all.total, estimate.bytes()});
    if (estimate.largest().bytes > all.largest.bytes) all.largest = estimate.largest();
  }
  return all;
}

}  // namespace

std::uint64_t MemoryEstimate::bytes() const {
  std::uint64_t total = 0;
  for (const MemoryTerm& term : terms) total = sum({total, term.bytes});
  return total;
}

const MemoryTerm& MemoryEstimate::largest() const {
  return *std::max_element(terms.begin(), terms.end(),
                           [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
}

MemoryEstimate estimate_memory(const Scenario& scenario) {
  return {.terms = {{"parameters, gradients and moments",
                     product({parameters(scenario), 4, sizeof(float)})},
                    {"checkpoints", checkpoints(scenario)},
                    {"activations of a micro-batch", activations(scenario)},
                    {"pending observations of the balancer", observations(scenario)},
                    {"records of the steps", records(scenario)},
                    {"token tables", token_tables(scenario.tokens)},
                    {"the file of tokens", token_file(scenario.tokens)}}};
}

std::uint64_t parameter_count(const Scenario& scenario) {
  return parameters(scenario);
}

std::uint64_t default_memory_limit_bytes() {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page_bytes = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  return product({pages, page_bytes}) / 5 * 4;
}

std::string memory_text(const MemoryEstimate& estimate) {
  return described(estimate.bytes(), estimate.largest());
}

std::string memory_text(std::span<const Scenario> runs) {
  const auto [total, largest] = estimate_together(runs);
  return described(total, largest);
}

void check_memory(std::span<const Scenario> runs, const std::string& origin,
                  std::uint64_t limit_bytes) {
  const auto [total, largest] = estimate_together(runs);
  if (total <= limit_bytes && total < beyond) return;
  throw InputError({.what = "the scenario does not fit into memory",
                    .where = origin,
                    .why = "it would take " + described(total, largest) + ", and the limit is " +
                           readable(limit_bytes),
                    .right = "make the model, the batch or the run smaller"});
}

}  // namespace ballast::sim
