#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "core/metrics/moe_metrics.h"
#include "core/random/distributions.h"
#include "props/cases/generate.h"
#include "props/laws/check.h"
#include "props/laws/families.h"
#include "props/laws/training_cases.h"

namespace ballast::props {

namespace {

using Figures = std::map<std::string, double>;

/// Figures may come from fp32: 8 ulp of it.
bool close(double a, double b) {
  return std::abs(a - b) <= 0x1p-20 * (1.0 + std::abs(a));
}

// Beside the one below, of rows with nulls.
using props::text;

std::int64_t total(const std::vector<std::int64_t>& loads) {
  return std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
}

double figure(Check& check, const Figures& figures, const std::string& key) {
  const auto found = figures.find(key);
  if (found == figures.end()) check.broken("", "the metric " + key, "none of that name");
  return found->second;
}

void require_close(Check& check, const std::string& what, double expected, double seen) {
  if (!close(expected, seen)) check.broken(what, text(expected), text(seen));
}

/// The loads a case asks the metrics of.
const Counts& loads_of(Check& check, const Case& input) {
  check.discard_unless(!input.history.empty());
  const auto* const request = std::get_if<MetricsOf>(&input.history.front());
  check.discard_unless(request != nullptr && !request->counts.empty());
  check.open(input.open);
  return request->counts;
}

Counts with_assignments(const Counts& loads) {
  Counts kept;
  for (const auto& layer : loads) {
    if (total(layer) > 0) kept.push_back(layer);
  }
  return kept;
}

// ---------------------------------------------------------------------------------------------------------
// Metrics of loads

/// One layer's figures, by the definitions.
struct LayerFigures {
  double frac_with_tokens = 0.0;
  double frac_oversubscribed = 0.0;
  double max_violation = 0.0;
  double min_violation = 0.0;
};

LayerFigures figures_of(const std::vector<std::int64_t>& loads) {
  const double experts = static_cast<double>(loads.size());
  const double fair = static_cast<double>(total(loads)) / experts;
  const auto is_used = [](std::int64_t load) { return load > 0; };
  const auto is_over = [&](std::int64_t load) {
    return load * static_cast<std::int64_t>(loads.size()) > total(loads);
  };
  return {
      .frac_with_tokens = static_cast<double>(std::ranges::count_if(loads, is_used)) / experts,
      .frac_oversubscribed = static_cast<double>(std::ranges::count_if(loads, is_over)) / experts,
      .max_violation = (static_cast<double>(*std::ranges::max_element(loads)) - fair) / fair,
      .min_violation = (static_cast<double>(*std::ranges::min_element(loads)) - fair) / fair};
}

/// A single layer's figures, by the subject.
LayerFigures asked_figures(Check& check, const std::vector<std::int64_t>& loads) {
  const Figures figures = check.metrics(MetricsOf{{loads}});
  return {.frac_with_tokens = figure(check, figures, metric_key::frac_with_tokens_mean),
          .frac_oversubscribed = figure(check, figures, metric_key::frac_oversubscribed_mean),
          .max_violation = figure(check, figures, metric_key::max_violation_mean),
          .min_violation = figure(check, figures, metric_key::min_violation_mean)};
}

Figures mean_of(const std::vector<LayerFigures>& layers) {
  LayerFigures sum;
  double worst = -std::numeric_limits<double>::infinity();
  for (const LayerFigures& layer : layers) {
    sum.frac_with_tokens += layer.frac_with_tokens;
    sum.frac_oversubscribed += layer.frac_oversubscribed;
    sum.max_violation += layer.max_violation;
    sum.min_violation += layer.min_violation;
    worst = std::max(worst, layer.max_violation);
  }
  const double count = static_cast<double>(layers.size());
  return {{metric_key::frac_with_tokens_mean, sum.frac_with_tokens / count},
          {metric_key::frac_oversubscribed_mean, sum.frac_oversubscribed / count},
          {metric_key::max_violation_mean, sum.max_violation / count},
          {metric_key::max_violation_max, worst},
          {metric_key::min_violation_mean, sum.min_violation / count}};
}

void require_figures(Check& check, const Figures& expected, const Figures& seen) {
  for (const auto& [key, value] : expected)
    require_close(check, key, value, figure(check, seen, key));
}

void metrics_by_definition(Check& check, const Case& input) {
  const Counts loads = loads_of(check, input);
  check.discard_unless(with_assignments(loads).size() == loads.size());
  std::vector<LayerFigures> layers;
  for (const auto& layer : loads) layers.push_back(figures_of(layer));
  require_figures(check, mean_of(layers), check.metrics(MetricsOf{loads}));
  check.meet_if(loads.size() > 1, "several layers");
  const auto large = [](const auto& layer) { return total(layer) > std::int64_t{1} << 31; };
  check.meet_if(std::ranges::any_of(loads, large), "loads past 2^31");
}

void per_layer_before_mean(Check& check, const Case& input) {
  const Counts loads = loads_of(check, input);
  check.discard_unless(with_assignments(loads).size() == loads.size());
  std::vector<LayerFigures> layers;
  for (const auto& layer : loads) layers.push_back(asked_figures(check, layer));
  require_figures(check, mean_of(layers), check.metrics(MetricsOf{loads}));
  const auto mirrored = [](const auto& a, const auto& b) {
    return a != b && std::ranges::equal(a, std::vector<std::int64_t>(b.rbegin(), b.rend()));
  };
  check.meet_if(loads.size() > 1 && mirrored(loads[0], loads[1]), "mirrored layers");
}

/// The five bounds that follow from the definitions; the first because a token chooses an expert
/// once.
void bounds_of_one_layer(Check& check, const Case& input) {
  for (const auto& loads : loads_of(check, input)) {
    if (total(loads) == 0) continue;
    const LayerFigures f = asked_figures(check, loads);
    const double experts = static_cast<double>(loads.size());
    const double k = static_cast<double>(input.open.model.top_k);
    const auto require = [&](bool holds, const std::string& bound) {
      if (holds) return;
      check.broken("loads " + text(loads), bound,
                   "frac_with_tokens " + text(f.frac_with_tokens) + ", frac_oversubscribed " +
                       text(f.frac_oversubscribed) + ", max_violation " + text(f.max_violation) +
                       ", min_violation " + text(f.min_violation));
    };
    constexpr double slack = 0x1p-20;
    if (*std::ranges::max_element(loads) * static_cast<std::int64_t>(k) <= total(loads)) {
      require(f.max_violation <= experts / k - 1.0 + slack * experts, "max_violation <= E/k - 1");
      check.meet_if(close(f.max_violation, experts / k - 1.0), "max_violation = E/k - 1");
    }
    require(f.max_violation >= 1.0 / f.frac_with_tokens - 1.0 - slack * experts,
            "max_violation >= 1 / frac_with_tokens - 1");
    require((f.frac_with_tokens < 1.0 - slack) == close(f.min_violation, -1.0),
            "frac_with_tokens < 1 exactly when min_violation = -1");
    require(f.frac_oversubscribed <= 1.0 - 1.0 / experts + slack, "frac_oversubscribed <= 1 - 1/E");
    const bool balanced = std::ranges::all_of(loads, [&](std::int64_t l) { return l == loads[0]; });
    require((f.frac_oversubscribed < slack) == balanced,
            "frac_oversubscribed = 0 under perfect balance only");
    require(experts * f.frac_oversubscribed * f.max_violation >= -f.min_violation - slack * experts,
            "E frac_oversubscribed max_violation >= -min_violation");
    check.meet_if(f.frac_with_tokens < 1.0, "an expert without tokens");
  }
}

void require_layer(Check& check, const std::string& at, const LayerFigures& expected,
                   const LayerFigures& seen) {
  require_close(check, "frac_with_tokens at " + at, expected.frac_with_tokens,
                seen.frac_with_tokens);
  require_close(check, "frac_oversubscribed at " + at, expected.frac_oversubscribed,
                seen.frac_oversubscribed);
  require_close(check, "max_violation at " + at, expected.max_violation, seen.max_violation);
  require_close(check, "min_violation at " + at, expected.min_violation, seen.min_violation);
}

/// Perfect balance and total collapse, of as many tokens as the case has assignments.
void anchors(Check& check, const Case& input) {
  const Counts& asked = loads_of(check, input);
  const std::size_t experts = asked[0].size();
  const std::size_t k = std::clamp<std::size_t>(input.open.model.top_k, 1, experts);
  const std::int64_t tokens = std::max<std::int64_t>(1, total(asked[0]));
  require_layer(check, "perfect balance",
                {.frac_with_tokens = 1.0,
                 .frac_oversubscribed = 0.0,
                 .max_violation = 0.0,
                 .min_violation = 0.0},
                asked_figures(check, std::vector<std::int64_t>(experts, tokens)));
  if (k == experts) return;
  std::vector<std::int64_t> collapsed(experts);
  for (std::size_t j = 0; j < k; ++j) collapsed[(j + input.salt) % experts] = tokens;
  const double share = static_cast<double>(k) / static_cast<double>(experts);
  require_layer(check, "total collapse: every token to the same " + std::to_string(k) + " experts",
                {.frac_with_tokens = share,
                 .frac_oversubscribed = share,
                 .max_violation = 1.0 / share - 1.0,
                 .min_violation = -1.0},
                asked_figures(check, collapsed));
  check.meet_if(k > 1, "k > 1");
}

/// Taking an assignment from the least loaded expert and giving it to the most loaded one.
void rises_with_skew(Check& check, const Case& input) {
  for (const auto& loads : loads_of(check, input)) {
    auto skewed = loads;
    const auto most = std::ranges::max_element(skewed);
    const auto least = std::min_element(skewed.rbegin(), skewed.rend());
    if (*least == 0 || &*most == &*least || total(loads) > 4096) continue;
    check.meet_if(*most == *least, "perfect balance before");
    ++*most;
    --*least;
    const LayerFigures before = asked_figures(check, loads);
    const LayerFigures after = asked_figures(check, skewed);
    if (after.max_violation > before.max_violation && after.min_violation < before.min_violation)
      continue;
    check.broken("loads " + text(loads) + ", then " + text(skewed),
                 "max_violation to rise from " + text(before.max_violation) +
                     " and min_violation to fall from " + text(before.min_violation),
                 text(after.max_violation) + " and " + text(after.min_violation));
  }
}

void same_in_any_order(Check& check, const Case& input) {
  const Counts loads = loads_of(check, input);
  check.discard_unless(with_assignments(loads).size() == loads.size());
  Counts reordered(loads.rbegin(), loads.rend());
  for (auto& layer : reordered) {
    const auto first = static_cast<std::ptrdiff_t>(input.salt % layer.size());
    std::rotate(layer.begin(), layer.begin() + first, layer.end());
    std::ranges::reverse(layer);
  }
  const Figures expected = check.metrics(MetricsOf{loads});
  require_figures(check, expected, check.metrics(MetricsOf{reordered}));
}

void same_at_any_scale(Check& check, const Case& input) {
  const Counts loads = loads_of(check, input);
  check.discard_unless(with_assignments(loads).size() == loads.size());
  std::int64_t largest = 1;
  for (const auto& layer : loads) largest = std::max(largest, total(layer));
  const std::int64_t factor = (std::int64_t{1} << 40) / largest;
  Counts grown = loads;
  for (auto& layer : grown) {
    for (std::int64_t& load : layer) load *= std::max<std::int64_t>(1, factor);
  }
  const Figures expected = check.metrics(MetricsOf{loads});
  require_figures(check, expected, check.metrics(MetricsOf{grown}));
}

void layers_without_assignments(Check& check, const Case& input) {
  const Counts loads = loads_of(check, input);
  const Counts kept = with_assignments(loads);
  check.discard_unless(kept.size() < loads.size());
  const Answer answer = check.ask(MetricsOf{loads});
  const auto* const metrics = std::get_if<MetricsAnswer>(&answer);
  if (kept.empty()) {
    check.meet("no assignment at all");
    if (metrics == nullptr) return;  // a refusal says as much as no metric
    for (const auto& [key, value] : metrics->metrics) {
      if (std::isnan(value)) check.broken(key, "no figure, since there is none", text(value));
    }
    return;
  }
  if (metrics == nullptr) check.broken("", "metrics of the layers with assignments", "a refusal");
  const Figures seen = metrics->metrics;
  check.meet("a layer without assignments");
  require_figures(check, check.metrics(MetricsOf{kept}), seen);
}

// ---------------------------------------------------------------------------------------------------------
// Snapshots

/// Holds the conversation with an active collector.
void collect(Check& check, const Case& input) {
  check.open(input.open);
  check.done(Collector{.action = CollectorAction::enter});
  for (const Request& request : input.history) {
    if (std::holds_alternative<Step>(request)) {
      check.step(request);
    } else if (std::holds_alternative<Forward>(request)) {
      check.route(request);
    } else {
      check.discard();
    }
  }
}

void snapshot_by_definition(Check& check, const Case& input) {
  collect(check, input);
  for (const auto& [name, layer] : check.snapshot().layers) {
    const auto& loads = layer.expert_load_counts;
    if (loads.size() != input.open.model.routed_experts) {
      check.broken(name, "one count an expert", text(loads));
    }
    const auto k = static_cast<std::int64_t>(input.open.model.top_k);
    if (layer.tokens != total(loads) / k) {
      check.broken(name + ".tokens", std::to_string(total(loads) / k),
                   std::to_string(layer.tokens));
    }
    const bool none = total(loads) == 0;
    check.meet(none ? "a layer without assignments" : "a layer with assignments");
    if (layer.max_load_over_mean.has_value() == none ||
        layer.zero_load_experts.has_value() == none) {
      check.broken(name,
                   none ? "no max_load_over_mean and no zero_load_experts without assignments"
                        : "max_load_over_mean and zero_load_experts",
                   none ? "a value" : "null");
    }
    if (none) continue;
    require_close(check, name + ".max_load_over_mean", figures_of(loads).max_violation + 1.0,
                  *layer.max_load_over_mean);
    const auto zeros = std::ranges::count(loads, 0);
    if (*layer.zero_load_experts == zeros) continue;
    check.broken(name + ".zero_load_experts", std::to_string(zeros),
                 std::to_string(*layer.zero_load_experts));
  }
}

using Row = std::vector<std::optional<double>>;

std::string text(const std::vector<Row>& rows) {
  std::string out;
  for (const Row& row : rows) {
    if (!out.empty()) out += " | ";
    for (const auto& bias : row) out += (bias ? text(*bias) : "null") + " ";
  }
  return out;
}

/// The snapshot's biases are those in force, with null in place of one that is not finite. By layer
/// in one sort order, whatever the subject calls its layers.
void require_biases_in_force(Check& check) {
  std::vector<Row> expected;
  for (const auto& biases : check.biases()) {
    expected.emplace_back();
    for (const double bias : biases) {
      expected.back().push_back(std::isfinite(bias) ? std::optional(bias) : std::nullopt);
    }
  }
  std::vector<Row> seen;
  for (const auto& [name, layer] : check.snapshot().layers) seen.push_back(layer.biases);
  std::ranges::sort(expected);
  std::ranges::sort(seen);
  if (expected != seen) check.broken("", "biases by layer: " + text(expected), text(seen));
}

void snapshot_biases(Check& check, const Case& input) {
  collect(check, input);
  const auto has_step = [](const Request& r) { return std::holds_alternative<Step>(r); };
  check.meet_if(std::ranges::any_of(input.history, has_step), "after a step");
  require_biases_in_force(check);
}

void snapshot_biases_not_finite(Check& check, const Case& input) {
  collect(check, input);
  Stream stream(input.salt);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float values[] = {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity, 0.5f};
  Biases biases(input.open.model.layers, std::vector<float>(input.open.model.routed_experts));
  for (auto& row : biases) {
    for (float& bias : row) bias = values[uniform_index(stream, 4)];
  }
  // A subject may well refuse them; then there is nothing to report.
  check.discard_unless(std::holds_alternative<Done>(check.ask(SetBiases{biases})));
  check.meet("biases that are not finite");
  require_biases_in_force(check);
}

// ---------------------------------------------------------------------------------------------------------
// Combination of chunks

enum class Reduction { mean, slack, sum, min, max, unique, hash_unordered, unknown };

/// What follows the key's only colon; nothing when it has not exactly one.
std::optional<Reduction> reduction_of(const std::string& key) {
  if (std::ranges::count(key, ':') != 1) return std::nullopt;
  static const std::map<std::string, Reduction> names = {
      {"mean", Reduction::mean},
      {"slack", Reduction::slack},
      {"sum", Reduction::sum},
      {"min", Reduction::min},
      {"max", Reduction::max},
      {"unique", Reduction::unique},
      {"hash_unordered", Reduction::hash_unordered}};
  const auto found = names.find(key.substr(key.find(':') + 1));
  return found == names.end() ? Reduction::unknown : found->second;
}

const std::vector<Chunk>& chunks_of(Check& check, const Case& input) {
  check.discard_unless(!input.history.empty());
  const auto* const request = std::get_if<Combine>(&input.history.front());
  check.discard_unless(request != nullptr);
  check.open(input.open);
  return request->chunks;
}

bool well_formed(const std::vector<Chunk>& chunks) {
  return chunks.empty() || std::ranges::all_of(chunks[0].metrics, [](const auto& metric) {
           return reduction_of(metric.first).has_value();
         });
}

std::int64_t data_of(const std::vector<Chunk>& chunks) {
  std::int64_t sum = 0;
  for (const Chunk& chunk : chunks) sum += chunk.data;
  return sum;
}

bool in_all(const std::string& key, const std::vector<Chunk>& chunks) {
  return std::ranges::all_of(chunks,
                             [&](const Chunk& chunk) { return chunk.metrics.contains(key); });
}

/// One metric over the chunks.
struct Series {
  std::vector<double> values;
  std::vector<double> data;

