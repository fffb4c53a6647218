#include "sim/route/batch_balancer.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "core/balancers/quantile_balancer.h"
#include "core/state.h"

namespace ballast::sim {
namespace {

/// Up to here a batch is kept whole rather than sampled.
constexpr std::size_t small_batch = 2048;
/// Samples are runs of so many tokens, since each run is cheap to read.
constexpr std::size_t run_tokens = 32;
constexpr std::size_t runs_of_first = 8;
/// Of the second: a run in so many tokens of the batch, and no more than so many.
constexpr std::size_t tokens_a_run = 512, runs_max = 128;

/// Windows of a histogram pay up to so large a part of all values, as measured: by what is expected
/// inside brackets, and by what a sample has inside their bins.
constexpr double expected_max = 0.035, inside_max = 0.08;

/// What is looked at before the others, evenly spread; its brackets reach so many deviations.
struct Sample {
  std::size_t runs;
  double deviations;

  std::size_t tokens() const { return runs * run_tokens; }
  std::vector<TokenRange> ranges(std::size_t of_tokens) const {
    std::vector<TokenRange> ranges;
    for (std::size_t run = 0; run < runs; ++run)
      ranges.push_back({(of_tokens - run_tokens) * run / (runs - 1), run_tokens});
    return ranges;
  }
};

/// One after the other, each with the brackets of the one before it: what is inside a bracket takes
/// many times as long as what is outside. Nobody looks at a first bracket's values twice, so it may
/// be wide.
std::vector<Sample> samples(std::size_t tokens) {
  if (tokens <= small_batch) return {};
  const std::size_t runs = std::min(tokens / tokens_a_run, runs_max);
  if (runs < 2 * runs_of_first) return {{runs_of_first, 5.0}};
  return {{runs_of_first, 8.0}, {runs, 5.0}};
}

double inside(const Sample& sample, const RouterSettings& router) {
  const auto n = static_cast<double>(sample.tokens());
  const double share =
      static_cast<double>(router.top_k) / static_cast<double>(router.routed_experts);
  return std::min(1.0, 2.0 * bracket_reach(n, share, sample.deviations) / n);
}

/// floor(q), q = m k / E: the position of the wanted r among the m values of an expert.
std::int64_t position(std::int64_t tokens, const RouterSettings& router) {
  return tokens * static_cast<std::int64_t>(router.top_k) /
         static_cast<std::int64_t>(router.routed_experts);
}

/// Whether it is worth while to look for windows: few values are expected inside brackets.
bool looks_for_windows(std::size_t tokens, const RouterSettings& router) {
  return tokens > small_batch && inside(samples(tokens).back(), router) <= expected_max;
}

}  // namespace

BatchBalancer::BatchBalancer(const BalancerChoice& choice, const RouterSettings& router,
                             std::vector<float> biases)
    : choice_(choice), router_(router), biases_(std::move(biases)) {
  make_balancer(choice, router);  // which checks
  const bool by_cutoffs =
      choice.kind == BalancerChoice::Kind::exact || choice.kind == BalancerChoice::Kind::histogram;
  if (by_cutoffs && router.groups.limit()) {
    throw std::invalid_argument(
        "quantiles need cutoffs, which there are none of with groups; sign:RATE or none would do");
  }
}

BatchBalancer::Kept BatchBalancer::kept(std::size_t tokens, const RouterSettings& router,
                                        BalancerChoice::Kind kind) {
  const auto plan = samples(tokens);
  if (kind == BalancerChoice::Kind::histogram)
    return {.sampled = looks_for_windows(tokens, router) ? plan.back().tokens() : 0, .share = 0.0};
  if (plan.empty()) return {.sampled = 0, .share = 1.0};
  return {.sampled = plan.back().tokens(), .share = inside(plan.back(), router)};
}

PassCounts BatchBalancer::step(const Batch& batch, RoutingSink* sink, const Executor& executor) {
  switch (choice_.kind) {
    case BalancerChoice::Kind::exact:
      return step_exactly(batch, sink, executor);
    case BalancerChoice::Kind::histogram:
      return step_by_histogram(batch, sink, executor);
    default:
      return step_by_loads(batch, sink, executor);
  }
}

PassCounts BatchBalancer::step_by_loads(const Batch& batch, RoutingSink* sink,
                                        const Executor& executor) {
  auto counts = route_batch(router_, biases_, batch, nullptr, sink, executor);
  if (choice_.kind == BalancerChoice::Kind::none) return counts;
  StageClock clock;
  const auto balancer = make_balancer(choice_, router_);
  balancer->set_biases(biases_);
  StateDict state;
  balancer->save(state, "");
  state.put("counts", counts.observed);
  balancer->load(state, "");
  balancer->end_step(true);
  std::ranges::copy(balancer->biases(), biases_.begin());
  clock.lap(counts.times.balance);
  return counts;
}

PassCounts BatchBalancer::step_by_histogram(const Batch& batch, RoutingSink* sink,
                                            const Executor& executor) {
  const HistogramRange range(biases_, choice_.bins);
  double before = 0.0;
  StageClock clock;
  auto some = windows(range, batch, executor);
  clock.lap(before);
  PassCounts counts;
  if (some) {
    counts = step_by_windows(std::move(*some), batch, sink, executor);
  } else {
    CollectorOf collector(HistogramCounts(biases_.size(), range));
    counts = route_batch(router_, biases_, batch, &collector, sink, executor);
    clock = {};
    if (collector.core.tokens() > 0) set(collector.core.estimate(router_.top_k));
    clock.lap(counts.times.balance);
  }
  counts.times.balance += before;
  return counts;
}

/// Windows of bins in which few values are likely to be, but the ones that decide; nothing if those
/// would be many, or the batch is small.
std::optional<WindowedHistogram> BatchBalancer::windows(const HistogramRange& range,
                                                        const Batch& batch,
                                                        const Executor& executor) const {
  const std::size_t tokens = batch.logits.tokens(), experts = biases_.size();
  if (!looks_for_windows(tokens, router_)) return std::nullopt;
  const QuantileRank rank(static_cast<std::int64_t>(tokens), router_.top_k, experts);
  const WindowedHistogram windows(range, brackets(rank.rank - 1, batch, executor));
  CollectorOf trial(windows);
  route_ranges(router_, biases_, batch, samples(tokens)[0].ranges(tokens), &trial, nullptr,
               executor);
  const auto values = static_cast<double>(trial.core.tokens()) * static_cast<double>(experts);
  if (static_cast<double>(trial.core.inside()) > inside_max * values) return std::nullopt;
  return windows;
}

PassCounts BatchBalancer::step_by_windows(WindowedHistogram windows, const Batch& batch,
                                          RoutingSink* sink, const Executor& executor) {
  CollectorOf collector(std::move(windows));
  auto counts = route_batch(router_, biases_, batch, &collector, sink, executor);
  StageClock clock;
  if (collector.core.tokens() > 0) set(histogram_estimate(collector.core, batch, executor));
  clock.lap(counts.times.balance);
  return counts;
}

std::vector<double> BatchBalancer::histogram_estimate(const WindowedHistogram& found,
                                                      const Batch& batch,
                                                      const Executor& executor) const {
  std::vector<double> estimate;
  for (std::size_t j = 0; j < biases_.size(); ++j) {
    const auto value = found.estimate(j, router_.top_k);
    if (!value) break;
    estimate.push_back(*value);
  }
  if (estimate.size() == biases_.size()) return estimate;
  CollectorOf all(HistogramCounts(biases_.size(), found.range()));
  route_batch(router_, biases_, batch, &all, nullptr, executor);
  return all.core.estimate(router_.top_k);
}

PassCounts BatchBalancer::step_exactly(const Batch& batch, RoutingSink* sink,
                                       const Executor& executor) {
  double before = 0.0, after = 0.0;
  StageClock clock;
  const auto all = static_cast<std::int64_t>(batch.logits.tokens());
  CollectorOf collector(BracketedQuantile(brackets(position(all, router_), batch, executor)));
  clock.lap(before);
  auto counts = route_batch(router_, biases_, batch, &collector, sink, executor);
  clock = {};
  if (collector.core.tokens() > 0) set(exact_estimate(collector.core, batch, executor));
  clock.lap(after);
  counts.times.balance += before + after;
  return counts;
}

Brackets BatchBalancer::brackets(std::int64_t position, const Batch& batch,
                                 const Executor& executor) const {
  const std::size_t experts = biases_.size(), tokens = batch.logits.tokens();
  const auto all = static_cast<std::int64_t>(tokens);
  const auto plan = samples(tokens);
  Brackets brackets = open_brackets(experts, plan.empty() ? tokens : plan[0].tokens());
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Sample& sample = plan[i];
    const std::size_t coming = i + 1 < plan.size() ? plan[i + 1].tokens() : tokens;
    const auto look = [&](Brackets within) {
      CollectorOf collector(BracketedQuantile(std::move(within)));
      route_ranges(router_, biases_, batch, sample.ranges(tokens), &collector, nullptr, executor);
      return collector.core.narrowed(position, all, sample.deviations, coming, executor);
    };
    auto narrower = look(std::move(brackets));
    // The sample before it has misled it, as where tokens that are alike stand together.
    if (!narrower && i > 0) narrower = look(open_brackets(experts, sample.tokens()));
    brackets = narrower ? std::move(*narrower) : open_brackets(experts);
  }
  return brackets;
}

