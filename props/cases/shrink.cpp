#include "props/cases/shrink.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace ballast::props {

namespace {

// ---- Cutting parts out of a case

template <class Request_, class Change>
void for_each_of(Case& input, Change change) {
  for (Request& request : input.history) {
    if (auto* found = std::get_if<Request_>(&request)) change(*found);
  }
}

/// Without the requests [first, last). Loads of a save that goes, go too; the others follow theirs.
Case without_requests(const Case& input, std::size_t first, std::size_t last) {
  Case out{.open = input.open, .history = {}, .salt = input.salt};
  std::vector<std::optional<std::size_t>> slots;  ///< of each save of the input, its new number
  std::size_t saves = 0;
  for (std::size_t i = 0; i < input.history.size(); ++i) {
    const bool kept = i < first || i >= last;
    Request request = input.history[i];
    if (std::holds_alternative<Save>(request)) {
      slots.push_back(kept ? std::optional(saves++) : std::nullopt);
    } else if (auto* load = std::get_if<Load>(&request)) {
      if (load->slot >= slots.size() || !slots[load->slot]) continue;
      load->slot = *slots[load->slot];
    }
    if (kept) out.history.push_back(std::move(request));
  }
  return out;
}

template <class Keep>
Case only_requests(const Case& input, Keep keep) {
  Case out = input;
  std::erase_if(out.history, [&](const Request& request) { return !keep(request); });
  return out;
}

template <class Rows>
void erase_row(Rows& rows, std::size_t index) {
  if (index < rows.size()) rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(index));
}

Case without_layer(const Case& input, std::size_t layer) {
  Case out = only_requests(input, [&](const Request& request) {
    const auto* forward = std::get_if<Forward>(&request);
    return forward == nullptr || forward->layer != layer;
  });
  --out.open.model.layers;
  if (out.open.biases) erase_row(*out.open.biases, layer);
  for_each_of<Forward>(out, [&](Forward& f) { f.layer -= f.layer > layer ? 1 : 0; });
  for_each_of<SetBiases>(out, [&](SetBiases& set) { erase_row(set.biases, layer); });
  for_each_of<MetricsOf>(out, [&](MetricsOf& of) {
    if (of.counts.size() > 1) erase_row(of.counts, layer);
  });
  return out;
}

/// Without a rank; its forwards go too, or become the first rank's.
Case without_rank(const Case& input, std::size_t rank, bool keep_forwards) {
  Case out = only_requests(input, [&](const Request& request) {
    const auto* forward = std::get_if<Forward>(&request);
    return keep_forwards || forward == nullptr || forward->rank != rank;
  });
  --out.open.ranks;
  for_each_of<Forward>(out, [&](Forward& f) {
    if (f.rank == rank) f.rank = 0;
    else if (f.rank > rank) --f.rank;
  });
  return out;
}

Matrix<float> without_columns(const Matrix<float>& in, std::size_t first, std::size_t count) {
  Matrix<float> out(in.rows(), in.cols() - count);
  for (std::size_t i = 0; i < in.rows(); ++i) {
    for (std::size_t j = 0; j < out.cols(); ++j) out(i, j) = in(i, j < first ? j : j + count);
  }
  return out;
}

template <class Table>
void erase_columns(Table& rows, std::size_t first, std::size_t count) {
  for (auto& row : rows) {
    const auto begin = row.begin() + static_cast<std::ptrdiff_t>(std::min(first, row.size()));
    row.erase(begin, row.begin() + static_cast<std::ptrdiff_t>(std::min(first + count, row.size())));
  }
}

std::size_t top_k_max(const Open& open) {
  const std::size_t experts = open.model.routed_experts;
  return open.balancer.kind == BalancerKind::quantile ? experts - 1 : experts;
}

/// Takes experts [first, first + count) out of everything that has a value an expert.
void erase_experts(Case& out, std::size_t first, std::size_t count) {
  const std::size_t experts = out.open.model.routed_experts;
  if (out.open.biases) erase_columns(*out.open.biases, first, count);
  for_each_of<Forward>(out, [&](Forward& f) {
    if (f.logits.cols() >= first + count) f.logits = without_columns(f.logits, first, count);
  });
  for_each_of<SetBiases>(out, [&](SetBiases& set) { erase_columns(set.biases, first, count); });
  for_each_of<MetricsOf>(out, [&](MetricsOf& of) {
    const bool same = std::ranges::all_of(of.counts, [&](const auto& layer) { return layer.size() == experts; });
    if (same) erase_columns(of.counts, first, count);
  });
  out.open.model.routed_experts -= count;
}

