#include "core/diagnostics/moe_diagnostics.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <new>

namespace ballast {
namespace {

using Counts = std::optional<std::vector<std::int64_t>>;

/// A module that counts what it is told was chosen, as a real one does.
class FakeMoe : public Module, public ExpertLoadSlot {
 public:
  FakeMoe(std::size_t experts, std::size_t top_k) : biases_values(experts, 0.0f), top_k_(top_k) {}

  std::size_t routed_experts() const override { return biases_values.size(); }
  std::size_t top_k() const override { return top_k_; }
  std::span<const float> biases() const override { return biases_values; }
  Counts& expert_load_counts() override { return counts; }
  ExpertLoadSlot* expert_load_slot() override { return this; }

  void forward(const std::vector<std::size_t>& choices) {
    if (!training() || !counts) return;
    for (const std::size_t expert : choices) ++(*counts)[expert];
  }

  Counts counts;
  std::vector<float> biases_values;

 private:
  std::size_t top_k_;
};

/// Offers the slot of what it wraps; `show` puts the wrapped module into the tree as well.
class Wrapper : public Module {
 public:
  explicit Wrapper(FakeMoe& wrapped, bool show = false) : wrapped_(wrapped) {
    if (show) add_module("wrapped", wrapped);
  }
  ExpertLoadSlot* expert_load_slot() override { return &wrapped_; }

 private:
  FakeMoe& wrapped_;
};

/// Forwards through a slot object of its own.
class OwnSlotWrapper : public Module, public ExpertLoadSlot {
 public:
  explicit OwnSlotWrapper(FakeMoe& wrapped) : wrapped_(wrapped) { add_module("wrapped", wrapped); }
  std::size_t routed_experts() const override { return wrapped_.routed_experts(); }
  std::size_t top_k() const override { return wrapped_.top_k(); }
  std::span<const float> biases() const override { return wrapped_.biases(); }
  Counts& expert_load_counts() override { return wrapped_.expert_load_counts(); }
  ExpertLoadSlot* expert_load_slot() override { return this; }

 private:
  FakeMoe& wrapped_;
};

class Tree : public Module {
 public:
  Tree& with(std::string name, Module& child) {
    add_module(std::move(name), child);
    return *this;
  }
};

std::vector<std::string> names(const DiagnosticsSnapshot& snapshot) {
  std::vector<std::string> out;
  for (const auto& [name, record] : snapshot.layers) out.push_back(name);
  return out;
}

/// Two MoE layers between modules that offer nothing.
struct Model {
  FakeMoe first{4, 2}, second{3, 1};
  Tree dense, block, root;

