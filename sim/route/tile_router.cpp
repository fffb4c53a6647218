#include "sim/route/tile_router.h"

#include <algorithm>

#include "core/arithmetic/reductions.h"
#include "core/kernels/kernels.h"
#include "core/model/router.h"

namespace ballast::sim {
namespace {

/// Rows a multiple of 1 KiB apart would meet in a few sets of a cache.
std::size_t stride_for(std::size_t experts) {
  return experts % 256 == 0 ? experts + 16 : experts;
}

}  // namespace

TileRouter::TileRouter(const RouterSettings& settings, std::size_t tokens_max, bool keeps_scores)
    : settings_(settings),
      keeps_scores_(keeps_scores),
      stride_(stride_for(settings.routed_experts)),
      scores_(tokens_max, stride_),
      gates_(settings.score == ScoreFunction::logit ? tokens_max : 0, stride_),
      scratch_(kernels::row_scratch(settings.routed_experts)),
      index_scratch_(kernels::row_scratch(settings.routed_experts)) {}

void TileRouter::route(MatrixView<const float> logits, std::span<const float> biases,
                       const RoutedRows& out) {
  if (settings_.groups.limit()) {
    route_groups(logits, biases, out);
    return;
  }
  const bool sigmoid = settings_.score == ScoreFunction::sigmoid;
  const bool apart = settings_.score == ScoreFunction::logit;
  for (std::size_t t = 0; t < logits.rows() && !sigmoid; ++t) {
    const std::span scores(scores_.data() + t * stride_, logits.cols());
    if (apart) {
      std::ranges::copy(logits.row(t), scores.begin());
      arithmetic::softmax(logits.row(t), std::span(gates_.data() + t * stride_, logits.cols()));
    } else {
      arithmetic::softmax(logits.row(t), scores);
    }
  }
  kernels::active().route({.tokens = logits.rows(),
                           .experts = logits.cols(),
                           .top_k = settings_.top_k,
                           .biases = biases.data(),
                           .logits = sigmoid ? logits.data() : nullptr,
                           .logits_stride = logits.cols(),
                           .scores = scores_.data(),
                           .scores_stride = stride_,
                           .keeps_scores = keeps_scores_,
                           .gates = apart ? gates_.data() : scores_.data(),
                           .gates_stride = stride_,
                           .renormalize = settings_.renormalize,
                           .scale = static_cast<float>(settings_.routed_scale),
                           .indices = out.indices.data(),
                           .weights = out.weights.data(),
                           .weight_sums = nullptr,
                           .cutoffs = out.cutoffs.empty() ? nullptr : out.cutoffs.data(),
                           .finite = out.finite.data(),
                           .scratch = scratch_.data(),
                           .index_scratch = index_scratch_.data()});
}

void TileRouter::route_groups(MatrixView<const float> logits, std::span<const float> biases,
                              const RoutedRows& out) {
  RouterSettings settings = settings_;
  settings.hidden = 1;  // the gate is not used
  Matrix<float> copy(logits.rows(), logits.cols());
  std::ranges::copy(logits.values(), copy.values().begin());
  const auto routing = Router<float>(settings).route(std::move(copy), biases);
  std::ranges::copy(routing.selection.indices.values(), out.indices.values().begin());
  std::ranges::copy(routing.weights.values(), out.weights.values().begin());
  std::ranges::copy(routing.finite, out.finite.begin());
}

}  // namespace ballast::sim
