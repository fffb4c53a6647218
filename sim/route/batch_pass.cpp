#include "sim/route/batch_pass.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/kernels/kernels.h"
#include "core/model/selection.h"
#include "sim/route/tile_router.h"

namespace ballast::sim {
namespace {

/// What a thread works on at a time: about as many scores as half of its second-level cache holds.
constexpr std::size_t piece_scores = std::size_t{1} << 17;
constexpr std::size_t piece_tokens_max = 2048;
constexpr std::size_t whole_vectors = 16;
constexpr std::size_t pieces_in_window = 32;
/// Pieces of fewer scores are taken several at a time: to take one costs a lock.
constexpr std::size_t scores_at_once = std::size_t{1} << 15;

std::size_t longest(std::span<const TokenRange> ranges) {
  std::size_t longest = 0;
  for (const TokenRange& range : ranges) longest = std::max(longest, range.count);
  return longest;
}

/// Whether no flag is 0.
bool all_set(std::span<const std::uint8_t> flags) {
  return flags.empty() || std::memchr(flags.data(), 0, flags.size()) == nullptr;
}

/// Without a branch for each value, so that compilers take many at a time.
bool all_finite(std::span<const float> values) {
  int others = 0;
  for (const float value : values)
    others |= std::abs(value) < std::numeric_limits<float>::infinity() ? 0 : 1;
  return others == 0;
}

bool has_cutoffs(const RouterSettings& settings) {
  return settings.top_k < settings.routed_experts && !settings.groups.limit();
}

/// The results of a window, which the pieces write side by side.
struct Window {
  Window(const RouterSettings& settings, std::size_t tokens)
      : indices(tokens, settings.top_k),
        weights(tokens, settings.top_k),
        cutoffs(has_cutoffs(settings) ? tokens : 0) {}

  RoutingRows rows(std::size_t tokens) {
    return {indices.view().block(0, tokens), weights.view().block(0, tokens),
            std::span(cutoffs).first(cutoffs.empty() ? 0 : tokens)};
  }

  Matrix<std::int32_t> indices;
  Matrix<float> weights;
  std::vector<float> cutoffs;
};

/// Whether a router has to compute all scores.
bool wants_scores(const RouterSettings& settings, const StepCollector* collector) {
  if (collector == nullptr) return false;
  return !collector->takes_logits() || settings.score != ScoreFunction::sigmoid ||
         !kernels::prefers_estimates(settings.routed_experts, settings.top_k);
}

/// What one thread has for itself.
struct Worker {
  Worker(const RouterSettings& settings, std::size_t tokens, const StepCollector* collector_)
      : router(settings, tokens, wants_scores(settings, collector_)),
        finite(tokens),
        loads(settings.routed_experts),
        unobserved(settings.routed_experts),
        collector(collector_ == nullptr ? nullptr : collector_->fork()) {}

  TileRouter router;
  RowBuffer buffer;
  std::vector<std::uint8_t> finite, observed;
  std::vector<std::int64_t> loads, unobserved;
  std::int64_t valid = 0, not_finite = 0;
  StageTimes times;
  std::unique_ptr<StepCollector> collector;
};

/// Lends workers to pieces: as many come into being as pieces run at once.
class Workers {
 public:
  template <class Make>
  std::unique_ptr<Worker> take(Make make) {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto worker = std::move(idle_.back());
        idle_.pop_back();
        return worker;
      }
    }
    return make();
  }
  void give_back(std::unique_ptr<Worker> worker) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(worker));
  }
  /// When no piece runs.
  std::vector<std::unique_ptr<Worker>>& all() { return idle_; }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

class Pass {
 public:
  Pass(const RouterSettings& settings, std::span<const float> biases, const Batch& batch,
       std::span<const TokenRange> ranges, StepCollector* collector, RoutingSink* sink,
       const Executor& executor)
      : settings_(settings),
        biases_(biases),
        batch_(batch),
        collector_(collector),
        sink_(sink),
        executor_(executor),
        sizes_(pass_sizes(settings.routed_experts, longest(ranges))) {}

