#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "core/arithmetic/functions.h"
#include "core/balancers/quantile_balancer.h"
#include "props/mutants/altered.h"
#include "props/mutants/families.h"
#include "props/mutants/plain_balancer.h"

namespace ballast::props {

namespace {

// What is estimated: cutoffs, required biases, ranks.

struct BiasedMargin : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  float required(const ObservedToken& token, std::size_t expert) const override {
    return token.cutoff - (token.scores[expert] + biases()[expert]);
  }
};
struct KthCutoff : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  float cutoff(const std::vector<float>& descending) const override {
    return descending[top_k() - 1];
  }
};
struct MidpointCutoff : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  float cutoff(const std::vector<float>& descending) const override {
    return 0.5f * (descending[top_k() - 1] + descending[top_k()]);
  }
};
/// The largest of those not chosen, where no guard leaves one for k = E - 1.
struct NoCutoffAtTheEdge : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  float cutoff(const std::vector<float>& descending) const override {
    if (top_k() + 1 == experts()) return -std::numeric_limits<float>::max();
    return descending[top_k()];
  }
};
struct RequiredInSigmoids : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  float required(const ObservedToken& token, std::size_t expert) const override {
    return arithmetic::sigmoid(token.cutoff) - arithmetic::sigmoid(token.scores[expert]);
  }
};
struct QthRank : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double exact(const std::vector<double>& r) const override {
    return r[std::max<std::size_t>(1, floor_q(r.size())) - 1];
  }
};
struct RankTooHigh : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double exact(const std::vector<double>& r) const override {
    return r[std::min(floor_q(r.size()) + 1, r.size() - 1)];
  }
};
/// q rounded to the nearest integer.
struct RoundedRank : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double exact(const std::vector<double>& r) const override {
    const std::size_t q = (2 * r.size() * top_k() + experts()) / (2 * experts());
    return r[std::min(q, r.size() - 1)];
  }
};
/// q in bf16 is coarse above 256.
struct RankInBf16 : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double exact(const std::vector<double>& r) const override {
    const auto q = static_cast<std::size_t>(in_bf16(static_cast<float>(floor_q(r.size()))));
    return r[std::min(q, r.size() - 1)];
  }
};
/// As a library has it, between the values at ranks q and q + 1.
struct InterpolatedQuantile : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double exact(const std::vector<double>& r) const override {
    const double position =
        static_cast<double>((r.size() - 1) * top_k()) / static_cast<double>(experts());
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, r.size() - 1);
    return r[below] + (position - std::floor(position)) * (r[above] - r[below]);
  }
};
/// q of all rows, padding included, over the required biases of the valid ones.
struct TargetCountsPadding : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  void observe(const RoutedBatch& batch) override {
    rows_ += batch.scores.rows();
    PlainBalancer::observe(batch);
  }
  double exact(const std::vector<double>& r) const override {
    return r[std::min(floor_q(std::max(rows_, r.size())), r.size() - 1)];
  }
  void move() override {
    PlainBalancer::move();
    rows_ = 0;
  }

 private:
  std::size_t rows_ = 0;
};

// Of which tokens.

struct HalfTheTokens : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  bool takes(const RoutedBatch& batch, std::size_t row) const override {
    return row < (batch.scores.rows() + 1) / 2 && PlainBalancer::takes(batch, row);
  }
};
struct LastForwardOnly : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  void observe(const RoutedBatch& batch) override {
    pending().clear();
    PlainBalancer::observe(batch);
  }
};
struct LastTokenTwice : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  void move() override {
    if (!pending().empty()) pending().push_back(ObservedToken(pending().back()));
    PlainBalancer::move();
  }
};
/// The mean of the estimates of parts, each of which weighs alike.
struct MeanOfParts : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  virtual std::size_t part_of(const ObservedToken& token) const = 0;
  std::vector<double> estimate(const ObservedTokens& tokens) const override {
    std::map<std::size_t, ObservedTokens> parts;
    for (const ObservedToken& token : tokens) parts[part_of(token)].push_back(token);
    std::vector<double> mean(experts());
    for (const auto& [number, part] : parts) {
      const auto estimate = PlainBalancer::estimate(part);
      for (std::size_t j = 0; j < mean.size(); ++j) {
        mean[j] += estimate[j] / static_cast<double>(parts.size());
      }
    }
    return mean;
  }
};
struct MeanOfRanks : MeanOfParts {
  using MeanOfParts::MeanOfParts;
  std::size_t part_of(const ObservedToken& token) const override { return token.rank; }
};
struct MeanOfForwards : MeanOfParts {
  using MeanOfParts::MeanOfParts;
  std::size_t part_of(const ObservedToken& token) const override { return token.forward; }
};

