#include "props/oracles/quantile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "core/random/distributions.h"
#include "props/cases/generate.h"
#include "props/laws/check.h"
#include "props/laws/families.h"
#include "props/laws/training_cases.h"
#include "props/oracles/exact_routing.h"

namespace ballast::props {

namespace {

using oracle::Observations;

constexpr double infinity = std::numeric_limits<double>::infinity();

// ---------------------------------------------------------------------------------------------------------
// What a move is judged by

std::string layer_place(const BiasMove& move) {
  return "layer " + std::to_string(move.layer);
}
std::string expert_place(const BiasMove& move, std::size_t expert) {
  return layer_place(move) + ", expert " + std::to_string(expert);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double largest_magnitude(const std::vector<double>& values) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

/// What the move was made from; nothing when that is no valid token. Scores that are not finite
/// discard.
std::optional<Observations> observations(Check& check, const BiasMove& move) {
  Observations observed = oracle::observe(check.model(), move.forwards, move.before);
  if (observed.tokens() == 0) return std::nullopt;
  check.discard_unless(observed.finite);
  return observed;
}

bool is_quantile(const Check& check, Estimator estimator) {
  const BalancerSpec& balancer = check.opened().balancer;
  return balancer.kind == BalancerKind::quantile && balancer.estimator == estimator;
}

/// How far fp32 may stray from a difference of two new biases.
double rounding(const Check& check, const Observations& observed, const BiasMove& move) {
  const double range =
      is_quantile(check, Estimator::histogram) ? oracle::range_margin(move.before) : 0.0;
  return 4.0 * observed.margin + range + oracle::fp32_margin * largest_magnitude(move.after);
}

/// The same, with what the kind of estimator does not say about a difference of two biases.
double tolerance(const Check& check, const Observations& observed, const BiasMove& move) {
  const double width = is_quantile(check, Estimator::histogram)
                           ? oracle::bin_width(move.before, check.opened().balancer.bins)
                           : 0.0;
  return rounding(check, observed, move) + 2.0 * width;
}

/// Loads by the subject's own choices, `[experts]`.
std::vector<std::int64_t> chosen_loads(const BiasMove& move, std::size_t experts) {
  std::vector<std::int64_t> loads(experts);
  for (std::size_t f = 0; f < move.forwards.size(); ++f) {
    for (std::size_t t = 0; t < move.routed[f].indices.size(); ++t) {
      if (!is_valid(*move.forwards[f], t)) continue;
      for (const std::int64_t expert : move.routed[f].indices[t]) {
        ++loads[static_cast<std::size_t>(expert)];
      }
    }
  }
  return loads;
}

/// How each bias moved.
std::vector<double> changes(const BiasMove& move) {
  std::vector<double> change;
  for (std::size_t j = 0; j < move.after.size(); ++j)
    change.push_back(move.after[j] - move.before[j]);
  return change;
}

void meet_shape_edges(Check& check, const Observations& observed, const BiasMove& move) {
  const auto experts = static_cast<std::int64_t>(observed.experts);
  check.meet_if(observed.top_k == 1, "k = 1");
  check.meet_if(observed.top_k + 1 == observed.experts, "k = E - 1");
  check.meet_if(observed.assignments() < experts, "q < 1");
  check.meet_if(observed.assignments() % experts != 0, "q not an integer");
  check.meet_if(move.forwards.size() > 1, "several micro-batches");
}

const std::set<std::string> shape_edges = {"k = 1", "k = E - 1", "q < 1", "q not an integer"};

std::set<std::string> with_shape_edges(std::set<std::string> edges) {
  edges.insert(shape_edges.begin(), shape_edges.end());
  return edges;
}

// ---------------------------------------------------------------------------------------------------------
// The estimates

/// #{r < b'} <= q < #{r <= b'}: centring took a constant from all biases, so b' is the answer and
/// the shift that gives it the mean of the reference.
void judge_contract(Check& check, const Observations& observed, const BiasMove& move) {
  const double shift = mean(oracle::exact_estimate(observed)) - mean(move.after);
  const double margin = rounding(check, observed, move);
  for (std::size_t j = 0; j < observed.experts; ++j) {
    const auto& r = observed.required[j];
    const double bias = move.after[j] + shift;
    const auto below = std::lower_bound(r.begin(), r.end(), bias - margin) - r.begin();
    const auto up_to = std::upper_bound(r.begin(), r.end(), bias + margin) - r.begin();
    const auto experts = static_cast<std::int64_t>(observed.experts);
    if (below * experts <= observed.assignments() && up_to * experts > observed.assignments())
      continue;
    check.broken(expert_place(move, j),
                 "#{r < b'} <= q < #{r <= b'} with q = " + std::to_string(observed.assignments()) +
                     "/" + std::to_string(experts) + " and r = " + text(r) + ", so biases " +
                     text(oracle::exact_estimate(observed)) + " up to one common shift",
                 std::to_string(below) + " below and " + std::to_string(up_to) +
                     " up to b' = " + text(bias) + "; biases " + text(move.after));
  }
  const auto tied = [](const auto& r) { return std::adjacent_find(r.begin(), r.end()) != r.end(); };
  check.meet_if(std::ranges::any_of(observed.required, tied), "ties among required biases");
}

/// App. D, with every observation allowed on either side of a bin's edge that rounding can not tell
/// from it.
void judge_histogram(Check& check, const Observations& observed, const BiasMove& move) {
  const auto estimate = oracle::histogram_estimate(observed, check.opened().balancer.bins);
  // The shift that brings every answer to or above its lowest estimate.
  double shift = -infinity;
  for (std::size_t j = 0; j < observed.experts; ++j) {
    shift = std::max(shift, estimate[j].low - move.after[j]);
  }
  for (std::size_t j = 0; j < observed.experts; ++j) {
    if (move.after[j] + shift <= estimate[j].high + rounding(check, observed, move)) continue;
    std::vector<double> low;
    for (const auto& interval : estimate) low.push_back(interval.low);
    check.broken(expert_place(move, j), "biases " + text(low) + " up to one common shift",
                 text(move.after));
  }
}

/// b_j += rate sign(mean load - load_j), up to a common shift for those that centre.
void judge_sign(Check& check, const Observations& observed, const BiasMove& move) {
  const auto loads = chosen_loads(move, observed.experts);
  const double rate = check.opened().balancer.rate;
  std::vector<double> expected;
  for (const std::int64_t load : loads) {
    const std::int64_t missing =
        observed.assignments() - load * static_cast<std::int64_t>(observed.experts);
    expected.push_back(missing > 0 ? rate : missing < 0 ? -rate : 0.0);
  }
  const auto change = changes(move);
  const double shift = change[0] - expected[0];
  for (std::size_t j = 0; j < observed.experts; ++j) {
    if (std::abs(change[j] - expected[j] - shift) <= rounding(check, observed, move)) continue;
    check.broken(expert_place(move, j), "changes of " + text(expected) + " up to one common shift",
                 text(change));
  }
}

void judge_move(Check& check, const BiasMove& move) {
  const auto observed = observations(check, move);
  if (!observed) return;
  meet_shape_edges(check, *observed, move);
  if (is_quantile(check, Estimator::exact)) judge_contract(check, *observed, move);
  if (is_quantile(check, Estimator::histogram)) judge_histogram(check, *observed, move);
  if (check.opened().balancer.kind == BalancerKind::sign) judge_sign(check, *observed, move);
}

using Judge = void (*)(Check&, const Observations&, const BiasMove&);

/// Every move that was made from valid tokens, by one judge.
template <Judge judge>
void judge_moves(Check& check, const Case& input) {
  follow(check, input, {.routed = {}, .moved = [&](const BiasMove& move) {
                          if (const auto observed = observations(check, move)) {
                            meet_shape_edges(check, *observed, move);
                            judge(check, *observed, move);
                          }
                        }});
}

void right_estimate(Check& check, const Case& input) {
  follow(check, input,
         {.routed = {}, .moved = [&](const BiasMove& move) {
            judge_move(check, move);
            const auto has_mask = [](const Forward* f) { return !f->mask.empty(); };
            check.meet_if(std::ranges::any_of(move.forwards, has_mask), "masked rows");
            const auto rank = [](const Forward* f) { return f->rank; };
            check.meet_if(!std::ranges::all_of(move.forwards,
                                               [&](const Forward* f) {
                                                 return rank(f) == rank(move.forwards.front());
                                               }),
                          "several ranks");
          }});
  const auto recomputes = [](const Request& request) {
    const auto* const forward = std::get_if<Forward>(&request);
    return forward != nullptr && forward->mode == Mode::recompute;
  };
  check.meet_if(std::ranges::any_of(input.history, recomputes), "recompute");
}

/// With Update::forward each forward moves the biases by itself, and the step has nothing left to
/// do.
void moves_at_forward(Check& check, const Case& input) {
  check.discard_unless(input.open.balancer.update == Update::forward);
  follow(check, input, {.routed = {}, .moved = [&](const BiasMove& move) {
                          judge_move(check, move);
                          if (!move.forwards.empty() || move.after == move.before) return;
                          check.broken(layer_place(move),
                                       "a step that moves nothing: " + text(move.before),
                                       text(move.after));
                        }});
}

// ---------------------------------------------------------------------------------------------------------
// Bounds of the histogram

/// r_(ceil q) of each expert.
std::vector<double> at_ceil_rank(const Observations& observed) {
  const auto experts = static_cast<std::int64_t>(observed.experts);
  const auto rank = static_cast<std::size_t>((observed.assignments() + experts - 1) / experts);
  std::vector<double> values;
  for (const auto& r : observed.required) values.push_back(r[rank - 1]);
  return values;
}

bool is_bounded(ScoreFunction score) {
  return score != ScoreFunction::logit;
}

/// |bhat_j - r_(ceil q)| <= w for each expert, so two experts' differences are 2 w apart at most.
void near_ceil_rank(Check& check, const Observations& observed, const BiasMove& move) {
  check.discard_unless(is_quantile(check, Estimator::histogram) && is_bounded(check.model().score));
  const auto at_rank = at_ceil_rank(observed);
  double lowest = infinity;
  double highest = -infinity;
  for (std::size_t j = 0; j < observed.experts; ++j) {
    lowest = std::min(lowest, move.after[j] - at_rank[j]);
    highest = std::max(highest, move.after[j] - at_rank[j]);
  }
  if (highest - lowest <= tolerance(check, observed, move)) return;
  check.broken(layer_place(move),
               "within one bin's width of " + text(at_rank) + " up to one common shift",
               text(move.after));
}

/// Fixed cutoffs: |#{r < bhat_j} - q| is at most the occupancy h of the bin of r_(ceil q). Each
/// expert allows the shifts of an interval; the law is that one shift suits all.
void within_occupancy(Check& check, const Observations& observed, const BiasMove& move) {
  check.discard_unless(is_quantile(check, Estimator::histogram) && is_bounded(check.model().score));
  const double width = oracle::bin_width(move.before, check.opened().balancer.bins);
  const double margin = rounding(check, observed, move);
  const auto at_rank = at_ceil_rank(observed);
  const auto experts = static_cast<std::int64_t>(observed.experts);
  const auto tokens = static_cast<std::int64_t>(observed.tokens());
  double least_shift = -infinity;
  double most_shift = infinity;
  for (std::size_t j = 0; j < observed.experts; ++j) {
    const auto& r = observed.required[j];
    const auto occupancy = std::upper_bound(r.begin(), r.end(), at_rank[j] + width + margin) -
                           std::lower_bound(r.begin(), r.end(), at_rank[j] - width - margin);
    const std::int64_t fewest = (observed.assignments() + experts - 1) / experts - occupancy;
    const std::int64_t most = observed.assignments() / experts + occupancy;
    if (fewest >= 1) {
      least_shift = std::max(least_shift, r[static_cast<std::size_t>(fewest - 1)] - move.after[j]);
    }
    if (most < tokens) {
      most_shift = std::min(most_shift, r[static_cast<std::size_t>(most)] - move.after[j]);
    }
  }
  if (least_shift <= most_shift + margin) return;
  check.broken(layer_place(move),
               "biases that serve q tokens of each expert under the step's cutoffs, up to the "
               "occupancy of a "
               "bin, after one common shift of at least " +
                   text(least_shift),
               text(move.after) + ", which allow a shift of at most " + text(most_shift));
}

// ---------------------------------------------------------------------------------------------------------
// What follows for the biases

void centred(Check& check, const Observations& observed, const BiasMove& move) {
  if (std::abs(mean(move.after)) <= rounding(check, observed, move)) {
    check.meet_if(std::abs(mean(move.before)) > observed.margin, "biases off centre before");
    return;
  }
  check.broken(layer_place(move), "biases of mean 0",
               "mean " + text(mean(move.after)) + " of " + text(move.after));
}

void dual_descends(Check& check, const Observations& observed, const BiasMove& move) {
  check.discard_unless(is_quantile(check, Estimator::exact));
  const double before = oracle::dual_objective(observed, move.before);
  const double after = oracle::dual_objective(observed, move.after);
  const double margin =
      rounding(check, observed, move) * static_cast<double>(observed.assignments() + 1) * 2.0;
  check.meet_if(after < before - margin, "dual objective falls");
  if (after <= before + margin) return;
  check.broken(layer_place(move), "a dual objective of at most " + text(before),
               text(after) + " with biases " + text(move.after));
}

/// Splits experts by load: whose bias may not rise, and whose may not fall, against the other's.
/// The histogram takes rank ceil(q), so that it may lower an expert of exactly q tokens.
struct Balance {
  double overloaded = -infinity;  ///< largest change among them
  double others = infinity;       ///< smallest change among them
};

Balance balance_of(const Observations& observed, const BiasMove& move, bool histogram) {
  const auto loads = chosen_loads(move, observed.experts);
  const auto change = changes(move);
  Balance balance;
  for (std::size_t j = 0; j < observed.experts; ++j) {
    const std::int64_t scaled = loads[j] * static_cast<std::int64_t>(observed.experts);
    if (scaled > observed.assignments()) {
      balance.overloaded = std::max(balance.overloaded, change[j]);
    } else if (scaled < observed.assignments() || !histogram) {
      balance.others = std::min(balance.others, change[j]);
    }
  }
  return balance;
}

void right_direction(Check& check, const Observations& observed, const BiasMove& move) {
  const Balance balance = balance_of(observed, move, is_quantile(check, Estimator::histogram));
  check.meet_if(balance.overloaded > -infinity, "an overloaded expert");
  if (balance.overloaded <= balance.others + tolerance(check, observed, move)) return;
  check.broken(layer_place(move),
               "no overloaded expert's bias to rise against that of one which is not",
               "changes " + text(changes(move)) + " with required biases of expert 0 " +
                   text(observed.required[0]));
}

/// The expert that more than q tokens choose by a clear distance, if there is one.
std::optional<std::size_t> clearly_overloaded(const Observations& observed, double distance) {
  const std::size_t floor_q = observed.tokens() * observed.top_k / observed.experts;
  for (std::size_t j = 0; j < observed.experts; ++j) {
    if (observed.required[j][floor_q] < observed.biases[j] - distance) return j;
  }
  return std::nullopt;
}

void stays_alive(Check& check, const Observations& observed, const BiasMove& move) {
  const double allowed = tolerance(check, observed, move);
  if (allowed > 0.5) return;  // bins so wide that the edge bin reaches a bias
  const auto hot = clearly_overloaded(observed, 2.0 * allowed);
  if (!hot) return;
  check.meet("a clearly overloaded expert");
  const auto change = changes(move);
  if (change[*hot] < *std::ranges::max_element(change)) return;
  check.broken(expert_place(move, *hot), "its bias to fall against another's",
               "changes " + text(change));
}

// ---------------------------------------------------------------------------------------------------------
// When biases move, and what they decide

void require_choice(Check& check, const Forward& forward, const Routed& routed,
                    const std::vector<double>& biases) {
  for (std::size_t t = 0; t < routed.indices.size(); ++t) {
    const auto wrong =
        wrong_choice(exact_token(check.model(), forward.logits.row(t), biases), routed.indices[t]);
    if (!wrong) continue;
    check.broken("token " + std::to_string(t),
                 "the largest of score + bias with the biases answered last, " + text(biases),
                 *wrong);
  }
}

void in_force(Check& check, const Case& input) {
  follow(check, input,
         {.routed =
              [&](const Forward& forward, const Routed& routed, const std::vector<double>& biases) {
                require_choice(check, forward, routed, biases);
              },
          .moved =
              [&](const BiasMove& move) {
                check.meet_if(move.after != move.before, "biases moved");
              }});
}

void fixed_within_step(Check& check, const Case& input) {
  check.discard_unless(input.open.balancer.update == Update::step);
  check.open(input.open);
  BiasRows in_force = opening_biases(input.open);
  for (const Request& request : input.history) {
    if (std::holds_alternative<Step>(request)) {
      in_force = check.step(request);
    } else if (const auto* const forward = std::get_if<Forward>(&request)) {
      check.route(request);
      const auto now = check.biases();
      check.meet_if(forward->mode == Mode::train, "a training forward");
      for (std::size_t l = 0; l < now.size(); ++l) {
        if (now[l] == in_force[l]) continue;
        check.broken("after a forward, layer " + std::to_string(l),
                     "the biases of the whole step: " + text(in_force[l]), text(now[l]));
      }
    } else {
      check.discard();
    }
  }
}

/// Positions in the history of training forwards with tokens.
std::vector<std::size_t> training_forwards(const Case& input) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < input.history.size(); ++i) {
    const auto* const forward = std::get_if<Forward>(&input.history[i]);
    if (forward != nullptr && forward->mode == Mode::train && forward->logits.rows() > 0)
      at.push_back(i);
  }
  return at;
}

/// Position of the first step from `at` on.
std::size_t step_after(const Case& input, std::size_t at) {
  while (at < input.history.size() && !std::holds_alternative<Step>(input.history[at])) ++at;
  return at;
}

std::vector<Routed> choices(Check& check, const Open& open, const std::vector<Request>& history,
                            std::size_t until) {
  check.open(open);
  std::vector<Routed> routed;
  for (std::size_t i = 0; i < until; ++i) {
    if (std::holds_alternative<Forward>(history[i])) {
      routed.push_back(check.route(history[i]));
    } else if (std::holds_alternative<Step>(history[i])) {
      check.step(history[i]);
    } else {
      check.discard();
    }
  }
  return routed;
}

void cause_comes_first(Check& check, const Case& input) {
  const auto candidates = training_forwards(input);
  check.discard_unless(!candidates.empty());
  Stream stream(input.salt);
  const std::size_t at = candidates[uniform_index(stream, candidates.size())];
  // Forwards that move biases may change what comes after them, steps may not until they end.
  const std::size_t until =
      input.open.balancer.update == Update::step ? step_after(input, at) : at + 1;
  auto history = input.history;
  auto& logits = std::get<Forward>(history[at]).logits;
  const std::size_t token = uniform_index(stream, logits.rows());
  for (float& z : logits.row(token)) z = static_cast<float>(4.0 * uniform(stream) - 2.0);

  const auto expected = choices(check, input.open, input.history, until);
  const auto seen = choices(check, input.open, history, until);
  std::size_t forward = 0;
  for (std::size_t i = 0; i < until; ++i) {
    if (!std::holds_alternative<Forward>(history[i])) continue;
    const Routed& was = expected[forward];
    const Routed& is = seen[forward++];
    for (std::size_t t = 0; t < was.indices.size(); ++t) {
      if (i == at && t == token) continue;
      if (was.indices[t] == is.indices[t] && was.weights[t] == is.weights[t]) continue;
      check.broken("request " + std::to_string(i) + ", token " + std::to_string(t),
                   "the same choice whatever token " + std::to_string(token) + " of request " +
                       std::to_string(at) + " of this step holds",
                   "another choice or weight");
    }
    check.meet_if(i > at, "a later forward of the step");
  }
}

// ---------------------------------------------------------------------------------------------------------
// Invariances: the same tokens, presented otherwise

/// Answers of the steps.
std::vector<BiasRows> step_answers(Check& check, const Open& open,
                                   const std::vector<Request>& history) {
  check.open(open);
  std::vector<BiasRows> answers;
  for (const Request& request : history) {
    if (std::holds_alternative<Step>(request)) {
      answers.push_back(check.step(request));
    } else {
      check.route(request);
    }
  }
  return answers;
}

bool only_training(const Case& input) {
  return std::ranges::all_of(input.history, [](const Request& request) {
    const auto* const forward = std::get_if<Forward>(&request);
    return forward != nullptr ? forward->mode == Mode::train && forward->mask.empty()
                              : std::holds_alternative<Step>(request);
  });
}

void same_steps(Check& check, const Case& input, const std::vector<Request>& otherwise,
                const std::string& how) {
  const auto expected = step_answers(check, input.open, input.history);
  const auto seen = step_answers(check, input.open, otherwise);
  for (std::size_t s = 0; s < expected.size(); ++s) {
    for (std::size_t l = 0; l < expected[s].size(); ++l) {
      if (expected[s][l] == seen[s][l]) continue;
      check.broken(how + ", step " + std::to_string(s) + ", layer " + std::to_string(l),
                   "the same biases: " + text(expected[s][l]), text(seen[s][l]));
    }
  }
}

/// The training rows of one layer, shuffled and cut anew.
std::vector<Request> regrouped(Stream& stream, std::size_t layer, std::size_t ranks,
                               const std::vector<std::vector<float>>& rows) {
  const auto order = permutation(stream, rows.size());
  std::vector<Request> forwards;
  for (std::size_t first = 0; first < rows.size();) {
    const std::size_t count = 1 + uniform_index(stream, rows.size() - first);
    Forward forward{.layer = layer,
                    .rank = uniform_index(stream, ranks),
                    .mode = Mode::train,
                    .logits = Matrix<float>(count, rows[0].size()),
                    .mask = {}};
    for (std::size_t t = 0; t < count; ++t) {
      std::ranges::copy(rows[order[first + t]], forward.logits.row(t).begin());
    }
    forwards.push_back(std::move(forward));
    first += count;
  }
  return forwards;
}

std::vector<Request> regrouped(Stream& stream, const Case& input) {
  std::vector<std::vector<std::vector<float>>> rows(input.open.model.layers);
  std::vector<Request> history;
  for (const Request& request : input.history) {
    if (const auto* const forward = std::get_if<Forward>(&request)) {
      for (std::size_t t = 0; t < forward->logits.rows(); ++t) {
        const auto row = forward->logits.row(t);
        rows[forward->layer].emplace_back(row.begin(), row.end());
      }
      continue;
    }
    for (std::size_t l = 0; l < rows.size(); ++l) {
      for (auto& forward : regrouped(stream, l, input.open.ranks, rows[l])) {
        history.push_back(std::move(forward));
      }
      rows[l].clear();
    }
    history.push_back(request);
  }
  return history;
}

void same_however_split(Check& check, const Case& input) {
  check.discard_unless(only_training(input) && input.open.balancer.update == Update::step &&
                       input.open.model.score == ScoreFunction::logit);
  Stream stream(input.salt);
  same_steps(check, input, regrouped(stream, input), "regrouped");
}

void same_when_doubled(Check& check, const Case& input) {
  check.discard_unless(only_training(input) && input.open.balancer.update == Update::step);
  std::vector<Request> doubled;
  for (const Request& request : input.history) {
    doubled.push_back(request);
    if (std::holds_alternative<Forward>(request)) doubled.push_back(request);
  }
  same_steps(check, input, doubled, "every batch twice");
}

/// The case up to its first step.
Case first_step(const Case& input) {
  Case first{.open = input.open, .history = {}, .salt = input.salt};
  const std::size_t end = step_after(input, 0);
  first.history.assign(input.history.begin(),
                       input.history.begin() + static_cast<std::ptrdiff_t>(end));
  if (end < input.history.size()) first.history.push_back(input.history[end]);
  return first;
}

/// The moves of the first step, with how far each may be off.
struct JudgedMove {
  std::size_t layer = 0;
  std::vector<double> after;
  double tolerance = 0.0;
};

std::vector<JudgedMove> moves_of(Check& check, const Case& input) {
  std::vector<JudgedMove> moves;
  follow(check, input,
         {.routed = {}, .moved = [&](const BiasMove& move) {
            if (const auto observed = observations(check, move)) {
              moves.push_back({move.layer, move.after, tolerance(check, *observed, move)});
            }
          }});
  return moves;
}

/// An input changed in a way that changes the first step's biases in a known one.
struct Changed {
  Case input;
  std::vector<std::size_t> expert;  ///< where each expert went
  double factor = 1.0;              ///< by which the biases grow
};

void moves_alike(Check& check, const Case& input, const Changed& changed) {
  const auto expected = moves_of(check, input);
  const auto seen = moves_of(check, changed.input);
  for (std::size_t m = 0; m < expected.size(); ++m) {
    const double allowed = changed.factor * (expected[m].tolerance + seen[m].tolerance);
    const double shift = changed.factor * mean(expected[m].after) - mean(seen[m].after);
    for (std::size_t j = 0; j < expected[m].after.size(); ++j) {
      const double was = changed.factor * expected[m].after[j];
      const double is = seen[m].after[changed.expert[j]] + shift;
      if (std::abs(is - was) <= allowed) continue;
      check.broken("layer " + std::to_string(expected[m].layer) + ", expert " + std::to_string(j),
                   "bias " + text(was) + " up to one common shift", text(is));
    }
  }
}

Changed unchanged(Check& check, const Case& input) {
  check.discard_unless(only_training(input) && input.open.balancer.update == Update::step &&
                       input.open.balancer.kind == BalancerKind::quantile);
  Changed changed{.input = first_step(input), .expert = {}};
  changed.expert.resize(input.open.model.routed_experts);
  std::iota(changed.expert.begin(), changed.expert.end(), std::size_t{0});
  if (!changed.input.open.biases) {
    const auto zeros = std::vector<float>(input.open.model.routed_experts);
    changed.input.open.biases = Biases(input.open.model.layers, zeros);
  }
  return changed;
}

void for_each_row(Case& input, const std::function<void(std::span<float>)>& change) {
  for (Request& request : input.history) {
    if (auto* const forward = std::get_if<Forward>(&request)) {
      for (std::size_t t = 0; t < forward->logits.rows(); ++t) change(forward->logits.row(t));
    }
  }
}

void experts_permuted(Check& check, const Case& input) {
  Changed changed = unchanged(check, input);
  Stream stream(input.salt);
  changed.expert = permutation(stream, changed.expert.size());
  const auto permute = [&](std::span<float> row) {
    const std::vector<float> was(row.begin(), row.end());
    for (std::size_t j = 0; j < was.size(); ++j) row[changed.expert[j]] = was[j];
  };
  for_each_row(changed.input, permute);
  for (auto& row : *changed.input.open.biases) permute(row);
  moves_alike(check, first_step(input), changed);
}

/// A multiple of 1/4 within -4..4.
float some_constant(Stream& stream) {
  return static_cast<float>(uniform_index(stream, 33)) / 4.0f - 4.0f;
}

void biases_shifted(Check& check, const Case& input) {
  Changed changed = unchanged(check, input);
  Stream stream(input.salt);
  const float constant = some_constant(stream);
  for (auto& row : *changed.input.open.biases) {
    for (float& bias : row) bias += constant;
  }
  moves_alike(check, first_step(input), changed);
}

void rows_shifted(Check& check, const Case& input) {
  check.discard_unless(input.open.model.score == ScoreFunction::logit &&
                       input.open.balancer.estimator == Estimator::exact);
  Changed changed = unchanged(check, input);
  Stream stream(input.salt);
  for_each_row(changed.input, [&](std::span<float> row) {
    const float constant = some_constant(stream);
    for (float& z : row) z += constant;
  });
  moves_alike(check, first_step(input), changed);
}

void scaled(Check& check, const Case& input) {
  check.discard_unless(input.open.model.score == ScoreFunction::logit &&
                       input.open.balancer.estimator == Estimator::exact);
  Changed changed = unchanged(check, input);
  changed.factor = 4.0;
  const auto grow = [](std::span<float> row) {
    for (float& value : row) value *= 4.0f;
  };
  for_each_row(changed.input, grow);
  for (auto& row : *changed.input.open.biases) grow(row);
  moves_alike(check, first_step(input), changed);
}

// ---------------------------------------------------------------------------------------------------------
// Nothing to learn from

void nothing_moves_nothing(Check& check, const Case& input) {
  follow(check, input, {.routed = {}, .moved = [&](const BiasMove& move) {
                          const Observations observed =
                              oracle::observe(check.model(), move.forwards, move.before);
                          if (observed.tokens() > 0) return;
                          check.meet(move.forwards.empty() ? "no training forward" : "no token");
                          if (move.after == move.before) return;
                          check.broken(layer_place(move), "unchanged biases: " + text(move.before),
                                       text(move.after));
                        }});
}

bool all_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
}