std::size_t group_size(const ModelSpec& model) {
  return model.groups ? model.routed_experts / model.groups->n_group : 1;
}

/// With at most `top_k` choices, as far as the model has them; nothing when that leaves no valid model.
std::optional<Case> with_top_k(Case out, std::size_t top_k) {
  ModelSpec& model = out.open.model;
  model.top_k = std::min(top_k, top_k_max(out.open));
  if (model.groups) model.top_k = std::min(model.top_k, group_size(model) * model.groups->topk_group);
  return model.top_k < 1 ? std::nullopt : std::optional(std::move(out));
}

/// Without experts [first, first + count), and with at most `top_k` choices; nothing when no valid model
/// is left.
std::optional<Case> without_experts(const Case& input, std::size_t first, std::size_t count, std::size_t top_k) {
  const ModelSpec& model = input.open.model;
  if (count >= model.routed_experts) return std::nullopt;
  if (model.groups && (count != group_size(model) || model.groups->n_group < 2)) return std::nullopt;
  Case out = input;
  erase_experts(out, first, count);
  if (auto& groups = out.open.model.groups) {
    --groups->n_group;
    groups->topk_group = std::min(groups->topk_group, groups->n_group);
  }
  return with_top_k(std::move(out), top_k);
}

/// Without one expert of each group, the one at `places[group]`.
std::optional<Case> with_narrower_groups(const Case& input, const std::vector<std::size_t>& places) {
  Case out = input;
  const std::size_t size = group_size(input.open.model);
  for (std::size_t g = places.size(); g > 0; --g) erase_experts(out, (g - 1) * size + places[g - 1], 1);
  return with_top_k(std::move(out), input.open.model.top_k);
}

void erase_tokens(Forward& forward, std::size_t first, std::size_t count) {
  const Matrix<float>& in = forward.logits;
  if (first >= in.rows()) return;
  const std::size_t gone = std::min(count, in.rows() - first);
  Matrix<float> out(in.rows() - gone, in.cols());
  for (std::size_t i = 0; i < out.rows(); ++i) {
    const auto row = in.row(i < first ? i : i + gone);
    std::copy(row.begin(), row.end(), out.row(i).begin());
  }
  forward.logits = std::move(out);
  if (!forward.mask.empty()) {
    const auto begin = forward.mask.begin() + static_cast<std::ptrdiff_t>(first);
    forward.mask.erase(begin, begin + static_cast<std::ptrdiff_t>(gone));
  }
}

std::size_t tokens_max(const Case& input) {
  std::size_t most = 0;
  for (const Request& request : input.history) {
    if (const auto* forward = std::get_if<Forward>(&request))
      most = std::max(most, forward->logits.rows());
  }
  return most;
}

// ---- Simpler values

/// How simple a number is to read: 0, then integers, then dyadic fractions, then the rest; nearer to 0
/// is simpler, and positive simpler than negative.
struct Simplicity {
  int kind;
  double magnitude;
  bool negative;
  auto operator<=>(const Simplicity&) const = default;
};

Simplicity simplicity(double value) {
  const bool negative = std::signbit(value);
  if (std::isnan(value)) return {6, 0.0, false};
  if (std::isinf(value)) return {5, 0.0, negative};
  const double magnitude = std::abs(value);
  if (value == 0.0) return {0, 0.0, negative};
  if (magnitude == std::floor(magnitude) && magnitude < 1e6) return {1, magnitude, negative};
  const double fine = magnitude * 64.0;
  if (fine == std::floor(fine) && magnitude < 1e6) return {2, magnitude, negative};
  return {3, magnitude, negative};
}

