#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>

#include "core/balancers/load_bias_balancer.h"
#include "tests/core/support/bits.h"
#include "tests/core/support/load_cases.h"

/// What every balancer that moves biases by loads has to keep, as checks for its own test file.
namespace ballast::oracle {

using MakeLoadBias = std::function<std::unique_ptr<LoadBiasBalancer>(
    std::size_t experts, const LoadBiasSettings& settings)>;

inline void expect_pooled_counts(const MakeLoadBias& make) {
  const auto whole = make(3, {});
  const auto split = make(3, {});
  for (int i = 0; i < 3; ++i) {
    observe(*whole, {5, 3, 1});
    whole->end_step(true);
    observe(*split, {0, 3, 0}, 1);
    observe(*split, {5, 0, 0}, 0);
    observe(*split, {0, 0, 1}, 1);
    split->end_step(true);
    EXPECT_EQ(bits(split->biases()), bits(whole->biases()));
  }
}

inline void expect_stillness_without_assignments(const MakeLoadBias& make) {
  const auto balancer = make(2, {});
  step(*balancer, {3, 1});
  const auto before = bits(balancer->biases());
  auto padding = top_1_tokens({4, 0});
  padding.valid.assign(4, 0);
  balancer->observe(padding.batch());
  balancer->end_step(true);
  balancer->end_step(true);
  EXPECT_EQ(bits(balancer->biases()), before);
}

inline void expect_skipped_steps_as_set(const MakeLoadBias& make) {
  const auto discarding = make(2, {});
  const auto keeping = make(2, {.on_skipped_step = SkippedStep::keep});
  const auto plain = make(2, {});
  const auto pooled = make(2, {});
  for (auto* balancer : {discarding.get(), keeping.get()}) {
    observe(*balancer, {6, 0});
    balancer->end_step(false);
    EXPECT_EQ(bits(balancer->biases()), bits(std::vector<float>{0, 0}));
    step(*balancer, {0, 4});
  }
  step(*plain, {0, 4});
  step(*pooled, {6, 4});
  EXPECT_EQ(bits(discarding->biases()), bits(plain->biases()));
  EXPECT_EQ(bits(keeping->biases()), bits(pooled->biases()));
  EXPECT_NE(bits(keeping->biases()), bits(discarding->biases()));
}

inline void expect_moves_at_forwards(const MakeLoadBias& make) {
  const auto by_forward = make(2, {.update = UpdateCadence::forward});
  const auto by_step = make(2, {});
  observe(*by_forward, {3, 1});
  EXPECT_EQ(bits(by_forward->biases()), bits(step(*by_step, {3, 1})));
  observe(*by_forward, {0, 1});
  step(*by_step, {0, 1});
  by_forward->end_step(false);
  EXPECT_EQ(bits(by_forward->biases()), bits(by_step->biases()));
}

/// Pending counts included.
inline void expect_restored_to_the_bit(const MakeLoadBias& make) {
  const auto original = make(3, {});
  const auto restored = make(3, {});
  step(*original, {5, 1, 0});
  observe(*original, {1, 1, 2});
  StateDict state;
  original->save(state, "layer.");
  restored->load(StateDict::from_bytes(state.to_bytes()), "layer.");
  for (const Counts& loads : {Counts{0, 3, 1}, Counts{2, 2, 2}, Counts{9, 0, 0}}) {
    EXPECT_EQ(bits(step(*restored, loads)), bits(step(*original, loads)));
  }
}

inline void expect_foreign_states_refused(const MakeLoadBias& make) {
  const auto balancer = make(2, {});
  step(*balancer, {3, 1});
  const auto before = bits(balancer->biases());
  StateDict larger, negative, pending;
  make(3, {})->save(larger, "");
  balancer->save(negative, "");
  negative.put("counts", Counts{-1, 1});
  EXPECT_THROW(balancer->load({}, ""), std::out_of_range);
  EXPECT_THROW(balancer->load(larger, ""), std::invalid_argument);
  EXPECT_THROW(balancer->load(negative, ""), std::invalid_argument);
  EXPECT_EQ(bits(balancer->biases()), before);

  observe(*balancer, {1, 0});
  balancer->save(pending, "");
  const auto by_forward = make(2, {.update = UpdateCadence::forward});
  EXPECT_THROW(by_forward->load(pending, ""), std::invalid_argument);
}

inline void expect_wrong_observations_refused(const MakeLoadBias& make) {
  const auto balancer = make(2, {});
  auto routed = top_1_tokens({2, 1});
  routed.indices(1, 0) = 2;
  EXPECT_THROW(balancer->observe(routed.batch()), std::invalid_argument);
  routed.indices(1, 0) = -2;
  EXPECT_THROW(balancer->observe(routed.batch()), std::invalid_argument);
  routed.valid[1] = 0;
  routed.valid.pop_back();
  EXPECT_THROW(balancer->observe(routed.batch()), std::invalid_argument);
  EXPECT_EQ(balancer->pending_counts()[0] + balancer->pending_counts()[1], 0);
}

inline void expect_given_biases_kept(const MakeLoadBias& make) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto balancer = make(3, {});
  observe(*balancer, {9, 0, 0});
  balancer->set_biases(std::vector<float>{-0.0f, infinity, 2.0f});
  balancer->end_step(true);  // what was pending is dropped
  EXPECT_EQ(bits(balancer->biases()), bits(std::vector<float>{-0.0f, infinity, 2.0f}));
  EXPECT_EQ(step(*balancer, {1, 2, 3})[1], infinity);
  EXPECT_THROW(balancer->set_biases(std::vector<float>(2)), std::invalid_argument);
}

inline void expect_what_all_load_balancers_keep(const MakeLoadBias& make) {
  expect_pooled_counts(make);
  expect_stillness_without_assignments(make);
  expect_skipped_steps_as_set(make);
  expect_moves_at_forwards(make);
  expect_restored_to_the_bit(make);
  expect_foreign_states_refused(make);
  expect_wrong_observations_refused(make);
  expect_given_biases_kept(make);
}

}  // namespace ballast::oracle
