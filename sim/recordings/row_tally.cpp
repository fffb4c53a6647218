#include "sim/recordings/row_tally.h"

#include <algorithm>
#include <numeric>

#include "sim/input_error.h"
#include "sim/text/printable.h"

namespace ballast::sim {

RowTally::RowTally(TallySettings settings, std::string where)
    : settings_(std::move(settings)), where_(std::move(where)) {}

void RowTally::add(const RoutingRow& row, std::int64_t line) {
  if (!settings_.top_k && !row.experts.empty()) settings_.top_k = row.experts.size();
  Layer& layer = find_layer(row.layer, line);
  try {
    check_row(row, settings_.experts.value_or(max_experts), settings_.top_k.value_or(1));
  } catch (const RowFault& fault) {
    log_.add(fault.kind, line, fault.what());
    cells_.observe_faulty(row, line);
    return;
  }
  if (const auto oddity = odd_weights(row)) log_.add(ProblemKind::weight_sum, line, *oddity);
  const bool in_front_run = layer.front.extend(row, line);
  const auto verdict = cells_.observe(row, line, in_front_run && layer.front.is_warm_up(), log_);
  if (verdict.released) add_held(layer, *verdict.released);
  if (settings_.on_row) tell(row, verdict);
  if (verdict.counts) {
    count(layer, row);
  } else {
    layer.front.end();
  }
}

RowTally::Layer& RowTally::find_layer(const LayerName& name, std::int64_t line) {
  const auto found = layers_.find(name);
  if (found != layers_.end()) return found->second;
  if (layers_.size() == max_layers) {
    throw InputError({.what = "cannot read the recording",
                      .where = line > 0 ? where_ + ":" + std::to_string(line) : where_,
                      .why = "it has more than " + std::to_string(max_layers) + " layers",
                      .right = "name a field that holds the layer"});
  }
  return layers_[name];
}

void RowTally::count(Layer& layer, const RoutingRow& row) {
  ++layer.tokens;
  for (const std::int64_t expert : row.experts) {
    const auto index = static_cast<std::size_t>(expert);
    if (index >= layer.counts.size()) layer.counts.resize(index + 1);
    ++layer.counts[index];
  }
}

void RowTally::add_held(Layer& layer, const HeldRows& held) {
  layer.tokens += held.rows;
  if (held.counts.size() > layer.counts.size()) layer.counts.resize(held.counts.size());
  for (std::size_t i = 0; i < held.counts.size(); ++i) layer.counts[i] += held.counts[i];
}

/// Of the rows held back, those released are the latest; older ones were duplicates.
void RowTally::tell(const RoutingRow& row, const CellCheck::Verdict& verdict) {
  if (verdict.released) {
    auto& held = held_[{row.sequence, row.layer}];
    const auto released = std::min(held.size(), static_cast<std::size_t>(verdict.released->rows));
    std::for_each(held.end() - static_cast<std::ptrdiff_t>(released), held.end(), settings_.on_row);
    held.clear();
  }
  if (verdict.counts) {
    settings_.on_row(row);
  } else {
    held_[{row.sequence, row.layer}].push_back(row);
  }
}

void RowTally::settle_front_run(const LayerName& name, Layer& layer) {
  const FrontRun& front = layer.front;
  if (!front.is_warm_up()) return;
  const bool nothing_else = front.rows() >= layer.tokens;
  const bool skipped = settings_.skip_warm_up && !nothing_else;
  if (skipped) {
    layer.warm_up_rows = front.rows();
    layer.tokens -= front.rows();
    for (const std::int64_t expert : front.experts())
      layer.counts[static_cast<std::size_t>(expert)] -= front.rows();
  }
  Problem problem{.kind = nothing_else ? ProblemKind::identical_rows : ProblemKind::warm_up,
                  .count = front.rows(),
                  .counted = !skipped,
                  .lines = {},
                  .message = ""};
  std::string place;
  if (front.first_line() > 0) {
    problem.lines = {front.first_line(), front.last_line()};
    place = ", lines " + std::to_string(front.first_line()) + " to " +
            std::to_string(front.last_line());
  }
  const std::string layer_name = "layer " + printable(to_text(name), 40);
  if (nothing_else) {
    problem.message = "all " + counted_noun(front.rows(), "row") + " of " + layer_name +
                      " are identical" + place + ": dummy tokens, or a collapsed router; counted";
  } else {
    problem.message = counted_noun(front.rows(), "identical row") + " at the front of " +
                      layer_name + place + ": a warm-up; " +
                      (skipped ? "left out" : "counted (--skip-warmup leaves them out)");
  }
  log_.add(std::move(problem));
}

std::size_t RowTally::final_experts(RecordedRouting& routing) const {
  if (settings_.experts) return *settings_.experts;
  std::size_t experts = 0;
  for (const auto& [name, layer] : layers_) experts = std::max(experts, layer.counts.size());
  if (experts > 0) {
    routing.notes.push_back(
        std::to_string(experts) +
        " experts: the largest id + 1, for want of a better source (--experts)");
  }
  return experts;
}

RecordedRouting RowTally::finish() {
  RecordedRouting routing;
  cells_.finish(log_);
  for (auto& [name, layer] : layers_) settle_front_run(name, layer);
  routing.experts = final_experts(routing);
  routing.top_k = settings_.top_k;
  for (auto& [name, layer] : layers_) {
    layer.counts.resize(routing.experts);
    const std::int64_t assignments =
        std::accumulate(layer.counts.begin(), layer.counts.end(), std::int64_t{0});
    routing.layers.push_back({name, layer.tokens, assignments, layer.counts, layer.warm_up_rows});
  }
  for (std::string& note : cells_.incomplete()) routing.notes.push_back(std::move(note));
  routing.problems = log_.problems();
  return routing;
}

}  // namespace ballast::sim