/// Values that are simpler than this one, the simplest first.
std::vector<float> simpler_values(float value) {
  std::vector<float> out;
  const auto offer = [&](float candidate) {
    if (simplicity(candidate) < simplicity(value) && std::ranges::find(out, candidate) == out.end())
      out.push_back(candidate);
  };
  for (const float candidate : {0.0f, 1.0f, -1.0f, 2.0f, -2.0f}) offer(candidate);
  if (!std::isfinite(value)) {
    for (const float candidate : {100.0f, -100.0f, 1e30f, -1e30f}) offer(candidate);
    return out;
  }
  const float towards_zero = std::abs(value) > 64.0f ? value : value - std::copysign(1.0f, value);
  for (const float candidate :
       {std::floor(value / 2.0f), std::floor(value), std::ceil(value), towards_zero,
        std::floor(value * 4.0f) / 4.0f, std::floor(value * 64.0f) / 64.0f, -value}) {
    offer(candidate);
  }
  return out;
}

std::vector<std::int64_t> simpler_counts(std::int64_t value) {
  std::vector<std::int64_t> out;
  for (const std::int64_t candidate : {std::int64_t{0}, std::int64_t{1}, value / 2, value - 1}) {
    if (candidate >= 0 && candidate < value && std::ranges::find(out, candidate) == out.end())
      out.push_back(candidate);
  }
  return out;
}

/// The order of the values of a row alone: its distinct values, ascending, become 0, 1, 2, ...
std::vector<float> ranks_of(std::span<const float> row) {
  std::vector<float> sorted(row.begin(), row.end());
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<float> out;
  for (const float value : row)
    out.push_back(static_cast<float>(std::ranges::lower_bound(sorted, value) - sorted.begin()));
  return out;
}

bool has_nan(std::span<const float> row) {
  return std::ranges::any_of(row, [](float value) { return std::isnan(value); });
}

bool is_simpler(std::span<const float> a, std::span<const float> b) {
  bool any = false;
  for (std::size_t j = 0; j < a.size(); ++j) {
    if (simplicity(b[j]) < simplicity(a[j])) return false;
    any = any || simplicity(a[j]) < simplicity(b[j]);
  }
  return any;
}

// ---- The search

class Shrinker {
 public:
  Shrinker(Case input, const StillFails& still_fails, std::size_t attempts)
      : best_(std::move(input)), still_fails_(still_fails), left_(attempts) {}

  Case run() {
    do {
      improved_ = false;
      drop_requests();
      drop_layers();
      drop_ranks();
      drop_tokens();
      drop_experts();
      lower_top_k();
      drop_masks();
      drop_biases();
      simplify_options();
      simplify_requests();
      simplify_rows();
      simplify_values();
      simplify_counts();
      simplify_chunks();
      simplify_salt();
    } while (improved_ && left_ > 0);
    return std::move(best_);
  }

 private:
  bool accept(Case candidate) {
    if (left_ == 0) return false;
    --left_;
    if (!still_fails_(candidate)) return false;
    best_ = std::move(candidate);
    improved_ = true;
    return true;
  }
  bool accept(std::optional<Case> candidate) { return candidate && accept(*std::move(candidate)); }

  /// The best case, changed.
  template <class Change>
  bool accept_change(Change change) {
    Case candidate = best_;
    change(candidate);
    return accept(std::move(candidate));
  }
  /// The best case with one request changed.
  template <class Request_, class Change>
  bool accept_change_at(std::size_t request, Change change) {
    return accept_change([&](Case& c) { change(std::get<Request_>(c.history[request])); });
  }

  /// Tries to take runs of things away, from long to single ones, from the end.
  template <class Size, class Remove>
  void drop_runs(Size size, Remove remove) {
    for (std::size_t run = std::max<std::size_t>(size(), 1); run > 0; run /= 2) {
      for (std::size_t end = size(); end > 0 && left_ > 0;) {
        const std::size_t first = end > run ? end - run : 0;
        remove(first, end);
        end = std::min(first, size());
      }
    }
  }

  void drop_requests() {
    drop_runs([&] { return best_.history.size(); },
              [&](std::size_t first, std::size_t last) { accept(without_requests(best_, first, last)); });
    // What comes in pairs (enter and exit, a forward and its repeat) goes in pairs.
    for (std::size_t i = best_.history.size(); i-- > 0 && left_ > 0;) {
      for (std::size_t j = i; j-- > 0 && left_ > 0;) {
        if (i >= best_.history.size()) break;
        if (best_.history[i].index() != best_.history[j].index()) continue;
        if (accept(without_requests(without_requests(best_, i, i + 1), j, j + 1))) break;
      }
    }
  }

