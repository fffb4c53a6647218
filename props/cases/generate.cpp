#include "props/cases/generate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/random/distributions.h"

namespace ballast::props {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// An integer in [-bound, bound].
int signed_integer(Stream& stream, int bound) {
  return static_cast<int>(between(stream, 0, static_cast<std::size_t>(2 * bound))) - bound;
}

float grid_value(Stream& stream) {
  return 0.5f * static_cast<float>(signed_integer(stream, 4));
}

float normal_value(Stream& stream) {
  return static_cast<float>(normal(stream));
}

float neighbour(float value, int steps) {
  for (; steps > 0; --steps) value = std::nextafter(value, infinity);
  for (; steps < 0; ++steps) value = std::nextafter(value, -infinity);
  return value;
}

template <class Value>
void fill(std::span<float> values, Value value) {
  for (float& v : values) v = value();
}

void fill_rare(Stream& stream, std::span<float> values, std::span<const float> rare) {
  for (float& v : values) v = one_in(stream, 3) ? pick(stream, rare) : grid_value(stream);
}

void fill_one_hot(Stream& stream, std::span<float> row) {
  const float base = grid_value(stream);
  std::ranges::fill(row, base);
  row[between(stream, 0, row.size() - 1)] = base + pick(stream, {1.0f, 4.0f, 8.0f});
}

void fill_row(Stream& stream, std::span<float> row, LogitFamily family) {
  switch (family) {
    case LogitFamily::grid:
      return fill(row, [&] { return grid_value(stream); });
    case LogitFamily::smooth:
    case LogitFamily::hot_expert:
      return fill(row, [&] { return normal_value(stream); });
    case LogitFamily::ulps: {
      const float base = one_in(stream, 2) ? 1.0f : normal_value(stream);
      return fill(row, [&] { return neighbour(base, signed_integer(stream, 3)); });
    }
    case LogitFamily::saturated:
      return fill(row, [&] {
        const float size = one_in(stream, 8) ? 1e4f : static_cast<float>(between(stream, 17, 120));
        return one_in(stream, 2) ? size : -size;
      });
    case LogitFamily::signed_zero: {
      constexpr float rare[] = {0.5f, -0.5f};
      return fill(row, [&] {
        return one_in(stream, 5) ? pick(stream, rare) : pick(stream, {0.0f, -0.0f});
      });
    }
    case LogitFamily::subnormal:
      return fill(row, [&] {
        if (one_in(stream, 8)) return grid_value(stream);
        return std::numeric_limits<float>::denorm_min() *
               static_cast<float>(signed_integer(stream, 3));
      });
    case LogitFamily::constant:
      return fill(
          row, [v = one_in(stream, 2) ? grid_value(stream) : normal_value(stream)] { return v; });
    case LogitFamily::one_hot:
      return fill_one_hot(stream, row);
    case LogitFamily::offset: {
      const float offset = pick(stream, {4096.0f, -4096.0f, 1048576.0f});
      return fill(row, [&] { return offset + grid_value(stream); });
    }
    case LogitFamily::log_normal:
      return fill(row, [&] { return static_cast<float>(log_normal(stream, 2.0)); });
    case LogitFamily::tiny_scores:
      return fill(row, [&] { return -20.0f + 6.0f * static_cast<float>(uniform(stream)); });
    case LogitFamily::infinite: {
      constexpr float rare[] = {infinity, -infinity};
      return fill_rare(stream, row, rare);
    }
    case LogitFamily::nan: {
      constexpr float rare[] = {std::numeric_limits<float>::quiet_NaN()};
      if (one_in(stream, 4)) return fill(row, [&] { return rare[0]; });
      return fill_rare(stream, row, rare);
    }
  }
}

/// Experts and top_k of public models.
constexpr std::pair<std::size_t, std::size_t> model_shapes[] = {
    {60, 4}, {64, 6}, {72, 6}, {80, 8}, {128, 6}, {160, 6}, {384, 8}, {512, 10}, {896, 16}};
constexpr std::size_t wide_shapes[] = {64, 100, 128, 255, 256, 257, 300, 384, 520};

std::size_t generate_experts(Stream& stream, std::size_t size) {
  if (size > 50 && one_in(stream, 64)) return pick(stream, wide_shapes);
  if (size < 30 || one_in(stream, 2)) return between(stream, one_in(stream, 8) ? 1 : 2, 4);
  return between(stream, 2, 4 + size / 4);
}

std::size_t generate_top_k(Stream& stream, std::size_t experts) {
  switch (between(stream, 0, 7)) {
    case 0:
      return experts;
    case 1:
      return std::max<std::size_t>(1, experts - 1);
    case 2:
    case 3:
      return 1;
    default:
      return between(stream, 1, std::max<std::size_t>(1, std::min<std::size_t>(experts - 1, 12)));
  }
}

ScoreFunction generate_score(Stream& stream) {
  return pick(stream, {ScoreFunction::sigmoid, ScoreFunction::softmax, ScoreFunction::logit,
                       ScoreFunction::logit});
}

/// Draws the requests of one history.
class HistoryWriter {
 public:
  HistoryWriter(Stream& stream, std::size_t size, const Open& open, const Features& features)
      : stream_(stream), size_(size), open_(open), features_(features), family_(family()) {}

