#pragma once

#include <cstddef>
#include <string>

namespace ballast::sim {

enum class PreferenceLaw { log_normal, zipf, uniform, recorded, recorded_rows };

/// How router scores are drawn when no model computes them. Each part says what share of the tokens
/// or of the load it touches, so parts mix freely; all may change over the steps (`schedule`).
struct ScoreSettings {
  // What experts are chosen how often, without any bias.
  PreferenceLaw preference = PreferenceLaw::log_normal;
  double sigma = 0.4;     ///< of ln(load), for log_normal
  double exponent = 0.5;  ///< of Zipf's law
  std::string file = {};  ///< for recorded: a recording of routing, whose loads are taken; for
                          ///< recorded_rows: also the choices of its tokens, for rows of their own
  double hot_share =
      0.0;  ///< share of the tokens that choose one expert beside the others; 0: none
  double shift =
      0.0;  ///< total variation between the shares of another domain and those without shift
  double shift_weight = 1.0;  ///< part of the load that is of the other domain
  double rank_skew = 0.0;     ///< total variation between the shares of each other rank and rank 0
  std::size_t drift_steps =
      0;  ///< steps until preferences have nothing in common any more; 0: never

  // What a token's choice depends on.
  double token_driven = 0.0;     ///< probability that it depends on the token alone
  double sequence_memory = 0.0;  ///< probability that it is that of the token before

  // Logits z = scale * (ln(rate of the expert) + Gumbel) + offset.
  double scale = 1.0;
  double offset = 0.0;

  // Tokens of another kind.
  double aligned_share = 0.0;      ///< share of tokens that point along one expert's gate
  std::size_t aligned_expert = 0;  ///< that expert, the same in every layer
  double aligned_by = 10.0;        ///< what this adds to its logit
  double nonfinite_share = 0.0;    ///< share of tokens whose logits are NaN

  friend bool operator==(const ScoreSettings&, const ScoreSettings&) = default;
};

}  // namespace ballast::sim