/// Asks for a forward that the subject may refuse as invalid.
void offer(Check& check, const Request& forward) {
  const Answer answer = check.ask(forward);
  const auto* const refusal = std::get_if<Refusal>(&answer);
  if (refusal == nullptr || refusal->code == "invalid") return;
  check.broken("", "choices, or a refusal as invalid",
               "\"" + refusal->code + "\": " + refusal->message);
}

void stays_finite(Check& check, const Case& input) {
  check.open(input.open);
  for (const Request& request : input.history) {
    if (const auto* const forward = std::get_if<Forward>(&request)) {
      const auto values = forward->logits.values();
      check.meet_if(std::ranges::any_of(values, [](float z) { return std::isnan(z); }),
                    "NaN logit");
      check.meet_if(std::ranges::any_of(values, [](float z) { return std::isinf(z); }),
                    "infinite logit");
      offer(check, request);
      continue;
    }
    check.discard_unless(std::holds_alternative<Step>(request));
    const auto biases = check.step(request);
    for (std::size_t l = 0; l < biases.size(); ++l) {
      if (all_finite(biases[l])) continue;
      check.broken("layer " + std::to_string(l), "finite biases", text(biases[l]));
    }
  }
}

// ---------------------------------------------------------------------------------------------------------

std::function<Case(Stream&, std::size_t)> generates(TrainingFeatures features) {
  return [features = std::move(features)](Stream& stream, std::size_t size) {
    return training_case(stream, size, features);
  };
}

