#pragma once

#include <cstddef>

namespace ballast {

/// Throws std::invalid_argument unless there is one bias for each expert.
void check_bias_count(std::size_t biases, std::size_t experts);

}  // namespace ballast