  void drop_layers() {
    for (std::size_t layer = best_.open.model.layers; layer-- > 0;) {
      if (best_.open.model.layers > 1) accept(without_layer(best_, layer));
    }
  }

  void drop_ranks() {
    for (std::size_t rank = best_.open.ranks; rank-- > 0;) {
      if (best_.open.ranks > 1 && !accept(without_rank(best_, rank, false)))
        accept(without_rank(best_, rank, true));
    }
  }

  void drop_tokens() {
    // The same tokens of all forwards first: some forwards repeat others.
    drop_runs([&] { return tokens_max(best_); },
              [&](std::size_t first, std::size_t last) {
                accept_change([&](Case& c) {
                  for_each_of<Forward>(c, [&](Forward& f) { erase_tokens(f, first, last - first); });
                });
              });
    for (std::size_t i = 0; i < best_.history.size(); ++i) {
      if (!std::holds_alternative<Forward>(best_.history[i])) continue;
      drop_runs([&] { return std::get<Forward>(best_.history[i]).logits.rows(); },
                [&](std::size_t first, std::size_t last) {
                  accept_change_at<Forward>(i, [&](Forward& f) { erase_tokens(f, first, last - first); });
                });
    }
  }

  void drop_experts() {
    if (best_.open.model.groups) {
      accept_change([](Case& c) { c.open.model.groups.reset(); });
    }
    // Half of them at once, while that works.
    while (left_ > 0 && !best_.open.model.groups) {
      const std::size_t half = best_.open.model.routed_experts / 2;
      const std::size_t k = best_.open.model.top_k;
      if (half < 2) break;
      if (!accept(without_experts(best_, best_.open.model.routed_experts - half, half, k)) &&
          !accept(without_experts(best_, 0, half, k)))
        break;
    }
    for (std::size_t first = best_.open.model.routed_experts; first > 0 && left_ > 0;) {
      const std::size_t count = group_size(best_.open.model);
      first = first > count ? first - count : 0;
      if (first + count > best_.open.model.routed_experts) continue;
      const std::size_t k = best_.open.model.top_k;
      if (!accept(without_experts(best_, first, count, k)) && k > 1)
        accept(without_experts(best_, first, count, k - 1));
    }
    while (left_ > 0 && narrow_groups()) {
    }
  }

  /// Takes an expert out of every group: any of each where that is not too many to try, else those at one place.
  bool narrow_groups() {
    constexpr std::size_t combinations_max = 64;
    const ModelSpec& model = best_.open.model;
    const std::size_t size = group_size(model);
    if (!model.groups || size < 2) return false;
    std::size_t combinations = 1;
    for (std::size_t g = 0; g < model.groups->n_group && combinations <= combinations_max; ++g) combinations *= size;
    const bool all_alike = combinations > combinations_max;
    for (std::size_t i = 0; i < (all_alike ? size : combinations); ++i) {
      std::vector<std::size_t> places(model.groups->n_group, i % size);
      for (std::size_t g = 0, rest = i; !all_alike && g < places.size(); ++g, rest /= size) places[g] = rest % size;
      if (accept(with_narrower_groups(best_, places))) return true;
    }
    return false;
  }

  void lower_top_k() {
    for (const std::size_t k : {std::size_t{1}, best_.open.model.top_k / 2, best_.open.model.top_k - 1}) {
      if (k >= 1 && k < best_.open.model.top_k) accept_change([&](Case& c) { c.open.model.top_k = k; });
    }
  }

  void drop_masks() {
    for (std::size_t i = 0; i < best_.history.size(); ++i) {
      const auto* forward = std::get_if<Forward>(&best_.history[i]);
      if (forward == nullptr || forward->mask.empty()) continue;
      if (accept_change_at<Forward>(i, [](Forward& f) { f.mask.clear(); })) continue;
      for (std::size_t t = 0; t < std::get<Forward>(best_.history[i]).mask.size(); ++t) {
        if (std::get<Forward>(best_.history[i]).mask[t] == 0)
          accept_change_at<Forward>(i, [&](Forward& f) { f.mask[t] = 1; });
      }
    }
  }

