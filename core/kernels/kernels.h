#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/kernels/adamw.h"
#include "core/kernels/functions.h"
#include "core/kernels/product.h"
#include "core/kernels/random_fills.h"
#include "core/kernels/reductions.h"
#include "core/kernels/score_tile.h"

/// The inner loops of routing and balancing, in one version for each kind of processor and one
/// plain version that says what all of them compute. Every version gives the same bits: which one
/// runs shows in the time alone.
///
/// Matrices are row-major, with rows `stride` values apart. Nothing here throws, and nothing but
/// the reference allocates.
namespace ballast::kernels {

enum class Target {
  scalar,  ///< the reference, for every processor
  neon,    ///< arm64
  avx2,    ///< x86-64-v3
  avx512,  ///< x86-64-v4
};

std::string_view name(Target target);

/// Rows to route: scores, choices by score + bias, weights from scores; see Router and select_top_k
/// for the meaning. 1 <= top_k <= experts.
struct RouteRows {
  std::size_t tokens = 0;
  std::size_t experts = 0;
  std::size_t top_k = 0;
  const float* biases = nullptr;  ///< `[experts]`

  /// `[tokens, experts]`, of which the scores become sigmoids; may be the scores. Null when the
  /// scores are there already.
  const float* logits = nullptr;
  std::size_t logits_stride = 0;
  float* scores = nullptr;  ///< `[tokens, experts]`
  std::size_t scores_stride = 0;
  /// Without it, which logits that are not the scores allow, `scores` are but room to work in, and
  /// of most experts they are not even computed.
  bool keeps_scores = true;
  const float* gates = nullptr;  ///< what weights are made of, `[tokens, experts]`
  std::size_t gates_stride = 0;
  bool renormalize = true;
  float scale = 1.0f;

  std::int32_t* indices = nullptr;        ///< `[tokens, top_k]`
  float* weights = nullptr;               ///< `[tokens, top_k]`, or null when none are wanted
  float* weight_sums = nullptr;           ///< `[tokens]`, or null
  float* cutoffs = nullptr;               ///< `[tokens]`, or null, which it is when top_k = experts
  std::uint8_t* finite = nullptr;         ///< `[tokens]`: 1 when every score of the row is finite
  float* scratch = nullptr;               ///< row_scratch(experts) values
  std::int32_t* index_scratch = nullptr;  ///< row_scratch(experts) values
};

/// For the s + b of one row, and whole vectors behind its end.
constexpr std::size_t row_scratch(std::size_t experts) {
  return experts + 64;
}
constexpr std::size_t rows_at_once = 4;
/// Of some rows at once, and of one more.
constexpr std::size_t route_scratch(std::size_t experts) {
  return (rows_at_once + 1) * row_scratch(experts);
}

/// Whether it takes less time to estimate the scores of all and score candidates, of whom `wanted`
/// are wanted, as measured.
[[gnu::always_inline]] constexpr bool has_few_candidates(std::size_t experts, std::size_t wanted) {
  return experts >= 8 * wanted;
}
/// Whether it takes less time that route computes few scores and count_bins or collect_inside what
/// they need, as measured.
constexpr bool prefers_estimates(std::size_t experts, std::size_t top_k) {
  return experts >= 128 && has_few_candidates(experts, top_k + 1);
}

constexpr std::size_t count_few_max = 16;

/// Required biases r = cutoff - score, or without cutoffs the scores themselves, to count in bins;
/// see HistogramRange. Logits only with cutoffs.
struct CountBins {
  ScoreTile tile;
  float low = 0.0f, high = 0.0f;
  double width = 0.0;
  std::size_t bins = 0;
  std::uint16_t* counts =
      nullptr;  ///< `[experts, bins]`, added to; the caller empties them in time
  std::size_t counts_stride = 0;
  std::int64_t below = 0, above = 0;  ///< r below low, above high; added to
};

/// Required biases of which those below an expert's interval are counted and those inside it are
/// collected. Of logits, tokens * logits_stride < 2^31, only those become scores of which estimates
/// cannot tell.
struct CollectInside {
  ScoreTile tile;
  const float* low = nullptr;     ///< `[experts]`: r < low is below; never infinity
  const float* high = nullptr;    ///< `[experts]`: r from low to high is inside; no -infinity
  std::int64_t* below = nullptr;  ///< `[experts]`, added to
  float** ends = nullptr;  ///< `[experts]`: where the next r goes, moved on; room for `tokens` and
                           ///< 16 more behind each
};

/// One version of all kernels. Every r of a row that is not passed over must be finite.
struct Kernels {
  Target target;
  /// out[i] = arithmetic::sigmoid(in[i]); `out` may be `in`.
  void (*sigmoid)(const float* in, float* out, std::size_t count);
  void (*route)(const RouteRows& rows);
  /// counts[j] += the number of indices that are j, for 0 <= j < experts <= count_few_max; other
  /// indices do not count.
  void (*count_few)(const std::int32_t* indices, std::size_t count, std::int64_t* counts,
                    std::size_t experts);
  void (*count_bins)(CountBins& rows);
  void (*collect_inside)(const CollectInside& rows);
  /// The (position + 1)-th smallest of `count` > position values without NaN and without -0, which
  /// are left in any order. Both arrays have room for 16 more; the second one is scratch.
  float (*order_statistic)(float* values, float* scratch, std::size_t count, std::size_t position);
  RandomFills random;
  Functions functions;
  Reductions reductions;
  AdamW adamw;
  void (*multiply)(const Product<float>& product);
  void (*multiply_double)(const Product<double>& product);
};

/// The kernels in use: the widest the processor has, up to the limit.
const Kernels& active();

/// Sets the limit, for all threads; call it before any work. It is there to show that the target
/// does not show.
void limit_target(Target target);

/// The targets that this program has and this processor can run, the reference first.
std::span<const Kernels* const> available();

}  // namespace ballast::kernels
