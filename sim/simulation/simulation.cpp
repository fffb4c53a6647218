#include "sim/simulation/simulation.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>
#include <variant>

#include "core/arithmetic/reductions.h"
#include "sim/digest.h"
#include "sim/simulation/scenario_source.h"

namespace ballast::sim {

namespace {

bool is_due(std::size_t step, std::size_t every) {
  return every != 0 && step % every == 0;
}

void add_loads(Digest& digest, const Loads& loads) {
  for (const auto& layer : loads) digest.add(std::span<const std::int64_t>(layer));
}

std::string step_digest(const StepRecord& record, Workload& workload) {
  Digest digest;
  digest.add(record.applied);
  digest.add(record.loss_scale);
  digest.add(record.tokens);
  if (workload.learns()) digest.add(record.figures.at("loss"));
  add_loads(digest, record.loads);
  for (std::size_t layer = 0; layer < workload.layers(); ++layer) {
    digest.add(workload.balancer(layer).biases());
  }
  return digest.hex();
}

void add_bias_figures(Figures& figures, Workload& workload) {
  double range = 0.0, mean = 0.0;
  for (std::size_t layer = 0; layer < workload.layers(); ++layer) {
    const auto biases = workload.balancer(layer).biases();
    const auto [low, high] = std::ranges::minmax(biases);
    range = std::max(range, double{high} - double{low});
    mean = std::max(
        mean, std::abs(arithmetic::sum_in_double(biases)) / static_cast<double>(biases.size()));
  }
  figures["bias_range"] = range;
  figures["bias_mean"] = mean;
}

[[noreturn]] void throw_diverged(const std::string& what, std::size_t step) {
  throw std::logic_error("simulation: " + what + " " + std::to_string(step) +
                         ", repeated after a restart, came out otherwise than before");
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, const Executor& executor, RunObserver* observer)
    : Simulation(scenario, make_source(scenario), executor, observer) {}

Simulation::Simulation(const Scenario& scenario, std::unique_ptr<TokenSource> source,
                       const Executor& executor, RunObserver* observer)
    : Simulation(scenario, *source, executor, observer) {
  own_source_ = std::move(source);
}

Simulation::Simulation(const Scenario& scenario, const TokenSource& source,
                       const Executor& executor, RunObserver* observer)
    : scenario_(scenario),
      source_(source),
      executor_(executor),
      observer_(observer),
      restarts_to_come_(scenario.training.restart_after.begin(),
                        scenario.training.restart_after.end()) {
  start();
  save_checkpoint(0);
  if (scenario_.training.evaluate_every != 0) evaluate(0);
}

void Simulation::start() {
  active_.reset();
  diagnostics_.reset();
  workload_ = make_workload(scenario_, source_, executor_);
  diagnostics_ = std::make_unique<MoEDiagnostics>(workload_->modules(), scenario_.diagnostics);
  active_ = diagnostics_->activate();
}

void Simulation::advance() {
  if (done()) throw std::logic_error("simulation: the run has ended");
  const std::size_t step = completed_ + 1;
  run_step(step);
  completed_ = step;
  if (is_due(step, scenario_.training.evaluate_every)) evaluate(step);
  if (is_due(step, scenario_.training.log_every) ||
      (done() && scenario_.training.log_every != 0 && counted_from_ <= step)) {
    close_window(step);
  }
  if (is_due(step, scenario_.training.checkpoint_every)) save_checkpoint(step);
  if (restarts_to_come_.erase(step) != 0) restart(step);
}

void Simulation::run_step(std::size_t step) {
  const bool is_new = step > steps_.size();  // not repeated after a restart
  workload_->observe(is_new ? observer_ : nullptr);
  StepOutcome outcome = workload_->run_step(step);
  StepRecord record{.step = step,
                    .applied = outcome.applied,
                    .loss_scale = outcome.loss_scale,
                    .tokens = outcome.tokens,
                    .distinct_inputs = outcome.distinct_inputs,
                    .figures = load_figures(outcome.loads),
                    .loads = std::move(outcome.loads),
                    .digest = {}};
  add_bias_figures(record.figures, *workload_);
  if (workload_->learns()) {
    record.figures["loss"] = outcome.loss;
    record.figures.merge(outcome.router_figures);
  }
  record.digest = step_digest(record, *workload_);
  if (is_new) show_biases();
  remember(std::move(record));
}

void Simulation::show_biases() {
  if (observer_ == nullptr) return;
  for (std::size_t layer = 0; layer < workload_->layers(); ++layer) {
    observer_->updated(layer, workload_->balancer(layer).biases());
  }
}

void Simulation::remember(StepRecord record) {
  if (record.step > steps_.size()) {
    if (!record.applied) events_.push_back({.kind = Event::Kind::overflow, .step = record.step});
    steps_.push_back(std::move(record));
    if (observer_ != nullptr) observer_->stepped(steps_.back());
  } else if (steps_[record.step - 1].digest != record.digest) {
    throw_diverged("step", record.step);
  }
}

void Simulation::evaluate(std::size_t step) {
  const auto evaluated = workload_->evaluate(step);
  EvaluationRecord record{.step = step, .figures = load_figures(evaluated.loads), .digest = {}};
  Digest digest;
  if (workload_->learns()) {
    record.figures["loss"] = evaluated.loss;
    digest.add(evaluated.loss);
  }
  add_loads(digest, evaluated.loads);
  record.digest = digest.hex();
  const auto before = std::ranges::find(evaluations_, step, &EvaluationRecord::step);
  if (before == evaluations_.end()) {
    evaluations_.push_back(std::move(record));
    if (observer_ != nullptr) observer_->evaluated(evaluations_.back());
  } else if (before->digest != record.digest) {
    throw_diverged("the evaluation after step", step);
  }
}

void Simulation::close_window(std::size_t step) {
  if (!scenario_.diagnostics) return;
  const std::size_t first = windows_.empty() ? 1 : windows_.back().last_step + 1;
  DiagnosticsSnapshot snapshot = diagnostics_->snapshot();
  const std::size_t counted_from = std::exchange(counted_from_, step + 1);
  if (step < first) return;  // a repeated step of a window that is already on record
  windows_.push_back({.first_step = first,
                      .last_step = step,
                      .complete = counted_from <= first,
                      .snapshot = std::move(snapshot)});
}

void Simulation::save_checkpoint(std::size_t step) {
  if (restarts_to_come_.empty()) return;  // nobody would read it
  checkpoint_ = workload_->state().to_bytes();
  checkpoint_step_ = step;
}

void Simulation::restart(std::size_t step) {
  events_.push_back({.kind = Event::Kind::restart, .step = step, .checkpoint = checkpoint_step_});
  start();
  workload_->load_state(StateDict::from_bytes(checkpoint_));
  completed_ = checkpoint_step_;
  counted_from_ = checkpoint_step_ + 1;
}

CollapseReport Simulation::collapse() const {
  return find_collapse(steps_, scenario_.model.moe.router.top_k);
}

std::string Simulation::digest() const {
  Digest digest;
  const auto add_text = [&](const std::string& text) { digest.add(std::span<const char>(text)); };
  for (const auto& record : steps_) add_text(record.digest);
  for (const auto& record : evaluations_) add_text(record.digest);
  const StateDict state = workload_->state();
  for (const auto& [name, values] : state.entries()) {
    add_text(name);
    std::visit([&](const auto& typed) { digest.add(std::span(typed)); }, values);
  }
  return digest.hex();
}

}  // namespace ballast::sim
