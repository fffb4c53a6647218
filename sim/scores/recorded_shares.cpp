#include "sim/scores/recorded_shares.h"

#include <utility>

#include "sim/input_error.h"
#include "sim/read_once.h"
#include "sim/recordings/read_recording.h"

namespace ballast::sim {
namespace {

using Shares = std::vector<std::vector<double>>;

Shares read_shares(const std::string& file, std::size_t experts) {
  const auto traces = read_recording(file, {.schema = std::nullopt,
                                            .experts = std::nullopt,
                                            .top_k = std::nullopt,
                                            .skip_warm_up = true});
  Shares shares;
  for (const RecordedLayer& layer : traces.front().layers) {
    if (layer.counts.size() != experts || layer.assignments == 0) continue;
    std::vector<double>& own = shares.emplace_back();
    for (const std::int64_t count : layer.counts) {
      own.push_back(static_cast<double>(count) / static_cast<double>(layer.assignments));
    }
  }
  if (!shares.empty()) return shares;
  throw InputError({.what = "cannot take load shares from the recording",
                    .where = file,
                    .why = "its first trace has " + std::to_string(traces.front().experts) +
                           " experts a layer, and the scenario has " + std::to_string(experts),
                    .right = "set model.routed_experts to that of the recording"});
}

}  // namespace

const Shares& recorded_shares(const std::string& file, std::size_t experts) {
  static ReadOnce<std::pair<std::string, std::size_t>, Shares> read;
  return read.get({file, experts}, [&] { return read_shares(file, experts); });
}

}  // namespace ballast::sim