  std::vector<Request> write() {
    if (features_.collector && !one_in(stream_, 4)) enter();
    const std::size_t length = between(stream_, 1, 2 + size_ / 6);
    for (std::size_t i = 0; i < length; ++i) add_one();
    if (!any_train_) train();
    if (features_.steps && one_in(stream_, 2)) history_.push_back(Step{true});
    if (active_) history_.push_back(Collector{CollectorAction::snapshot, true});
    return std::move(history_);
  }

 private:
  LogitFamily family() {
    return features_.nonfinite && one_in(stream_, 4) ? any_family(stream_) : finite_family(stream_);
  }

  void add_one() {
    switch (between(stream_, 0, 13)) {
      case 0:
        return features_.eval ? eval() : train();
      case 1:
        return features_.recompute ? recompute() : train();
      case 2:
      case 3:
      case 4:
        return features_.steps ? history_add(Step{true}) : train();
      case 5:
        return features_.skipped_steps ? history_add(Step{false}) : train();
      case 6:
      case 7:
        return features_.collector ? collect() : train();
      case 8:
        return features_.set_biases ? set_biases() : train();
      case 9:
      case 10:
        return features_.save_load ? save_or_load() : train();
      default:
        return train();
    }
  }

  void history_add(Request request) {
    if (std::holds_alternative<Step>(request)) since_step_.clear();
    history_.push_back(std::move(request));
  }

  Forward forward(Mode mode) {
    const std::size_t experts = open_.model.routed_experts;
    const std::size_t tokens = generate_tokens(stream_, size_, experts);
    if (one_in(stream_, 4)) family_ = family();
    Forward forward{.layer = between(stream_, 0, open_.model.layers - 1),
                    .rank = between(stream_, 0, open_.ranks - 1),
                    .mode = mode,
                    .logits = generate_logits(stream_, tokens, experts, family_),
                    .mask = {}};
    if (features_.masks) forward.mask = generate_mask(stream_, tokens);
    return forward;
  }

  void train() {
    any_train_ = true;
    since_step_.push_back(history_.size());
    history_.push_back(forward(Mode::train));
  }

  void eval() { history_.push_back(forward(Mode::eval)); }

  void recompute() {
    if (since_step_.empty()) return train();
    Forward repeat =
        std::get<Forward>(history_[pick(stream_, std::span<const std::size_t>(since_step_))]);
    repeat.mode = Mode::recompute;
    history_.push_back(std::move(repeat));
  }

  void enter() {
    active_ = true;
    history_.push_back(Collector{CollectorAction::enter, true});
  }

  void collect() {
    if (!active_) return enter();
    const bool exits = one_in(stream_, 3);
    active_ = !exits;
    history_.push_back(Collector{exits ? CollectorAction::exit : CollectorAction::snapshot, true});
  }

  void set_biases() {
    SetBiases request;
    for (std::size_t l = 0; l < open_.model.layers; ++l) {
      request.biases.push_back(
          generate_biases(stream_, open_.model.routed_experts, bias_family(stream_)));
    }
    since_step_.clear();  // a repeat would run under other biases
    history_.push_back(std::move(request));
  }

  void save_or_load() {
    if (saves_ == 0 || one_in(stream_, 2)) {
      ++saves_;
      history_.push_back(Save{});
    } else {
      since_step_.clear();
      history_.push_back(Load{between(stream_, 0, saves_ - 1)});
    }
  }

