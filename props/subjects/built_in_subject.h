#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/balancers/balancer.h"
#include "core/balancers/quantile_settings.h"
#include "core/diagnostics/moe_diagnostics.h"
#include "core/model/module.h"
#include "core/model/router.h"
#include "core/state.h"
#include "props/subjects/subject.h"

namespace ballast::props {

/// One MoE layer of the built-in subject, without its experts: what routes, balances and is
/// counted.
class MoELayer final : public Module, public ExpertLoadSlot {
 public:
  MoELayer(std::size_t experts, std::size_t top_k, std::unique_ptr<Balancer> balancer);

  ExpertLoadSlot* expert_load_slot() override { return this; }
  std::size_t routed_experts() const override { return experts_; }
  std::size_t top_k() const override { return top_k_; }
  std::span<const float> biases() const override { return balancer->biases(); }
  std::optional<std::vector<std::int64_t>>& expert_load_counts() override { return counts_; }

  std::unique_ptr<Balancer> balancer;

 private:
  std::size_t experts_;
  std::size_t top_k_;
  std::optional<std::vector<std::int64_t>> counts_;
};

/// The project's own stack as a subject: the core's router, balancers, load collector, metrics and
/// chunk combiner. It has every capability. A group is judged by the sum of its two best s + b; with
/// groups, or with top_k = routed_experts, quantile balancing is refused as "unsupported".
///
/// A request that makes no sense (a layer or rank that does not exist, logits or a mask of another
/// shape, exit or snapshot without a collector, a load without its save, ...) is refused as
/// "invalid" and changes nothing. A collector's entry while one is active, disabled or not, is
/// refused as "already_active".
///
/// Every step of the conversation is a virtual function, so that a faulty variant is one step
/// overridden. The steps run on valid requests only.
class BuiltInSubject : public Subject {
 public:
  explicit BuiltInSubject(std::string name = "built-in",
                          OnOverflow on_overflow = OnOverflow::discard);

  const Hello& hello() override { return hello_; }
  Answer open(const Open& open) final;
  Answer ask(const Request& request) final;

 protected:
  // What the steps work on.
  const Open& opened() const { return open_; }
  const ModelSpec& model() const { return open_.model; }
  std::size_t layers() const { return layers_.size(); }
  MoELayer& layer(std::size_t index) { return *layers_[index]; }
  const Router<float>& router() const { return *router_; }
  /// The active collector; null while there is none.
  MoEDiagnostics* collector() { return collector_.get(); }
  /// Of a quantile balancer, as it was opened.
  QuantileSettings quantile_settings() const;

  // The steps.
  virtual std::unique_ptr<Balancer> make_balancer();
  /// Whether the balancer observes a forward, and whether an active collector counts it.
  virtual bool observes(const Forward& forward) { return forward.mode == Mode::train; }
  virtual bool counts(const Forward& forward) { return forward.mode == Mode::train; }
  /// Scores, choices and weights of a forward, under the biases of its layer.
  virtual Routing<float> route(const Forward& forward);
  virtual void observe(const Forward& forward, const Routing<float>& routing);
  /// Adds to the counters of the layer; called while a collector is active only.
  virtual void count(const Forward& forward, const Routing<float>& routing,
                     std::vector<std::int64_t>& counters);
  virtual void end_step(bool applied);
  virtual Biases biases();
  virtual void set_biases(const Biases& biases);
  virtual void enter(bool enabled);
  virtual void exit();
  virtual Snapshot snapshot();
  virtual std::map<std::string, double> metrics(const Counts& counts);
  virtual std::map<std::string, double> combine(const std::vector<Chunk>& chunks);
  virtual StateDict save();
  virtual void load(const StateDict& state);

 private:
  struct Model;

  Answer answer(const Forward& forward);
  Answer answer(const Step& step);
  Answer answer(const GetBiases&);
  Answer answer(const SetBiases& request);
  Answer answer(const Collector& request);
  Answer answer(const MetricsOf& request);
  Answer answer(const Combine& request);
  Answer answer(const Save&);
  Answer answer(const Load& request);

  Hello hello_;
  Open open_;
  std::unique_ptr<Router<float>> router_;
  std::vector<std::unique_ptr<MoELayer>> layers_;
  std::unique_ptr<Module> model_;  ///< the tree that the collector searches
  std::unique_ptr<MoEDiagnostics> collector_;
  std::vector<StateDict> saved_;
};

}  // namespace ballast::props
