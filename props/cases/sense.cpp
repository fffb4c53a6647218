#include "props/cases/sense.h"

#include <algorithm>
#include <cstring>

namespace ballast::props {

namespace {

bool fits(const Biases& biases, const ModelSpec& model) {
  return biases.size() == model.layers && std::ranges::all_of(biases, [&](const auto& row) {
           return row.size() == model.routed_experts;
         });
}

/// Equal to the bit, so that a row of NaNs repeats itself.
bool same_bits(const Matrix<float>& a, const Matrix<float>& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         (a.values().empty() || std::memcmp(a.data(), b.data(), a.values().size_bytes()) == 0);
}

/// Follows a history as far as sense goes.
class SenseOfHistory {
 public:
  explicit SenseOfHistory(const Open& open) : open_(open) {}

  bool take(const Forward& f) {
    const bool shaped = f.layer < open_.model.layers && f.rank < open_.ranks &&
                        (f.logits.rows() == 0 || f.logits.cols() == open_.model.routed_experts) &&
                        (f.mask.empty() || f.mask.size() == f.logits.rows());
    if (!shaped) return false;
    if (f.mode == Mode::train) trained_.push_back(&f);
    return f.mode != Mode::recompute || std::ranges::any_of(trained_, [&](const Forward* t) {
             return t->layer == f.layer && t->rank == f.rank && t->mask == f.mask &&
                    same_bits(t->logits, f.logits);
           });
  }
  bool take(const SetBiases& request) { return fits(request.biases, open_.model); }
  bool take(const Collector& request) {
    const bool enters = request.action == CollectorAction::enter;
    if (enters == active_) return false;
    active_ = request.action != CollectorAction::exit;
    return true;
  }
  bool take(const Save&) {
    ++saves_;
    return true;
  }
  bool take(const Load& request) { return request.slot < saves_; }
  bool take(const auto&) { return true; }

 private:
  const Open& open_;
  std::vector<const Forward*> trained_;
  std::size_t saves_ = 0;
  bool active_ = false;
};

bool makes_sense(const Open& open) {
  const ModelSpec& model = open.model;
  return model.layers > 0 && open.ranks > 0 && model.top_k > 0 &&
         model.top_k <= model.routed_experts && (!open.biases || fits(*open.biases, model));
}

Forward without_masked_rows(const Forward& forward) {
  Forward kept = forward;
  kept.mask = {};
  const auto valid = static_cast<std::size_t>(
      std::ranges::count_if(forward.mask, [](std::uint8_t v) { return v != 0; }));
  kept.logits = Matrix<float>(valid, forward.logits.cols());
  for (std::size_t t = 0, row = 0; t < forward.mask.size(); ++t) {
    if (forward.mask[t] != 0)
      std::ranges::copy(forward.logits.row(t), kept.logits.row(row++).begin());
  }
  return kept;
}

bool can_follow(const Request& request, const std::set<Capability>& supports) {
  using enum Capability;
  if (const auto* forward = std::get_if<Forward>(&request)) {
    return forward->mode == Mode::eval ||
           supports.contains(forward->mode == Mode::train ? balance : recompute);
  }
  if (std::holds_alternative<Collector>(request)) return supports.contains(collect);
  if (std::holds_alternative<MetricsOf>(request)) return supports.contains(metrics);
  if (std::holds_alternative<Combine>(request)) return supports.contains(combine);
  if (std::holds_alternative<Save>(request) || std::holds_alternative<Load>(request)) {
    return supports.contains(state);
  }
  return supports.contains(balance);
}

}  // namespace

bool makes_sense(const Case& input) {
  if (!makes_sense(input.open)) return false;
  SenseOfHistory sense(input.open);
  return std::ranges::all_of(input.history, [&](const Request& request) {
    return std::visit([&](const auto& r) { return sense.take(r); }, request);
  });
}

bool needs_adapting(const std::set<Capability>& supports) {
  using enum Capability;
  return !std::ranges::includes(
      supports, std::set{route, balance, collect, metrics, combine, state, mask, recompute, ranks});
}

Case adapted(Case input, const std::set<Capability>& supports) {
  std::erase_if(input.history,
                [&](const Request& request) { return !can_follow(request, supports); });
  if (!supports.contains(Capability::ranks)) input.open.ranks = 1;
  for (Request& request : input.history) {
    auto* forward = std::get_if<Forward>(&request);
    if (forward == nullptr) continue;
    if (!supports.contains(Capability::ranks)) forward->rank = 0;
    if (!supports.contains(Capability::mask) && !forward->mask.empty()) {
      *forward = without_masked_rows(*forward);
    }
  }
  return input;
}

}  // namespace ballast::props