std::vector<double> BatchBalancer::exact_estimate(const BracketedQuantile& found,
                                                  const Batch& batch,
                                                  const Executor& executor) const {
  const std::int64_t wanted = position(found.tokens(), router_);
  std::vector<double> estimate(biases_.size());
  for_each_expert(estimate.size(), executor,
                  [&](std::size_t j, BracketedQuantile::Scratch& scratch) {
                    if (found.has(j, wanted))
                      estimate[j] = static_cast<double>(found.value(j, wanted, scratch));
                  });
  std::vector<std::size_t> missing;
  for (std::size_t j = 0; j < estimate.size(); ++j)
    if (!found.has(j, wanted)) missing.push_back(j);
  if (missing.empty()) return estimate;
  const std::vector<std::int64_t> positions(missing.size(), wanted);
  CollectorOf collector(PooledQuantile(missing, positions));
  while (!collector.core.done()) {
    route_batch(router_, biases_, batch, &collector, nullptr, executor);
    collector.core.end_round();
  }
  const auto values = collector.core.values();
  for (std::size_t i = 0; i < missing.size(); ++i)
    estimate[missing[i]] = static_cast<double>(values[i]);
  return estimate;
}

void BatchBalancer::set(std::span<const double> estimate) {
  if (const auto moved = centred_biases(estimate)) biases_ = *moved;
}

}  // namespace ballast::sim