  Stream& stream_;
  std::size_t size_;
  const Open& open_;
  Features features_;
  LogitFamily family_;
  std::vector<Request> history_;
  std::vector<std::size_t> since_step_;  ///< training forwards that a recomputation may repeat
  std::size_t saves_ = 0;
  bool active_ = false;
  bool any_train_ = false;
};

}  // namespace

bool one_in(Stream& stream, std::uint64_t n) {
  return uniform_index(stream, n) == 0;
}

std::size_t between(Stream& stream, std::size_t low, std::size_t high) {
  return low + static_cast<std::size_t>(uniform_index(stream, high - low + 1));
}

std::vector<std::size_t> permutation(Stream& stream, std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[between(stream, 0, i - 1)]);
  return order;
}

LogitFamily finite_family(Stream& stream) {
  using enum LogitFamily;
  return pick(stream, {grid, grid, grid, grid, smooth, smooth, ulps, saturated, signed_zero,
                       subnormal, constant, one_hot, offset, log_normal, hot_expert, tiny_scores});
}

LogitFamily any_family(Stream& stream) {
  using enum LogitFamily;
  return one_in(stream, 4) ? pick(stream, {infinite, nan}) : finite_family(stream);
}

Matrix<float> generate_logits(Stream& stream, std::size_t tokens, std::size_t experts,
                              LogitFamily family) {
  Matrix<float> logits(tokens, experts);
  for (std::size_t t = 0; t < tokens; ++t) fill_row(stream, logits.row(t), family);
  if (family == LogitFamily::hot_expert) {
    const std::size_t hot = between(stream, 0, experts - 1);
    for (std::size_t t = 0; t < tokens; ++t) logits(t, hot) += 4.0f;
  }
  return logits;
}

BiasFamily bias_family(Stream& stream) {
  using enum BiasFamily;
  return pick(stream, {zero, grid, grid, smooth, offset, negative});
}

std::vector<float> generate_biases(Stream& stream, std::size_t experts, BiasFamily family) {
  std::vector<float> biases(experts);
  fill(biases, [&] {
    switch (family) {
      case BiasFamily::grid:
        return 0.25f * static_cast<float>(signed_integer(stream, 4));
      case BiasFamily::smooth:
        return 0.25f * normal_value(stream);
      case BiasFamily::offset:
        return 34.5f + static_cast<float>(signed_integer(stream, 128)) / 1024.0f;
      case BiasFamily::negative:
        return -8.5f + 0.25f * static_cast<float>(signed_integer(stream, 2));
      default:
        return 0.0f;
    }
  });
  return biases;
}

std::vector<std::uint8_t> generate_mask(Stream& stream, std::size_t tokens) {
  switch (between(stream, 0, 5)) {
    case 0:
    case 1:
      return {};
    case 2:
      return std::vector<std::uint8_t>(tokens, 0);
    default:
      std::vector<std::uint8_t> mask(tokens);
      for (auto& valid : mask) valid = one_in(stream, 2) ? 1 : 0;
      return mask;
  }
}

std::size_t generate_tokens(Stream& stream, std::size_t size, std::size_t experts) {
  if (experts > 32) return between(stream, 1, 2);
  if (size > 50 && one_in(stream, 64)) return between(stream, 17, 300);
  switch (between(stream, 0, 9)) {
    case 0:
      return 0;
    case 1:
    case 2:
      return 1;
    case 3:
    case 4:
      return experts;
    default:
      return between(stream, 1, size < 30 || one_in(stream, 2) ? 4 : 4 + size / 6);
  }
}

ModelSpec generate_model(Stream& stream, std::size_t size) {
  ModelSpec model;
  model.layers = one_in(stream, 2) ? 1 : between(stream, 2, 3);
  model.routed_experts = generate_experts(stream, size);
  model.top_k = generate_top_k(stream, model.routed_experts);
  model.score = generate_score(stream);
  model.renormalize = !one_in(stream, 3);
  model.routed_scale = one_in(stream, 2) ? 1.0 : pick(stream, {0.5, 2.0, 2.5});
  return model;
}

