#include "tests/props/laws/faulty_balancer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "core/arithmetic/functions.h"
#include "props/subjects/built_in_subject.h"

namespace ballast::props {

namespace {

using Fault = BalancerFault;

/// 8 significant bits, as bf16 has.
float half_precision(float value) {
  int exponent = 0;
  const float mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::round(mantissa * 256.0f), exponent - 8);
}

struct Token {
  std::vector<float> scores;
  float cutoff;
  std::size_t rank;
  std::size_t forward;
  std::vector<std::int32_t> chosen;
};

/// Balancing in the plainest way.
class PlainBalancer final : public Balancer {
 public:
  PlainBalancer(const Open& open, BalancerKind kind, OnOverflow on_overflow, Fault fault)
      : spec_(open.balancer),
        kind_(kind),
        on_overflow_(on_overflow),
        fault_(fault),
        top_k_(open.model.top_k),
        biases_(open.model.routed_experts),
        range_of_(biases_) {}

  std::span<const float> biases() const override { return biases_; }
  void set_biases(std::span<const float> biases) override {
    biases_.assign(biases.begin(), biases.end());
    range_of_ = biases_;
    pending_.clear();
  }

  void observe(const RoutedBatch& batch) override {
    const std::size_t until =
        fault_ == Fault::half_the_tokens ? (batch.scores.rows() + 1) / 2 : batch.scores.rows();
    if (fault_ == Fault::last_forward_only) pending_.clear();
    for (std::size_t t = 0; t < until; ++t) {
      if (!batch.valid.empty() && batch.valid[t] == 0 && fault_ != Fault::takes_not_finite)
        continue;
      pending_.push_back(token(batch, t));
    }
    ++forwards_;
    if (spec_.update == Update::forward || fault_ == Fault::moves_at_forward) move();
  }

  void end_step(bool applied) override {
    const bool keeps =
        (on_overflow_ == OnOverflow::keep) != (fault_ == Fault::other_overflow_policy);
    if (applied || fault_ == Fault::moves_at_skipped_step) {
      move();
    } else if (!keeps) {
      pending_.clear();
    }
  }

  void save(StateDict&, const std::string&) const override {}
  void load(const StateDict&, const std::string&) override {}
  void drop_pending() { pending_.clear(); }

 private:
  Token token(const RoutedBatch& batch, std::size_t t) const {
    const auto row = batch.scores.row(t);
    std::vector<float> scores(row.begin(), row.end());
    for (float& s : scores) {
      if (fault_ == Fault::other_score_space) s = arithmetic::sigmoid(s);
    }
    const auto chosen = batch.indices.row(t);
    std::vector<float> sums;
    for (std::size_t j = 0; j < scores.size(); ++j) sums.push_back(scores[j] + biases_[j]);
    std::sort(sums.begin(), sums.end(), std::greater<>());
    float cutoff = sums[top_k_];
    if (fault_ == Fault::kth_cutoff) cutoff = sums[top_k_ - 1];
    if (fault_ == Fault::midpoint_cutoff) cutoff = 0.5f * (sums[top_k_ - 1] + sums[top_k_]);
    return {std::move(scores), cutoff, batch.rank, forwards_, {chosen.begin(), chosen.end()}};
  }

  void move() {
    if (fault_ == Fault::never_moves) return;
    if (pending_.empty()) {
      if (fault_ == Fault::moves_from_nothing) biases_[0] += 0.125f;
      return;
    }
    if (fault_ == Fault::counts_batches) pending_.push_back(pending_.back());
    const auto old = biases_;
    if (kind_ == BalancerKind::sign) {
      add_signs();
    } else {
      set(estimate());
    }
    range_of_ = old;
    if (fault_ != Fault::keeps_pending) pending_.clear();
  }

  void add_signs() {
    std::vector<double> load(biases_.size());
    for (const Token& token : pending_) {
      for (const std::int32_t expert : token.chosen) load[static_cast<std::size_t>(expert)] += 1.0;
    }
    const double k = static_cast<double>(top_k_);
    const double experts = static_cast<double>(biases_.size());
    const double target = fault_ == Fault::frequency_target
                              ? k / experts
                              : static_cast<double>(pending_.size()) * k / experts;
    for (std::size_t j = 0; j < biases_.size(); ++j) {
      const double missing = target - load[j];
      const double sign = missing > 0.0 ? 1.0 : missing < 0.0 ? -1.0 : 0.0;
      biases_[j] +=
          static_cast<float>(sign * spec_.rate * (fault_ == Fault::wrong_sign ? -1.0 : 1.0));
    }
    if (fault_ == Fault::legitimate_variant) centre_in_single_precision();
  }

  void centre_in_single_precision() {
    float sum = 0.0f;
    for (const float b : biases_) sum += b;
    for (float& b : biases_) b -= sum / static_cast<float>(biases_.size());
  }

