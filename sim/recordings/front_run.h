#pragma once

#include <cstdint>

#include "sim/recordings/routing_row.h"

namespace ballast::sim {

/// The run of identical rows (same experts in the same order, same weights) at the front of one
/// layer. An engine's warm-up on dummy tokens leaves such a run, of thousands of rows; real tokens
/// do not.
class FrontRun {
 public:
  /// A run of this many rows is a warm-up. Weights that are equal to the last digit are no chance;
  /// without weights, a strong expert can be chosen a few times in a row.
  static constexpr std::int64_t min_rows_with_weights = 16;
  static constexpr std::int64_t min_rows_without_weights = 64;

  /// Takes in the layer's next row; returns whether it belongs to the run.
  bool extend(const RoutingRow& row, std::int64_t line);
  /// Ends the run before a row that is not shown to it.
  void end() { ended_ = true; }

  bool is_warm_up() const;
  std::int64_t rows() const { return rows_; }
  std::int64_t first_line() const { return first_line_; }
  std::int64_t last_line() const { return last_line_; }
  const std::vector<std::int64_t>& experts() const { return first_.experts; }

 private:
  RoutingRow first_;
  std::int64_t rows_ = 0;
  std::int64_t first_line_ = 0;
  std::int64_t last_line_ = 0;
  bool ended_ = false;
};

}  // namespace ballast::sim