ModelSpec generate_tile_model(Stream& stream) {
  ModelSpec model;
  if (one_in(stream, 3)) {
    const auto [experts, top_k] = pick(stream, model_shapes);
    model.routed_experts = experts;
    model.top_k = top_k;
  } else {
    do {
      model.routed_experts = pick(stream, {8, 16, 32, 64, 128, 256});
      model.top_k = pick(stream, {1, 2, 4, 8, 16});
    } while (model.top_k > model.routed_experts);
  }
  model.score = generate_score(stream);
  model.renormalize = !one_in(stream, 3);
  return model;
}

BalancerSpec generate_balancer(Stream& stream, const ModelSpec& model) {
  BalancerSpec balancer;
  const bool has_cutoff = model.top_k < model.routed_experts;
  balancer.kind = one_in(stream, 8)                  ? BalancerKind::sign
                  : has_cutoff && !one_in(stream, 4) ? BalancerKind::quantile
                                                     : BalancerKind::none;
  balancer.estimator = one_in(stream, 2) ? Estimator::exact : Estimator::histogram;
  balancer.bins = one_in(stream, 8) ? 1000 : 16;
  balancer.rate = pick(stream, {0.25, 1e-3});
  balancer.update = one_in(stream, 8) ? Update::forward : Update::step;
  return balancer;
}

std::optional<Biases> generate_open_biases(Stream& stream, const ModelSpec& model) {
  if (one_in(stream, 3)) return std::nullopt;
  Biases biases;
  for (std::size_t l = 0; l < model.layers; ++l) {
    biases.push_back(generate_biases(stream, model.routed_experts, bias_family(stream)));
  }
  return biases;
}

Features swarm(Stream& stream, const Features& features) {
  const std::uint64_t kept = stream();
  const auto keep = [&](bool feature, unsigned bit) { return feature && (kept >> bit & 1) != 0; };
  return {.eval = keep(features.eval, 0),
          .recompute = keep(features.recompute, 1),
          .masks = keep(features.masks, 2),
          .steps = keep(features.steps, 3),
          .skipped_steps = keep(features.skipped_steps, 4),
          .collector = keep(features.collector, 5),
          .set_biases = keep(features.set_biases, 6),
          .save_load = keep(features.save_load, 7),
          .ranks = keep(features.ranks, 8),
          .nonfinite = keep(features.nonfinite, 9)};
}

std::vector<Request> generate_history(Stream& stream, std::size_t size, const Open& open,
                                      const Features& features) {
  return HistoryWriter(stream, size, open, features).write();
}

Case generate_case(Stream& stream, std::size_t size, const Features& features) {
  const Features drawn = swarm(stream, features);
  Case out;
  out.open.model = generate_model(stream, size);
  out.open.balancer = generate_balancer(stream, out.open.model);
  out.open.ranks = drawn.ranks ? between(stream, 1, 3) : 1;
  out.open.biases = generate_open_biases(stream, out.open.model);
  out.history = generate_history(stream, size, out.open, drawn);
  out.salt = stream();
  return out;
}

Case generate_routing_case(Stream& stream, std::size_t size, std::size_t forwards,
                           bool finite_only) {
  Case out;
  ModelSpec& model = out.open.model;
  model = generate_model(stream, size);
  out.open.biases = generate_open_biases(stream, model);
  const std::size_t count = between(stream, 1, forwards);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t tokens = generate_tokens(stream, size, model.routed_experts);
    const LogitFamily family = finite_only ? finite_family(stream) : any_family(stream);
    out.history.push_back(
        Forward{.layer = between(stream, 0, model.layers - 1),
                .rank = 0,
                .mode = Mode::eval,
                .logits = generate_logits(stream, tokens, model.routed_experts, family),
                .mask = {}});
  }
  out.salt = stream();
  return out;
}

Case generate_long_routing_case(Stream& stream, std::size_t size) {
  Case out;
  ModelSpec& model = out.open.model;
  model = generate_model(stream, 0);
  model.layers = 1;
  const std::size_t tokens =
      one_in(stream, 2) ? between(stream, 1, 20) : between(stream, 1, 20 + 3 * size);
  out.open.biases = generate_open_biases(stream, model);
  out.history.push_back(
      Forward{.mode = Mode::eval,
              .logits = generate_logits(stream, tokens, model.routed_experts,
                                        pick(stream, {LogitFamily::grid, LogitFamily::smooth})),
              .mask = {}});
  return out;
}

}  // namespace ballast::props
