#include "core/metrics/moe_metrics.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace ballast {
namespace {

using Layers = std::vector<std::vector<std::int64_t>>;

rc::Gen<Layers> any_layers() {
  return rc::gen::container<Layers>(
      rc::gen::container<std::vector<std::int64_t>>(5, rc::gen::inRange<std::int64_t>(0, 50)));
}

TEST(MoeMetrics, AreThePerLayerFiguresAveragedAndTheirMaximum) {
  const Layers layers = {{4, 0, 0, 0}, {1, 1, 1, 1}, {3, 1}};
  const Metrics expected = {{"e_frac_with_tokens:mean", (0.25 + 1.0 + 1.0) / 3.0},
                            {"e_frac_oversubscribed:mean", (0.25 + 0.0 + 0.5) / 3.0},
                            {"e_max_violation:mean", (3.0 + 0.0 + 0.5) / 3.0},
                            {"e_max_violation:max", 3.0},
                            {"e_min_violation:mean", (-1.0 + 0.0 - 0.5) / 3.0}};
  EXPECT_EQ(moe_metrics(layers), expected);
}

TEST(MoeMetrics, AreTakenPerLayerAndNotFromPooledLoads) {
  // Each layer has collapsed, on different experts; the pool looks perfectly balanced.
  const auto metrics = moe_metrics(Layers{{6, 0}, {0, 6}});
  EXPECT_EQ(metrics.at(metric_key::max_violation_mean), 1.0);
  EXPECT_EQ(metrics.at(metric_key::frac_with_tokens_mean), 0.5);
}

TEST(MoeMetrics, LeaveOutLayersWithoutAssignments) {
  EXPECT_EQ(moe_metrics(Layers{{0, 0}, {3, 1}, {}}), moe_metrics(Layers{{3, 1}}));
  EXPECT_EQ(moe_metrics(Layers{{0, 0}}), Metrics{});
  EXPECT_EQ(moe_metrics(Layers{}), Metrics{});
}

RC_GTEST_PROP(MoeMetrics, HaveExactlyTheFiveKeysOnceThereIsALayer, ()) {
  const auto metrics = moe_metrics(*any_layers());
  std::set<std::string> keys;
  for (const auto& [key, value] : metrics) keys.insert(key);
  const std::set<std::string> five(metric_key::moe.begin(), metric_key::moe.end());
  RC_ASSERT(five.size() == 5u);
  RC_ASSERT(metrics.empty() || keys == five);
}

RC_GTEST_PROP(MoeMetrics, TheMeanIsNoLargerThanTheMaximum, ()) {
  const auto metrics = moe_metrics(*any_layers());
  RC_PRE(!metrics.empty());
  const double max = metrics.at(metric_key::max_violation_max);
  RC_ASSERT(metrics.at(metric_key::max_violation_mean) <= max * (1.0 + 1e-13));
}

}  // namespace
}  // namespace ballast
