#include "props/laws/training_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random/distributions.h"
#include "props/cases/generate.h"

namespace ballast::props {

namespace {

enum class Logits { grid, smooth, skewed, hot, saturated, repeated, general, count };

/// A multiple of 1/8 within -2..2: sums and differences of these are exact, and many are equal.
float on_grid(Stream& stream) {
  return static_cast<float>(between(stream, 0, 32)) / 8.0f - 2.0f;
}

float smooth(Stream& stream) {
  return static_cast<float>(4.0 * uniform(stream) - 2.0);
}

/// Draws the forwards of one case.
class TrainingRun {
 public:
  TrainingRun(Stream& stream, std::size_t size, const TrainingFeatures& features)
      : stream_(stream), features_(features), size_(size) {}

  Case draw() {
    draw_model();
    draw_balancer();
    draw_biases();
    family_ =
        static_cast<Logits>(uniform_index(stream_, static_cast<std::uint64_t>(Logits::count)));
    evaluations_ = features_.evaluations && !one_in(stream_, 3);
    recomputes_ = features_.recomputes && !one_in(stream_, 8);
    skew();
    if (long_batch_) {
      add_long_batch();
      case_.history.push_back(Step{});
      case_.salt = stream_();
      return std::move(case_);
    }
    const std::size_t steps = between(stream_, 1, features_.steps_max);
    for (std::size_t s = 0; s < steps; ++s) draw_step();
    case_.salt = stream_();
    return std::move(case_);
  }

 private:
  ModelSpec& model() { return case_.open.model; }

  void draw_model() {
    long_batch_ = features_.long_batches && one_in(stream_, 24);
    if (long_batch_) size_ = 0;
    model().layers = !long_batch_ && one_in(stream_, 3) ? 2 : 1;
    model().routed_experts = between(stream_, 2, 3 + 6 * size_ / 100);
    model().top_k = one_in(stream_, 3) ? model().routed_experts - 1
                                       : between(stream_, 1, model().routed_experts - 1);
    model().score = features_.scores[uniform_index(stream_, features_.scores.size())];
    if (features_.ranks) case_.open.ranks = between(stream_, 2, 4);
  }

  void draw_balancer() {
    BalancerSpec& balancer = case_.open.balancer;
    balancer = features_.balancers[uniform_index(stream_, features_.balancers.size())];
    balancer.bins = one_in(stream_, 8) ? 1000 : between(stream_, 2, 64);
    if (features_.update_at_forward && one_in(stream_, 3)) balancer.update = Update::forward;
  }

  void draw_biases() {
    if (!features_.first_biases || long_batch_ || one_in(stream_, 2)) return;
    const bool grid = one_in(stream_, 2);
    const float offset = one_in(stream_, 4) ? on_grid(stream_) : 0.0f;
    Biases biases(model().layers, std::vector<float>(model().routed_experts));
    for (auto& row : biases) {
      for (float& b : row) b = offset + 0.5f * (grid ? on_grid(stream_) : smooth(stream_));
    }
    case_.open.biases = std::move(biases);
  }

  /// Each expert is the best of as many tokens, but for a few that are drawn: counts above the
  /// integers of bf16 (256), whose small differences matter.
  void add_long_batch() {
    Forward forward{.logits = Matrix<float>(between(stream_, 500, 700), model().routed_experts),
                    .mask = {}};
    for (std::size_t t = 0; t < forward.logits.rows(); ++t) {
      const auto row = forward.logits.row(t);
      for (float& z : row) z = on_grid(stream_);
      row[one_in(stream_, 64) ? uniform_index(stream_, row.size()) : t % row.size()] += 4.0f;
    }
    case_.history.push_back(std::move(forward));
  }

  void skew() {
    hot_ = uniform_index(stream_, model().routed_experts);
    for (std::size_t j = 0; j < model().layers * model().routed_experts; ++j) {
      offsets_.push_back(smooth(stream_));
    }
  }

