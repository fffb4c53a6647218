#include "sim/simulation/simulation.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>
#include <variant>

#include "sim/digest.h"

namespace ballast::sim {

namespace {

bool is_due(std::size_t step, std::size_t every) { return every != 0 && step % every == 0; }

bool contains(const std::vector<std::size_t>& steps, std::size_t step) {
  return std::ranges::find(steps, step) != steps.end();
}

void add_loads(Digest& digest, const Loads& loads) {
  for (const auto& layer : loads) digest.add(std::span<const std::int64_t>(layer));
}

std::string step_digest(const StepRecord& record, LanguageModel<float>& model) {
  Digest digest;
  digest.add(record.applied);
  digest.add(record.loss_scale);
  digest.add(record.tokens);
  digest.add(record.figures.at("loss"));
  add_loads(digest, record.loads);
  for (std::size_t layer = 0; layer < model.layers(); ++layer) digest.add(model.moe(layer).biases());
  return digest.hex();
}

[[noreturn]] void throw_diverged(const std::string& what, std::size_t step) {
  throw std::logic_error("simulation: " + what + " " + std::to_string(step) +
                         ", repeated after a restart, came out otherwise than before");
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, const TokenSource& source, const Executor& executor,
                       RunObserver* observer)
    : scenario_(scenario),
      source_(source),
      executor_(executor),
      observer_(observer),
      restarts_to_come_(scenario.training.restart_after.begin(), scenario.training.restart_after.end()) {
  start_trainer();
  save_checkpoint(0);
  if (scenario_.training.evaluate_every != 0) evaluate(0);
}

void Simulation::start_trainer() {
  active_.reset();
  diagnostics_.reset();
  trainer_ = std::make_unique<Trainer>(scenario_, source_.vocabulary(), executor_);
  diagnostics_ = std::make_unique<MoEDiagnostics>(trainer_->model(), scenario_.diagnostics);
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
  const auto& training = scenario_.training;
  const bool is_new = step > steps_.size();  // not repeated after a restart
  trainer_->observe(is_new ? observer_ : nullptr);
  for (std::size_t rank = 0; rank < training.ranks; ++rank) {
    for (std::size_t micro_batch = 0; micro_batch < training.micro_batches; ++micro_batch) {
      const std::size_t first = (rank * training.micro_batches + micro_batch) * training.sequences;
      trainer_->forward_backward(
          make_batch(source_, {.split = Split::training, .step = step - 1, .sequence = first},
                     training.sequences),
          rank);
    }
  }
  if (contains(training.overflow_steps, step)) trainer_->inject_overflow();
  StepOutcome outcome = trainer_->optim_step();
  StepRecord record{.step = step,
                    .applied = outcome.applied,
                    .loss_scale = outcome.loss_scale,
                    .tokens = outcome.tokens,
                    .figures = load_figures(outcome.loads),
                    .loads = std::move(outcome.loads),
                    .digest = {}};
  record.figures["loss"] = outcome.loss;
  record.figures.merge(outcome.router_figures);
  record.digest = step_digest(record, trainer_->model());
  if (is_new) show_biases();
  remember(std::move(record));
}

void Simulation::show_biases() {
  if (observer_ == nullptr) return;
  for (std::size_t layer = 0; layer < trainer_->model().layers(); ++layer) {
    observer_->updated(layer, trainer_->model().moe(layer).biases());
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
  const auto evaluated = trainer_->evaluate(
      make_batch(source_, {.split = Split::evaluation}, scenario_.training.evaluate_sequences));
  EvaluationRecord record{.step = step, .figures = load_figures(evaluated.loads), .digest = {}};
  record.figures["loss"] = evaluated.loss;
  Digest digest;
  digest.add(evaluated.loss);
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
  checkpoint_ = trainer_->state().to_bytes();
  checkpoint_step_ = step;
}

void Simulation::restart(std::size_t step) {
  events_.push_back({.kind = Event::Kind::restart, .step = step, .checkpoint = checkpoint_step_});
  start_trainer();
  trainer_->load_state(StateDict::from_bytes(checkpoint_));
  completed_ = checkpoint_step_;
  counted_from_ = checkpoint_step_ + 1;
}

std::string Simulation::digest() const {
  Digest digest;
  const auto add_text = [&](const std::string& text) { digest.add(std::span<const char>(text)); };
  for (const auto& record : steps_) add_text(record.digest);
  for (const auto& record : evaluations_) add_text(record.digest);
  const StateDict state = trainer_->state();
  for (const auto& [name, values] : state.entries()) {
    add_text(name);
    std::visit([&](const auto& typed) { digest.add(std::span(typed)); }, values);
  }
  return digest.hex();
}

}  // namespace ballast::sim
