#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/arithmetic/functions.h"
#include "core/random/distributions.h"
#include "props/laws/check.h"
#include "props/laws/families.h"

namespace ballast::props {

namespace {

/// Tokens an expert gets under perfect balance: enough for a bound on sampling noise to say
/// something.
constexpr std::size_t q = 32;

/// Fresh tokens for every step from distributions that differ by expert. They come from the case's
/// salt and the model's shape, not from the history: a smaller history stays the same kind of
/// traffic.
class Traffic {
 public:
  Traffic(const Case& input, double skew)
      : stream_(Stream(input.salt).child("traffic")),
        experts_(input.open.model.routed_experts),
        tokens_((q * experts_ + input.open.model.top_k - 1) / input.open.model.top_k),
        skew_(skew) {
    draw_preferences();
  }

  /// What every token prefers: one offset an expert, as different as logits' own spread.
  void draw_preferences() {
    offsets_.clear();
    for (std::size_t j = 0; j < experts_; ++j)
      offsets_.push_back(skew_ * (2.0 * uniform(stream_) - 1.0));
  }
  void add_to_preference(std::size_t expert, double amount) { offsets_[expert] += amount; }

  Request batch() {
    Forward forward{.layer = 0,
                    .rank = 0,
                    .mode = Mode::train,
                    .logits = Matrix<float>(tokens_, experts_),
                    .mask = {}};
    for (std::size_t t = 0; t < tokens_; ++t) {
      const auto row = forward.logits.row(t);
      std::uint64_t bits = 0;
      for (std::size_t j = 0; j < experts_; ++j) {
        if (j % 4 == 0) bits = stream_();
        const double noise = static_cast<double>((bits >> (16 * (j % 4))) & 0xffff) / 16384.0 - 2.0;
        row[j] = static_cast<float>(offsets_[j] + noise);
      }
    }
    return forward;
  }

 private:
  Stream stream_;
  std::size_t experts_;
  std::size_t tokens_;
  double skew_;
  std::vector<double> offsets_;
};

/// (max load - mean load) / mean load.
double max_violation(const std::vector<std::int64_t>& loads) {
  const double total =
      static_cast<double>(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}));
  const double fair = total / static_cast<double>(loads.size());
  return static_cast<double>(*std::ranges::max_element(loads)) / fair - 1.0;
}

/// What sampling alone makes of the largest of E loads around q when the bias comes from another
/// sample of the same size: sqrt(2) sqrt(2 ln E (1 - k/E) / q).
double sampling_noise(const ModelSpec& model) {
  const double experts = static_cast<double>(model.routed_experts);
  const double share = static_cast<double>(model.top_k) / experts;
  return std::sqrt(4.0 * arithmetic::log(experts) * (1.0 - share) / static_cast<double>(q));
}

std::size_t steps_of(const Case& input) {
  return static_cast<std::size_t>(std::ranges::count_if(
      input.history, [](const Request& r) { return std::holds_alternative<Step>(r); }));
}

/// One step on fresh tokens; their loads.
std::vector<std::int64_t> train(Check& check, Traffic& traffic) {
  const Routed routed = check.route(traffic.batch());
  check.step(Step{});
  std::vector<std::int64_t> loads(check.model().routed_experts);
  for (const auto& row : routed.indices) {
    for (const std::int64_t expert : row) ++loads[static_cast<std::size_t>(expert)];
  }
  return loads;
}

void open(Check& check, const Case& input) {
  check.discard_unless(input.open.balancer.kind == BalancerKind::quantile);
  check.open(input.open);
}

void require_at_most(Check& check, const std::string& what, double bound, double seen) {
  if (seen <= bound) return;
  check.broken("", what + " of at most " + text(bound), text(seen));
}

constexpr std::size_t warm_up = 3;  ///< steps from zero biases to the noise

void balances_within_noise(Check& check, const Case& input) {
  check.discard_unless(steps_of(input) > warm_up + 2);
  open(check, input);
  Traffic traffic(input, 2.0);
  double sum = 0.0;
  for (std::size_t s = 0; s < steps_of(input); ++s) {
    const double violation = max_violation(train(check, traffic));
    check.meet_if(s == 0 && violation > 3.0 * sampling_noise(check.model()), "imbalance at first");
    if (s >= warm_up) sum += violation;
  }
  require_at_most(check, "a mean max_violation after " + std::to_string(warm_up) + " steps",
                  2.0 * sampling_noise(check.model()),
                  sum / static_cast<double>(steps_of(input) - warm_up));
}

