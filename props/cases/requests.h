#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/matrix.h"
#include "core/model/settings.h"

/// What is asked of a subject, and what it answers: the vocabulary of the subject protocol as
/// values. The JSON of the protocol, of stored failures and of reports is made from these, and from
/// nothing else.
namespace ballast::props {

/// Group-limited selection: only the best `topk_group` of `n_group` equal groups of experts may be
/// chosen from.
struct Groups {
  std::size_t n_group = 1;
  std::size_t topk_group = 1;
  friend bool operator==(const Groups&, const Groups&) = default;
};

struct ModelSpec {
  std::size_t layers = 1;
  std::size_t routed_experts = 4;
  std::size_t top_k = 1;
  ScoreFunction score = ScoreFunction::sigmoid;
  bool renormalize = true;
  double routed_scale = 1.0;
  std::optional<Groups> groups = std::nullopt;
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

enum class BalancerKind { none, quantile, sign };
enum class Estimator { exact, histogram };
enum class Update { step, forward };

struct BalancerSpec {
  BalancerKind kind = BalancerKind::none;
  Estimator estimator = Estimator::exact;  ///< of quantile
  std::size_t bins = 1000;                 ///< of histogram
  double rate = 1e-3;                      ///< of sign
  Update update = Update::step;
  friend bool operator==(const BalancerSpec&, const BalancerSpec&) = default;
};

/// Biases by layer, `[layers][experts]`.
using Biases = std::vector<std::vector<float>>;
/// Assignments by layer, `[layers][experts]`.
using Counts = std::vector<std::vector<std::int64_t>>;

/// Begins anew: everything before is dropped.
struct Open {
  ModelSpec model;
  BalancerSpec balancer;
  std::size_t ranks = 1;
  std::optional<Biases> biases = std::nullopt;  ///< absent: zeros
};

enum class Mode { train, eval, recompute };

struct Forward {
  std::size_t layer = 0;
  std::size_t rank = 0;
  Mode mode = Mode::train;
  Matrix<float> logits;            ///< `[tokens, experts]`
  std::vector<std::uint8_t> mask;  ///< `[tokens]`, 0 is padding; empty: no mask
};

/// Closes an optimizer step.
struct Step {
  bool applied = true;
};

struct GetBiases {};
struct SetBiases {
  Biases biases;
};

enum class CollectorAction { enter, exit, snapshot };
struct Collector {
  CollectorAction action = CollectorAction::snapshot;
  bool enabled = true;  ///< of enter
};

struct MetricsOf {
  Counts counts;
};

struct Chunk {
  std::int64_t data = 0;
  std::map<std::string, double> metrics;
};
struct Combine {
  std::vector<Chunk> chunks;
};

struct Save {};
/// Loads what the save before it gave (the `slot`-th save of the history, counted from 0).
struct Load {
  std::size_t slot = 0;
};

using Request =
    std::variant<Forward, Step, GetBiases, SetBiases, Collector, MetricsOf, Combine, Save, Load>;

struct Routed {
  std::vector<std::vector<std::int64_t>> indices;  ///< `[tokens][top_k]`, as the subject gave them
  std::vector<std::vector<double>> weights;        ///< `[tokens][top_k]`
};
struct LayerSnapshot {
  std::vector<std::int64_t> expert_load_counts;
  std::int64_t tokens = 0;
  std::optional<double> max_load_over_mean;
  std::optional<std::int64_t> zero_load_experts;
  std::vector<std::optional<double>> biases;
};
struct Snapshot {
  std::map<std::string, LayerSnapshot> layers;
};
struct BiasesAnswer {
  std::vector<std::vector<double>> biases;
};
struct MetricsAnswer {
  std::map<std::string, double> metrics;
};
struct Done {};
/// The subject refused the request; its state is unchanged.
struct Refusal {
  std::string code;  ///< "unsupported", "already_active", "invalid" or "internal"
  std::string message;
};

using Answer = std::variant<Done, Routed, BiasesAnswer, Snapshot, MetricsAnswer, Refusal>;

}  // namespace ballast::props