std::function<Case(Stream&, std::size_t)> generates_at_forward(TrainingFeatures features) {
  return [features = std::move(features)](Stream& stream, std::size_t size) {
    Case input = training_case(stream, size, features);
    input.open.balancer.update = Update::forward;
    return input;
  };
}

const std::vector<BalancerSpec> exact{exact_balancer};
const std::vector<BalancerSpec> histogram{histogram_balancer};
const std::vector<BalancerSpec> quantile{exact_balancer, histogram_balancer};
const std::vector<BalancerSpec> any{exact_balancer, exact_balancer, histogram_balancer,
                                    histogram_balancer, sign_balancer};
const std::vector<ScoreFunction> logit{ScoreFunction::logit};
const std::vector<ScoreFunction> bounded{ScoreFunction::sigmoid, ScoreFunction::softmax};

}  // namespace

std::vector<Law> quantile_laws() {
  using enum Capability;
  return {
      {.id = "quantile.exact-contract",
       .statement =
           "After a step with the exact estimator, fewer or equal to q = T k / E of the step's "
           "required biases r lie below each expert's bias and more than q up to it.",
       .source = "algorithms.md 2.2, 2.4 item 2; K3 report Eq. 14; M09 M12 M17 M37",
       .needs = {balance},
       .edges = with_shape_edges({"ties among required biases", "several micro-batches"}),
       .generate =
           generates({.balancers = exact, .evaluations = true, .long_batches = true}),
       .check = checked(judge_moves<judge_contract>)},
      {.id = "quantile.histogram-estimate",
       .statement =
           "After a step with the histogram estimator the biases are those of the report's App. D, "
           "up to observations that rounding puts on either side of a bin's edge.",
       .source = "algorithms.md 2.3; K3 report App. D; M03 M08 M09",
       .needs = {balance},
       .edges = with_shape_edges({"several micro-batches"}),
       .generate =
           generates({.balancers = histogram, .evaluations = true, .long_batches = true}),
       .check = checked(judge_moves<judge_histogram>)},
      {.id = "quantile.histogram-rank",
       .statement = "The histogram's estimate lies within one bin's width of the ceil(q)-th "
                    "smallest required "
                    "bias.",
       .source = "algorithms.md 2.4 item 10",
       .needs = {balance},
       .edges = shape_edges,
       .generate = generates({.balancers = histogram, .scores = bounded, .steps_max = 2}),
       .check = checked(judge_moves<near_ceil_rank>)},
      {.id = "quantile.histogram-occupancy",
       .statement = "Under the step's cutoffs the histogram's biases serve q tokens of each "
                    "expert, up to the "
                    "occupancy of the bin that holds the estimate.",
       .source = "algorithms.md 2.4 items 10, 11",
       .needs = {balance},
       .edges = shape_edges,
       .generate = generates({.balancers = histogram, .scores = bounded, .steps_max = 2}),
       .check = checked(judge_moves<within_occupancy>)},
      {.id = "quantile.centred",
       .statement = "After a step that observed a token the biases have mean 0.",
       .source = "algorithms.md 2.2 step 5, 2.9; M18",
       .needs = {balance},
       .edges = {"biases off centre before"},
       .generate = generates({.balancers = quantile, .update_at_forward = true}),
       .check = checked(judge_moves<centred>)},
      {.id = "quantile.dual-descent",
       .statement =
           "On the tokens of a step, the balancing problem's dual objective is no larger with the "
           "exact estimator's new biases than with the old ones.",
       .source = "algorithms.md 2.1, 2.4 item 5; M11",
       .needs = {balance},
       .edges = {"dual objective falls"},
       .generate = generates({.balancers = exact, .update_at_forward = true}),
       .check = checked(judge_moves<dual_descends>)},
      {.id = "quantile.update-forward",
       .statement =
           "A balancer opened with update \"forward\" moves the biases at each training forward by "
           "that forward alone, and at no step.",
       .source = "algorithms.md 1.4; protocol: balancer.update",
       .needs = {balance},
       .edges = shape_edges,
       .generate = generates_at_forward({.balancers = quantile, .evaluations = true}),
       .check = checked(moves_at_forward)},
      {.id = "quantile.expert-permutation",
       .statement = "Permuting the experts permutes the new biases.",
       .source = "algorithms.md 2.4 item 9",
       .needs = {balance},
       .edges = {},
       .generate = generates({.balancers = quantile, .steps_max = 1}),
       .check = checked(experts_permuted)},
      {.id = "quantile.bias-shift",
       .statement = "Adding a constant to all biases changes no new bias.",
       .source = "algorithms.md 2.4 items 5, 9; M18 M73 M74",
       .needs = {balance},
       .edges = {},
       .generate = generates({.balancers = quantile, .steps_max = 1}),
       .check = checked(biases_shifted)},
      {.id = "quantile.row-shift",
       .statement = "Adding to each token's scores a constant of its own changes no new bias.",
       .source = "algorithms.md 2.4 item 9",
       .needs = {balance},
       .edges = {},
       .generate = generates({.balancers = exact, .scores = logit, .steps_max = 1}),
       .check = checked(rows_shifted)},
      {.id = "quantile.scale",
       .statement = "Scaling scores and biases by a factor scales the new biases by it.",
       .source = "algorithms.md 2.4 item 9",
       .needs = {balance},
       .edges = {},
       .generate = generates({.balancers = exact, .scores = logit, .steps_max = 1}),
       .check = checked(scaled)},
      {.id = "balance.sign-rule",
       .statement =
           "The sign balancer raises the bias of each expert below the mean load by its rate, "
           "lowers "
           "that of each above by the same, and leaves the others, up to one common shift.",
       .source = "algorithms.md 3.3; M25 M36",
       .needs = {balance},
       .edges = {},
       .generate =
           generates({.balancers = {sign_balancer}, .evaluations = true, .long_batches = true}),
       .check = checked(judge_moves<judge_sign>)},
      {.id = "balance.direction",
       .statement =
           "No step raises the bias of an expert with more than q tokens against that of an expert "
           "with at most q (the histogram's: fewer than q).",
       .source = "algorithms.md 2.4 item 6; M06 M12 M25 M36",
       .needs = {balance},
       .edges = {"an overloaded expert"},
       .generate = generates({.balancers = any, .update_at_forward = true, .evaluations = true}),
       .check = checked(judge_moves<right_direction>)},
      {.id = "balance.liveness",
       .statement = "An expert that more than q tokens choose by a clear distance loses bias "
                    "against another "
                    "in the same step.",
       .source = "algorithms.md 2.4 item 6; M31 M36 M40 M99",
       .needs = {balance},
       .edges = {"a clearly overloaded expert"},
       .generate = generates({.balancers = any, .update_at_forward = true}),
       .check = checked(judge_moves<stays_alive>)},
      {.id = "balance.ranks",
       .statement = "The step's biases come from the tokens of all ranks, each once, whichever "
                    "rank ran them.",
       .source = "algorithms.md 2.3, 2.9; M02 M09 M43 M54 M55",
       .needs = {balance, ranks},
       .edges = with_shape_edges({"several ranks"}),
       .generate = generates({.balancers = any, .ranks = true}),
       .check = checked(right_estimate)},
      {.id = "balance.padding",
       .statement =
           "The step's biases come from the valid tokens alone, whatever masked rows hold.",
       .source = "M05 M22 M26 M51 M52",
       .needs = {balance, mask},
       .edges = {"masked rows"},
       .generate = generates({.balancers = any, .update_at_forward = true, .masks = true}),
       .check = checked(right_estimate)},
      {.id = "balance.recompute",
       .statement = "A recomputed forward adds nothing to what the step's biases come from.",
       .source = "algorithms.md 2.9; M16 M34",
       .needs = {balance, recompute},
       .edges = {"recompute"},
       .generate = generates({.balancers = any, .recomputes = true}),
       .check = checked(right_estimate)},
      {.id = "balance.in-force",
       .statement = "Every forward, training or evaluation, chooses by the biases that the last "
                    "step answered.",
       .source = "algorithms.md 2.2 steps 1, 6; M06 M19 M27 M30",
       .needs = {balance},
       .edges = {"biases moved"},
       .generate = generates({.balancers = any, .update_at_forward = true, .evaluations = true}),
       .check = checked(in_force)},
      {.id = "balance.fixed-within-step",
       .statement = "Biases do not move between two steps.",
       .source = "algorithms.md 2.2, 7 item 3; M17 M37",
       .needs = {balance},
       .edges = {"a training forward"},
       .generate = generates({.balancers = any, .evaluations = true, .skipped_steps = true}),
       .check = checked(fixed_within_step)},
      {.id = "balance.causality",
       .statement =
           "What a token of a step holds changes no other token's choice or weight in that step.",
       .source = "algorithms.md 2.2 step 6",
       .needs = {balance},
       .edges = {"a later forward of the step"},
       .generate = generates({.balancers = any, .update_at_forward = true, .evaluations = true}),
       .check = checked(cause_comes_first)},
      {.id = "balance.micro-batches",
       .statement = "How a step's tokens are split over micro-batches, and their order, changes no "
                    "bit of the "
                    "new biases.",
       .source = "algorithms.md 2.4 item 9; M09 M17 M64",
       .needs = {balance},
       .edges = {},
       .generate = generates({.balancers = any, .scores = logit}),
       .check = checked(same_however_split)},
      {.id = "balance.rank-split",
       .statement =
           "How a step's tokens are split over ranks, and their order, changes no bit of the new "
           "biases.",
       .source = "algorithms.md 2.4 item 9; M02 M25 M64",
       .needs = {balance, ranks},
       .edges = {},
       .generate = generates({.balancers = any, .scores = logit, .ranks = true}),
       .check = checked(same_however_split)},
      {.id = "balance.duplication",
       .statement = "Presenting every batch twice changes no bit of the new biases.",
       .source = "algorithms.md 2.4 item 9; M36",
       .needs = {balance},
       .edges = {},
       .generate = generates({.balancers = any}),
       .check = checked(same_when_doubled)},
      {.id = "balance.nothing-observed",
       .statement =
           "A step without a token of a layer leaves that layer's biases as they are, to the bit; "
           "so does a second step after the same forwards.",
       .source = "algorithms.md 6 (empty scope); M35 M51 M124",
       .needs = {balance},
       .edges = {"no training forward", "no token"},
       .generate = generates({.balancers = any,
                              .update_at_forward = true,
                              .evaluations = true,
                              .empty_forwards = true,
                              .steps_max = 4}),
       .check = checked(nothing_moves_nothing)},
      {.id = "balance.finite",
       .statement = "Biases stay finite whatever the logits are.",
       .source = "algorithms.md 6; M07 M79 M135",
       .needs = {balance},
       .edges = {"NaN logit", "infinite logit"},
       .generate = generates({.balancers = any, .update_at_forward = true, .not_finite = true}),
       .check = checked(stays_finite)},
  };
}

}  // namespace ballast::props