  void draw_step() {
    const std::size_t forwards =
        features_.empty_forwards && one_in(stream_, 4) ? 0 : between(stream_, 1, 3);
    for (std::size_t f = 0; f < forwards; ++f) {
      for (std::size_t l = 0; l < model().layers; ++l) draw_forward(l);
    }
    const bool skipped = features_.skipped_steps && one_in(stream_, 3);
    case_.history.push_back(Step{.applied = !skipped});
  }

  void draw_forward(std::size_t layer) {
    if (evaluations_ && one_in(stream_, 3)) add(layer, Mode::eval);
    add(layer, Mode::train);
    if (recomputes_ && one_in(stream_, 2)) repeat_last();
    if (evaluations_ && one_in(stream_, 3)) add(layer, Mode::eval);
  }

  void repeat_last() {
    Forward again = std::get<Forward>(case_.history.back());
    again.mode = Mode::recompute;
    case_.history.push_back(std::move(again));
  }

  void add(std::size_t layer, Mode mode) {
    Forward forward{.layer = layer, .rank = 0, .mode = mode, .logits = {}, .mask = {}};
    if (features_.ranks) forward.rank = uniform_index(stream_, case_.open.ranks);
    const std::size_t least = features_.empty_forwards ? 0 : 1;
    forward.logits = Matrix<float>(between(stream_, least, 4 + size_ / 12), model().routed_experts);
    fill(forward.logits, layer);
    if (features_.masks && !one_in(stream_, 4)) draw_mask(forward);
    if (features_.not_finite && one_in(stream_, 2)) spoil(forward.logits);
    case_.history.push_back(std::move(forward));
  }

  void fill(Matrix<float>& logits, std::size_t layer) {
    if (family_ == Logits::general) {
      logits = generate_logits(stream_, logits.rows(), logits.cols(), finite_family(stream_));
      return;
    }
    for (std::size_t t = 0; t < logits.rows(); ++t) {
      const bool repeats = family_ == Logits::repeated && t > 0 && !one_in(stream_, 4);
      for (std::size_t j = 0; j < logits.cols(); ++j) {
        logits(t, j) = repeats ? logits(t - 1, j) : logit(layer, j);
      }
    }
  }

  float logit(std::size_t layer, std::size_t expert) {
    switch (family_) {
      case Logits::grid:
        return on_grid(stream_);
      case Logits::skewed:
        return smooth(stream_) + offsets_[layer * model().routed_experts + expert];
      case Logits::hot:
        return 0.5f * smooth(stream_) + (expert == hot_ ? 4.0f : -1.0f);
      case Logits::saturated:
        return one_in(stream_, 2) ? 24.0f : 8.0f * on_grid(stream_);
      default:
        return smooth(stream_);
    }
  }

  void draw_mask(Forward& forward) {
    for (std::size_t t = 0; t < forward.logits.rows(); ++t) {
      forward.mask.push_back(one_in(stream_, 2) ? 0 : 1);
    }
  }

  void spoil(Matrix<float>& logits) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float values[] = {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity};
    if (logits.values().empty()) return;
    const std::size_t times = between(stream_, 1, 2);
    for (std::size_t i = 0; i < times; ++i) {
      logits.values()[uniform_index(stream_, logits.values().size())] =
          values[uniform_index(stream_, 3)];
    }
  }

  Stream& stream_;
  const TrainingFeatures& features_;
  std::size_t size_;
  Case case_;
  Logits family_ = Logits::smooth;
  bool long_batch_ = false;
  bool evaluations_ = false;
  bool recomputes_ = false;
  std::size_t hot_ = 0;
  std::vector<float> offsets_;  ///< `[layers * experts]`
};

}  // namespace

Case training_case(Stream& stream, std::size_t size, const TrainingFeatures& features) {
  return TrainingRun(stream, size, features).draw();
}

}  // namespace ballast::props
