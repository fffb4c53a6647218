// The laws of metrics, quantile balancing, training interplay and drift: correct subjects keep
// them, and each of them is broken by a fault it is about.

#include <gtest/gtest.h>

#include <set>

#include "props/laws/families.h"
#include "props/subjects/built_in_subject.h"
#include "tests/props/laws/faulty_balancer.h"
#include "tests/props/laws/faulty_reporter.h"
#include "tests/props/support/trials.h"

namespace ballast::props {
namespace {

const std::vector<Law>& laws() {
  static const std::vector<Law> all = [] {
    std::vector<Law> together;
    for (const auto& family : {metrics_laws(), quantile_laws(), interplay_laws(), drift_laws()}) {
      together.insert(together.end(), family.begin(), family.end());
    }
    return together;
  }();
  return all;
}

constexpr int cases_kept = 300;
constexpr int cases_to_break = 2000;

void expect_kept(Subject& subject) {
  for (const Law& law : laws()) {
    const Trials trials = try_law(law, subject, cases_kept);
    EXPECT_FALSE(trials.broken) << describe(law, *trials.broken);
    EXPECT_EQ(trials.unsupported, 0) << law.id;
    EXPECT_LT(trials.discarded, cases_kept / 4) << law.id;
  }
}

TEST(BalancingLaws, AreKeptByAPlainBalancerThatHasTheSignRuleToo) {
  expect_kept(*faulty_balancer(BalancerFault::none));
}

TEST(BalancingLaws, AreKeptByOtherArithmeticAndCentredSigns) {
  expect_kept(*faulty_balancer(BalancerFault::legitimate_variant));
}

TEST(BalancingLaws, AreKeptWhenSkippedStepsAreKeptToo) {
  expect_kept(*faulty_balancer(BalancerFault::none, OnOverflow::keep));
  BuiltInSubject subject("keeps", OnOverflow::keep);
  for (const Law& law : laws()) {
    const Trials trials = try_law(law, subject, cases_kept);
    EXPECT_FALSE(trials.broken) << describe(law, *trials.broken);
  }
}

TEST(BalancingLaws, LeaveASubjectThatOpensNothingUnjudged) {
  class Unable final : public Subject {
    const Hello& hello() override { return hello_; }
    Answer open(const Open&) override { return Refusal{"unsupported", "nothing"}; }
    Answer ask(const Request&) override { return Refusal{"unsupported", "nothing"}; }
    Hello hello_;
  } subject;
  for (const Law& law : laws()) {
    const Trials trials = try_law(law, subject, 20);
    EXPECT_FALSE(trials.broken) << law.id;
    EXPECT_EQ(trials.held, 0) << law.id;
  }
}

template <class Fault>
struct Break {
  const char* law;
  Fault fault;
};

using enum BalancerFault;
using enum ReporterFault;

constexpr Break<BalancerFault> balancer_breaks[] = {
    {"quantile.exact-contract", biased_margin},
    {"quantile.exact-contract", increment},
    {"quantile.exact-contract", wrong_sign},
    {"quantile.exact-contract", kth_cutoff},
    {"quantile.exact-contract", midpoint_cutoff},
    {"quantile.exact-contract", qth_rank},
    {"quantile.exact-contract", interpolated},
    {"quantile.exact-contract", per_forward_mean},
    {"quantile.exact-contract", last_forward_only},
    {"quantile.exact-contract", half_the_tokens},
    {"quantile.exact-contract", half_precision},
    {"quantile.exact-contract", observes_evaluation},
    {"quantile.exact-contract", keeps_pending},
    {"quantile.histogram-estimate", biased_margin},
    {"quantile.histogram-estimate", stale_range},
    {"quantile.histogram-estimate", narrow_range},
    {"quantile.histogram-estimate", floor_rank},
    {"quantile.histogram-estimate", middle_of_bin},
    {"quantile.histogram-estimate", per_forward_mean},
    {"quantile.histogram-rank", biased_margin},
    {"quantile.histogram-rank", narrow_range},
    {"quantile.histogram-occupancy", biased_margin},
    {"quantile.histogram-occupancy", wrong_sign},
    {"quantile.centred", not_centred},
    {"quantile.dual-descent", wrong_sign},
    {"quantile.dual-descent", increment},
    {"quantile.update-forward", never_moves},
    {"quantile.update-forward", moves_from_nothing},
    {"quantile.expert-permutation", by_expert_index},
    {"quantile.bias-shift", fixed_range},
    {"quantile.histogram-estimate", fixed_range},
    {"balance.in-force", routes_in_half_precision},
    {"quantile.bias-shift", biased_margin},
    {"quantile.row-shift", other_score_space},
    {"quantile.scale", other_score_space},
    {"quantile.scale", by_expert_index},
    {"balance.sign-rule", frequency_target},
    {"balance.sign-rule", wrong_sign},
    {"balance.sign-rule", observes_evaluation},
    {"balance.direction", wrong_sign},
    {"balance.direction", next_layer},
    {"balance.liveness", never_moves},
    {"balance.liveness", frequency_target},
    {"balance.liveness", first_layer_only},
    {"balance.ranks", per_rank_mean},
    {"balance.padding", observes_padding},
    {"balance.recompute", observes_recompute},
    {"balance.in-force", routes_without_bias},
    {"balance.in-force", evaluates_with_other_sign},
    {"balance.in-force", step_answers_old_biases},
    {"balance.fixed-within-step", moves_at_forward},
    {"balance.causality", looks_ahead},
    {"balance.causality", moves_at_forward},
    {"balance.micro-batches", per_forward_mean},
    {"balance.micro-batches", half_the_tokens},
    {"balance.micro-batches", moves_at_forward},
    {"balance.rank-split", per_rank_mean},
    {"balance.duplication", counts_batches},
    {"balance.nothing-observed", moves_from_nothing},
    {"balance.nothing-observed", keeps_pending},
    {"balance.finite", takes_not_finite},
    {"interplay.step-answer", step_answers_old_biases},
    {"interplay.once-per-step", keeps_pending},
    {"interplay.once-per-step", moves_from_nothing},
    {"interplay.skipped-step", moves_at_skipped_step},
    {"interplay.overflow-policy", other_overflow_policy},
    {"interplay.reading-loads", snapshot_clears_pending},
    {"interplay.train-eval", evaluates_with_other_sign},
    {"interplay.layers-apart", next_layer},
    {"drift.within-noise", never_moves},
    {"drift.within-noise", wrong_sign},
    {"drift.within-noise", biased_margin},
    {"drift.within-noise", increment},
    {"drift.no-swing-up", increment},
    {"drift.recovery", never_moves},
    {"drift.recovery", increment},
    {"drift.dead-experts", never_moves},
};

constexpr Break<ReporterFault> reporter_breaks[] = {
    {"metrics.definitions", tokens_as_divisor},
    {"metrics.definitions", over_the_wrong_axis},
    {"metrics.definitions", weak_oversubscription},
    {"metrics.definitions", counts_in_32_bits},
    {"metrics.per-layer", pooled_layers},
    {"metrics.per-layer", sum_over_layers},
    {"metrics.bounds", weak_oversubscription},
    {"metrics.bounds", last_expert_is_lost},
    {"metrics.bounds", tokens_as_divisor},
    {"metrics.anchors", tokens_as_divisor},
    {"metrics.anchors", weak_oversubscription},
    {"metrics.skew", sample_is_clipped},
    {"metrics.order", shares_sorted_by_index},
    {"metrics.order", last_expert_is_lost},
    {"metrics.scale", counts_in_32_bits},
    {"metrics.no-assignments", empty_layers_count},
    {"metrics.no-assignments", empty_layers_are_nan},
    {"snapshot.definitions", tokens_are_assignments},
    {"snapshot.definitions", mean_over_used_experts},
    {"snapshot.definitions", zeros_without_assignments},
    {"snapshot.definitions", zero_load_means_at_most_one},
    {"snapshot.biases", biases_of_zeros},
    {"snapshot.nonfinite-biases", nonfinite_as_zero},
    {"combine.rules", unweighted_mean},
    {"combine.rules", slack_of_minimum},
    {"combine.rules", last_unique},
    {"combine.keys", keys_of_any_chunk},
    {"combine.keys", keeps_unknown},
    {"combine.order", weighs_first_chunk_double},
    {"combine.order", ordered_hash},
    {"combine.single", slack_of_one_is_itself},
    {"combine.no-data", zero_data_gives_zero},
    {"combine.malformed-key", takes_any_key},
    {"combine.hash", ordered_hash},
    {"combine.hash", hash_of_sum},
    {"combine.nan", nan_is_skipped},
};

TEST(BalancingLaws, AreBrokenByTheBalancerFaultsTheyAreAbout) {
  for (const auto& [id, fault] : balancer_breaks) {
    EXPECT_TRUE(try_law(law_of(id), *faulty_balancer(fault), cases_to_break).broken)
        << id << ", fault " << static_cast<int>(fault);
  }
}

TEST(BalancingLaws, AreBrokenByTheReporterFaultsTheyAreAbout) {
  for (const auto& [id, fault] : reporter_breaks) {
    EXPECT_TRUE(try_law(law_of(id), *faulty_reporter(fault), cases_to_break).broken)
        << id << ", fault " << static_cast<int>(fault);
  }
}

TEST(BalancingLaws, AreEachBrokenBySomething) {
  std::set<std::string> broken = {"interplay.interval-counts"};  // see the next test
  for (const auto& entry : balancer_breaks) broken.insert(entry.law);
  for (const auto& entry : reporter_breaks) broken.insert(entry.law);
  for (const Law& law : laws()) EXPECT_TRUE(broken.contains(law.id)) << law.id;
}

/// A collector whose counters go back to zero at every step, as if they were the balancer's.
class ForgetsAtSteps final : public BuiltInSubject {
  void end_step(bool applied) override {
    BuiltInSubject::end_step(applied);
    for (std::size_t l = 0; l < layers(); ++l) {
      if (auto& counts = layer(l).expert_load_counts()) std::ranges::fill(*counts, 0);
    }
  }
};

TEST(BalancingLaws, SeeCountersThatStepsReset) {
  ForgetsAtSteps subject;
  EXPECT_TRUE(try_law(law_of("interplay.interval-counts"), subject, cases_to_break).broken);
}

}  // namespace
}  // namespace ballast::props