/// Under preferences that move a little every step, the second half is no worse than the first.
void does_not_swing_up(Check& check, const Case& input) {
  check.discard_unless(steps_of(input) >= warm_up + 4);
  open(check, input);
  Traffic traffic(input, 1.0);
  const std::size_t half = (steps_of(input) - warm_up) / 2;
  double early = 0.0;
  double late = 0.0;
  for (std::size_t s = 0; s < warm_up + 2 * half; ++s) {
    traffic.add_to_preference(s % check.model().routed_experts, 0.125);
    const double violation = max_violation(train(check, traffic));
    if (s >= warm_up) (s < warm_up + half ? early : late) += violation / static_cast<double>(half);
  }
  require_at_most(
      check, "a mean max_violation in the second half, after " + text(early) + " in the first,",
      early + 1.5 * sampling_noise(check.model()), late);
}

void recovers(Check& check, const Case& input) {
  check.discard_unless(steps_of(input) >= 2 * warm_up + 2);
  open(check, input);
  Traffic traffic(input, 2.0);
  const std::size_t shift_at = steps_of(input) - warm_up - 2;
  double sum = 0.0;
  for (std::size_t s = 0; s < steps_of(input); ++s) {
    if (s == shift_at) traffic.draw_preferences();
    const double violation = max_violation(train(check, traffic));
    check.meet_if(s == shift_at && violation > 3.0 * sampling_noise(check.model()),
                  "imbalance at the shift");
    if (s >= shift_at + warm_up) sum += violation / 2.0;
  }
  require_at_most(check,
                  "a max_violation " + std::to_string(warm_up) + " and more steps after the shift",
                  3.0 * sampling_noise(check.model()), sum);
}

/// An expert that no token chose at first gets tokens again while it stays as unpopular. Not at
/// once as many as the others, and not in every step: the cutoffs of its tokens move as well.
void revives_dead_experts(Check& check, const Case& input) {
  check.discard_unless(steps_of(input) >= warm_up + 1);
  open(check, input);
  Traffic traffic(input, 0.5);
  const std::size_t unpopular = input.salt % check.model().routed_experts;
  traffic.add_to_preference(unpopular, -4.0);
  check.meet_if(train(check, traffic)[unpopular] == 0, "a dead expert");
  for (std::size_t s = 1; s < steps_of(input); ++s) {
    if (train(check, traffic)[unpopular] > 0) return;
  }
  check.broken("expert " + std::to_string(unpopular),
               "tokens within " + std::to_string(steps_of(input)) + " steps", "none");
}

Case steps_case(Stream& stream, std::size_t steps) {
  Case input;
  ModelSpec& model = input.open.model;
  model.routed_experts = 3 + uniform_index(stream, 4);
  model.top_k = 1 + uniform_index(stream, 2);
  BalancerSpec& balancer = input.open.balancer;
  balancer.kind = BalancerKind::quantile;
  balancer.estimator = uniform_index(stream, 2) == 0 ? Estimator::exact : Estimator::histogram;
  input.history.assign(steps, Step{});
  input.salt = stream();
  return input;
}

template <std::size_t steps>
Case of_steps(Stream& stream, std::size_t) {
  return steps_case(stream, steps);
}

}  // namespace

std::vector<Law> drift_laws() {
  using enum Capability;
  return {
      {.id = "drift.within-noise",
       .statement = "On fresh tokens of skewed experts, quantile balancing brings the mean "
                    "max_violation to twice "
                    "what sampling alone makes of it, within three steps.",
       .source = "algorithms.md 2.4 item 12, 2.9, 4.1; M12 M13 M31 M42",
       .needs = {balance},
       .edges = {"imbalance at first"},
       .generate = of_steps<8>,
       .check = checked(balances_within_noise)},
      {.id = "drift.no-swing-up",
       .statement = "Under preferences that drift steadily, max_violation does not grow beyond "
                    "sampling noise.",
       .source = "algorithms.md 2.7 (gain), 2.9, 7 item 4; faults.md 10; M18 M132",
       .needs = {balance},
       .edges = {},
       .generate = of_steps<11>,
       .check = checked(does_not_swing_up)},
      {.id = "drift.recovery",
       .statement =
           "Three steps after all preferences changed, max_violation is back at sampling noise.",
       .source = "algorithms.md 2.8; M13 M127",
       .needs = {balance},
       .edges = {"imbalance at the shift"},
       .generate = of_steps<9>,
       .check = checked(recovers)},
      {.id = "drift.dead-experts",
       .statement = "An expert that no token chooses gets tokens again within six steps.",
       .source = "algorithms.md 2.1, 2.4 item 6; M121 M129",
       .needs = {balance},
       .edges = {"a dead expert"},
       .generate = of_steps<6>,
       .check = checked(revives_dead_experts)},
  };
}

}  // namespace ballast::props
