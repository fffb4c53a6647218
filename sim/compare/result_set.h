#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/field_type.h"

namespace ballast::sim {

/// One setting, and the values of its figures over seeds.
struct ResultPoint {
  Json axes;  ///< of a sweep its axes; of a run {} or {"variant": name}
  std::map<std::string, std::vector<std::optional<double>>> figures;
};

/// The results of a sweep or of a run, as a directory holds them.
struct ResultSet {
  std::string directory;
  std::string name;
  std::vector<std::string> columns;
  std::vector<ResultPoint> points;
};

/// Reads what `ballast sweep --out` or `ballast run --out` wrote: of a sweep its columns, finished
/// or not; of a run the metrics of its last step. Throws InputError for anything else.
ResultSet load_results(const std::string& directory);

}  // namespace ballast::sim
