#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "core/arithmetic/products.h"
#include "core/balancers/bracketed_quantile.h"
#include "core/balancers/histogram_counts.h"
#include "core/kernels/kernels.h"
#include "core/model/selection.h"
#include "core/random/distributions.h"
#include "core/random/fills.h"
#include "sim/command/kept_memory.h"
#include "sim/command/target_limit.h"
#include "tests/bench/batch.h"
#include "tests/bench/machine_limits.h"

namespace ballast::bench {
namespace {

const Batch& batch(std::size_t shape) {
  static const std::vector<Batch> batches(std::begin(shapes), std::end(shapes));
  return batches[shape];
}

/// A tile of routed tokens, and what it takes to route it.
struct Tile {
  explicit Tile(const Shape& shape)
      : tokens(std::clamp<std::size_t>((std::size_t{1} << 17) / shape.experts / 16 * 16, 16, 2048)),
        stride(shape.experts % 256 == 0 ? shape.experts + 16 : shape.experts),
        scores(tokens, stride),
        weights(tokens * shape.top_k),
        cutoffs(tokens),
        scratch(kernels::row_scratch(shape.experts)),
        indices(tokens * shape.top_k),
        index_scratch(kernels::row_scratch(shape.experts)),
        finite(tokens),
        loads(shape.experts) {}

  ScoreTile route(const Shape& shape, const Batch& batch, std::size_t first, std::size_t count,
                  bool keeps_scores = true) {
    kernels::active().route({.tokens = count,
                             .experts = shape.experts,
                             .top_k = shape.top_k,
                             .biases = batch.biases.data(),
                             .logits = batch.logits.data() + first * shape.experts,
                             .logits_stride = shape.experts,
                             .scores = scores.data(),
                             .scores_stride = stride,
                             .keeps_scores = keeps_scores,
                             .gates = scores.data(),
                             .gates_stride = stride,
                             .indices = indices.data(),
                             .weights = weights.data(),
                             .cutoffs = cutoffs.data(),
                             .finite = finite.data(),
                             .scratch = scratch.data(),
                             .index_scratch = index_scratch.data()});
    count_assignments({indices.data(), count, shape.top_k}, {}, loads);
    return {.tokens = count,
            .experts = shape.experts,
            .scores = keeps_scores ? scores.data() : nullptr,
            .stride = stride,
            .logits = keeps_scores ? nullptr : batch.logits.data() + first * shape.experts,
            .logits_stride = shape.experts,
            .cutoffs = cutoffs.data()};
  }

