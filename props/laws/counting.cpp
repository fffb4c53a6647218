#include <algorithm>
#include <numeric>

#include "props/cases/generate.h"
#include "props/laws/families.h"
#include "props/laws/support.h"

// What a collector counts: the choices of valid tokens in training forwards, each once, by layer,
// as integers.
namespace ballast::props {

namespace {

using enum Capability;

using LayerCounts = std::vector<std::vector<std::int64_t>>;  // [layers][experts]

/// A collector that is entered first, so that something is counted.
Case counted(Stream& stream, std::size_t size, const Features& features) {
  Case out = generate_case(stream, size, features);
  if (!collector_active(out.history).back()) {
    std::erase_if(out.history,
                  [](const Request& r) { return std::holds_alternative<Collector>(r); });
    out.history.insert(out.history.begin(), Collector{CollectorAction::enter, true});
    out.history.push_back(Collector{CollectorAction::snapshot, true});
  }
  return out;
}

Case any_history(Stream& stream, std::size_t size) {
  return counted(stream, size, {.nonfinite = true});
}

Case several_layers(Stream& stream, std::size_t size) {
  Case out = counted(stream, size, {});
  if (out.open.model.layers > 1) return out;
  // A second layer, to which every other forward moves.
  out.open.model.layers = 2;
  if (out.open.biases) out.open.biases->push_back(out.open.biases->front());
  std::size_t forwards = 0;
  for (Request& request : out.history) {
    if (auto* forward = std::get_if<Forward>(&request)) forward->layer = forwards++ % 2;
    if (auto* set = std::get_if<SetBiases>(&request)) set->biases.push_back(set->biases.front());
  }
  std::erase_if(out.history, [](const Request& r) {
    const auto* forward = std::get_if<Forward>(&r);
    return forward != nullptr && forward->mode == Mode::recompute;
  });
  return out;
}

/// One forward on a dyadic grid, which no rounding can route otherwise when it is cut in pieces.
Case exact_batch(Stream& stream, std::size_t size) {
  Case out;
  out.open.model = generate_model(stream, size);
  out.open.model.score = ScoreFunction::logit;
  const std::size_t experts = out.open.model.routed_experts;
  out.open.ranks = between(stream, 1, 3);
  const std::size_t tokens = between(stream, 1, 4 + size / 4);
  out.history.push_back(
      Forward{.layer = between(stream, 0, out.open.model.layers - 1),
              .logits = generate_logits(stream, tokens, experts, LogitFamily::grid),
              .mask = generate_mask(stream, tokens)});
  out.salt = stream();
  return out;
}

/// Counts beyond the integers of bf16 (256), fp16 (2048) and, rarely, of 16 bits.
Case many_tokens(Stream& stream, std::size_t size) {
  Case out;
  ModelSpec& model = out.open.model;
  model.routed_experts = between(stream, 2, 3);
  model.top_k = between(stream, 1, model.routed_experts - 1);
  model.score = ScoreFunction::logit;
  out.history.push_back(Collector{CollectorAction::enter, true});
  const bool huge = size > 50 && one_in(stream, 60);
  const std::size_t tokens = huge                 ? 3000
                             : one_in(stream, 20) ? between(stream, 2040, 2300)
                                                  : between(stream, 250, 300);
  Forward forward{.logits = Matrix<float>(tokens, model.routed_experts), .mask = {}};
  const std::size_t hot = between(stream, 0, model.routed_experts - 1);
  for (std::size_t t = 0; t < tokens; ++t) forward.logits(t, hot) = 4.0f;
  const std::size_t forwards = huge ? 22 : between(stream, 1, 2);
  for (std::size_t i = 0; i < forwards; ++i) out.history.push_back(forward);
  out.history.push_back(Collector{CollectorAction::snapshot, true});
  return out;
}

/// What the collector ought to have counted since it was entered or read, request by request.
class Recount {
 public:
  explicit Recount(const ModelSpec& model)
      : model_(model),
        counts_(model.layers, std::vector<std::int64_t>(model.routed_experts)),
        tokens_(model.layers) {}

