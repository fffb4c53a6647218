#include "sim/signature/signature.h"

#include <algorithm>
#include <iterator>

#include "sim/digest.h"
#include "sim/replay/recorder.h"
#include "sim/signature/stage.h"
#include "sim/simulation/side_by_side.h"

namespace ballast::sim {
namespace {

template <class T>
std::string digest_of(std::span<const T> values) {
  Digest digest;
  digest.add(values);
  return digest.hex();
}

void add_text(Digest& digest, const std::string& text) {
  digest.add(std::span<const char>(text));
}

std::string name_of(const ScenarioFile& file, std::size_t run) {
  return file.variants.empty() ? file.common.name
                               : file.common.name + "/" + file.variants[run].name;
}

/// Appends what the frames hold.
class FrameEntries {
 public:
  FrameEntries(const ScenarioFile& file, std::span<const Scenario> runs, Signature& signature)
      : file_(file), runs_(runs), signature_(signature) {}

  void add(std::span<const Frame> frames) {
    for (const Frame& frame : frames) add(frame);
  }

 private:
  void add(const Frame& frame) {
    switch (frame.kind) {
      case Frame::Kind::step:
        add_layers(frame);
        return put(frame, "loss", frame.digest);
      case Frame::Kind::evaluation:
        return put(frame, "evaluation", frame.digest);
      case Frame::Kind::end:
        return put(frame, "final state", frame.digest);
    }
  }

  /// In the order of cause and effect: what is routed, and then the biases that follow from it.
  void add_layers(const Frame& frame) {
    const StepLayers layers(runs_[frame.run], frame.layers);
    for (std::size_t layer = 0; layer < layers.layers(); ++layer) {
      put(frame, "choices", digest_of(std::span<const char>(layers.choices(layer))), layer);
      put(frame, "weights", digest_of(std::span<const char>(layers.marks(layer))), layer);
    }
    for (std::size_t layer = 0; layer < layers.layers(); ++layer) {
      put(frame, "biases", digest_of(std::span<const char>(layers.biases(layer))), layer);
      put(frame, "loads", std::string(layers.digest(layer)), layer);
    }
  }

  void put(const Frame& frame, const char* stage, std::string digest,
           std::optional<std::size_t> layer = std::nullopt) {
    signature_.push_back({.place = {.stage = stage,
                                    .run = name_of(file_, frame.run),
                                    .step = frame.step,
                                    .layer = layer},
                          .digest = std::move(digest)});
  }

  const ScenarioFile& file_;
  std::span<const Scenario> runs_;
  Signature& signature_;
};

}  // namespace

std::string in_words(const SignaturePlace& place) {
  if (place.run.empty()) return place.stage;
  std::string words = place.run;
  if (place.step) words += ", step " + std::to_string(*place.step);
  if (place.layer) words += ", layer " + std::to_string(*place.layer);
  return words + ": " + place.stage;
}

std::string digest_of(const Signature& signature) {
  Digest digest;
  for (const SignatureEntry& entry : signature) {
    add_text(digest, in_words(entry.place));
    add_text(digest, entry.digest);
  }
  return digest.hex();
}

Signature stage_signature(const Executor& executor) {
  Signature signature;
  for (const auto stages : {arithmetic_stages, kernel_stages, routing_stages, training_stages}) {
    for (const Stage& stage : stages()) {
      Digest digest;
      stage.compute(digest, executor);
      signature.push_back({.place = {.stage = stage.name}, .digest = digest.hex()});
    }
  }
  return signature;
}

Signature run_signature(const ScenarioFile& file, std::size_t threads,
                        const std::function<void(std::size_t, std::size_t)>& progress) {
  const std::vector<Scenario> scenarios = expand(file);
  Recorders recorders(scenarios);
  const auto observers = recorders.observers();
  SideBySide runs(scenarios, threads, observers);
  Signature signature;
  FrameEntries entries(file, scenarios, signature);
  entries.add(recorders.take());
  for (std::size_t step = 1; step <= runs.steps(); ++step) {
    runs.advance_to(step);
    entries.add(recorders.take());
    progress(step, runs.steps());
  }
  entries.add(Recorders::ends(runs.runs()));
  return signature;
}

std::optional<SignaturePlace> first_difference(std::span<const SignatureEntry> a,
                                               std::span<const SignatureEntry> b) {
  const auto [at, other] = std::ranges::mismatch(a, b);
  if (at == a.end()) return std::nullopt;
  return at->place;
}

}  // namespace ballast::sim
