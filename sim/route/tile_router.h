#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/kernels/score_tile.h"
#include "core/matrix.h"
#include "core/model/settings.h"

namespace ballast::sim {

/// Where the routing of some tokens goes, `[tokens, top_k]`, `[tokens, top_k]` and `[tokens]`.
struct RoutedRows {
  MatrixView<std::int32_t> indices;
  MatrixView<float> weights;
  std::span<float> cutoffs;        ///< empty when there are none
  std::span<std::uint8_t> finite;  ///< 1 for rows in which every score is finite
};

/// Routes a tile of tokens after the other as Router::route does, to the bit, in buffers that stay:
/// one for each thread.
class TileRouter {
 public:
  /// It takes less time where no scores are wanted.
  TileRouter(const RouterSettings& settings, std::size_t tokens_max, bool keeps_scores = true);

  /// The scores stay readable until the next call, if they are kept; with groups, which have no
  /// cutoffs, there are none.
  void route(MatrixView<const float> logits, std::span<const float> biases, const RoutedRows& out);

  bool keeps_scores() const { return keeps_scores_; }
  const float* scores() const { return scores_.data(); }
  std::size_t stride() const { return stride_; }

 private:
  void route_groups(MatrixView<const float> logits, std::span<const float> biases,
                    const RoutedRows& out);

  RouterSettings settings_;
  bool keeps_scores_;
  std::size_t stride_;
  Matrix<float> scores_, gates_;
  std::vector<float> scratch_;
  std::vector<std::int32_t> index_scratch_;
};

}  // namespace ballast::sim