  void set(std::vector<double> bhat) {
    if (fault_ == Fault::legitimate_variant) {
      std::transform(bhat.begin(), bhat.end(), biases_.begin(),
                     [](double b) { return static_cast<float>(b); });
      return centre_in_single_precision();
    }
    const double mean =
        std::accumulate(bhat.begin(), bhat.end(), 0.0) / static_cast<double>(bhat.size());
    for (std::size_t j = 0; j < bhat.size(); ++j) {
      double b = fault_ == Fault::not_centred ? bhat[j] : bhat[j] - mean;
      if (fault_ == Fault::wrong_sign) b = -b;
      if (fault_ == Fault::increment) b += static_cast<double>(biases_[j]);
      if (fault_ == Fault::half_precision)
        b = static_cast<double>(half_precision(static_cast<float>(b)));
      if (fault_ == Fault::by_expert_index) b += 0.01 * static_cast<double>(j);
      biases_[j] = static_cast<float>(b);
    }
  }

  using Key = std::size_t Token::*;

  std::vector<double> estimate() const {
    if (fault_ == Fault::per_rank_mean) return mean_over(&Token::rank);
    if (fault_ == Fault::per_forward_mean) return mean_over(&Token::forward);
    return estimate_of(pending_);
  }

  std::vector<double> mean_over(Key key) const {
    std::map<std::size_t, std::vector<Token>> parts;
    for (const Token& token : pending_) parts[token.*key].push_back(token);
    std::vector<double> mean(biases_.size());
    for (const auto& [number, part] : parts) {
      const auto estimate = estimate_of(part);
      for (std::size_t j = 0; j < mean.size(); ++j)
        mean[j] += estimate[j] / static_cast<double>(parts.size());
    }
    return mean;
  }

  std::vector<double> estimate_of(const std::vector<Token>& tokens) const {
    std::vector<double> bhat;
    for (std::size_t j = 0; j < biases_.size(); ++j) {
      std::vector<double> r;
      for (const Token& token : tokens) r.push_back(static_cast<double>(required(token, j)));
      std::sort(r.begin(), r.end());
      bhat.push_back(spec_.estimator == Estimator::exact ? exact(r) : histogram(r));
    }
    return bhat;
  }

  float required(const Token& token, std::size_t expert) const {
    const float bias = fault_ == Fault::biased_margin ? biases_[expert] : 0.0f;
    return token.cutoff - (token.scores[expert] + bias);
  }

  double exact(const std::vector<double>& r) const {
    const std::size_t assignments = r.size() * top_k_;
    const std::size_t floor_q = assignments / biases_.size();
    if (fault_ == Fault::qth_rank) return r[floor_q == 0 ? 0 : floor_q - 1];
    if (fault_ != Fault::interpolated) return r[floor_q];
    const double position =
        static_cast<double>((r.size() - 1) * top_k_) / static_cast<double>(biases_.size());
    const auto below = static_cast<std::size_t>(position);
    const auto above = std::min(below + 1, r.size() - 1);
    return r[below] + (position - std::floor(position)) * (r[above] - r[below]);
  }

  /// As Megatron-LM and torchtitan do: everything in fp32, and a product instead of a quotient.
  double single_precision_histogram(const std::vector<double>& r) const {
    const float low = *std::min_element(biases_.begin(), biases_.end()) - 1.0f;
    const float high = *std::max_element(biases_.begin(), biases_.end()) + 1.0f;
    const float last = static_cast<float>(spec_.bins - 1);
    const float scale = static_cast<float>(spec_.bins) / (high - low);
    std::vector<float> counts(spec_.bins);
    for (const double value : r) {
      const float bin = std::floor((static_cast<float>(value) - low) * scale);
      counts[static_cast<std::size_t>(std::clamp(bin, 0.0f, last))] += 1.0f;
    }
    const float share = static_cast<float>(top_k_) / static_cast<float>(biases_.size());
    const float q = static_cast<float>(r.size()) * share;
    const std::size_t rank = (r.size() * top_k_ + biases_.size() - 1) / biases_.size();
    float before = 0.0f;
    std::size_t bin = 0;
    while (before + counts[bin] < static_cast<float>(rank)) before += counts[bin++];
    const float fraction = (q - before) / counts[bin];
    return static_cast<double>(low + (static_cast<float>(bin) + fraction) / scale);
  }