  void drop_biases() {
    if (best_.open.biases && !accept_change([](Case& c) { c.open.biases.reset(); })) {
      simplify_table([](Case& c) -> Biases& { return *c.open.biases; });
    }
    for (std::size_t i = 0; i < best_.history.size(); ++i) {
      if (std::holds_alternative<SetBiases>(best_.history[i]))
        simplify_table([&](Case& c) -> Biases& { return std::get<SetBiases>(c.history[i]).biases; });
    }
  }

  /// `part` finds a table of values in a case.
  template <class Part>
  void simplify_table(Part part) {
    for (std::size_t l = 0; l < part(best_).size(); ++l) {
      for (std::size_t j = 0; j < part(best_)[l].size(); ++j) {
        for (const float value : simpler_values(part(best_)[l][j])) {
          if (accept_change([&](Case& c) { part(c)[l][j] = value; })) break;
        }
      }
    }
  }

  /// Sets an option of the model, the balancer or the conversation to its plain value.
  template <class Part, class Value>
  void simplify_option(Part part, const Value& plain) {
    if (part(best_) != plain) accept_change([&](Case& c) { part(c) = plain; });
  }

  void simplify_options() {
    simplify_option([](Case& c) -> auto& { return c.open.balancer.kind; }, BalancerKind::none);
    simplify_option([](Case& c) -> auto& { return c.open.balancer.estimator; }, Estimator::exact);
    simplify_option([](Case& c) -> auto& { return c.open.balancer.bins; }, BalancerSpec{}.bins);
    simplify_option([](Case& c) -> auto& { return c.open.balancer.rate; }, BalancerSpec{}.rate);
    simplify_option([](Case& c) -> auto& { return c.open.balancer.update; }, Update::step);
    simplify_option([](Case& c) -> auto& { return c.open.model.score; }, ScoreFunction::logit);
    simplify_option([](Case& c) -> auto& { return c.open.model.renormalize; }, true);
    simplify_option([](Case& c) -> auto& { return c.open.model.routed_scale; }, 1.0);
  }

  void simplify_requests() {
    for (std::size_t i = 0; i < best_.history.size(); ++i) {
      if (const auto* forward = std::get_if<Forward>(&best_.history[i])) {
        if (forward->mode == Mode::recompute)
          accept_change_at<Forward>(i, [](Forward& f) { f.mode = Mode::eval; });
      } else if (const auto* step = std::get_if<Step>(&best_.history[i])) {
        if (!step->applied) accept_change_at<Step>(i, [](Step& s) { s.applied = true; });
      } else if (const auto* collector = std::get_if<Collector>(&best_.history[i])) {
        if (!collector->enabled) accept_change_at<Collector>(i, [](Collector& c) { c.enabled = true; });
      }
    }
  }

  bool accept_row(std::size_t request, std::size_t token, std::span<const float> row) {
    const auto& now = std::get<Forward>(best_.history[request]).logits;
    if (!is_simpler(row, now.row(token))) return false;
    return accept_change_at<Forward>(
        request, [&](Forward& f) { std::copy(row.begin(), row.end(), f.logits.row(token).begin()); });
  }

  void simplify_rows() {
    for (std::size_t i = 0; i < best_.history.size(); ++i) {
      if (!std::holds_alternative<Forward>(best_.history[i])) continue;
      // Asked for anew each time: what is accepted replaces the whole case.
      const auto logits = [&]() -> auto& { return std::get<Forward>(best_.history[i]).logits; };
      for (std::size_t t = 0; t < logits().rows() && left_ > 0; ++t) {
        if (accept_row(i, t, std::vector<float>(logits().cols()))) continue;
        const std::vector<float> row(logits().row(t).begin(), logits().row(t).end());
        if (!has_nan(row)) accept_row(i, t, ranks_of(row));
      }
    }
  }

