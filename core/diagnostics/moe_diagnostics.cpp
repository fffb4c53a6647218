#include "core/diagnostics/moe_diagnostics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/metrics/load_metrics.h"

namespace ballast {

namespace {

std::vector<std::optional<float>> finite_or_nothing(std::span<const float> biases) {
  std::vector<std::optional<float>> out;
  out.reserve(biases.size());
  for (const float bias : biases) {
    out.push_back(std::isfinite(bias) ? std::optional(bias) : std::nullopt);
  }
  return out;
}

LayerRecord record(ExpertLoadSlot& slot) {
  LayerRecord out;
  out.expert_load_counts = slot.expert_load_counts().value();
  const auto assignments = std::accumulate(out.expert_load_counts.begin(),
                                           out.expert_load_counts.end(), std::int64_t{0});
  out.tokens = assignments / static_cast<std::int64_t>(slot.top_k());
  if (const auto metrics = load_metrics(out.expert_load_counts)) {
    out.max_load_over_mean = metrics->max_over_mean;
    out.zero_load_experts = metrics->dead_experts;
  }
  out.biases = finite_or_nothing(slot.biases());
  return out;
}

}  // namespace

const LayerRecord& DiagnosticsSnapshot::at(const std::string& name) const {
  for (const auto& [layer, record] : layers) {
    if (layer == name) return record;
  }
  throw std::out_of_range("diagnostics: no layer \"" + name + "\" in the snapshot");
}

AlreadyActive::AlreadyActive(const std::string& module)
    : std::logic_error("diagnostics: module \"" + module +
                       "\" already has an active load collector; deactivate that one first") {}

MoEDiagnostics::MoEDiagnostics(Module& model, bool enabled) {
  if (!enabled) return;
  for (const auto& [name, module] : model.named_modules()) {
    ExpertLoadSlot* const slot = module->expert_load_slot();
    if (slot == nullptr) continue;
    // By the counters, not by the slot object: a wrapper may forward with a slot object of its own.
    const auto* const counts = &slot->expert_load_counts();
    const bool known = std::any_of(layers_.begin(), layers_.end(), [&](const Layer& layer) {
      return &layer.slot->expert_load_counts() == counts;
    });
    if (!known) layers_.push_back({name, slot});
  }
}

void MoEDiagnostics::enter() {
  std::vector<std::vector<std::int64_t>> zeros;
  for (const Layer& layer : layers_) {
    if (layer.slot->expert_load_counts()) throw AlreadyActive(layer.name);
    zeros.emplace_back(layer.slot->routed_experts(), 0);
  }
  // Nothing was attached until here, and nothing throws from here on.
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].slot->expert_load_counts() = std::move(zeros[i]);
  }
  active_ = true;
}

void MoEDiagnostics::exit() noexcept {
  if (!active_) return;
  for (const Layer& layer : layers_) layer.slot->expert_load_counts().reset();
  active_ = false;
}

MoEDiagnostics::Activation MoEDiagnostics::activate() {
  enter();
  return Activation(this);
}

DiagnosticsSnapshot MoEDiagnostics::snapshot() {
  if (!active_ && !layers_.empty()) {
    throw std::logic_error(
        "diagnostics: snapshot of a collector that is not active; activate it first");
  }
  DiagnosticsSnapshot out;
  for (const Layer& layer : layers_) out.layers.emplace_back(layer.name, record(*layer.slot));
  for (const Layer& layer : layers_) std::ranges::fill(*layer.slot->expert_load_counts(), 0);
  return out;
}

}  // namespace ballast
