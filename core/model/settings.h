#pragma once

#include <cstddef>

#include "core/assignment/assignment_settings.h"
#include "core/model/expert_groups.h"
#include "core/model/router_loss_settings.h"

namespace ballast {

/// How router logits z become scores s. Biases belong to one score space and mean nothing in another.
enum class ScoreFunction {
  sigmoid,  ///< s = 1 / (1 + e^-z), Kimi K3
  softmax,  ///< s = softmax(z) over all experts
  logit,    ///< s = z
};

/// The gate of the experts' GLU.
enum class Activation {
  situ,    ///< cap_4(g) * sigmoid(g) * cap_25(u), cap_B(v) = B tanh(v / B); Kimi K3, Eq. 12, 18, 19
  swiglu,  ///< g * sigmoid(g) * u, the limit of situ for large caps
};

/// One router. Ranges: 1 <= top_k <= routed_experts, and groups in which they fit.
struct RouterSettings {
  std::size_t hidden = 64;  ///< d: width of the token the router reads
  std::size_t routed_experts = 32;
  std::size_t top_k = 2;
  ScoreFunction score = ScoreFunction::sigmoid;
  bool renormalize = true;    ///< weights are divided by their sum + 1e-20
  double routed_scale = 1.0;  ///< factor on all weights, applied last
  AssignmentSettings assignment = {};
  ExpertGroups groups = {};  ///< of the rule top_k
};

/// One StableLatentMoE layer (Kimi K3 report, section 2.3, Eq. 11-13). The router reads the full width d.
struct StableLatentMoESettings {
  RouterSettings router;
  std::size_t latent = 32;        ///< l: width inside which routed experts work
  std::size_t expert_inner = 32;  ///< inner width of each routed expert
  std::size_t shared_experts = 1;
  std::size_t shared_inner = 32;  ///< inner width of each shared expert
  Activation activation = Activation::situ;
  bool aggregate_norm = true;  ///< RMSNorm on the weighted sum of expert outputs, before W_up
  double norm_eps = 1e-5;
  RouterLossSettings losses = {};
};

/// The simulated next-token model: embedding, `layers` blocks of x + MoE(RMSNorm(x)), final RMSNorm, output
/// layer.
struct LanguageModelSettings {
  std::size_t vocabulary = 256;
  std::size_t layers = 1;
  /// A constant added to every coordinate of the embedding: a common component of all tokens
  /// (anisotropy), which makes the rich get richer.
  double embedding_offset = 0.0;
  StableLatentMoESettings moe;
};

}  // namespace ballast