  double mean() const {
    double sum = 0.0;
    for (std::size_t c = 0; c < values.size(); ++c) sum += data[c] * values[c];
    return sum / std::accumulate(data.begin(), data.end(), 0.0);
  }
  double max() const { return *std::ranges::max_element(values); }
  double min() const { return *std::ranges::min_element(values); }
  double sum() const { return std::accumulate(values.begin(), values.end(), 0.0); }
};

Series series(const std::string& key, const std::vector<Chunk>& chunks) {
  Series out;
  for (const Chunk& chunk : chunks) {
    out.values.push_back(chunk.metrics.at(key));
    out.data.push_back(static_cast<double>(chunk.data));
  }
  return out;
}

/// By key what the combination holds; nothing under a key whose value is a hash.
std::map<std::string, std::optional<double>> expected_combination(
    const std::vector<Chunk>& chunks) {
  std::map<std::string, std::optional<double>> expected;
  if (chunks.empty()) return expected;
  for (const auto& [key, value] : chunks[0].metrics) {
    const Reduction reduction = *reduction_of(key);
    if (reduction == Reduction::unknown || !in_all(key, chunks)) continue;
    const Series s = series(key, chunks);
    switch (reduction) {
      case Reduction::mean:
        expected[key] = s.mean();
        break;
      case Reduction::slack:
        expected[key] = s.max() - s.mean();
        break;
      case Reduction::sum:
        expected[key] = s.sum();
        break;
      case Reduction::min:
        expected[key] = s.min();
        break;
      case Reduction::max:
        expected[key] = s.max();
        break;
      case Reduction::hash_unordered:
        expected[key] = std::nullopt;
        break;
      case Reduction::unknown:
        break;
      case Reduction::unique:
        expected[key] = s.values[0];
        for (std::size_t c = 1; c < s.values.size(); ++c) {
          expected[key + "_" + std::to_string(c)] = s.values[c];
        }
    }
  }
  return expected;
}

void combines_by_rule(Check& check, const Case& input) {
  const auto& chunks = chunks_of(check, input);
  check.discard_unless(well_formed(chunks) && data_of(chunks) > 0);
  const Figures seen = check.metrics(Combine{chunks});
  for (const auto& [key, value] : expected_combination(chunks)) {
    if (value) require_close(check, key, *value, figure(check, seen, key));
  }
  const auto no_data = [](const Chunk& chunk) { return chunk.data == 0; };
  check.meet_if(std::ranges::any_of(chunks, no_data), "a chunk without data");
  check.meet_if(chunks.size() > 1 && chunks[0].data != chunks[1].data, "chunks of unequal data");
}

std::string keys_of(const Figures& figures) {
  std::string out;
  for (const auto& [key, value] : figures) out += key + " ";
  return out;
}

void combines_known_keys(Check& check, const Case& input) {
  const auto& chunks = chunks_of(check, input);
  check.discard_unless(well_formed(chunks) && (chunks.empty() || data_of(chunks) > 0));
  Figures expected;
  for (const auto& [key, value] : expected_combination(chunks)) expected[key] = 0.0;
  const Figures seen = check.metrics(Combine{chunks});
  const bool same = std::ranges::equal(
      expected, seen, {}, [](const auto& m) { return m.first; },
      [](const auto& m) { return m.first; });
  if (!same) check.broken("", "the keys " + keys_of(expected), keys_of(seen));
  check.meet_if(chunks.empty(), "no chunks");
  if (chunks.empty()) return;
  for (const auto& [key, value] : chunks[0].metrics) {
    check.meet_if(reduction_of(key) == Reduction::unknown, "an unknown reduction");
    check.meet_if(!in_all(key, chunks), "a key that a later chunk lacks");
  }
  for (const auto& [key, value] : chunks.back().metrics) {
    check.meet_if(!chunks[0].metrics.contains(key), "a key that the first chunk lacks");
  }
}

void combines_in_any_order(Check& check, const Case& input) {
  const auto& chunks = chunks_of(check, input);
  check.discard_unless(well_formed(chunks) && data_of(chunks) > 0);
  std::vector<Chunk> rotated = chunks;
  const auto first = static_cast<std::ptrdiff_t>(input.salt % chunks.size());
  std::rotate(rotated.begin(), rotated.begin() + first, rotated.end());
  const Figures expected = check.metrics(Combine{chunks});
  const Figures seen = check.metrics(Combine{rotated});
  for (const auto& [key, value] : chunks[0].metrics) {
    const Reduction reduction = *reduction_of(key);
    if (reduction == Reduction::unknown || reduction == Reduction::unique || !in_all(key, chunks))
      continue;
    if (!rotated[0].metrics.contains(key)) continue;
    if (reduction == Reduction::hash_unordered &&
        figure(check, expected, key) != figure(check, seen, key)) {
      check.broken(key, "the same hash of the chunks in another order",
                   text(figure(check, seen, key)));
    }
    require_close(check, key, figure(check, expected, key), figure(check, seen, key));
  }
}

void one_chunk_is_itself(Check& check, const Case& input) {
  const auto& chunks = chunks_of(check, input);
  check.discard_unless(!chunks.empty() && chunks[0].data > 0);
  const std::vector<Chunk> one = {chunks[0]};
  check.discard_unless(well_formed(one));
  const Figures seen = check.metrics(Combine{one});
  for (const auto& [key, value] : one[0].metrics) {
    const Reduction reduction = *reduction_of(key);
    if (reduction == Reduction::unknown || reduction == Reduction::hash_unordered) continue;
    check.meet_if(reduction == Reduction::slack, "slack");
    require_close(check, key, reduction == Reduction::slack ? 0.0 : value,
                  figure(check, seen, key));
  }
}

/// A mean over nothing has no value. Sums and extremes need no data.
void no_mean_without_data(Check& check, const Case& input) {
  std::vector<Chunk> chunks = chunks_of(check, input);
  check.discard_unless(!chunks.empty());
  for (Chunk& chunk : chunks) {
    chunk.data = 0;
    chunk.metrics["loss:mean"] = 1.0;
  }
  const Answer answer = check.ask(Combine{chunks});
  const auto* const metrics = std::get_if<MetricsAnswer>(&answer);
  if (metrics == nullptr) return;
  const auto found = metrics->metrics.find("loss:mean");
  if (found == metrics->metrics.end() || std::isnan(found->second)) return;
  check.broken("loss:mean", "a refusal: no chunk has any data to weigh by", text(found->second));
}

void refuses_malformed_keys(Check& check, const Case& input) {
  std::vector<Chunk> chunks = chunks_of(check, input);
  check.discard_unless(!chunks.empty() && data_of(chunks) > 0);
  const std::string key = input.salt % 2 == 0 ? "loss" : "loss:train:mean";
  check.meet(input.salt % 2 == 0 ? "a key without a colon" : "a key with two colons");
  for (Chunk& chunk : chunks) chunk.metrics[key] = 1.0;
  const Answer answer = check.ask(Combine{chunks});
  if (std::holds_alternative<Refusal>(answer)) return;
  check.broken("key " + key, "a refusal: a key is a name and a reduction with one ':' between",
               "an answer");
}

double hash_of(Check& check, const std::vector<double>& values) {
  std::vector<Chunk> chunks;
  for (const double value : values)
    chunks.push_back({.data = 1, .metrics = {{"id:hash_unordered", value}}});
  return figure(check, check.metrics(Combine{chunks}), "id:hash_unordered");
}

/// Equal exactly for equal multisets of the values' integer parts. The values are not negative: the usual Python
/// implementation, hash() of a tuple, can not tell -1 from -2, and is not to be accused of it.
void hashes_multisets(Check& check, const Case& input) {
  check.open(input.open);
  Stream stream(input.salt);
  std::vector<double> values(2 + uniform_index(stream, 4));
  for (double& value : values) value = static_cast<double>(uniform_index(stream, 8));
  auto reversed = std::vector<double>(values.rbegin(), values.rend());
  if (reversed[0] > 0.0) reversed[0] += 0.5;  // cut to the integer
  auto other = values;
  other[0] += 1.0;
  const double hash = hash_of(check, values);
  if (hash_of(check, reversed) != hash) {
    check.broken("values " + text(values) + ", then " + text(reversed), "one hash", "two");
  }
  if (hash_of(check, other) == hash) {
    check.broken("values " + text(values) + ", then " + text(other), "two hashes", "one");
  }
}

void keeps_nan(Check& check, const Case& input) {
  std::vector<Chunk> chunks = chunks_of(check, input);
  check.discard_unless(well_formed(chunks) && data_of(chunks) > 0);
  const Figures clean = check.metrics(Combine{chunks});
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const double value =
        c == input.salt % chunks.size() ? std::numeric_limits<double>::quiet_NaN() : 1.0;
    chunks[c].data = std::max<std::int64_t>(chunks[c].data, 0);
    chunks[c].metrics["nan:mean"] = value;
    chunks[c].metrics["nan:sum"] = value;
  }
  const Figures seen = check.metrics(Combine{chunks});
  for (const char* const key : {"nan:mean", "nan:sum"}) {
    if (!std::isnan(figure(check, seen, key))) {
      check.broken(key, "NaN, since a chunk's value is", text(figure(check, seen, key)));
    }
  }
  for (const auto& [key, value] : clean) require_close(check, key, value, figure(check, seen, key));
}

// ---------------------------------------------------------------------------------------------------------
// Generation

/// Loads of tokens that choose k different experts each, the first ones more often by a drawn skew.
std::vector<std::int64_t> routed_loads(Stream& stream, std::size_t experts, std::size_t top_k,
                                       std::size_t tokens) {
  std::vector<std::int64_t> loads(experts);
  const std::uint64_t skew = 1 + uniform_index(stream, 4);
  for (std::size_t t = 0; t < tokens; ++t) {
    std::size_t expert = uniform_index(stream, 1 + uniform_index(stream, experts)) / skew;
    for (std::size_t k = 0; k < top_k; ++k) ++loads[expert++ % experts];
  }
  return loads;
}

Case loads_case(Stream& stream, std::size_t size, bool empty_layers) {
  Case input;
  ModelSpec& model = input.open.model;
  model.routed_experts = 1 + uniform_index(stream, 4 + size / 20);
  model.top_k = 1 + uniform_index(stream, model.routed_experts);
  model.layers = 1 + uniform_index(stream, 3);
  MetricsOf request;
  for (std::size_t l = 0; l < model.layers; ++l) {
    const bool empty = empty_layers && (l == 0 || one_in(stream, 2));
    const std::size_t tokens = empty ? 0 : 1 + uniform_index(stream, 2 + size / 4);
    request.counts.push_back(routed_loads(stream, model.routed_experts, model.top_k, tokens));
    if (l == 1 && !empty_layers && one_in(stream, 2)) {
      request.counts[1].assign(request.counts[0].rbegin(), request.counts[0].rend());
    }
    if (one_in(stream, 8)) std::ranges::fill(request.counts.back(), empty ? 0 : 3);
    if (one_in(stream, 8)) {
      for (std::int64_t& load : request.counts.back()) load <<= 33;
    }
  }
  input.history.push_back(std::move(request));
  input.salt = stream();
  return input;
}

Case loads_in_use(Stream& stream, std::size_t size) {
  return loads_case(stream, size, false);
}
Case loads_some_empty(Stream& stream, std::size_t size) {
  return loads_case(stream, size, true);
}

void add_metrics(Stream& stream, Chunk& chunk) {
  static const std::vector<std::string> keys = {
      "loss:mean",  "e_max_violation:mean", "e_max_violation:max",  "tokens:sum",  "loss:min",
      "wait:slack", "step:unique",          "batch:hash_unordered", "clock:median"};
  for (const auto& key : keys) {
    if (one_in(stream, 5)) continue;
    chunk.metrics[key] = static_cast<double>(uniform_index(stream, 65)) / 8.0 - 4.0;
  }
}

Case chunks_case(Stream& stream, std::size_t size, std::size_t least) {
  Case input;
  Combine request;
  request.chunks.resize(least + uniform_index(stream, 3 + size / 40));
  for (Chunk& chunk : request.chunks) {
    chunk.data = static_cast<std::int64_t>(uniform_index(stream, 6));
    add_metrics(stream, chunk);
  }
  if (!request.chunks.empty()) ++request.chunks.front().data;
  input.history.push_back(std::move(request));
  input.salt = stream();
  return input;
}

Case some_chunks(Stream& stream, std::size_t size) {
  return chunks_case(stream, size, 1);
}
Case any_chunks(Stream& stream, std::size_t size) {
  return chunks_case(stream, size, 0);
}

Case salt_only(Stream& stream, std::size_t) {
  Case input;
  input.salt = stream();
  return input;
}

Case collected(Stream& stream, std::size_t size) {
  static const TrainingFeatures features{
      .balancers = {exact_balancer, histogram_balancer, BalancerSpec{}},
      .update_at_forward = true,
      .evaluations = true,
      .empty_forwards = true};
  return training_case(stream, size, features);
}

std::vector<Law> load_metric_laws() {
  using enum Capability;
  return {
      {.id = "metrics.definitions",
       .statement = "The five MoE metrics are the means, or the maximum, over layers of each "
                    "layer's figures by "
                    "their definitions.",
       .source = "algorithms.md 4.1, 4.2; faults.md 11; M36 M105 M108",
       .needs = {metrics},
       .edges = {"several layers", "loads past 2^31"},
       .generate = loads_in_use,
       .check = checked(metrics_by_definition)},
      {.id = "metrics.per-layer",
       .statement = "Metrics of several layers are taken per layer first and averaged then, not of "
                    "pooled loads.",
       .source = "faults.md 11 item 2; M100 M108 M109",
       .needs = {metrics},
       .edges = {"mirrored layers"},
       .generate = loads_in_use,
       .check = checked(per_layer_before_mean)},
      {.id = "metrics.bounds",
       .statement =
           "The figures of a layer keep the five bounds that follow from their definitions.",
       .source = "algorithms.md 4.1; the definitions of Tinker's metrics",
       .needs = {metrics},
       .edges = {"max_violation = E/k - 1", "an expert without tokens"},
       .generate = loads_in_use,
       .check = checked(bounds_of_one_layer)},
      {.id = "metrics.anchors",
       .statement = "Perfect balance reads as 1, 0, 0, 0 and the collapse onto k experts as k/E, "
                    "k/E, E/k - 1, -1.",
       .source = "faults.md 11 items 1, 5; M88 M103 M105 M115",
       .needs = {metrics},
       .edges = {"k > 1"},
       .generate = loads_in_use,
       .check = checked(anchors)},
      {.id = "metrics.skew",
       .statement = "Moving an assignment from the least to the most loaded expert raises "
                    "max_violation and lowers "
                    "min_violation.",
       .source = "M49 M88 M103",
       .needs = {metrics},
       .edges = {"perfect balance before"},
       .generate = loads_in_use,
       .check = checked(rises_with_skew)},
      {.id = "metrics.order",
       .statement =
           "Which expert carries which load, and the order of the layers, changes no metric.",
       .source = "M108",
       .needs = {metrics},
       .edges = {},
       .generate = loads_in_use,
       .check = checked(same_in_any_order)},
      {.id = "metrics.scale",
       .statement = "Multiplying all loads by a factor changes no metric, past 2^31 too.",
       .source = "M03 M36",
       .needs = {metrics},
       .edges = {},
       .generate = loads_in_use,
       .check = checked(same_at_any_scale)},
      {.id = "metrics.no-assignments",
       .statement = "A layer without assignments has no figures: it leaves every metric as it is "
                    "without that "
                    "layer, and nothing becomes NaN.",
       .source = "algorithms.md 6 (empty scope); faults.md 11 items 3, 7; M51 M109 M124",
       .needs = {metrics},
       .edges = {"a layer without assignments", "no assignment at all"},
       .generate = loads_some_empty,
       .check = checked(layers_without_assignments)},
  };
}

std::vector<Law> snapshot_laws() {
  using enum Capability;
  return {
      {.id = "snapshot.definitions",
       .statement = "A snapshot's tokens are its counts' sum over k, max_load_over_mean their "
                    "maximum over their "
                    "mean, zero_load_experts the number of zeros; without assignments the last two "
                    "are null.",
       .source = "protocol: collector; M36 M51 M105 M124",
       .needs = {Capability::collect},
       .edges = {"a layer without assignments", "a layer with assignments"},
       .generate = collected,
       .check = checked(snapshot_by_definition)},
      {.id = "snapshot.biases",
       .statement = "A snapshot's biases are those in force.",
       .source = "protocol: collector; M19 M27 M30",
       .needs = {Capability::collect, balance},
       .edges = {"after a step"},
       .generate = collected,
       .check = checked(snapshot_biases)},
      {.id = "snapshot.nonfinite-biases",
       .statement = "A snapshot reports null in place of a bias that is not finite, and the others "
                    "as they are.",
       .source = "protocol: collector; M79 M135",
       .needs = {Capability::collect, balance},
       .edges = {},
       .generate = collected,
       .check = checked(snapshot_biases_not_finite)},
  };
}

std::vector<Law> combine_laws() {
  using enum Capability;
  return {
      {.id = "combine.rules",
       .statement = "Chunks combine by the reduction in each key: means weighted by data, slack as "
                    "maximum minus "
                    "mean, sum, min, max, and every value of unique.",
       .source = "algorithms.md 4.3",
       .needs = {combine},
       .edges = {"a chunk without data", "chunks of unequal data"},
       .generate = some_chunks,
       .check = checked(combines_by_rule)},
      {.id = "combine.keys",
       .statement = "The combination has the first chunk's keys that have a known reduction and "
                    "that every chunk "
                    "has.",
       .source = "algorithms.md 4.3",
       .needs = {combine},
       .edges = {"no chunks", "an unknown reduction", "a key that a later chunk lacks",
                 "a key that the first chunk lacks"},
       .generate = any_chunks,
       .check = checked(combines_known_keys)},
      {.id = "combine.order",
       .statement = "The order of the chunks changes only which is first, and unique.",
       .source = "algorithms.md 4.3",
       .needs = {combine},
       .edges = {},
       .generate = some_chunks,
       .check = checked(combines_in_any_order)},
      {.id = "combine.single",
       .statement = "A single chunk combines to itself, but for slack, which is 0, and hashes.",
       .source = "algorithms.md 4.3",
       .needs = {combine},
       .edges = {"slack"},
       .generate = some_chunks,
       .check = checked(one_chunk_is_itself)},
      {.id = "combine.no-data",
       .statement = "A mean over chunks without any data is refused, not made up.",
       .source = "algorithms.md 4.3; M51",
       .needs = {combine},
       .edges = {},
       .generate = some_chunks,
       .check = checked(no_mean_without_data)},
      {.id = "combine.malformed-key",
       .statement = "A key of the first chunk without exactly one colon is refused.",
       .source = "algorithms.md 4.3",
       .needs = {combine},
       .edges = {"a key without a colon", "a key with two colons"},
       .generate = some_chunks,
       .check = checked(refuses_malformed_keys)},
      {.id = "combine.hash",
       .statement = "hash_unordered is equal for equal multisets of the values' integer parts, and "
                    "differs where one value differs.",
       .source = "algorithms.md 4.3",
       .needs = {combine},
       .edges = {},
       .generate = salt_only,
       .check = checked(hashes_multisets)},
      {.id = "combine.nan",
       .statement = "A NaN in one chunk makes its mean and sum NaN, and touches no other metric.",
       .source = "faults.md 11 item 10; M79 M135",
       .needs = {combine},
       .edges = {},
       .generate = some_chunks,
       .check = checked(keeps_nan)},
  };
}

}  // namespace

std::vector<Law> metrics_laws() {
  std::vector<Law> laws = load_metric_laws();
  for (auto& law : snapshot_laws()) laws.push_back(std::move(law));
  for (auto& law : combine_laws()) laws.push_back(std::move(law));
  return laws;
}

}  // namespace ballast::props