  void simplify_values() {
    for (std::size_t i = 0; i < best_.history.size(); ++i) {
      if (!std::holds_alternative<Forward>(best_.history[i])) continue;
      const auto values = [&] { return std::get<Forward>(best_.history[i]).logits.values(); };
      for (std::size_t at = 0; at < values().size() && left_ > 0; ++at) {
        for (const float value : simpler_values(values()[at])) {
          if (accept_change_at<Forward>(i, [&](Forward& f) { f.logits.values()[at] = value; })) break;
        }
      }
    }
  }

  void simplify_counts() {
    for (std::size_t i = 0; i < best_.history.size(); ++i) {
      if (!std::holds_alternative<MetricsOf>(best_.history[i])) continue;
      const auto counts = [&]() -> Counts& { return std::get<MetricsOf>(best_.history[i]).counts; };
      drop_runs([&] { return counts().size(); },
                [&](std::size_t first, std::size_t last) {
                  accept_change_at<MetricsOf>(i, [&](MetricsOf& of) {
                    of.counts.erase(of.counts.begin() + static_cast<std::ptrdiff_t>(first),
                                    of.counts.begin() + static_cast<std::ptrdiff_t>(last));
                  });
                });
      for (std::size_t l = 0; l < counts().size(); ++l) {
        for (std::size_t j = 0; j < counts()[l].size() && left_ > 0; ++j) {
          while (accept_simpler_count(i, l, j)) {
          }
        }
      }
    }
  }

  bool accept_simpler_count(std::size_t request, std::size_t layer, std::size_t expert) {
    const auto now = std::get<MetricsOf>(best_.history[request]).counts[layer][expert];
    return std::ranges::any_of(simpler_counts(now), [&](std::int64_t value) {
      return accept_change_at<MetricsOf>(request, [&](MetricsOf& of) { of.counts[layer][expert] = value; });
    });
  }

  void simplify_chunks() {
    for (std::size_t i = 0; i < best_.history.size(); ++i) {
      if (!std::holds_alternative<Combine>(best_.history[i])) continue;
      const auto chunks = [&]() -> auto& { return std::get<Combine>(best_.history[i]).chunks; };
      drop_runs([&] { return chunks().size(); },
                [&](std::size_t first, std::size_t last) {
                  accept_change_at<Combine>(i, [&](Combine& combine) {
                    combine.chunks.erase(combine.chunks.begin() + static_cast<std::ptrdiff_t>(first),
                                         combine.chunks.begin() + static_cast<std::ptrdiff_t>(last));
                  });
                });
      drop_metrics(i);
      for (std::size_t c = 0; c < chunks().size(); ++c) {
        for (const std::int64_t value : simpler_counts(chunks()[c].data)) {
          if (accept_change_at<Combine>(i, [&](Combine& combine) { combine.chunks[c].data = value; })) break;
        }
        simplify_metrics(i, c);
      }
    }
  }

  void drop_metrics(std::size_t request) {
    std::set<std::string> keys;
    for (const Chunk& chunk : std::get<Combine>(best_.history[request]).chunks) {
      for (const auto& [key, value] : chunk.metrics) keys.insert(key);
    }
    for (const std::string& key : keys) {
      accept_change_at<Combine>(request, [&](Combine& combine) {
        for (Chunk& chunk : combine.chunks) chunk.metrics.erase(key);
      });
    }
  }

  void simplify_metrics(std::size_t request, std::size_t chunk) {
    const auto metrics = std::get<Combine>(best_.history[request]).chunks[chunk].metrics;
    for (const auto& [key, value] : metrics) {
      for (const float simple : simpler_values(static_cast<float>(value))) {
        if (simplicity(simple) < simplicity(value) &&
            accept_change_at<Combine>(request,
                                      [&](Combine& combine) { combine.chunks[chunk].metrics[key] = simple; }))
          break;
      }
    }
  }

  void simplify_salt() {
    for (const std::uint64_t salt : {0u, 1u, 2u, 3u}) {
      if (salt < best_.salt && accept_change([&](Case& c) { c.salt = salt; })) break;
    }
  }

  Case best_;
  const StillFails& still_fails_;
  std::size_t left_;
  bool improved_ = false;
};

// ---- What does not matter

class Prober {
 public:
  Prober(const Case& input, const StillFails& still_fails, std::size_t attempts)
      : input_(input), still_fails_(still_fails), left_(attempts) {}

