#include "core/balancers/quantile_estimator.h"

#include <stdexcept>

#include "core/balancers/chunk_mean_estimator.h"
#include "core/balancers/exact_estimator.h"
#include "core/balancers/histogram_estimator.h"
#include "core/balancers/microbatch_mean_estimator.h"

namespace ballast {

std::unique_ptr<QuantileEstimator> make_quantile_estimator(std::size_t experts, std::size_t top_k,
                                                           const QuantileSettings& settings) {
  switch (settings.estimator) {
    case QuantileEstimatorKind::exact:
      return std::make_unique<ExactEstimator>(experts, top_k);
    case QuantileEstimatorKind::histogram:
      return std::make_unique<HistogramEstimator>(experts, top_k, settings.bins);
    case QuantileEstimatorKind::microbatch_mean:
    case QuantileEstimatorKind::sequence_mean:
      return std::make_unique<MicrobatchMeanEstimator>(experts, top_k);
    case QuantileEstimatorKind::chunk_mean:
      return std::make_unique<ChunkMeanEstimator>(experts, top_k);
  }
  throw std::invalid_argument("quantile balancing: there is no such estimator");
}

}  // namespace ballast