  std::size_t tokens, stride;
  Matrix<float> scores;
  std::vector<float> weights, cutoffs, scratch;
  std::vector<std::int32_t> indices, index_scratch;
  std::vector<std::uint8_t> finite;
  std::vector<std::int64_t> loads;
};

void report(benchmark::State& state, const Shape& shape) {
  state.counters["ns/te"] = benchmark::Counter(
      static_cast<double>(shape.tokens * shape.experts) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

template <class Observe>
void for_each_tile(const Shape& shape, std::size_t number, bool keeps_scores, Observe observe) {
  Tile tile(shape);
  for (std::size_t first = 0; first < shape.tokens; first += tile.tokens) {
    const std::size_t count = std::min(tile.tokens, shape.tokens - first);
    observe(tile.route(shape, batch(number), first, count, keeps_scores));
  }
  benchmark::DoNotOptimize(tile.loads.data());
}

/// a: sigmoid, bias, top-(k+1), weights, counts.
void route(benchmark::State& state, std::size_t number, bool keeps_scores) {
  batch(number);
  for (auto _ : state) for_each_tile(shapes[number], number, keeps_scores, [](const ScoreTile&) {});
  report(state, shapes[number]);
}

/// As `ballast route` does.
bool keeps_scores(const Shape& shape) {
  return !kernels::prefers_estimates(shape.experts, shape.top_k);
}

/// c: a, with the required biases counted in 1000 bins, and estimates from them.
void histogram(benchmark::State& state, std::size_t number) {
  const Shape& shape = shapes[number];
  batch(number);
  for (auto _ : state) {
    HistogramCounts counts(shape.experts, HistogramRange(batch(number).biases, 1000));
    for_each_tile(shape, number, keeps_scores(shape),
                  [&](const ScoreTile& tile) { counts.observe(tile); });
    benchmark::DoNotOptimize(counts.estimate(shape.top_k));
  }
  report(state, shape);
}

/// b: a, with the exact order statistic of each expert: a sample for the brackets,
/// the pass, the selection inside.
void exact(benchmark::State& state, std::size_t number) {
  const Shape& shape = shapes[number];
  batch(number);
  const auto position = static_cast<std::int64_t>(shape.tokens * shape.top_k / shape.experts);
  for (auto _ : state) {
    Brackets brackets = open_brackets(shape.experts, 256);
    Tile tile(shape);
    const auto narrow = [&](std::size_t runs, double deviations, std::size_t coming) {
      BracketedQuantile sample(std::move(brackets));
      for (std::size_t run = 0; run < runs; ++run)
        sample.observe(tile.route(shape, batch(number), run * (shape.tokens / runs), 32));
      const auto narrower =
          sample.narrowed(position, static_cast<std::int64_t>(shape.tokens), deviations, coming);
      if (!narrower) state.SkipWithError("a sample's bracket missed");
      brackets = narrower.value_or(open_brackets(shape.experts));
    };
    narrow(8, 8.0, 4096);
    narrow(128, 5.0, shape.tokens);
    BracketedQuantile found(std::move(brackets));
    for_each_tile(shape, number, keeps_scores(shape),
                  [&](const ScoreTile& routed) { found.observe(routed); });
    BracketedQuantile::Scratch scratch;
    for (std::size_t j = 0; j < shape.experts; ++j) {
      if (!found.has(j, position))
        state.SkipWithError("a bracket missed");
      else
        benchmark::DoNotOptimize(found.value(j, position, scratch));
    }
  }
  report(state, shape);
}

void sigmoid(benchmark::State& state) {
  const auto in = batch(0).logits.values();
  std::vector<float> out(4096);
  for (auto _ : state) {
    kernels::active().sigmoid(in.data(), out.data(), out.size());
    benchmark::ClobberMemory();
  }
  report(state, {out.size(), 1, 1});
}

/// Random values, many at once.
template <class Fill>
void random_values(benchmark::State& state, Fill fill) {
  Stream stream(1);
  std::vector<float> out(4096);
  for (auto _ : state) {
    fill(stream, out);
    benchmark::ClobberMemory();
  }
  report(state, {out.size(), 1, 1});
}

/// The gate's product of 4096 tokens: logits = x W^T.
void gate(benchmark::State& state, std::size_t hidden, std::size_t experts) {
  const Matrix<float> x = normal_matrix(4096, hidden, 2), w = normal_matrix(experts, hidden, 3);
  Matrix<float> out(x.rows(), experts);
  for (auto _ : state) {
    arithmetic::multiply_transposed<float>(x.view(), w.view(), out.view(), serial_executor());
    benchmark::ClobberMemory();
  }
  state.counters["flop/s"] =
      benchmark::Counter(2.0 * static_cast<double>(x.rows() * hidden * experts),
                         benchmark::Counter::kIsIterationInvariantRate);
}

void limit_read(benchmark::State& state) {
  const auto logits = batch(0).logits.values();
  for (auto _ : state) benchmark::DoNotOptimize(read_all(logits));
  state.SetBytesProcessed(static_cast<std::int64_t>(
      state.iterations() * batch(0).logits.values().size() * sizeof(float)));
  report(state, shapes[0]);
}

void limit_fma(benchmark::State& state) {
  double operations = 0.0;
  for (auto _ : state) operations += fused_multiply_adds(100000);
  state.counters["flop/s"] = benchmark::Counter(operations, benchmark::Counter::kIsRate);
}

const int registered = [] {
  sim::keep_memory();
  if (!sim::limit_target(std::getenv("BALLAST_TARGET"), std::cerr)) std::exit(1);
  benchmark::RegisterBenchmark("limit/fma", limit_fma);
  benchmark::RegisterBenchmark("limit/read", limit_read);
  benchmark::RegisterBenchmark("sigmoid/in_L1", sigmoid);
  benchmark::RegisterBenchmark("random/uniform", random_values<decltype(&fill_uniform)>,
                               fill_uniform);
  benchmark::RegisterBenchmark("random/normal", random_values<decltype(&fill_normal)>, fill_normal);
  const auto log_normal = [](Stream& stream, std::span<float> out) {
    fill_log_normal(stream, 0.5f, out);
  };
  benchmark::RegisterBenchmark("random/log_normal", random_values<decltype(log_normal)>,
                               log_normal);
  benchmark::RegisterBenchmark("random/gumbel", random_values<decltype(&fill_gumbel)>, fill_gumbel);
  for (const std::size_t hidden : {std::size_t{1024}, std::size_t{7168}}) {
    for (const Shape& shape : shapes) {
      const std::string name =
          "gate/" + std::to_string(hidden) + "," + std::to_string(shape.experts);
      benchmark::RegisterBenchmark(name.c_str(), gate, hidden, shape.experts);
    }
  }
  for (std::size_t i = 0; i < std::size(shapes); ++i) {
    const std::string shape =
        std::to_string(shapes[i].experts) + "," + std::to_string(shapes[i].top_k);
    benchmark::RegisterBenchmark(("a/route/" + shape).c_str(), route, i, false);
    benchmark::RegisterBenchmark(("a/route_and_keep_scores/" + shape).c_str(), route, i, true);
    benchmark::RegisterBenchmark(("c/histogram/" + shape).c_str(), histogram, i);
    benchmark::RegisterBenchmark(("b/exact/" + shape).c_str(), exact, i);
  }
  return 0;
}();

}  // namespace
}  // namespace ballast::bench