  void run(std::span<const TokenRange> ranges) {
    std::vector<TokenPiece> pieces;
    std::size_t tokens = 0;  // of these pieces
    const auto route = [&] {
      if (!pieces.empty()) route_window(pieces, tokens);
      pieces.clear();
      tokens = 0;
    };
    for (const TokenRange& range : ranges) {
      for (std::size_t begin = 0; begin < range.count; begin += sizes_.piece) {
        const std::size_t count = std::min(sizes_.piece, range.count - begin);
        if (tokens + count > sizes_.window) route();
        pieces.push_back({.first = range.first + begin, .count = count, .before = tokens});
        tokens += count;
      }
    }
    route();
  }

  /// What all threads have counted; merges what they have collected. Once, at the end.
  PassCounts counts() {
    PassCounts counts{
        .loads = std::vector<std::int64_t>(settings_.routed_experts), .observed = {}, .times = {}};
    counts.observed = counts.loads;
    StageClock clock;
    for (auto& worker : workers_.all()) {
      for (std::size_t j = 0; j < counts.loads.size(); ++j) {
        counts.loads[j] += worker->loads[j];
        counts.observed[j] += worker->loads[j] - worker->unobserved[j];
      }
      counts.valid += worker->valid;
      counts.not_finite += worker->not_finite;
      if (worker->collector != nullptr) collector_->merge(*worker->collector);
    }
    clock.lap(times_.balance);
    counts.times = times_;
    return counts;
  }

 private:
  void route_window(std::span<const TokenPiece> pieces, std::size_t tokens) {
    const auto room = sink_ == nullptr ? std::nullopt : sink_->room(tokens);
    // For those who bring no memory of their own.
    if (!room && (!window_ || window_->indices.rows() < tokens)) window_.emplace(settings_, tokens);
    const RoutingRows rows = room ? *room : window_->rows(tokens);
    StageClock clock;
    batch_.logits.open_window(pieces, executor_);
    clock.lap(times_.read);
    double wall = 0.0;
    const std::size_t some =
        std::max(scores_at_once / (sizes_.piece * settings_.routed_experts), std::size_t{1});
    executor_.for_each((pieces.size() + some - 1) / some, [&](std::size_t i) {
      run_pieces(pieces.subspan(i * some, std::min(some, pieces.size() - i * some)), rows);
    });
    clock.lap(wall);
    times_ += times_of_workers().scaled_to(wall);
    if (sink_ == nullptr) return;
    sink_->take(rows);
    clock.lap(times_.write);
  }

  void run_pieces(std::span<const TokenPiece> pieces, const RoutingRows& rows) {
    auto worker = workers_.take(
        [&] { return std::make_unique<Worker>(settings_, sizes_.piece, collector_); });
    for (const TokenPiece& piece : pieces) run_piece(*worker, piece, rows);
    workers_.give_back(std::move(worker));
  }

  void run_piece(Worker& worker, const TokenPiece& piece, const RoutingRows& rows) {
    const std::size_t begin = piece.before, count = piece.count;
    const bool cutoffs = !rows.cutoffs.empty();
    const RoutedRows out{.indices = rows.indices.block(begin, count),
                         .weights = rows.weights.block(begin, count),
                         .cutoffs = rows.cutoffs.subspan(cutoffs ? begin : 0, cutoffs ? count : 0),
                         .finite = std::span(worker.finite).first(count)};
    StageClock clock;
    const auto logits = batch_.logits.rows(piece, worker.buffer);
    clock.lap(worker.times.read);
    worker.router.route(logits, biases_, out);
    count_piece(worker, out, valid_rows(piece));
    clock.lap(worker.times.route);
    if (worker.collector != nullptr) collect(worker, logits, out, piece.first);
    clock.lap(worker.times.balance);
  }

  std::span<const std::uint8_t> valid_rows(const TokenPiece& piece) const {
    return batch_.valid.empty() ? batch_.valid : batch_.valid.subspan(piece.first, piece.count);
  }

