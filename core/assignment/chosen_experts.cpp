#include "core/assignment/chosen_experts.h"

#include <algorithm>

namespace ballast {

Matrix<std::int32_t> ChosenExperts::indices() const {
  std::size_t slots = 1;
  for (const auto& experts : of_token_) slots = std::max(slots, experts.size());
  Matrix<std::int32_t> out(of_token_.size(), slots, no_expert);
  for (std::size_t t = 0; t < of_token_.size(); ++t) std::ranges::copy(of_token_[t], out.row(t).begin());
  return out;
}

}  // namespace ballast
