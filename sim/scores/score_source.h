#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/executor.h"
#include "core/matrix.h"
#include "sim/scores/preferences.h"
#include "sim/scores/recorded_rows.h"
#include "sim/scores/score_settings.h"
#include "sim/scores/token_rows.h"

namespace ballast::sim {

/// Draws router logits instead of computing them:
///
///     z_tj = scale * (ln w_j + G_tj) + offset  (+ aligned_by for the aligned expert of an aligned
///     token)
///
/// with w the rates of the race that chooses each expert with its probability (preferences.h,
/// race.h), and G_t the row of Gumbel values of the token (token_rows.h), another one in each
/// layer. With scale 1 and no offset the cutoff of top-k lies near 0. A recorded token has the
/// logits of a row like any other, dealt out so that the experts it chose have the largest
/// (recorded_rows.h). Any row of any layer is drawn on its own, in any order, on any thread.
class ScoreSource {
 public:
  ScoreSource(std::size_t layers, std::size_t experts, std::size_t top_k, std::size_t ranks,
              std::uint64_t seed);

  /// Takes up the settings of a step (from 0). Throws as Preferences and RecordedRows do.
  void prepare(const ScoreSettings& settings, std::size_t step, const Executor& executor);

  /// Writes the logits `[tokens, experts]` of these rows as `layer` and `rank` see them.
  void draw(std::size_t layer, std::size_t rank, const TokenRows& rows,
            MatrixView<float> logits) const;

 private:
  std::size_t layers_, ranks_;
  std::uint64_t seed_;
  std::size_t top_k_;
  Preferences preferences_;
  ScoreSettings settings_;
  bool prepared_ = false;
  std::vector<std::vector<float>> log_rates_;  ///< `[layers * ranks][experts]`
  std::size_t experts_;
  const RecordedRows* recorded_ = nullptr;  ///< when there are recorded tokens
};

}  // namespace ballast::sim
