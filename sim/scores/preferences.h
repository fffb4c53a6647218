#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/scores/score_settings.h"

namespace ballast::sim {

/// The probabilities with which a token chooses each expert of a layer, `[experts]`: each in [0,
/// 1), and their sum is k.
using Inclusions = std::vector<double>;

/// Load shares by expert and where they come from.
///
/// Shares follow the law (log_normal: e^(sigma N(0, 1)) normalised, and never more than 1 / k; the
/// calibration is that of recorded routing), each layer in an order of its own. A lone hot expert,
/// drawn per layer, takes hot_share / k of the load and the body the rest. A shift exchanges the
/// shares of pairs of experts, one of the hotter half and one of the colder, until the total
/// variation is the asked one: the shares as a set stay, the hot experts change; with shift_weight
/// below 1 it is a mixture of both. So do the ranks, each with pairs of its own. Drift moves
/// ln(share) on, at constant sigma, to a new draw in every `drift_steps` steps.
class Preferences {
 public:
  /// Throws InputError when the recording of `recorded` cannot be read, or has another number of
  /// experts.
  Preferences(std::size_t experts, std::size_t top_k, std::uint64_t seed);

  /// Of a layer as a rank sees it at a step (from 0). Linear in experts (times log). Throws
  /// InputError for a shift or rank skew beyond what exchanging shares can make.
  Inclusions inclusions(const ScoreSettings& settings, std::size_t layer, std::size_t rank,
                        std::size_t step) const;

 private:
  std::vector<double> law_shares(const ScoreSettings& settings, std::size_t layer,
                                 std::size_t step) const;

  std::size_t experts_;
  std::size_t top_k_;
  std::uint64_t seed_;
};

/// sum_j |a_j - b_j| / 2 of two lists of shares.
double total_variation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace ballast::sim