// How the biases follow from the estimate.

struct NotCentred : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double centre(const std::vector<double>&) const override { return 0.0; }
};
struct CentredOnMedian : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double centre(const std::vector<double>& estimate) const override {
    auto sorted = estimate;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};
/// Changes biases as they are moved.
struct ChangesMoves : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  virtual float change(float bias, std::size_t expert) const = 0;
  std::vector<float> moved(std::vector<double> estimate) const override {
    auto biases = PlainBalancer::moved(std::move(estimate));
    for (std::size_t j = 0; j < biases.size(); ++j) biases[j] = change(biases[j], j);
    return biases;
  }
};
struct Increments : ChangesMoves {
  using ChangesMoves::ChangesMoves;
  float change(float bias, std::size_t expert) const override { return bias + biases()[expert]; }
};
struct WrongSign : ChangesMoves {
  using ChangesMoves::ChangesMoves;
  float change(float bias, std::size_t) const override { return -bias; }
};
struct MovesInBf16 : ChangesMoves {
  using ChangesMoves::ChangesMoves;
  float change(float bias, std::size_t) const override { return in_bf16(bias); }
};
struct FavoursByIndex : ChangesMoves {
  using ChangesMoves::ChangesMoves;
  float change(float bias, std::size_t expert) const override {
    return bias + 0.01f * static_cast<float>(expert);
  }
};
struct OnlyLowers : ChangesMoves {
  using ChangesMoves::ChangesMoves;
  float change(float bias, std::size_t) const override { return std::min(bias, 0.0f); }
};
struct MovesBounded : ChangesMoves {
  using ChangesMoves::ChangesMoves;
  float change(float bias, std::size_t) const override { return std::clamp(bias, -0.25f, 0.25f); }
};
struct OneStepLate : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  void move() override {
    if (pending().empty()) return;
    if (late_.empty()) late_.assign(biases().begin(), biases().end());
    std::swap(late_, biases_now());
    auto in_force = biases_now();
    PlainBalancer::move();
    late_ = std::exchange(biases_now(), std::move(in_force));
  }

 private:
  std::vector<float> late_;
};
struct SignSteps : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  void move() override {
    if (!pending().empty()) add_signs();
    pending().clear();
  }
};

/// The core's own balancer with other settings than it was opened with.
struct OtherSettings : BuiltInSubject {
  virtual void change(QuantileSettings& settings) = 0;
  std::unique_ptr<Balancer> make_balancer() override {
    if (opened().balancer.kind != BalancerKind::quantile) return BuiltInSubject::make_balancer();
    QuantileSettings settings = quantile_settings();
    change(settings);
    return std::make_unique<QuantileBalancer>(model().routed_experts, model().top_k, settings);
  }
};
struct ChunkMean : OtherSettings {
  void change(QuantileSettings& settings) override {
    settings.estimator = QuantileEstimatorKind::chunk_mean;
  }
};
struct HistogramForExact : OtherSettings {
  void change(QuantileSettings& settings) override {
    settings.estimator = QuantileEstimatorKind::histogram;
  }
};
struct ExactForHistogram : OtherSettings {
  void change(QuantileSettings& settings) override {
    settings.estimator = QuantileEstimatorKind::exact;
  }
};
struct HalfTheBins : OtherSettings {
  void change(QuantileSettings& settings) override {
    settings.bins = std::max<std::size_t>(2, settings.bins / 2);
  }
};
struct Blends : OtherSettings {
  void change(QuantileSettings& settings) override { settings.ema = 0.5; }
};
struct Overshoots : OtherSettings {
  void change(QuantileSettings& settings) override { settings.gain = 2.5; }
};
struct IgnoresForwardCadence : OtherSettings {
  void change(QuantileSettings& settings) override { settings.update = UpdateCadence::step; }
};