  double histogram(const std::vector<double>& r) const {
    if (fault_ == Fault::legitimate_variant) return single_precision_histogram(r);
    const std::vector<float> zeros(biases_.size());
    const auto& of = fault_ == Fault::stale_range   ? range_of_
                     : fault_ == Fault::fixed_range ? zeros
                                                    : biases_;
    const double margin = fault_ == Fault::narrow_range ? 0.5 : 1.0;
    const double low = static_cast<double>(*std::min_element(of.begin(), of.end())) - margin;
    const double high = static_cast<double>(*std::max_element(of.begin(), of.end())) + margin;
    const double width = (high - low) / static_cast<double>(spec_.bins);
    std::vector<double> counts(spec_.bins);
    for (const double value : r) {
      const double bin =
          std::clamp(std::floor((value - low) / width), 0.0, static_cast<double>(spec_.bins - 1));
      counts[static_cast<std::size_t>(bin)] += 1.0;
    }
    const double q = static_cast<double>(r.size() * top_k_) / static_cast<double>(biases_.size());
    const double rank = fault_ == Fault::floor_rank
                            ? std::max(1.0, std::floor(q) + (q == std::floor(q) ? 1.0 : 0.0))
                            : std::ceil(q);
    double before = 0.0;
    std::size_t bin = 0;
    while (bin + 1 < counts.size() && before + counts[bin] < rank) before += counts[bin++];
    const double fraction = fault_ == Fault::middle_of_bin
                                ? 0.5
                                : std::clamp((q - before) / std::max(1.0, counts[bin]), 0.0, 1.0);
    return low + (static_cast<double>(bin) + fraction) * width;
  }

  BalancerSpec spec_;
  BalancerKind kind_;
  OnOverflow on_overflow_;
  Fault fault_;
  std::size_t top_k_;
  std::vector<float> biases_;
  std::vector<float> range_of_;
  std::vector<Token> pending_;
  std::size_t forwards_ = 0;
};

/// The built-in subject around plain balancers.
class FaultySubject final : public BuiltInSubject {
 public:
  FaultySubject(Fault fault, OnOverflow on_overflow)
      : BuiltInSubject("faulty", on_overflow), fault_(fault), on_overflow_(on_overflow) {}

  BalancerKind kind = BalancerKind::none;

 protected:
  std::unique_ptr<Balancer> make_balancer() override {
    if (kind == BalancerKind::none) return BuiltInSubject::make_balancer();
    before_step_.clear();
    return std::make_unique<PlainBalancer>(opened(), kind, on_overflow_, fault_);
  }

  bool observes(const Forward& forward) override {
    if (fault_ == Fault::observes_evaluation && forward.mode == Mode::eval) return true;
    if (fault_ == Fault::observes_recompute && forward.mode == Mode::recompute) return true;
    return forward.mode == Mode::train;
  }

  Routing<float> route(const Forward& forward) override {
    auto biases = std::vector<float>(layer(forward.layer).biases().begin(),
                                     layer(forward.layer).biases().end());
    for (std::size_t j = 0; j < biases.size(); ++j) {
      if (fault_ == Fault::routes_without_bias) biases[j] = 0.0f;
      if (fault_ == Fault::routes_in_half_precision) biases[j] = half_precision(biases[j]);
      if (fault_ == Fault::evaluates_with_other_sign && forward.mode == Mode::eval)
        biases[j] = -biases[j];
      for (std::size_t t = 0; fault_ == Fault::looks_ahead && t < forward.logits.rows(); ++t) {
        biases[j] -= 0.25f * forward.logits(t, j);
      }
    }
    return router().route(forward.logits, biases);
  }

  void observe(const Forward& forward, const Routing<float>& routing) override {
    Forward observed = forward;
    if (fault_ == Fault::observes_padding) observed.mask.clear();
    if (fault_ == Fault::next_layer) observed.layer = (forward.layer + 1) % layers();
    if (fault_ == Fault::first_layer_only && forward.layer > 0) return;
    BuiltInSubject::observe(observed, routing);
  }

  void end_step(bool applied) override {
    before_step_ = BuiltInSubject::biases();
    just_stepped_ = true;
    BuiltInSubject::end_step(applied);
  }

  Biases biases() override {
    const bool old =
        std::exchange(just_stepped_, false) && fault_ == Fault::step_answers_old_biases;
    return old ? before_step_ : BuiltInSubject::biases();
  }

  Snapshot snapshot() override {
    for (std::size_t l = 0; l < layers() && fault_ == Fault::snapshot_clears_pending; ++l) {
      if (auto* const plain = dynamic_cast<PlainBalancer*>(layer(l).balancer.get()))
        plain->drop_pending();
    }
    return BuiltInSubject::snapshot();
  }

 private:
  Fault fault_;
  OnOverflow on_overflow_;
  Biases before_step_;
  bool just_stepped_ = false;
};

/// Takes the sign balancer too, which the built-in subject refuses.
class AnyBalancer final : public Subject {
 public:
  AnyBalancer(Fault fault, OnOverflow on_overflow) : inner_(fault, on_overflow) {}
  const Hello& hello() override { return inner_.hello(); }
  Answer open(const Open& open) override {
    inner_.kind = open.balancer.kind;
    Open as_quantile = open;
    if (open.balancer.kind == BalancerKind::sign)
      as_quantile.balancer.kind = BalancerKind::quantile;
    return inner_.open(as_quantile);
  }
  Answer ask(const Request& request) override { return inner_.ask(request); }

 private:
  FaultySubject inner_;
};

}  // namespace

std::unique_ptr<Subject> faulty_balancer(BalancerFault fault, OnOverflow on_overflow) {
  return std::make_unique<AnyBalancer>(fault, on_overflow);
}

}  // namespace ballast::props
