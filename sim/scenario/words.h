#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "sim/scenario/scenario.h"

/// The words by which scenario files name the enumerators, in the order of the enumerators.
namespace ballast::sim {

template <class Enum>
inline constexpr std::array<std::string_view, 0> words_of = {};

template <>
inline constexpr std::array<std::string_view, 3> words_of<ScoreFunction> = {"sigmoid", "softmax",
                                                                            "logit"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<Activation> = {"situ", "swiglu"};
template <>
inline constexpr std::array<std::string_view, 4> words_of<TokenSourceKind> = {
    "mixture", "text", "constant", "recorded"};
template <>
inline constexpr std::array<std::string_view, 3> words_of<FrequencyLaw> = {"log_normal", "zipf",
                                                                           "uniform"};
template <>
inline constexpr std::array<std::string_view, 8> words_of<BalancerKind> = {
    "quantile", "sign", "smebu", "sinkhorn", "expert_choice", "threshold", "optimal", "none"};
template <>
inline constexpr std::array<std::string_view, 5> words_of<QuantileEstimatorKind> = {
    "exact", "histogram", "microbatch_mean", "chunk_mean", "sequence_mean"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<GroupScore> = {"top_2", "top_share"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<SignStep> = {"sign", "rms"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<CountedLoads> = {"chosen", "kept"};
template <>
inline constexpr std::array<std::string_view, 3> words_of<DropPolicy> = {"none", "probs",
                                                                         "position"};
template <>
inline constexpr std::array<std::string_view, 5> words_of<AuxFormula> = {
    "none", "megatron", "without_k", "switch_top_1", "gshard"};
template <>
inline constexpr std::array<std::string_view, 3> words_of<AuxScope> = {"micro_batch", "sequence",
                                                                       "global"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<UpdateCadence> = {"step", "forward"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<SkippedStep> = {"discard", "keep"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<Mode> = {"train", "router_only"};
template <>
inline constexpr std::array<std::string_view, 5> words_of<PreferenceLaw> = {
    "log_normal", "zipf", "uniform", "recorded", "recorded_rows"};
template <>
inline constexpr std::array<std::string_view, 8> words_of<BalancerFault> = {
    "none",        "increment",       "biased_margin",   "padding_counted",
    "bf16_biases", "lost_at_restart", "evaluation_leak", "bf16_counts"};
template <>
inline constexpr std::array<std::string_view, 9> words_of<ExpectedCollapse> = {
    "none",  "any",        "dead_experts", "monopoly",        "oscillation",
    "drift", "divergence", "blind",        "input_degenerate"};
template <>
inline constexpr std::array<std::string_view, 4> words_of<Aggregate> = {"every", "any", "mean",
                                                                        "last"};

/// "log_normal" for FrequencyLaw::log_normal.
template <class Enum>
constexpr std::string_view word(Enum value) {
  return words_of<Enum>[static_cast<std::size_t>(value)];
}

}  // namespace ballast::sim
