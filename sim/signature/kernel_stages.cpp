#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "core/balancers/bracketed_quantile.h"
#include "core/balancers/histogram_counts.h"
#include "core/balancers/pooled_quantile.h"
#include "core/kernels/kernels.h"
#include "core/random/fills.h"
#include "sim/route/tile_router.h"
#include "sim/signature/inputs.h"
#include "sim/signature/stage.h"

namespace ballast::sim {
namespace {

struct Shape {
  std::size_t tokens, experts, top_k;
};

/// Few experts, many, and numbers of them that fill no vector.
constexpr Shape shapes[] = {{300, 8, 2}, {100, 33, 9}, {100, 64, 6}, {40, 256, 8}, {20, 896, 16}};

/// Logits of some tokens, with values among them that are no numbers or saturate.
Matrix<float> logits_of(const Shape& shape) {
  auto logits = normal_matrix<float>(stage_stream("logits").child(shape.experts), shape.tokens,
                                     shape.experts);
  logits(3, 1) = std::numeric_limits<float>::quiet_NaN();
  logits(4, 2) = std::numeric_limits<float>::infinity();
  logits(5, 3) = -95.0f;
  return logits;
}

std::vector<float> biases_of(const Shape& shape) {
  return small_biases(stage_stream("biases").child(shape.experts), shape.experts);
}

/// A batch as a TileRouter routes it when no scores are wanted; `score` other than sigmoid leaves
/// out that kernel.
struct Tile {
  Tile(const Shape& shape, ScoreFunction score)
      : router({.routed_experts = shape.experts, .top_k = shape.top_k, .score = score},
               shape.tokens, false),
        indices(shape.tokens, shape.top_k),
        weights(shape.tokens, shape.top_k),
        cutoffs(shape.tokens),
        finite(shape.tokens) {
    router.route(logits_of(shape), biases_of(shape), {indices, weights, cutoffs, finite});
  }

  TileRouter router;
  Matrix<std::int32_t> indices;
  Matrix<float> weights;
  std::vector<float> cutoffs;
  std::vector<std::uint8_t> finite;
};

void add_sigmoids(Digest& digest, const Executor&) {
  for (const Shape& shape : shapes) {
    Matrix<float> scores = logits_of(shape);
    for (std::size_t t = 0; t < shape.tokens; ++t) {
      const auto row = scores.row(t);
      kernels::active().sigmoid(row.data(), row.data(), row.size());
    }
    digest.add(std::span<const float>(scores.values()));
  }
}

void add_routing(Digest& digest, const Executor&) {
  for (const Shape& shape : shapes) {
    for (const ScoreFunction score : {ScoreFunction::logit, ScoreFunction::sigmoid}) {
      const Tile tile(shape, score);
      digest.add(tile.indices.values());
      digest.add(tile.weights.values());
      digest.add(std::span<const float>(tile.cutoffs));
      digest.add(std::span<const std::uint8_t>(tile.finite));
    }
  }
}

/// From the beginning of a vector of blocks, and from its middle.
void add_random_fills(Digest& digest, const Executor&) {
  Stream stream = stage_stream("fills");
  std::vector<float> values(1001);
  for (int i = 0; i < 2; ++i) {
    fill_uniform(stream, values);
    digest.add(std::span<const float>(values));
    fill_normal(stream, values);
    digest.add(std::span<const float>(values));
    fill_log_normal(stream, 0.5f, values);
    digest.add(std::span<const float>(values));
    fill_gumbel(stream, values);
    digest.add(std::span<const float>(values));
  }
}

/// Scores that no kernel made, under cutoffs in their midst.
struct Observed {
  explicit Observed(const Shape& shape)
      : scores(shape.tokens, shape.experts), cutoffs(shape.tokens), shape_(shape) {
    Stream stream = stage_stream("observed").child(shape.experts);
    for (float& score : scores.values()) score = static_cast<float>(uniform(stream));
    for (float& cutoff : cutoffs) cutoff = static_cast<float>(uniform(stream));
  }
  ScoreTile tile() const {
    return {.tokens = shape_.tokens,
            .experts = shape_.experts,
            .scores = scores.data(),
            .stride = shape_.experts,
            .cutoffs = cutoffs.data()};
  }

  Matrix<float> scores;
  std::vector<float> cutoffs;

 private:
  Shape shape_;
};

void add_histograms(Digest& digest, const Executor&) {
  for (const Shape& shape : shapes) {
    HistogramCounts counts(shape.experts, HistogramRange(biases_of(shape), 1000));
    counts.observe(Observed(shape).tile());
    for (std::size_t j = 0; j < shape.experts; ++j) {
      const std::vector<std::int64_t> of_expert = counts.counts(j);
      digest.add(std::span<const std::int64_t>(of_expert));
    }
    const auto estimate = counts.estimate(shape.top_k);
    digest.add(std::span<const double>(estimate));
  }
}

void add_exact_quantiles(Digest& digest, const Executor&) {
  for (const Shape& shape : shapes) {
    const Observed observed(shape);
    const auto position = static_cast<std::int64_t>(shape.tokens * shape.top_k / shape.experts);
    BracketedQuantile bracketed(open_brackets(shape.experts));
    bracketed.observe(observed.tile());
    for (std::size_t j = 0; j < shape.experts; ++j) digest.add(bracketed.value(j, position));

    std::vector<std::size_t> experts(shape.experts);
    std::iota(experts.begin(), experts.end(), 0);
    PooledQuantile pooled(experts, std::vector<std::int64_t>(shape.experts, position));
    while (!pooled.done()) {
      pooled.observe(observed.tile());
      pooled.end_round();
    }
    const auto values = pooled.values();
    digest.add(std::span<const float>(values));
  }
}

}  // namespace

std::vector<Stage> kernel_stages() {
  return {{"kernels/random fills", add_random_fills},
          {"kernels/sigmoid", add_sigmoids},
          {"kernels/route", add_routing},
          {"kernels/histogram", add_histograms},
          {"kernels/exact quantile", add_exact_quantiles}};
}

}  // namespace ballast::sim
