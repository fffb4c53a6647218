#include "props/oracles/quantile.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/arithmetic/functions.h"
#include "core/arithmetic/reductions.h"

namespace ballast::props::oracle {

namespace {

std::vector<double> score_row(ScoreFunction function, std::span<const float> logits) {
  std::vector<double> row(logits.begin(), logits.end());
  if (function == ScoreFunction::softmax) arithmetic::softmax(std::vector<double>(row), row);
  if (function == ScoreFunction::sigmoid) {
    for (double& z : row) z = arithmetic::sigmoid(z);
  }
  return row;
}

bool is_valid(const Forward& forward, std::size_t token) {
  return forward.mask.empty() || forward.mask[token] != 0;
}

double largest_magnitude(std::span<const double> values) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

std::vector<double> biased(std::span<const double> scores, std::span<const double> biases) {
  std::vector<double> sums(scores.size());
  std::transform(scores.begin(), scores.end(), biases.begin(), sums.begin(), std::plus<>());
  return sums;
}

/// The largest first.
std::vector<double> descending(std::vector<double> values) {
  std::sort(values.begin(), values.end(), std::greater<>());
  return values;
}

void add_required(Observations& to, const std::vector<double>& row) {
  const double cutoff = descending(biased(row, to.biases))[to.top_k];
  for (std::size_t j = 0; j < to.experts; ++j) to.required[j].push_back(cutoff - row[j]);
}

void add_row(Observations& to, std::vector<double> row) {
  const double largest = largest_magnitude(row);
  to.finite =
      to.finite && std::all_of(row.begin(), row.end(), [](double s) { return std::isfinite(s); });
  to.margin = std::max(to.margin, fp32_margin * largest);
  add_required(to, row);
  to.scores.push_back(std::move(row));
}

struct Bins {
  double low;
  double width;
  std::size_t count;

  std::size_t operator()(double r) const {
    const double position = std::floor((r - low) / width);
    return static_cast<std::size_t>(std::clamp(position, 0.0, static_cast<double>(count - 1)));
  }
};

double histogram_quantile(const Bins& bins, const std::vector<double>& column, double moved_by,
                          const Observations& observed) {
  std::vector<std::int64_t> counts(bins.count);
  for (const double r : column) ++counts[bins(r + moved_by)];
  const auto experts = static_cast<std::int64_t>(observed.experts);
  std::size_t bin = 0;
  std::int64_t before = 0;
  while ((before + counts[bin]) * experts < observed.assignments()) before += counts[bin++];
  const double q = static_cast<double>(observed.assignments()) / static_cast<double>(experts);
  const double fraction = (q - static_cast<double>(before)) / static_cast<double>(counts[bin]);
  return bins.low + (static_cast<double>(bin) + fraction) * bins.width;
}

}  // namespace

std::vector<std::vector<double>> scores(ScoreFunction function, MatrixView<const float> logits) {
  std::vector<std::vector<double>> rows;
  for (std::size_t t = 0; t < logits.rows(); ++t)
    rows.push_back(score_row(function, logits.row(t)));
  return rows;
}

Observations observe(const ModelSpec& model, std::span<const Forward* const> forwards,
                     std::span<const double> biases) {
  Observations observed{.experts = model.routed_experts,
                        .top_k = model.top_k,
                        .biases = {biases.begin(), biases.end()},
                        .scores = {},
                        .required = std::vector<std::vector<double>>(model.routed_experts)};
  for (const Forward* const forward : forwards) {
    for (std::size_t t = 0; t < forward->logits.rows(); ++t) {
      if (is_valid(*forward, t)) add_row(observed, score_row(model.score, forward->logits.row(t)));
    }
  }
  observed.margin += fp32_margin * largest_magnitude(biases);
  for (auto& column : observed.required) std::sort(column.begin(), column.end());
  return observed;
}

std::vector<double> exact_estimate(const Observations& observed) {
  const std::size_t floor_q = observed.tokens() * observed.top_k / observed.experts;
  std::vector<double> estimate;
  for (const auto& column : observed.required) estimate.push_back(column[floor_q]);
  return estimate;
}

double bin_width(std::span<const double> biases, std::size_t bins) {
  const auto [low, high] = std::minmax_element(biases.begin(), biases.end());
  return (*high - *low + 2.0) / static_cast<double>(bins);
}

double range_margin(std::span<const double> biases) {
  return 2.0 * fp32_margin * (1.0 + largest_magnitude(biases));
}

std::vector<Interval> histogram_estimate(const Observations& observed, std::size_t bins) {
  const Bins in{*std::min_element(observed.biases.begin(), observed.biases.end()) - 1.0,
                bin_width(observed.biases, bins), bins};
  // Once for r, once for the place of the bin's edges.
  const double margin = observed.margin + range_margin(observed.biases);
  std::vector<Interval> estimate;
  for (const auto& column : observed.required) {
    estimate.push_back({histogram_quantile(in, column, -margin, observed) - margin,
                        histogram_quantile(in, column, margin, observed) + margin});
  }
  return estimate;
}

double dual_objective(const Observations& observed, std::span<const double> biases) {
  const auto k = static_cast<std::ptrdiff_t>(observed.top_k);
  double best = 0.0;
  for (const auto& row : observed.scores) {
    const auto sorted = descending(biased(row, biases));
    best += std::accumulate(sorted.begin(), sorted.begin() + k, 0.0);
  }
  const double q =
      static_cast<double>(observed.assignments()) / static_cast<double>(observed.experts);
  return best - q * std::accumulate(biases.begin(), biases.end(), 0.0);
}

std::vector<std::int64_t> loads(const std::vector<std::vector<double>>& scores,
                                std::span<const double> biases, std::size_t top_k) {
  std::vector<std::int64_t> loads(biases.size());
  std::vector<std::size_t> order(biases.size());
  for (const auto& row : scores) {
    const auto sums = biased(row, biases);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return sums[a] > sums[b]; });
    for (std::size_t rank = 0; rank < top_k; ++rank) ++loads[order[rank]];
  }
  return loads;
}

}  // namespace ballast::props::oracle
