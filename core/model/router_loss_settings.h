#pragma once

namespace ballast {

/// The load-balancing loss that is added to the model's. With c the coefficient, m tokens, L_j the tokens that have
/// expert j among their k best unbiased scores, L1_j among their 1 best, and P_j = mean over tokens of the
/// normalised score p_ij:
enum class AuxFormula {
  none,
  megatron,      ///< c E sum_j L_j / (m k) P_j: c at balance. Per sequence it is DeepSeek-V3's (arXiv:2412.19437)
  without_k,     ///< c E sum_j L_j / m P_j: k c at balance. Hugging Face's Mixtral and OLMoE
  switch_top_1,  ///< c E sum_j L1_j / m P_j: Switch Transformer (arXiv:2101.03961), Eq. 4
  gshard,        ///< c / E sum_j L1_j / m P_j: GShard (arXiv:2006.16668), Algorithm 1; switch_top_1 / E^2
};

/// Over which tokens L is counted; P is that of the micro-batch, or of the sequence.
enum class AuxScope {
  micro_batch,
  sequence,  ///< one loss a sequence, averaged over tokens
  global,    ///< all forwards of the step so far, this one included, of all ranks (Megatron-LM's running average)
};

struct RouterLossSettings {
  AuxFormula aux = AuxFormula::none;
  double aux_coefficient = 1e-2;
  AuxScope aux_scope = AuxScope::micro_batch;
  double z_coefficient = 0.0;  ///< of mean over tokens of (log sum_j e^z_j)^2 (ST-MoE, arXiv:2202.08906); 0 is off
};

}  // namespace ballast
