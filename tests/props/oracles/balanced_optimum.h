#pragma once

#include <cstdint>
#include <vector>

namespace ballast::props::oracle {

/// The largest total score of a balanced assignment, times the number of experts E: every token
/// takes k experts, each at most once, and every expert takes q = T k / E tokens; assignments may
/// be shared out in parts of 1/E, so that q need not be an integer (App. C of the K3 report,
/// relaxed; for integer q the optimum is a whole assignment). By min-cost flow. Scores
/// `[tokens][experts]` are integers from 0 to 1000; top_k <= E.
std::int64_t balanced_optimum(const std::vector<std::vector<int>>& scores, int top_k);

}  // namespace ballast::props::oracle
