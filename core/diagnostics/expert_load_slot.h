#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ballast {

/// What a module offers so that a collector can count the experts its training forwards choose. Discovery
/// goes by this interface, not by class. Source: MoEDiagnostics, `_expert_load_counts`.
class ExpertLoadSlot {
 public:
  virtual ~ExpertLoadSlot() = default;

  virtual std::size_t routed_experts() const = 0;
  /// K: every routed token makes this many assignments.
  virtual std::size_t top_k() const = 0;
  /// The balancer's selection biases in force, `[routed experts]`, fp32.
  virtual std::span<const float> biases() const = 0;
  /// The slot: empty while no collector is active, else assignments per routed expert since the last reset.
  virtual std::optional<std::vector<std::int64_t>>& expert_load_counts() = 0;
};

}  // namespace ballast
