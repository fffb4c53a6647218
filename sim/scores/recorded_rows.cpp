#include "sim/scores/recorded_rows.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/input_error.h"
#include "sim/read_once.h"
#include "sim/recordings/read_recording.h"

namespace ballast::sim {
namespace {

constexpr const char* what = "cannot take choices from the recording";
constexpr std::int32_t no_row = -1;

[[noreturn]] void refuse(const std::string& file, const std::string& why,
                         const std::string& right) {
  throw InputError({.what = what, .where = file, .why = why, .right = right});
}

/// A row that is known to be sound.
struct Row {
  std::string sequence;
  std::int64_t token;
  std::vector<std::int32_t> experts;  ///< best first
};

/// The experts of a row, the largest weight first.
std::vector<std::int32_t> best_first(const RoutingRow& row) {
  std::vector<std::size_t> order(row.experts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!row.weights.empty()) {
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [&](std::size_t i) { return row.weights[i]; });
  }
  std::vector<std::int32_t> experts;
  for (const std::size_t i : order) experts.push_back(static_cast<std::int32_t>(row.experts[i]));
  return experts;
}

using Rows = std::map<LayerName, std::vector<Row>>;

/// The rows of all layers, in the order of the file, warm-ups left out.
std::pair<Rows, RecordedRouting> read_rows(const std::string& file) {
  Rows rows;
  const auto traces = read_recording(
      file, {.schema = std::nullopt,
             .experts = std::nullopt,
             .top_k = std::nullopt,
             .skip_warm_up = true,
             .on_row = [&](const RoutingRow& row) {
               std::vector<Row>& layer = rows[row.layer];
               const auto number = row.token.value_or(static_cast<std::int64_t>(layer.size()));
               layer.push_back({row.sequence, number, best_first(row)});
             }});
  for (const RecordedLayer& layer : traces.front().layers) {
    std::vector<Row>& own = rows[layer.layer];
    own.erase(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(layer.warm_up_rows));
  }
  return {std::move(rows), traces.front()};
}

/// Numbers tokens over all layers: the same sequence and index, for the same time in the layer.
class TokenNumbers {
 public:
  void begin_layer() { seen_.clear(); }
  std::size_t number_of(const Row& row) {
    const std::size_t time = seen_[{row.sequence, row.token}]++;
    return numbers_.emplace(std::tuple(row.sequence, row.token, time), numbers_.size())
        .first->second;
  }
  std::size_t count() const { return numbers_.size(); }

 private:
  std::map<std::pair<std::string, std::int64_t>, std::size_t> seen_;
  std::map<std::tuple<std::string, std::int64_t, std::size_t>, std::size_t> numbers_;
};

bool contains(std::span<const std::int32_t> chosen, std::size_t expert) {
  return std::ranges::find(chosen, static_cast<std::int32_t>(expert)) != chosen.end();
}

}  // namespace

RecordedRows::RecordedRows(const std::string& file, std::size_t experts) {
  const auto [rows, routing] = read_rows(file);
  if (routing.experts > experts) {
    refuse(file,
           "it has " + std::to_string(routing.experts) + " experts a layer, and the scenario has " +
               std::to_string(experts),
           "set model.routed_experts to that of the recording");
  }
  TokenNumbers numbers;
  std::vector<std::vector<std::size_t>> numbers_of;
  for (const auto& [layer, own] : rows) {
    numbers.begin_layer();
    auto& of_layer = numbers_of.emplace_back();
    for (const Row& row : own) {
      of_layer.push_back(numbers.number_of(row));
      top_k_ = std::max(top_k_, row.experts.size());
    }
  }
  tokens_ = numbers.count();
  if (tokens_ == 0) {
    refuse(file, "it holds no choices of single tokens",
           "name its loads in scores.file, and set scores.preference to \"recorded\"");
  }
  for (const auto& [layer, own] : rows) {
    const auto& of_layer = numbers_of[layers_.size()];
    auto& table = layers_.emplace_back(tokens_ * top_k_, no_row);
    for (std::size_t i = 0; i < own.size(); ++i) {
      std::ranges::copy(own[i].experts,
                        table.begin() + static_cast<std::ptrdiff_t>(of_layer[i] * top_k_));
    }
  }
}

std::span<const std::int32_t> RecordedRows::choices(std::size_t layer, std::size_t token) const {
  const auto row = std::span(layers_[layer]).subspan(token * top_k_, top_k_);
  return row.first(static_cast<std::size_t>(std::ranges::find(row, no_row) - row.begin()));
}

const RecordedRows& recorded_rows(const std::string& file, std::size_t experts) {
  static ReadOnce<std::pair<std::string, std::size_t>, RecordedRows> read;
  return read.get({file, experts}, [&] { return RecordedRows(file, experts); });
}

void choose(std::span<const std::int32_t> chosen, std::span<float> logits) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(chosen.size());
  std::partial_sort(order.begin(), end, order.end(), [&](std::size_t a, std::size_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  order.erase(end, order.end());
  std::vector<float> largest, room;
  for (const std::size_t j : order) largest.push_back(logits[j]);
  for (const std::int32_t expert : chosen) {
    const auto j = static_cast<std::size_t>(expert);
    if (std::ranges::find(order, j) == order.end()) room.push_back(logits[j]);
  }
  std::ranges::sort(room, std::ranges::greater());
  auto next = room.begin();
  for (const std::size_t j : order) {
    if (!contains(chosen, j)) logits[j] = *next++;
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    logits[static_cast<std::size_t>(chosen[i])] = largest[i];
  }
}

}  // namespace ballast::sim
