#include "sim/signature/suite.h"

#include "sim/scenario/embedded.h"

namespace ballast::sim {
namespace {

constexpr std::string_view training_text = R"({
  "ballast": 1,
  "name": "model",
  "model": {"layers": 2, "hidden": 24, "latent": 12, "routed_experts": 12, "top_k": 3, "expert_inner": 10,
            "shared_inner": 9, "embedding_offset": 0.5},
  "tokens": {"vocabulary": 61, "topics": 3, "sequence_length": 16, "padding": 0.1, "rank_skew": 0.5},
  "training": {"steps": 6, "ranks": 2, "micro_batches": 2, "sequences": 2, "evaluate_every": 3, "log_every": 2,
               "checkpoint_every": 2, "optimizer": {"weight_decay": 0.01}},
  "variants": [
    {"name": "exact", "set": {"balancer.estimator": "exact"}},
    {"name": "histogram", "set": {"training.overflow_steps": [2], "training.restart_after": [5]}},
    {"name": "microbatch_mean", "set": {"balancer.estimator": "microbatch_mean"}},
    {"name": "chunk_mean", "set": {"balancer.estimator": "chunk_mean"}},
    {"name": "sequence_mean", "set": {"balancer.estimator": "sequence_mean"}},
    {"name": "ema", "set": {"balancer.ema": 0.5}},
    {"name": "gain", "set": {"balancer.gain": 1.5, "balancer.stale_updates": 1}},
    {"name": "forward", "set": {"balancer.update": "forward"}},
    {"name": "sign", "set": {"balancer.kind": "sign"}},
    {"name": "sign-rms", "set": {"balancer.kind": "sign", "balancer.step": "rms", "balancer.centred": true}},
    {"name": "smebu", "set": {"balancer.kind": "smebu"}},
    {"name": "sinkhorn", "set": {"balancer.kind": "sinkhorn"}},
    {"name": "expert_choice", "set": {"balancer.kind": "expert_choice"}},
    {"name": "threshold", "set": {"balancer.kind": "threshold"}},
    {"name": "optimal", "set": {"balancer.kind": "optimal"}},
    {"name": "none", "set": {"balancer.kind": "none"}},
    {"name": "softmax", "set": {"model.score": "softmax", "model.renormalize": false}},
    {"name": "logit", "set": {"model.score": "logit", "model.routed_scale": 2.5}},
    {"name": "groups", "set": {"balancer.kind": "sign", "model.groups.count": 4, "model.groups.chosen": 2}},
    {"name": "swiglu", "set": {"model.activation": "swiglu", "model.aggregate_norm": false}},
    {"name": "drop-probs", "set": {"balancer.kind": "sign", "balancer.drop": "probs", "balancer.counted": "kept"}},
    {"name": "drop-position", "set": {"balancer.drop": "position"}},
    {"name": "megatron", "set": {"balancer.aux_loss": "megatron", "balancer.aux_scope": "global"}},
    {"name": "switch", "set": {"balancer.aux_loss": "switch_top_1", "balancer.aux_scope": "sequence"}},
    {"name": "z_loss", "set": {"balancer.z_loss": 0.01}},
    {"name": "bf16", "set": {"fault": "bf16_biases"}}
  ]
})";

constexpr std::string_view routers_text = R"({
  "ballast": 1,
  "name": "routers",
  "mode": "router_only",
  "model": {"layers": 2, "routed_experts": 64, "top_k": 6},
  "tokens": {"vocabulary": 61, "sequence_length": 32},
  "training": {"steps": 4, "ranks": 2, "sequences": 4, "log_every": 2},
  "variants": [
    {"name": "log_normal", "set": {"scores.sigma": 1.0, "scores.drift_steps": 3}},
    {"name": "zipf", "set": {"scores.preference": "zipf", "scores.rank_skew": 0.3}},
    {"name": "hot", "set": {"scores.hot_share": 0.3, "scores.token_driven": 0.5, "scores.sequence_memory": 0.3}},
    {"name": "shift", "set": {"scores.shift": 0.2, "balancer.estimator": "exact"}},
    {"name": "nonfinite", "set": {"scores.nonfinite_share": 0.1, "scores.aligned_share": 0.2}}
  ]
})";

ScenarioFile parsed(std::string_view text, std::vector<Override> overrides = {}) {
  return parse_scenario(text, "the suite of the signature", overrides);
}

}  // namespace

std::vector<ScenarioFile> suite_scenarios() {
  return {
      parsed(training_text), parsed(routers_text),
      parsed(quickstart_text(), {{.path = "training.steps", .value = "10", .where = "the suite"}})};
}

Scenario suite_training() {
  return parsed(training_text).common;
}

}  // namespace ballast::sim