  Model() {
    block.with("moe", first);
    root.with("embedding", dense).with("block", block).with("top", second);
  }
};

// ---- Discovery

TEST(MoeDiagnostics, FindsEveryModuleWithASlotInTheModelsOrder) {
  Model model;
  MoEDiagnostics diagnostics(model.root);
  const auto active = diagnostics.activate();
  EXPECT_EQ(names(diagnostics.snapshot()), (std::vector<std::string>{"block.moe", "top"}));
  EXPECT_FALSE(model.first.counts->empty());
}

TEST(MoeDiagnostics, AWrapperThatOnlyForwardsTheSlotTakesPart) {
  FakeMoe hidden(4, 2);
  Wrapper wrapper(hidden);
  Tree root;
  root.with("layer", wrapper);
  MoEDiagnostics diagnostics(root);
  const auto active = diagnostics.activate();
  hidden.forward({1, 3});
  EXPECT_EQ(diagnostics.snapshot().at("layer").expert_load_counts,
            (std::vector<std::int64_t>{0, 1, 0, 1}));
}

TEST(MoeDiagnostics, ASlotSeenThroughAWrapperAndBelowItIsKeptOnceUnderTheOutermostName) {
  FakeMoe first(4, 2), second(4, 2);
  Wrapper wrapper(first, true);
  OwnSlotWrapper own_slot(second);
  Tree root;
  root.with("a", wrapper).with("b", own_slot).with("again", first);
  MoEDiagnostics diagnostics(root);
  const auto active = diagnostics.activate();
  first.forward({0, 1});
  const auto snapshot = diagnostics.snapshot();
  EXPECT_EQ(names(snapshot), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(snapshot.at("a").tokens, 1);
}

TEST(MoeDiagnostics, TheModelItselfMayOfferTheSlotUnderTheEmptyName) {
  FakeMoe model(2, 1);
  MoEDiagnostics diagnostics(model);
  const auto active = diagnostics.activate();
  EXPECT_EQ(names(diagnostics.snapshot()), std::vector<std::string>{""});
}

TEST(MoeDiagnostics, DisabledKeepsNoneAndTouchesNothing) {
  Model model;
  model.second.counts = std::vector<std::int64_t>{1, 2, 3};  // another's collector
  MoEDiagnostics diagnostics(model.root, false);
  EXPECT_EQ(diagnostics.snapshot(), DiagnosticsSnapshot{});
  {
    const auto active = diagnostics.activate();
    EXPECT_EQ(diagnostics.snapshot(), DiagnosticsSnapshot{});
    EXPECT_FALSE(model.first.counts);
  }
  EXPECT_EQ(model.second.counts, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(MoeDiagnostics, AModelWithoutSlotsGivesNoRecords) {
  Tree dense;
  MoEDiagnostics diagnostics(dense);
  const auto active = diagnostics.activate();
  EXPECT_EQ(diagnostics.snapshot(), DiagnosticsSnapshot{});
}

// ---- Activation

TEST(MoeDiagnostics, GivesAListOfZerosPerExpertAndTakesItAway) {
  Model model;
  MoEDiagnostics diagnostics(model.root);
  {
    const auto active = diagnostics.activate();
    EXPECT_EQ(model.first.counts, (std::vector<std::int64_t>{0, 0, 0, 0}));
    EXPECT_EQ(model.second.counts, (std::vector<std::int64_t>{0, 0, 0}));
  }
  EXPECT_FALSE(model.first.counts);
  EXPECT_FALSE(model.second.counts);
}

TEST(MoeDiagnostics, DeactivatesWhenAnExceptionPassesThrough) {
  Model model;
  MoEDiagnostics diagnostics(model.root);
  const auto train = [&] {
    const auto active = diagnostics.activate();
    model.first.forward({0, 1});
    throw std::bad_alloc();
  };
  EXPECT_THROW(train(), std::bad_alloc);
  EXPECT_FALSE(model.first.counts);
  EXPECT_FALSE(model.second.counts);
}

TEST(MoeDiagnostics, AnActivationMovesAndDeactivatesOnce) {
  Model model;
  MoEDiagnostics diagnostics(model.root);
  auto first = diagnostics.activate();
  auto second = std::move(first);
  first.reset();
  EXPECT_TRUE(model.first.counts);
  second.reset();
  EXPECT_FALSE(model.first.counts);
  static_assert(!std::is_copy_constructible_v<MoEDiagnostics::Activation>);
}

TEST(MoeDiagnostics, TheCollectorsEndDeactivates) {
  Model model;
  {
    MoEDiagnostics diagnostics(model.root);
    diagnostics.enter();
  }
  EXPECT_FALSE(model.first.counts);
}

TEST(MoeDiagnostics, EntersAndExitsAgainAndAgainFromZero) {
  Model model;
  MoEDiagnostics diagnostics(model.root);
  for (int round = 0; round < 3; ++round) {
    diagnostics.enter();
    model.first.forward({0, 2});
    EXPECT_EQ(diagnostics.snapshot().at("block.moe").expert_load_counts,
              (std::vector<std::int64_t>{1, 0, 1, 0}));
    model.first.forward({0, 2});
    diagnostics.exit();
    diagnostics.exit();
    EXPECT_FALSE(model.first.counts);
  }
}

TEST(MoeDiagnostics, RefusesAModuleWithAnActiveCollectorByNameAndLeavesAllAsTheyWere) {
  Model model;
  const Counts others = std::vector<std::int64_t>{5, 0, 7};
  model.second.counts = others;
  const auto* const storage = model.second.counts->data();
  model.first.biases_values = {1.0f, -0.0f, std::numeric_limits<float>::quiet_NaN(), 2.0f};
  const auto bias_bits = [&] { return std::bit_cast<std::uint32_t>(model.first.biases_values[2]); };
  const auto bits = bias_bits();

  MoEDiagnostics diagnostics(model.root);
  try {
    const auto active = diagnostics.activate();
    FAIL() << "was activated";
  } catch (const AlreadyActive& error) {
    EXPECT_NE(std::string(error.what()).find("\"top\""), std::string::npos) << error.what();
  }
  const auto expect_as_before = [&] {
    EXPECT_FALSE(model.first.counts);
    EXPECT_EQ(model.second.counts, others);
    EXPECT_EQ(model.second.counts->data(), storage);
    EXPECT_EQ(bias_bits(), bits);
    EXPECT_TRUE(std::signbit(model.first.biases_values[1]));
  };
  expect_as_before();
  diagnostics.exit();  // never entered: another's list is not taken away
  expect_as_before();
  EXPECT_THROW(diagnostics.snapshot(), std::logic_error);  // nor read and zeroed
  expect_as_before();
}

TEST(MoeDiagnostics, RefusesItselfWhenActiveAndStaysActive) {
  Model model;
  MoEDiagnostics diagnostics(model.root);
  const auto active = diagnostics.activate();
  model.first.forward({1, 2});
  EXPECT_THROW(diagnostics.enter(), AlreadyActive);
  EXPECT_EQ(diagnostics.snapshot().at("block.moe").tokens, 1);
}

TEST(MoeDiagnostics, ASecondCollectorIsRefusedUntilTheFirstHasEnded) {
  Model model;
  MoEDiagnostics first(model.root), second(model.root);
  auto active = first.activate();
  EXPECT_THROW(second.enter(), AlreadyActive);
  active.reset();
  EXPECT_NO_THROW(second.enter());
}

class ImpossiblyLarge : public FakeMoe {
 public:
  ImpossiblyLarge() : FakeMoe(1, 1) {}
  std::size_t routed_experts() const override { throw std::bad_alloc(); }
};

TEST(MoeDiagnostics, LeavesAllAsTheyWereWhenMemoryRunsOutMidway) {
  FakeMoe first(4, 2);
  ImpossiblyLarge second;
  Tree root;
  root.with("first", first).with("second", second);
  MoEDiagnostics diagnostics(root);
  EXPECT_THROW(diagnostics.enter(), std::bad_alloc);
  EXPECT_FALSE(first.counts);
  EXPECT_FALSE(second.counts);
}

TEST(MoeDiagnostics, ASnapshotNeedsAnActiveCollector) {
  Model model;
  MoEDiagnostics diagnostics(model.root);
  EXPECT_THROW(diagnostics.snapshot(), std::logic_error);
  diagnostics.enter();
  EXPECT_NO_THROW(diagnostics.snapshot());
  diagnostics.exit();
  EXPECT_THROW(diagnostics.snapshot(), std::logic_error);
}

// ---- Snapshot

TEST(MoeDiagnostics, ASnapshotIsTheFormulas) {
  Model model;
  model.first.biases_values = {0.25f, -0.5f, 0.0f, 1e-8f};
  MoEDiagnostics diagnostics(model.root);
  const auto active = diagnostics.activate();
  model.first.forward({0, 1, 0, 1, 0, 3, 0, 3});
  const LayerRecord expected{.expert_load_counts = {4, 2, 0, 2},
                             .tokens = 4,
                             .max_load_over_mean = 2.0,
                             .zero_load_experts = 1,
                             .biases = {0.25f, -0.5f, 0.0f, 1e-8f}};
  EXPECT_EQ(diagnostics.snapshot().at("block.moe"), expected);
}

TEST(MoeDiagnostics, WithoutAssignmentsTheBalanceFiguresAreNothing) {
  Model model;
  MoEDiagnostics diagnostics(model.root);
  const auto active = diagnostics.activate();
  const auto record = diagnostics.snapshot().at("top");
  EXPECT_EQ(record.expert_load_counts, (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_EQ(record.tokens, 0);
  EXPECT_EQ(record.max_load_over_mean, std::nullopt);
  EXPECT_EQ(record.zero_load_experts, std::nullopt);
}

TEST(MoeDiagnostics, TokensRoundDown) {
  FakeMoe model(4, 3);
  MoEDiagnostics diagnostics(model);
  const auto active = diagnostics.activate();
  model.forward({0, 1, 2, 3, 3});
  EXPECT_EQ(diagnostics.snapshot().at("").tokens, 1);
}

TEST(MoeDiagnostics, CountsPastTwoToTheThirtyOne) {
  FakeMoe model(2, 1);
  MoEDiagnostics diagnostics(model);
  const auto active = diagnostics.activate();
  const std::int64_t large = std::int64_t{3} << 40;
  *model.counts = {large, 0};
  model.forward({0});
  const auto record = diagnostics.snapshot().at("");
  EXPECT_EQ(record.tokens, large + 1);
  EXPECT_EQ(record.max_load_over_mean, 2.0);
  EXPECT_EQ(record.zero_load_experts, 1);
}

TEST(MoeDiagnostics, EvaluationForwardsAreNotCounted) {
  Model model;
  MoEDiagnostics diagnostics(model.root);
  const auto active = diagnostics.activate();
  model.root.eval();
  model.first.forward({0, 1});
  model.root.train();
  model.first.forward({2, 3});
  EXPECT_EQ(diagnostics.snapshot().at("block.moe").expert_load_counts,
            (std::vector<std::int64_t>{0, 0, 1, 1}));
}

TEST(MoeDiagnostics, ANonfiniteBiasIsNothingInTheRecordAndUntouchedInTheModel) {
  FakeMoe model(4, 1);
  const float infinity = std::numeric_limits<float>::infinity();
  model.biases_values = {std::bit_cast<float>(0x7fc01234u), infinity, -infinity, 0.1f};
  const auto before = model.biases_values;
  MoEDiagnostics diagnostics(model);
  const auto active = diagnostics.activate();
  const auto record = diagnostics.snapshot().at("");
  EXPECT_EQ(record.biases, (std::vector<std::optional<float>>{{}, {}, {}, 0.1f}));
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(model.biases_values[i]),
              std::bit_cast<std::uint32_t>(before[i]));
  }
}

TEST(MoeDiagnostics, ASnapshotZeroesTheCountersInPlaceAndNothingElse) {
  Model model;
  model.first.biases_values = {3.0f, 1.0f, 2.0f, 0.0f};
  MoEDiagnostics diagnostics(model.root);
  const auto active = diagnostics.activate();
  model.first.forward({0, 1});
  diagnostics.snapshot();
  EXPECT_EQ(model.first.counts, (std::vector<std::int64_t>{0, 0, 0, 0}));
  EXPECT_EQ(model.first.biases_values, (std::vector<float>{3.0f, 1.0f, 2.0f, 0.0f}));
  EXPECT_EQ(diagnostics.snapshot().at("block.moe").biases[0], 3.0f);
}

RC_GTEST_PROP(MoeDiagnostics, IntervalsAddUpToTheWholeRunHoweverTheyAreCut, ()) {
  const auto choices =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 5));
  const auto cuts =
      *rc::gen::container<std::vector<bool>>(choices.size(), rc::gen::arbitrary<bool>());
  FakeMoe model(5, 1);
  MoEDiagnostics diagnostics(model);
  const auto active = diagnostics.activate();
  std::vector<std::int64_t> sum(5, 0), whole(5, 0);
  const auto add_snapshot = [&] {
    const auto counts = diagnostics.snapshot().at("").expert_load_counts;
    std::ranges::transform(sum, counts, sum.begin(), std::plus{});
  };
  for (std::size_t i = 0; i < choices.size(); ++i) {
    model.forward({choices[i]});
    ++whole[choices[i]];
    if (cuts[i]) add_snapshot();
  }
  add_snapshot();
  RC_ASSERT(sum == whole);
}

TEST(DiagnosticsSnapshot, NamesALayerItDoesNotHave) {
  EXPECT_THROW(DiagnosticsSnapshot{}.at("block.moe"), std::out_of_range);
}

}  // namespace
}  // namespace ballast
