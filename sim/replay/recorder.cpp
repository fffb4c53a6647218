#include "sim/replay/recorder.h"

#include <iterator>
#include <utility>

#include "sim/digest.h"

namespace ballast::sim {

RunRecorder::RunRecorder(const Scenario& scenario, std::uint32_t run)
    : run_(run),
      choice_bytes_(StepLayers::choice_bytes(scenario.model.moe.router.routed_experts)),
      layers_(scenario.model.layers) {}

void RunRecorder::routed(std::size_t layer, MatrixView<const std::int32_t> choices,
                         MatrixView<const float> weights) {
  Layer& here = layers_[layer];
  here.choices.insert(here.choices.end(), choices.values().begin(), choices.values().end());
  here.weights.insert(here.weights.end(), weights.values().begin(), weights.values().end());
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
  bytes.append(reinterpret_cast<const char*>(layer.biases.data()),
               layer.biases.size() * sizeof(float));
  for (const std::int32_t choice : layer.choices) {
    bytes.append(reinterpret_cast<const char*>(&choice), choice_bytes_);
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
