#include "core/balancers/load_bias_balancer.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "core/arithmetic/reductions.h"
#include "core/assignment/chosen_experts.h"
#include "core/balancers/bias_count.h"
#include "core/model/selection.h"

namespace ballast {

namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw std::invalid_argument("load balancing " + message);
}

MatrixView<const std::int32_t> counted_indices(const RoutedBatch& batch, CountedLoads counted) {
  const bool kept = counted == CountedLoads::kept && batch.kept.rows() > 0;
  return kept ? batch.kept : batch.indices;
}

void check(MatrixView<const std::int32_t> indices, std::span<const std::uint8_t> valid,
           std::size_t experts) {
  require(valid.empty() || valid.size() == indices.rows(),
          "got " + std::to_string(valid.size()) + " validity marks for " +
              std::to_string(indices.rows()) + " tokens; give one for each, or none");
  for (std::size_t t = 0; t < indices.rows(); ++t) {
    if (!valid.empty() && valid[t] == 0) continue;
    for (const std::int32_t j : indices.row(t)) {
      require(j == no_expert || (j >= 0 && static_cast<std::size_t>(j) < experts),
              "got expert " + std::to_string(j) + ", not within 0.." + std::to_string(experts - 1));
    }
  }
}

}  // namespace

LoadBiasBalancer::LoadBiasBalancer(std::size_t experts, const LoadBiasSettings& settings)
    : settings_(settings), biases_(experts), counts_(experts) {
  require(experts >= 1, "needs at least one expert");
}

void LoadBiasBalancer::set_biases(std::span<const float> biases) {
  check_bias_count(biases.size(), biases_.size());
  std::ranges::copy(biases, biases_.begin());
  std::ranges::fill(counts_, 0);
}

void LoadBiasBalancer::observe(const RoutedBatch& batch) {
  const auto indices = counted_indices(batch, settings_.counted);
  check(indices, batch.valid, biases_.size());
  count_assignments(indices, batch.valid, counts_);
  if (settings_.update == UpdateCadence::forward) update();
}

void LoadBiasBalancer::end_step(bool applied) {
  if (applied) {
    update();
  } else if (settings_.on_skipped_step == SkippedStep::discard) {
    std::ranges::fill(counts_, 0);
  }
}

void LoadBiasBalancer::update() {
  if (std::ranges::all_of(counts_, [](std::int64_t count) { return count == 0; })) return;
  const auto moved_by = moves(counts_);
  for (std::size_t j = 0; j < biases_.size(); ++j) {
    biases_[j] = static_cast<float>(static_cast<double>(biases_[j]) + moved_by[j]);
  }
  std::ranges::fill(counts_, 0);
}

void LoadBiasBalancer::save(StateDict& state, const std::string& prefix) const {
  state.put(prefix + "biases", biases_);
  state.put(prefix + "counts", counts_);
}

void LoadBiasBalancer::load(const StateDict& state, const std::string& prefix) {
  const auto& biases = state.get<float>(prefix + "biases", biases_.size());
  const auto& counts = state.get<std::int64_t>(prefix + "counts", counts_.size());
  const auto is_count = [&](std::int64_t count) {
    return count == 0 || (count > 0 && settings_.update == UpdateCadence::step);
  };
  require(std::ranges::all_of(counts, is_count),
          "cannot have the pending counts of the state under \"" + prefix + "\"");
  biases_ = biases;
  counts_ = counts;
}

std::vector<std::int64_t> shortfalls(std::span<const std::int64_t> counts) {
  const auto total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const auto experts = static_cast<std::int64_t>(counts.size());
  std::vector<std::int64_t> out;
  for (const std::int64_t count : counts) out.push_back(total - experts * count);
  return out;
}

void centre(std::span<double> moves) {
  const double mean = arithmetic::sum(moves) / static_cast<double>(moves.size());
  for (double& move : moves) move -= mean;
}

}  // namespace ballast
