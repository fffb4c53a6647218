#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/replay/frame.h"
#include "sim/simulation/run_observer.h"
#include "sim/simulation/simulation.h"

namespace ballast::sim {

/// Makes the frames of one run.
class RunRecorder final : public RunObserver {
 public:
  RunRecorder(const Scenario& scenario, std::uint32_t run);

  void routed(std::size_t layer, MatrixView<const std::int32_t> choices,
              MatrixView<const float> weights) override;
  void updated(std::size_t layer, std::span<const float> biases) override;
  void stepped(const StepRecord& record) override;
  void evaluated(const EvaluationRecord& record) override;

  /// The frames since the last call.
  std::vector<Frame> take();

 private:
  /// Of the step under way.
  struct Layer {
    std::size_t slots = 0;              ///< the most of a micro-batch so far
    std::vector<std::int32_t> choices;  ///< `[tokens, slots]`
    std::vector<float> weights;
    std::vector<float> biases;
  };

  std::string bytes_of(const Layer& layer, std::span<const std::int64_t> loads) const;

  std::uint32_t run_;
  std::size_t experts_;
  std::vector<Layer> layers_;
  std::vector<Frame> frames_;
};

/// The recorders of runs that go on side by side.
class Recorders {
 public:
  explicit Recorders(std::span<const Scenario> scenarios);

  std::vector<RunObserver*> observers();
  /// The frames of all runs since the last call, run by run: call it after each step of all runs,
  /// and the frames come in the same order on any number of threads.
  std::vector<Frame> take();
  /// The frames that end the runs.
  static std::vector<Frame> ends(std::span<const Simulation* const> runs);

 private:
  std::vector<std::unique_ptr<RunRecorder>> runs_;
};

}  // namespace ballast::sim
