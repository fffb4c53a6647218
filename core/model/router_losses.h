#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/router.h"
#include "core/model/router_loss_settings.h"

namespace ballast {

/// What the losses of a forward came to, coefficients included: means over its valid tokens.
struct RouterLossValues {
  double aux = 0.0;
  double z = 0.0;
};

/// The weights w of the load-balancing loss sum_j w_j P_j, from the counts L `[experts]` of `tokens` > 0 tokens:
/// AuxFormula without its P. Switch and GShard want counts of top-1.
std::vector<double> aux_weights(const RouterLossSettings& settings, std::span<const std::int64_t> counts,
                                std::int64_t tokens, std::size_t top_k);

/// The losses on a router's scores that are added to the model's loss: load balancing and z (RouterLossSettings).
/// P_j is the mean over valid tokens of p_ij, the softmax of the logits, or for sigmoid scores
/// s_ij / (sum_j s_ij + 1e-20). Counts are made anew from the k (or 1) best unbiased scores, without groups and
/// before any dropping, as Megatron-LM does. Gradients go through P only, never through the counts.
///
/// Losses weigh by valid tokens: a forward adds (tokens * loss) to the gradient, so that a caller who sums over
/// forwards and divides by all tokens gets the mean. With the scopes `sequence`, and for z, how a step is split
/// into forwards then changes no bit; with `micro_batch` and `global` it is what the scope means.
/// Megatron's global average is over micro-batches of all ranks that run at once; here forwards run one after the
/// other, and each sees the counts of those before it.
template <class Real>
class RouterLosses {
 public:
  /// Throws std::invalid_argument for a coefficient that is negative or not finite.
  RouterLosses(const RouterLossSettings& settings, const RouterSettings& router);

  bool on() const { return has_aux() || has_z(); }
  /// Whether `forward` reads Routing::logits.
  bool needs_logits() const { return has_z(); }

  /// Takes in a training forward: `valid` `[tokens]`, whole sequences of `sequence_length` rows (0: one of all).
  /// A repeated forward (`recompute`) is not counted again. Linear in tokens x experts. Throws
  /// std::invalid_argument when the rows are no whole sequences.
  void forward(const Routing<Real>& routing, std::span<const std::uint8_t> valid, std::size_t sequence_length,
               bool recompute);
  /// A forward that no loss is made of.
  void skip() { valid_.clear(); }
  /// Adds scale times the gradient of the last forward's losses to that of the logits, `[tokens, experts]`.
  void add_gradient(const Routing<Real>& routing, Real scale, MatrixView<Real> dz) const;
  /// Of the last forward; zeros without valid tokens.
  RouterLossValues values(const Routing<Real>& routing) const;

  /// Forgets the counts of the step, which has ended.
  void end_step();

 private:
  bool has_aux() const { return settings_.aux != AuxFormula::none && settings_.aux_coefficient > 0.0; }
  bool has_z() const { return settings_.z_coefficient > 0.0; }
  std::size_t counted_choices() const;
  void weigh_sequences(const Routing<Real>& routing, bool recompute);
  std::vector<double> weigh_counts(std::span<const std::int64_t> counts, std::int64_t tokens, bool recompute);
  std::span<const double> weights_of(std::size_t token) const { return weights_.row(token / rows_); }
  void probabilities(const Routing<Real>& routing, std::size_t token, std::span<Real> p) const;
  void add_aux_gradient(const Routing<Real>& routing, std::size_t token, Real scale, std::span<Real> dz) const;
  void add_z_gradient(const Routing<Real>& routing, std::size_t token, Real scale, std::span<Real> dz) const;

  RouterLossSettings settings_;
  RouterSettings router_;

  // The last forward.
  std::vector<std::uint8_t> valid_;
  std::size_t rows_ = 1;    ///< that share weights: of a sequence, or of the batch
  Matrix<double> weights_;  ///< w, `[batch or sequences, experts]`

  // The step so far, for the scope `global`.
  std::vector<std::int64_t> step_counts_;
  std::int64_t step_tokens_ = 0;
};

}  // namespace ballast
