#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/recordings/cell_check.h"
#include "sim/recordings/front_run.h"
#include "sim/recordings/recorded_routing.h"
#include "sim/recordings/routing_row.h"

namespace ballast::sim {

struct TallySettings {
  std::optional<std::size_t> experts;  ///< E; not given: the largest id + 1
  std::optional<std::size_t> top_k;  ///< experts of a row; not given: as many as the first row has
  bool skip_warm_up = false;         ///< whether a layer's warm-up rows are left out of the counts
  std::function<void(const RoutingRow&)> on_row = nullptr;  ///< see ReadSettings
};

/// Counts recorded rows, one after the other, and gathers what is wrong with them.
class RowTally {
 public:
  /// `where` names the file in errors.
  RowTally(TallySettings settings, std::string where);

  /// Counts a row, or logs why it is not counted; `line` 0 means that the file has no lines. Throws
  /// InputError at the layer after `max_layers`.
  void add(const RoutingRow& row, std::int64_t line);

  ProblemLog& log() { return log_; }

  /// The loads, after the last row.
  RecordedRouting finish();

 private:
  struct Layer {
    std::int64_t tokens = 0;
    std::vector<std::int64_t> counts;
    FrontRun front;
    std::int64_t warm_up_rows = 0;
  };

  Layer& find_layer(const LayerName& name, std::int64_t line);
  void count(Layer& layer, const RoutingRow& row);
  void add_held(Layer& layer, const HeldRows& held);
  void tell(const RoutingRow& row, const CellCheck::Verdict& verdict);
  void settle_front_run(const LayerName& name, Layer& layer);
  std::size_t final_experts(RecordedRouting& routing) const;

  TallySettings settings_;
  std::string where_;
  std::map<LayerName, Layer> layers_;
  CellCheck cells_;
  /// Rows that are held back, by sequence and layer; only for `on_row`.
  std::map<std::pair<std::string, LayerName>, std::vector<RoutingRow>> held_;
  ProblemLog log_;
};

}  // namespace ballast::sim