  /// Loads, and which rows a balancer observes: none are named when it observes all of them.
  static void count_piece(Worker& worker, const RoutedRows& out,
                          std::span<const std::uint8_t> valid) {
    count_assignments(out.indices, valid, worker.loads);
    worker.observed.clear();
    if (all_set(out.finite) && all_set(valid)) {
      worker.valid += static_cast<std::int64_t>(out.finite.size());
      return;
    }
    worker.observed.assign(out.finite.begin(), out.finite.end());
    for (std::size_t t = 0; t < out.finite.size(); ++t) {
      const bool counts = valid.empty() || valid[t] != 0;
      worker.valid += counts;
      if (!counts) worker.observed[t] = 0;
      if (!counts || out.finite[t] != 0) continue;
      ++worker.not_finite;
      for (const std::int32_t j : out.indices.row(t))
        ++worker.unobserved[static_cast<std::size_t>(j)];
    }
  }

  void collect(Worker& worker, MatrixView<const float> logits, const RoutedRows& out,
               std::size_t first) const {
    const bool scores = worker.router.keeps_scores();
    const ScoreTile tile{.tokens = out.finite.size(),
                         .experts = settings_.routed_experts,
                         .scores = scores ? worker.router.scores() : nullptr,
                         .stride = worker.router.stride(),
                         .logits = scores ? nullptr : logits.data(),
                         .logits_stride = logits.cols(),
                         .cutoffs = out.cutoffs.data(),
                         .observed = worker.observed.empty() ? nullptr : worker.observed.data()};
    check_finite(tile, first);
    worker.collector->observe(tile);
  }

  /// Scores of sigmoid and softmax are in [0, 1], so that a finite cutoff is enough.
  void check_finite(const ScoreTile& tile, std::size_t first) const {
    const bool bounded = settings_.score != ScoreFunction::logit;
    if (bounded && all_finite({tile.cutoffs, tile.tokens})) return;
    for (std::size_t t = 0; t < tile.tokens; ++t) {
      if (!tile.observes(t)) continue;
      bool finite = std::isfinite(tile.cutoffs[t]);
      if (!bounded) {
        const std::span scores(tile.row(t), tile.experts);
        finite = finite && std::ranges::all_of(
                               scores, [&](float s) { return std::isfinite(tile.cutoffs[t] - s); });
      }
      if (finite) continue;
      throw std::invalid_argument("the cutoff of token " + std::to_string(first + t) +
                                  " less a score is not finite; biases and scores must be smaller");
    }
  }

  StageTimes times_of_workers() {
    StageTimes times;
    for (auto& worker : workers_.all()) {
      times += worker->times;
      worker->times = {};
    }
    return times;
  }

  const RouterSettings& settings_;
  std::span<const float> biases_;
  const Batch& batch_;
  StepCollector* collector_;
  RoutingSink* sink_;
  const Executor& executor_;
  PassSizes sizes_;
  std::optional<Window> window_;
  Workers workers_;
  StageTimes times_;
};

}  // namespace

PassSizes pass_sizes(std::size_t experts, std::size_t tokens) {
  const std::size_t at_most = std::min({piece_scores / experts, piece_tokens_max, tokens});
  const std::size_t piece = std::max(at_most / whole_vectors, std::size_t{1}) * whole_vectors;
  return {piece, piece * pieces_in_window};
}

PassCounts route_ranges(const RouterSettings& settings, std::span<const float> biases,
                        const Batch& batch, std::span<const TokenRange> ranges,
                        StepCollector* collector, RoutingSink* sink, const Executor& executor) {
  Pass pass(settings, biases, batch, ranges, collector, sink, executor);
  pass.run(ranges);
  return pass.counts();
}

PassCounts route_batch(const RouterSettings& settings, std::span<const float> biases,
                       const Batch& batch, StepCollector* collector, RoutingSink* sink,
                       const Executor& executor) {
  const TokenRange all{0, batch.logits.tokens()};
  return route_ranges(settings, biases, batch, {&all, 1}, collector, sink, executor);
}

}  // namespace ballast::sim
