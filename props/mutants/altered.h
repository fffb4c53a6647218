#pragma once

#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/model/selection.h"
#include "props/mutants/mutant.h"
#include "props/subjects/built_in_subject.h"

/// What mutants are written with: the built-in subject with one thing that can be altered.
namespace ballast::props {

/// Rounded to the 8 significant bits of bf16.
inline float in_bf16(float value) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x8000u) & 0xffff0000u);
}
inline void round_to_bf16(Biases& biases) {
  for (auto& row : biases) {
    for (float& b : row) b = in_bf16(b);
  }
}

/// Each layer less its mean.
inline Biases centred(Biases biases) {
  for (auto& row : biases) {
    const float mean =
        std::accumulate(row.begin(), row.end(), 0.0f) / static_cast<float>(row.size());
    for (float& b : row) b -= mean;
  }
  return biases;
}

/// The weights that belong to the selection, after that was changed.
void weigh_anew(Routing<float>& routing, const ModelSpec& model);

inline bool is_padding(const Forward& forward, std::size_t token) {
  return !forward.mask.empty() && forward.mask[token] == 0;
}

/// Changes what a forward was routed to.
struct ChangesRouting : BuiltInSubject {
  virtual void change(const Forward& forward, Routing<float>& routing) = 0;
  Routing<float> route(const Forward& forward) override {
    Routing<float> routing = BuiltInSubject::route(forward);
    change(forward, routing);
    return routing;
  }
};

/// Routes other logits, under other biases, than it was asked to.
struct ChangesInputs : BuiltInSubject {
  virtual void change(const Forward& forward, Matrix<float>& logits,
                      std::vector<float>& biases) = 0;
  Routing<float> route(const Forward& forward) override {
    const auto now = layer(forward.layer).biases();
    std::vector<float> with(now.begin(), now.end());
    Matrix<float> logits = forward.logits;
    change(forward, logits, with);
    return router().route(std::move(logits), with);
  }
};

/// Changes only the biases that a forward is routed under.
struct ChangesBiases : ChangesInputs {
  virtual void change(const Forward& forward, std::vector<float>& biases) = 0;
  void change(const Forward& forward, Matrix<float>&, std::vector<float>& biases) final {
    change(forward, biases);
  }
};

/// Adds `amount(forward, token, slot, expert)` for every assignment, instead of 1 for those of
/// valid tokens.
struct CountsAssignments : BuiltInSubject {
  virtual std::int64_t amount(const Forward& forward, std::size_t token, std::size_t slot,
                              std::size_t expert) = 0;
  void count(const Forward& forward, const Routing<float>& routing,
             std::vector<std::int64_t>& counters) override {
    const auto& indices = routing.selection.indices;
    for (std::size_t t = 0; t < indices.rows(); ++t) {
      for (std::size_t slot = 0; slot < indices.cols(); ++slot) {
        const auto expert = static_cast<std::size_t>(indices(t, slot));
        counters[expert] += amount(forward, t, slot, expert);
      }
    }
  }
};

/// Changes the counters of a layer after a forward was counted.
struct ChangesCounts : BuiltInSubject {
  virtual void change(const Forward& forward, std::vector<std::int64_t>& counters) = 0;
  void count(const Forward& forward, const Routing<float>& routing,
             std::vector<std::int64_t>& counters) override {
    BuiltInSubject::count(forward, routing, counters);
    change(forward, counters);
  }
};

/// Changes the record of each layer in a snapshot.
struct ChangesRecords : BuiltInSubject {
  virtual void change(LayerSnapshot& record) = 0;
  Snapshot snapshot() override {
    Snapshot all = BuiltInSubject::snapshot();
    for (auto& [name, record] : all.layers) change(record);
    return all;
  }
};

/// Does something beside every optimizer step.
struct AddsToSteps : BuiltInSubject {
  virtual void after_step(bool applied) = 0;
  void end_step(bool applied) override {
    BuiltInSubject::end_step(applied);
    after_step(applied);
  }
};

/// Passes requests on to a built-in subject, and may interfere.
class Interferes : public Subject {
 public:
  const Hello& hello() final { return subject_.hello(); }
  Answer open(const Open& open) override { return subject_.open(open); }
  Answer ask(const Request& request) override { return subject_.ask(request); }

 protected:
  Subject& subject() { return subject_; }

 private:
  BuiltInSubject subject_;
};

}  // namespace ballast::props
