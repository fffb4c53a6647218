#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/balancers/quantile_estimator.h"
#include "core/balancers/required_biases.h"
#include "tests/core/support/selection.h"

/// Short ways to feed the estimators of quantile balancing.
namespace ballast::oracle {

inline constexpr QuantileEstimatorKind all_estimators[] = {
    QuantileEstimatorKind::exact, QuantileEstimatorKind::histogram,
    QuantileEstimatorKind::microbatch_mean, QuantileEstimatorKind::chunk_mean};

inline std::unique_ptr<QuantileEstimator> estimator(QuantileEstimatorKind kind, std::size_t experts,
                                                    std::size_t top_k, std::size_t bins = 100) {
  return make_quantile_estimator(experts, top_k, {.estimator = kind, .bins = bins});
}

/// Routes the scores under the biases and shows the forward to the estimator.
inline void observe(QuantileEstimator& estimator, const Matrix<float>& scores,
                    std::span<const float> biases, std::size_t top_k, std::size_t rank = 0) {
  const auto routed = route(scores, biases, top_k);
  estimator.observe({required_tile(routed.batch(), scores.cols(), top_k), biases, rank});
}

template <class A, class B>
void expect_near(const A& is, const B& should, double tolerance = 1e-6) {
  ASSERT_EQ(is.size(), should.size());
  for (std::size_t j = 0; j < is.size(); ++j)
    EXPECT_NEAR(is[j], should[j], tolerance) << "expert " << j;
}

}  // namespace ballast::oracle