  void take(const Request& request, const Answer& answer) {
    if (const auto* collector = std::get_if<Collector>(&request)) {
      active_ = collector->action != CollectorAction::exit;
      *this = Recount(model_, active_);
      return;
    }
    const auto* forward = std::get_if<Forward>(&request);
    const Routed* rows = forward == nullptr ? nullptr : routed(answer);
    if (!active_ || rows == nullptr || forward->mode != Mode::train) return;
    tokens_[forward->layer] += valid_tokens(*forward);
    for (std::size_t t = 0; t < rows->indices.size(); ++t) {
      if (!is_valid(*forward, t)) continue;
      for (const std::int64_t j : rows->indices[t]) {
        ++counts_[forward->layer][static_cast<std::size_t>(j)];
      }
    }
  }

  const std::vector<std::int64_t>& counts(std::size_t layer) const { return counts_[layer]; }
  std::int64_t tokens(std::size_t layer) const { return tokens_[layer]; }

 private:
  Recount(const ModelSpec& model, bool active) : Recount(model) { active_ = active; }

  ModelSpec model_;
  LayerCounts counts_;
  std::vector<std::int64_t> tokens_;
  bool active_ = false;
};

bool is_snapshot(const Request& request) {
  const auto* collector = std::get_if<Collector>(&request);
  return collector != nullptr && collector->action == CollectorAction::snapshot;
}

bool only_enabled(const History& history) {
  return std::ranges::all_of(history, [](const Request& request) {
    const auto* collector = std::get_if<Collector>(&request);
    return collector == nullptr || collector->enabled;
  });
}

std::vector<const LayerSnapshot*> every_layer(const History& history, std::size_t request,
                                              const ModelSpec& model, const Answer& answer) {
  auto records = records_of(answer);
  if (records.size() != model.layers) {
    break_law(place(history, request),
              "a record of each of " + std::to_string(model.layers) + " layers",
              std::to_string(records.size()) + " records");
  }
  return records;
}

/// `compare(request, layer, record, recount)` for every record of every snapshot.
template <class Compare>
void compare_snapshots(Subject& subject, const Case& input, Edges& edges, Compare compare) {
  note_edges(input, edges);
  if (!only_enabled(input.history)) discard();
  const auto answers = converse(subject, input.open, input.history);
  Recount recount(input.open.model);
  for (std::size_t i = 0; i < input.history.size(); ++i) {
    if (is_snapshot(input.history[i])) {
      const auto records = every_layer(input.history, i, input.open.model, answers[i]);
      for (std::size_t l = 0; l < records.size(); ++l) compare(i, l, *records[l], recount);
    }
    recount.take(input.history[i], answers[i]);
  }
}

std::string of_layer(std::size_t layer) {
  return "layer " + std::to_string(layer) + ": ";
}

void check_recount(Subject& subject, const Case& input, Edges& edges) {
  compare_snapshots(
      subject, input, edges,
      [&](std::size_t i, std::size_t l, const LayerSnapshot& record, const Recount& recount) {
        if (std::ranges::max(recount.counts(l)) > 256) edges.insert("count above 256");
        if (record.expert_load_counts == recount.counts(l)) return;
        break_law(place(input.history, i),
                  of_layer(l) + "counts " + text(recount.counts(l)) + ", as the forwards answered",
                  of_layer(l) + "counts " + text(record.expert_load_counts));
      });
}

void check_conservation(Subject& subject, const Case& input, Edges& edges) {
  const auto top_k = static_cast<std::int64_t>(input.open.model.top_k);
  compare_snapshots(
      subject, input, edges,
      [&](std::size_t i, std::size_t l, const LayerSnapshot& record, const Recount& recount) {
        const std::int64_t sum = std::accumulate(record.expert_load_counts.begin(),
                                                 record.expert_load_counts.end(), std::int64_t{0});
        const std::int64_t tokens = recount.tokens(l);
        if (sum == tokens * top_k && record.tokens == tokens) return;
        break_law(place(input.history, i),
                  of_layer(l) + std::to_string(tokens) + " tokens and " +
                      std::to_string(tokens * top_k) + " assignments",
                  of_layer(l) + std::to_string(record.tokens) + " tokens and " +
                      std::to_string(sum) + " assignments");
      });
}

/// Sums of the counts of all snapshots, by layer.
LayerCounts total(const ModelSpec& model, const History& history,
                  const std::vector<Answer>& answers) {
  LayerCounts sums(model.layers, std::vector<std::int64_t>(model.routed_experts));
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (!is_snapshot(history[i])) continue;
    const auto records = every_layer(history, i, model, answers[i]);
    for (std::size_t l = 0; l < records.size(); ++l) {
      for (std::size_t j = 0; j < model.routed_experts; ++j) {
        sums[l][j] += records[l]->expert_load_counts[j];
      }
    }
  }
  return sums;
}

void expect_equal(const LayerCounts& expected, const LayerCounts& seen, const std::string& where,
                  const std::string& context) {
  for (std::size_t l = 0; l < expected.size(); ++l) {
    if (expected[l] == seen[l]) continue;
    break_law(where, of_layer(l) + "counts " + text(expected[l]),
              of_layer(l) + "counts " + text(seen[l]) + " " + context);
  }
}

void check_intervals(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  const bool always_active =
      std::ranges::count_if(input.history, [](const Request& r) {
        const auto* collector = std::get_if<Collector>(&r);
        return collector != nullptr && collector->action != CollectorAction::snapshot;
      }) == 1;
  const bool in_one = !input.history.empty() && is_snapshot(input.history.back());
  if (!always_active || !in_one || !only_enabled(input.history)) discard();
  History once;
  for (std::size_t i = 0; i < input.history.size(); ++i) {
    if (i + 1 < input.history.size() && is_snapshot(input.history[i])) continue;
    once.push_back(input.history[i]);
  }
  History often;
  Stream stream(input.salt);
  for (const Request& request : once) {
    if (!often.empty() && one_in(stream, 2) && !is_snapshot(request)) {
      if (collector_active(often).back()) often.push_back(Collector{});
    }
    often.push_back(request);
  }
  const auto whole = total(input.open.model, once, converse(subject, input.open, once));
  const auto parts = total(input.open.model, often, converse(subject, input.open, often));
  expect_equal(whole, parts, "the sum of the snapshots of all intervals",
               "in " + std::to_string(often.size() - once.size() + 1) + " intervals");
}

/// The forward in pieces of consecutive tokens, on any rank.
History in_pieces(Stream& stream, const Forward& forward, std::size_t ranks) {
  History pieces;
  const std::size_t tokens = forward.logits.rows();
  for (std::size_t first = 0; first < tokens;) {
    const std::size_t count = between(stream, 1, tokens - first);
    Forward piece = forward;
    piece.rank = between(stream, 0, ranks - 1);
    piece.logits = Matrix<float>(count, forward.logits.cols());
    for (std::size_t t = 0; t < count; ++t) {
      std::ranges::copy(forward.logits.row(first + t), piece.logits.row(t).begin());
    }
    if (!forward.mask.empty()) {
      const auto begin = forward.mask.begin() + static_cast<std::ptrdiff_t>(first);
      piece.mask.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    pieces.push_back(std::move(piece));
    first += count;
  }
  return pieces;
}

History observed(const History& forwards) {
  History history = {Collector{CollectorAction::enter, true}};
  history.insert(history.end(), forwards.begin(), forwards.end());
  history.push_back(Collector{CollectorAction::snapshot, true});
  return history;
}

void check_split(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  const auto* forward =
      input.history.size() == 1 ? std::get_if<Forward>(&input.history[0]) : nullptr;
  if (forward == nullptr || forward->mode != Mode::train || !is_finite(*forward) ||
      input.open.model.score != ScoreFunction::logit ||
      input.open.balancer.update != Update::step) {
    discard();
  }
  Stream stream(input.salt);
  const History whole = observed({*forward});
  const History pieces = observed(in_pieces(stream, *forward, input.open.ranks));
  const auto expected = total(input.open.model, whole, converse(subject, input.open, whole));
  const auto seen = total(input.open.model, pieces, converse(subject, input.open, pieces));
  expect_equal(expected, seen, place(input.history, 0),
               "when the batch is split into " + std::to_string(pieces.size() - 2) +
                   " micro-batches on " + std::to_string(input.open.ranks) + " ranks");
}

void check_layers_apart(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  const ModelSpec& model = input.open.model;
  if (model.layers < 2) discard();
  Stream stream(input.salt);
  const std::size_t layer = between(stream, 0, model.layers - 1);
  const History history = with_end_shown(input.history, {balance});
  History alone;
  std::vector<std::size_t> original;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const auto* forward = std::get_if<Forward>(&history[i]);
    if (forward != nullptr && forward->layer != layer) continue;
    alone.push_back(history[i]);
    original.push_back(i);
  }
  const auto all = converse(subject, input.open, history);
  const auto only = converse(subject, input.open, alone);
  const std::string context = "when only layer " + std::to_string(layer) + " runs";
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const Answer& expected = all[original[i]];
    const std::string where = place(history, original[i]);
    if (is_snapshot(alone[i])) {
      const LayerSnapshot* both = every_layer(history, original[i], model, expected)[layer];
      const LayerSnapshot* one = every_layer(alone, i, model, only[i])[layer];
      expect_equal({both->expert_load_counts}, {one->expert_load_counts}, where, context);
    } else if (std::holds_alternative<BiasesAnswer>(expected)) {
      if (biases_of(expected)[layer] == biases_of(only[i])[layer]) continue;
      break_law(where, of_layer(layer) + "biases " + text(biases_of(expected)[layer]),
                of_layer(layer) + "biases " + text(biases_of(only[i])[layer]) + " " + context);
    } else {
      expect_same(history, original[i], expected, only[i], context);
    }
  }
}

}  // namespace