  std::set<std::string> run() {
    probe_open();
    for (std::size_t i = 0; i < input_.history.size(); ++i) {
      const std::string pointer = "/requests/" + std::to_string(i + 1);
      if (const auto* forward = std::get_if<Forward>(&input_.history[i])) {
        probe_logits(i, *forward, pointer + "/logits/");
      } else if (const auto* set = std::get_if<SetBiases>(&input_.history[i])) {
        probe_table(set->biases, pointer + "/biases/",
                    [i](Case& c) -> Biases& { return std::get<SetBiases>(c.history[i]).biases; });
      } else if (const auto* of = std::get_if<MetricsOf>(&input_.history[i])) {
        probe_table(of->counts, pointer + "/counts/",
                    [i](Case& c) -> Counts& { return std::get<MetricsOf>(c.history[i]).counts; });
      }
    }
    return std::move(irrelevant_);
  }

 private:
  /// Whether the failure stays under every change.
  template <class... Changes>
  void probe(const std::string& pointer, Changes... changes) {
    if (left_ < sizeof...(changes)) return;
    left_ -= sizeof...(changes);
    const auto stays = [&](auto change) {
      Case candidate = input_;
      change(candidate);
      return still_fails_(candidate);
    };
    if ((stays(changes) && ...)) irrelevant_.insert(pointer);
  }

  void probe_open() {
    const ModelSpec& model = input_.open.model;
    probe("/requests/0/model/renormalize", [](Case& c) { c.open.model.renormalize = !c.open.model.renormalize; });
    probe("/requests/0/model/routed_scale", [&](Case& c) { c.open.model.routed_scale = model.routed_scale * 2; },
          [&](Case& c) { c.open.model.routed_scale = model.routed_scale / 2; });
    const auto other = [&](ScoreFunction score) {
      return [score](Case& c) { c.open.model.score = score; };
    };
    probe("/requests/0/model/score",
          other(model.score == ScoreFunction::sigmoid ? ScoreFunction::softmax : ScoreFunction::sigmoid),
          other(model.score == ScoreFunction::logit ? ScoreFunction::softmax : ScoreFunction::logit));
    if (input_.open.biases) {
      probe_table(*input_.open.biases, "/requests/0/biases/",
                  [](Case& c) -> Biases& { return *c.open.biases; });
    }
  }

  void probe_logits(std::size_t request, const Forward& forward, const std::string& pointer) {
    const auto shifted = [request](std::size_t t, std::size_t j, float by) {
      return [=](Case& c) { std::get<Forward>(c.history[request]).logits(t, j) += by; };
    };
    for (std::size_t t = 0; t < forward.logits.rows(); ++t) {
      for (std::size_t j = 0; j < forward.logits.cols(); ++j) {
        if (!std::isfinite(forward.logits(t, j))) continue;  // no other value is near it
        probe(pointer + std::to_string(t) + "/" + std::to_string(j), shifted(t, j, 1.0f), shifted(t, j, -1.0f));
      }
    }
  }

  template <class Table, class Part>
  void probe_table(const Table& table, const std::string& pointer, Part part) {
    using Value = typename Table::value_type::value_type;
    for (std::size_t l = 0; l < table.size(); ++l) {
      for (std::size_t j = 0; j < table[l].size(); ++j) {
        const Value down = std::is_integral_v<Value> && table[l][j] < 1 ? Value{2} : Value{-1};
        probe(pointer + std::to_string(l) + "/" + std::to_string(j),
              [=](Case& c) { part(c)[l][j] += Value{1}; }, [=](Case& c) { part(c)[l][j] += down; });
      }
    }
  }

  const Case& input_;
  const StillFails& still_fails_;
  std::size_t left_;
  std::set<std::string> irrelevant_;
};

}  // namespace

Case shrink(Case input, const StillFails& still_fails, const ShrinkLimits& limits) {
  return Shrinker(std::move(input), still_fails, limits.attempts).run();
}

std::set<std::string> irrelevant_parts(const Case& input, const StillFails& still_fails, const ShrinkLimits& limits) {
  return Prober(input, still_fails, limits.attempts).run();
}

}  // namespace ballast::props
