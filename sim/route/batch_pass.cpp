#include "sim/route/batch_pass.h"

#include <algorithm>

#include "core/model/router.h"

namespace ballast::sim {
namespace {

/// What a thread works on at a time: about as many scores as its second-level cache holds.
constexpr std::size_t piece_scores = std::size_t{1} << 17;
constexpr std::size_t pieces_in_window = 64;
constexpr std::size_t piece_tokens_max = 8192;

struct Piece {
  std::size_t first, count;
  Routing<float> routing;
  StageTimes times;
};

RouterSettings without_gate(RouterSettings settings) {
  settings.hidden = 1;
  return settings;
}

class Pass {
 public:
  Pass(const RouterSettings& settings, std::span<const float> biases, const Batch& batch,
       Balancer* balancer, RoutingSink* sink, const Executor& executor)
      : router_(without_gate(settings)),
        biases_(biases),
        batch_(batch),
        balancer_(balancer),
        sink_(sink),
        executor_(executor) {
    counts_.loads.resize(settings.routed_experts);
  }

  PassCounts run() {
    const std::size_t piece =
        std::clamp<std::size_t>(piece_scores / biases_.size(), 1, piece_tokens_max);
    const std::size_t window = piece * pieces_in_window;
    const std::size_t tokens = batch_.logits.tokens();
    for (std::size_t first = 0; first < tokens; first += window) {
      const std::size_t count = std::min(window, tokens - first);
      StageClock clock;
      batch_.logits.open_window(first, count, executor_);
      clock.lap(counts_.times.read);
      route_window(first, count, piece);
    }
    return std::move(counts_);
  }

 private:
  void route_window(std::size_t first, std::size_t count, std::size_t piece_tokens) {
    std::vector<Piece> pieces;
    for (std::size_t done = 0; done < count; done += piece_tokens) {
      pieces.push_back({first + done, std::min(piece_tokens, count - done), {}, {}});
    }
    StageTimes together;
    double wall = 0.0;
    StageClock clock;
    executor_.for_each(pieces.size(), [&](std::size_t i) { route_piece(pieces[i]); });
    clock.lap(wall);
    for (const Piece& piece : pieces) together += piece.times;
    counts_.times += together.scaled_to(wall);
    for (const Piece& piece : pieces) close_piece(piece);
  }

  void route_piece(Piece& piece) const {
    StageClock clock;
    Matrix<float> scratch;
    const auto rows = batch_.logits.rows(piece.first, piece.count, scratch);
    Matrix<float> logits(piece.count, rows.cols());
    std::copy(rows.values().begin(), rows.values().end(), logits.values().begin());
    clock.lap(piece.times.read);
    piece.routing = router_.route(std::move(logits), biases_);
    clock.lap(piece.times.route);
  }

  std::span<const std::uint8_t> valid(const Piece& piece) const {
    return batch_.valid.empty() ? batch_.valid : batch_.valid.subspan(piece.first, piece.count);
  }

  void close_piece(const Piece& piece) {
    const Routing<float>& routing = piece.routing;
    StageClock clock;
    count_assignments(routing.selection.indices, valid(piece), counts_.loads);
    const auto observed = observed_rows(piece);
    clock.lap(counts_.times.route);
    if (balancer_ != nullptr) {
      balancer_->observe({.scores = routing.scores,
                          .cutoffs = routing.selection.cutoffs,
                          .indices = routing.selection.indices,
                          .valid = observed});
    }
    clock.lap(counts_.times.balance);
    if (sink_ != nullptr)
      sink_->take(routing.selection.indices, routing.weights, routing.selection.cutoffs);
    clock.lap(counts_.times.write);
  }

  /// Valid and finite.
  std::vector<std::uint8_t> observed_rows(const Piece& piece) {
    std::vector<std::uint8_t> observed = piece.routing.finite;
    const auto mask = valid(piece);
    for (std::size_t t = 0; t < observed.size(); ++t) {
      const bool counts = mask.empty() || mask[t] != 0;
      counts_.valid += counts;
      counts_.not_finite += counts && observed[t] == 0;
      observed[t] = observed[t] != 0 && counts;
    }
    return observed;
  }

  Router<float> router_;
  std::span<const float> biases_;
  const Batch& batch_;
  Balancer* balancer_;
  RoutingSink* sink_;
  const Executor& executor_;
  PassCounts counts_;
};

}  // namespace

PassCounts route_batch(const RouterSettings& settings, std::span<const float> biases,
                       const Batch& batch, Balancer* balancer, RoutingSink* sink,
                       const Executor& executor) {
  return Pass(settings, biases, batch, balancer, sink, executor).run();
}

}  // namespace ballast::sim
