#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/diagnostics/expert_load_slot.h"
#include "core/model/module.h"

namespace ballast {

/// What one MoE layer's training forwards chose in a log interval.
struct LayerRecord {
  /// Assignments per routed expert, `[experts]`.
  std::vector<std::int64_t> expert_load_counts;
  /// sum(counts) / K, K assignments a token, rounded down.
  std::int64_t tokens = 0;
  /// max(counts) * E / sum(counts); nothing without assignments.
  std::optional<double> max_load_over_mean;
  /// The number of experts with a count of exactly zero; nothing without assignments.
  std::optional<std::int64_t> zero_load_experts;
  /// The balancer's biases in force, `[experts]`; nothing in place of a nonfinite one.
  std::vector<std::optional<float>> biases;

  friend bool operator==(const LayerRecord&, const LayerRecord&) = default;
};

/// The records of one log interval by layer name, in the model's order.
struct DiagnosticsSnapshot {
  std::vector<std::pair<std::string, LayerRecord>> layers;

  /// The record of a layer; std::out_of_range if there is none of that name.
  const LayerRecord& at(const std::string& name) const;

  friend bool operator==(const DiagnosticsSnapshot&, const DiagnosticsSnapshot&) = default;
};

/// Thrown by activation: a module already has an active collector.
class AlreadyActive : public std::logic_error {
 public:
  explicit AlreadyActive(const std::string& module);
};

/// The load collector: which routed experts did the actual training forwards select in this log
/// interval? It counts the choices the router made, with bias; it reconstructs nothing from
/// probabilities, changes no routing, draws no random number and is no checkpoint state. Shared
/// experts and evaluation forwards are never counted. A training forward whose optimizer step is
/// skipped did happen, and is counted.
///
///     MoEDiagnostics diagnostics(model);
///     const auto active = diagnostics.activate();
///     ... training forwards ...
///     log(diagnostics.snapshot());
///
/// While active, every module found has a list of integers in its slot, one per routed expert, and
/// its training forwards count into it. The modules own the lists; the collector only puts them
/// there, reads them, and takes them away.
///
/// The model must outlive the collector, and the collector its activation. Not for concurrent use.
class MoEDiagnostics {
 public:
  struct Exit {
    void operator()(MoEDiagnostics* diagnostics) const noexcept { diagnostics->exit(); }
  };
  /// Holds the collector active; deactivates at its end, whether by return, exception or reset().
  using Activation = std::unique_ptr<MoEDiagnostics, Exit>;

  /// Finds every named module that offers a slot; modules added later do not take part. A slot that
  /// several modules offer (a wrapper forwards what it wraps, and both stand in the tree) is kept
  /// once, under its first and so outermost name: kept twice, its loads would be reported twice,
  /// and averages over layers would count it double. A disabled collector keeps none.
  explicit MoEDiagnostics(Module& model, bool enabled = true);
  ~MoEDiagnostics() { exit(); }
  MoEDiagnostics(const MoEDiagnostics&) = delete;
  MoEDiagnostics& operator=(const MoEDiagnostics&) = delete;

  /// Gives every module found a list of zeros. Throws AlreadyActive if one of them has a list
  /// already, from this collector or another. On any exception every module is as it was.
  void enter();
  /// Takes the lists away that `enter` gave. Does nothing when this collector is not active:
  /// another's lists stay.
  void exit() noexcept;
  /// `enter` now and `exit` at the end of the returned object.
  [[nodiscard]] Activation activate();

  /// The records since the last snapshot or activation; then zeroes the counters, and nothing else:
  /// biases are model state. Linear in the number of experts (times log). Throws std::logic_error
  /// while not active, unless there is no module to read; on any exception no counter is touched.
  DiagnosticsSnapshot snapshot();

 private:
  struct Layer {
    std::string name;
    ExpertLoadSlot* slot;
  };

  std::vector<Layer> layers_;
  bool active_ = false;
};

}  // namespace ballast