/// Observes other scores and cutoffs than the forward had.
struct ChangesObservations : BuiltInSubject {
  virtual void change(Routing<float>& routing) = 0;
  void observe(const Forward& forward, const Routing<float>& routing) override {
    Routing<float> changed = routing;
    change(changed);
    BuiltInSubject::observe(forward, changed);
  }
};
struct CutoffOfRawScores : ChangesObservations {
  void change(Routing<float>& routing) override {
    const std::vector<float> zeros(model().routed_experts);
    routing.selection.cutoffs =
        select_top_k<float>(routing.scores, zeros, model().top_k).cutoffs;
  }
};
struct ScoresInBf16 : ChangesObservations {
  void change(Routing<float>& routing) override {
    for (float& s : routing.scores.values()) s = in_bf16(s);
  }
};

}  // namespace

std::vector<Mutant> quantile_mutants() {
  return {
      mutant<WithBalancer<BiasedMargin>>("biased-margin", "quantile.exact-contract",
                                         {"algorithms 2.9"},
                                         "Takes required biases from score + bias."),
      mutant<WithBalancer<KthCutoff>>("kth-cutoff", "quantile.exact-contract", {"algorithms 2.9"},
                                      "Takes the k-th largest score + bias for the cutoff."),
      mutant<WithBalancer<MidpointCutoff>>(
          "midpoint-cutoff", "quantile.exact-contract", {"algorithms 2.9"},
          "Puts the cutoff between the k-th and the (k+1)-th largest."),
      mutant<WithBalancer<NoCutoffAtTheEdge>>("no-cutoff-at-the-edge", "quantile.exact-contract",
                                              {"M04"}, "Finds no cutoff when k is E - 1."),
      mutant<CutoffOfRawScores>("cutoff-of-raw-scores", "quantile.exact-contract",
                                {"algorithms 2.2"}, "Takes cutoffs of scores without bias."),
      mutant<ScoresInBf16>("margins-in-bf16", "quantile.exact-contract", {"M75", "M150"},
                           "Balances on scores rounded to bf16."),
      mutant<WithBalancer<RequiredInSigmoids>>("required-in-sigmoids", "quantile.row-shift",
                                               {"algorithms 2.6", "M145"},
                                               "Takes required biases in another score space."),
      mutant<WithBalancer<QthRank>>("qth-rank", "quantile.exact-contract", {"algorithms 2.9"},
                                    "Takes the q-th smallest required bias, not the (q+1)-th."),
      mutant<WithBalancer<RankTooHigh>>("rank-too-high", "quantile.exact-contract",
                                        {"algorithms 2.1"},
                                        "Takes the (q+2)-th smallest required bias."),
      mutant<WithBalancer<RoundedRank>>("rounded-rank", "quantile.exact-contract",
                                        {"algorithms 1.4"},
                                        "Rounds q to the nearest integer instead of down."),
      mutant<WithBalancer<RankInBf16>>("rank-in-bf16", "quantile.exact-contract",
                                       {"M25", "algorithms 6"}, "Computes q in bf16."),
      mutant<WithBalancer<InterpolatedQuantile>>("interpolated-quantile",
                                                 "quantile.exact-contract", {"algorithms 2.6"},
                                                 "Takes a library's interpolated quantile."),
      mutant<WithBalancer<TargetCountsPadding>>("target-counts-padding", "balance.padding",
                                                {"M05"}, "Counts rows of padding in q."),
      mutant<WithBalancer<HalfTheTokens>>("half-the-tokens", "balance.micro-batches",
                                          {"M82", "M93"},
                                          "Balances on the first half of every batch."),
      mutant<WithBalancer<LastForwardOnly>>("last-forward-only", "balance.micro-batches",
                                            {"M37", "M93"},
                                            "Balances on the last forward of a step only."),
      mutant<WithBalancer<LastTokenTwice>>("last-token-twice", "balance.duplication",
                                           {"M02", "M43"},
                                           "Lets the last token of a step count twice."),
      mutant<WithBalancer<MeanOfRanks>>("mean-of-ranks", "balance.ranks",
                                        {"algorithms 2.9", "M94", "M96"},
                                        "Takes the mean of the estimates of ranks."),
      mutant<WithBalancer<MeanOfForwards>>("mean-of-forwards", "balance.micro-batches",
                                           {"M09", "M93"},
                                           "Takes the mean of the estimates of forwards."),
      mutant<ChunkMean>("chunk-mean", "quantile.exact-contract", {"algorithms 2.6", "M09"},
                        "Estimates chunk by chunk, as some do, where the pooled step is asked for."),
      mutant<WithBalancer<NotCentred>>("not-centred", "quantile.centred",
                                       {"M18", "algorithms 2.9"}, "Does not centre the biases."),
      mutant<WithBalancer<CentredOnMedian>>("centred-on-median", "quantile.centred",
                                            {"M18", "algorithms 2.2"},
                                            "Centres the biases on their median."),
      mutant<WithBalancer<Increments>>("increments", "drift.no-swing-up",
                                       {"algorithms 2.9", "M11"},
                                       "Adds the estimate to the bias instead of setting it."),
      mutant<WithBalancer<WrongSign>>("wrong-sign", "quantile.dual-descent", {"M12"},
                                      "Stores the negated bias."),
      mutant<WithBalancer<MovesInBf16>>("moves-in-bf16", "quantile.exact-contract",
                                        {"M24", "M73"}, "Stores moved biases in bf16."),
      mutant<WithBalancer<FavoursByIndex>>("favours-by-index", "quantile.expert-permutation",
                                           {"algorithms 2.4"},
                                           "Raises a bias by the number of its expert."),
      mutant<WithBalancer<OnlyLowers>>("only-lowers", "drift.dead-experts",
                                       {"algorithms 2.1"}, "Never lets a bias rise above zero."),
      mutant<WithBalancer<MovesBounded>>("moves-bounded", "quantile.scale", {"M13", "M130"},
                                         "Keeps biases within a quarter of zero."),
      mutant<WithBalancer<OneStepLate>>("one-step-late", "quantile.exact-contract",
                                        {"algorithms 2.7"},
                                        "Puts each move into force one step late."),
      mutant<WithBalancer<SignSteps>>("sign-steps", "drift.recovery", {"M13", "M42", "M127"},
                                      "Moves by a fixed rate where quantiles are asked for."),
      mutant<Blends>("blends", "quantile.exact-contract", {"algorithms 2.7", "M14"},
                     "Blends the estimate with the old bias."),
      mutant<Overshoots>("overshoots", "drift.within-noise", {"algorithms 2.7"},
                         "Moves two and a half times as far as the estimate."),
      mutant<HistogramForExact>("histogram-for-exact", "quantile.exact-contract",
                                {"algorithms 2.4"}, "Answers the histogram's estimate as exact."),
      mutant<ExactForHistogram>("exact-for-histogram", "quantile.histogram-estimate",
                                {"algorithms 2.4"}, "Answers the exact estimate as a histogram's."),
      mutant<HalfTheBins>("half-the-bins", "quantile.histogram-estimate", {"algorithms 2.3"},
                          "Has half as many bins as it was asked for."),
      mutant<IgnoresForwardCadence>("ignores-forward-cadence", "quantile.update-forward",
                                    {"M17", "algorithms 1.4"},
                                    "Moves at the step where each forward should move biases."),
  };
}

}  // namespace ballast::props
