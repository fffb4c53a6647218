#pragma once

#include <cstdint>
#include <vector>

#include "core/balancers/balancer.h"
#include "core/balancers/update_schedule.h"

namespace ballast {

/// Which assignments are loads, where experts have a capacity.
enum class CountedLoads {
  chosen,  ///< all that the router chose
  kept,    ///< those that were not dropped, as in Megatron-LM
};

struct LoadBiasSettings {
  UpdateCadence update = UpdateCadence::step;
  SkippedStep on_skipped_step = SkippedStep::discard;
  CountedLoads counted = CountedLoads::chosen;
};

/// What moves biases by loads alone has in common: it counts the assignments L_j of valid tokens to
/// each expert, and an update adds moves to the biases that depend on nothing but these counts,
///     b_j <- b_j + move_j(L),    in double, rounded to fp32 once.
///
/// - Counts are int64 and pooled over all forwards of all ranks: how the tokens are split over
///   micro-batches and ranks, and their order, change no bit.
/// - The biases move at end_step() with UpdateCadence::step, and inside observe() with
///   UpdateCadence::forward, where end_step() then does nothing and a skipped step takes nothing
///   back.
/// - Without an assignment counted nothing moves.
/// - A bias that is not finite (set_biases may set one) stays so.
/// - set_biases() drops pending counts: they were made under other biases.
///
/// Not for concurrent calls. observe() is linear in assignments, an update in experts.
class LoadBiasBalancer : public Balancer {
 public:
  std::span<const float> biases() const override { return biases_; }
  void set_biases(std::span<const float> biases) override;

  /// Throws std::invalid_argument, and changes nothing, when `valid` has another number of rows
  /// than the counted indices, or a valid row names an expert that there is not.
  void observe(const RoutedBatch& batch) override;
  void end_step(bool applied) override;

  void save(StateDict& state, const std::string& prefix) const override;
  /// Throws std::out_of_range or std::invalid_argument, and changes nothing, for a state that is
  /// not one of a balancer with these settings.
  void load(const StateDict& state, const std::string& prefix) override;

  /// Assignments counted and not yet used or dropped, `[experts]`.
  std::span<const std::int64_t> pending_counts() const { return counts_; }

 protected:
  /// Zero biases. Throws std::invalid_argument without an expert.
  LoadBiasBalancer(std::size_t experts, const LoadBiasSettings& settings);

 private:
  /// `[experts]`, from counts `[experts]` of which at least one is positive.
  virtual std::vector<double> moves(std::span<const std::int64_t> counts) = 0;
  void update();

  LoadBiasSettings settings_;
  std::vector<float> biases_;
  std::vector<std::int64_t> counts_;
};

/// mean(L) - L_j in units of 1 / experts, exact: sum(L) - experts * L_j. Counts below 2^63 / experts
/// in all.
std::vector<std::int64_t> shortfalls(std::span<const std::int64_t> counts);

/// moves - mean(moves), so that adding them to the biases conserves their mean.
void centre(std::span<double> moves);

}  // namespace ballast
