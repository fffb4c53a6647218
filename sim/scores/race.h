#pragma once

#include <cstddef>
#include <vector>

namespace ballast::sim {

/// The rates w at which experts race so that each is among the first k of all with the given
/// probability.
///
/// The expert j of a token arrives after a time that is exponential of rate w_j, and the token
/// chooses the k that arrive first: with logits ln w_j + Gumbel these are the top k
/// (core/random/fills.h). Expert j is passed over with probability prod_(i < k) R_i / (R_i + w_j),
/// where R_i is the rate at which the others arrive once i of them have; R_i is taken from the
/// expected course of the race. That is exact for k = 1, and in the limit of many experts, where it
/// becomes w_j = -ln(1 - p_j) with an arrival before time 1 (logit above 0) for each of the chosen. Between, one hot
/// expert comes in too seldom, at a probability of 0.95 by 0.03 for k = 2 and 0.003 for k = 8.
///
/// `inclusions` `[experts]`, each in [0, 1), sum k < experts. Some milliseconds for 1000 experts.
std::vector<double> race_rates(const std::vector<double>& inclusions, std::size_t top_k);

}  // namespace ballast::sim
