#include "sim/replay/recorder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/assignment/chosen_experts.h"
#include "sim/digest.h"

namespace ballast::sim {
namespace {

/// Rows of `before` values as rows of `after`, which are more, with `none` behind.
template <class T>
std::vector<T> widened(const std::vector<T>& rows, std::size_t before, std::size_t after, T none) {
  std::vector<T> wide;
  for (std::size_t i = 0; i < rows.size(); i += before) {
    const auto row = rows.begin() + static_cast<std::ptrdiff_t>(i);
    wide.insert(wide.end(), row, row + static_cast<std::ptrdiff_t>(before));
    wide.insert(wide.end(), after - before, none);
  }
  return wide;
}

/// Adds rows of `width` values to rows of `slots`, which are at least as many.
template <class T>
void append(std::vector<T>& rows, std::size_t slots, std::span<const T> more, std::size_t width,
            T none) {
  const std::vector<T> own(more.begin(), more.end());
  const auto wide = width == slots ? own : widened(own, width, slots, none);
  rows.insert(rows.end(), wide.begin(), wide.end());
}

}  // namespace

RunRecorder::RunRecorder(const Scenario& scenario, std::uint32_t run)
    : run_(run),
      experts_(scenario.model.moe.router.routed_experts),
      layers_(scenario.model.layers) {}

void RunRecorder::routed(std::size_t layer, MatrixView<const std::int32_t> choices,
                         MatrixView<const float> weights) {
  Layer& here = layers_[layer];
  const std::size_t width = choices.cols(), before = here.slots;
  if (width > before) {
    here.slots = width;
    if (before > 0) {
      here.choices = widened(here.choices, before, width, no_expert);
      here.weights = widened(here.weights, before, width, 0.0f);
    }
  }
  append(here.choices, here.slots, choices.values(), width, no_expert);
  append(here.weights, here.slots, weights.values(), width, 0.0f);
}

void RunRecorder::updated(std::size_t layer, std::span<const float> biases) {
  layers_[layer].biases.assign(biases.begin(), biases.end());
}

std::string RunRecorder::bytes_of(const Layer& layer, std::span<const std::int64_t> loads) const {
  Digest digest;
  digest.add(std::span<const std::int32_t>(layer.choices));
  digest.add(std::span<const float>(layer.weights));
  digest.add(loads);
  digest.add(std::span<const float>(layer.biases));
  std::string bytes = digest.hex();
  const auto slots = static_cast<std::uint32_t>(layer.slots);
  bytes.append(reinterpret_cast<const char*>(&slots), sizeof slots);
  bytes.append(reinterpret_cast<const char*>(layer.biases.data()),
               layer.biases.size() * sizeof(float));
  const std::size_t width = StepLayers::choice_bytes(experts_);
  for (const std::int32_t expert : layer.choices) {
    const auto choice = static_cast<std::uint32_t>(expert == no_expert ? experts_ : expert);
    bytes.append(reinterpret_cast<const char*>(&choice), width);
  }
  for (const float weight : layer.weights) {
    const std::uint16_t mark = StepLayers::mark(weight);
    bytes.append(reinterpret_cast<const char*>(&mark), sizeof mark);
  }
  return bytes;
}

void RunRecorder::stepped(const StepRecord& record) {
  Frame frame{.kind = Frame::Kind::step,
              .run = run_,
              .step = record.step,
              .digest = record.digest,
              .layers = {}};
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    frame.layers += bytes_of(layers_[layer], record.loads[layer]);
    layers_[layer].slots = 0;
    layers_[layer].choices.clear();
    layers_[layer].weights.clear();
  }
  frames_.push_back(std::move(frame));
}

void RunRecorder::evaluated(const EvaluationRecord& record) {
  frames_.push_back({.kind = Frame::Kind::evaluation,
                     .run = run_,
                     .step = record.step,
                     .digest = record.digest,
                     .layers = {}});
}

std::vector<Frame> RunRecorder::take() {
  return std::exchange(frames_, {});
}

Recorders::Recorders(std::span<const Scenario> scenarios) {
  for (const Scenario& scenario : scenarios) {
    runs_.push_back(
        std::make_unique<RunRecorder>(scenario, static_cast<std::uint32_t>(runs_.size())));
  }
}

std::vector<RunObserver*> Recorders::observers() {
  std::vector<RunObserver*> all;
  for (const auto& run : runs_) all.push_back(run.get());
  return all;
}

std::vector<Frame> Recorders::take() {
  std::vector<Frame> all;
  for (const auto& run : runs_) {
    std::vector<Frame> own = run->take();
    std::move(own.begin(), own.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<Frame> Recorders::ends(std::span<const Simulation* const> runs) {
  std::vector<Frame> all;
  for (const Simulation* run : runs) {
    all.push_back({.kind = Frame::Kind::end,
                   .run = static_cast<std::uint32_t>(all.size()),
                   .step = run->completed(),
                   .digest = run->digest(),
                   .layers = {}});
  }
  return all;
}

}  // namespace ballast::sim