std::vector<Law> counting_laws() {
  return {
      {.id = "counting.recount",
       .statement = "A snapshot's counts are those of the experts that the training forwards "
                    "answered for valid tokens since the collector was entered or read.",
       .source = "algorithms.md 6; M02 M03 M16 M22 M26 M34 M37 M45 M52 M54 M55 M57 M60",
       .needs = {route, balance, collect},
       .edges = {"several layers", "padding", "skipped step"},
       .generate = any_history,
       .check = judged(check_recount)},
      {.id = "counting.conservation",
       .statement = "In each layer a snapshot's counts sum to valid training tokens times top_k, "
                    "and its tokens are the valid ones, each once.",
       .source = "algorithms.md 7.3; M02 M16 M22 M34 M45 M82 M139",
       .needs = {route, balance, collect},
       .edges = {"padding", "all padding", "no tokens"},
       .generate = any_history,
       .check = judged(check_conservation)},
      {.id = "counting.large",
       .statement = "Counts stay exact integers beyond those of 8-bit mantissas, of half precision "
                    "and of 16 bits.",
       .source = "algorithms.md 6 (bias/score dtype, overflow); M25 M03",
       .needs = {route, balance, collect},
       .edges = {"count above 256"},
       .generate = many_tokens,
       .check = judged(check_recount)},
      {.id = "counting.intervals",
       .statement =
           "The counts of intervals add up to those of the whole run, wherever it is read.",
       .source = "M37 M63",
       .needs = {route, balance, collect},
       .edges = {},
       .generate = any_history,
       .check = judged(check_intervals)},
      {.id = "counting.split",
       .statement = "A batch split into micro-batches, on any ranks, has the counts of the whole.",
       .source = "algorithms.md 2.3, 2.4 item 9; M17 M54 M55",
       .needs = {route, balance, collect},
       .edges = {},
       .generate = exact_batch,
       .check = judged(check_split)},
      {.id = "counting.layers-apart",
       .statement =
           "A layer's choices, counts and biases do not depend on what other layers route.",
       .source = "M40 M57 M100",
       .needs = {route, balance, collect},
       .edges = {"several layers"},
       .generate = several_layers,
       .check = judged(check_layers_apart)},
  };
}

}  // namespace ballast::props
