#include "sim/recordings/front_run.h"

namespace ballast::sim {

bool FrontRun::extend(const RoutingRow& row, std::int64_t line) {
  if (ended_) return false;
  if (rows_ == 0) {
    first_ = row;
    first_line_ = line;
  } else if (row.experts != first_.experts || row.weights != first_.weights) {
    ended_ = true;
    return false;
  }
  ++rows_;
  last_line_ = line;
  return true;
}

bool FrontRun::is_warm_up() const {
  return rows_ >= (first_.weights.empty() ? min_rows_without_weights : min_rows_with_weights);
}

}  // namespace ballast::sim
