#include "props/mutants/plain_balancer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace ballast::props {

PlainBalancer::PlainBalancer(const Open& open, OnOverflow on_overflow)
    : spec_(open.balancer),
      on_overflow_(on_overflow),
      top_k_(open.model.top_k),
      biases_(open.model.routed_experts) {}

void PlainBalancer::set_biases(std::span<const float> biases) {
  biases_.assign(biases.begin(), biases.end());
  pending_.clear();
}

void PlainBalancer::observe(const RoutedBatch& batch) {
  for (std::size_t t = 0; t < batch.scores.rows(); ++t) {
    if (takes(batch, t)) pending_.push_back(token(batch, t));
  }
  ++forwards_;
  if (spec_.update == Update::forward) move();
}

void PlainBalancer::end_step(bool applied) {
  if (applied) {
    move();
  } else if (on_overflow_ == OnOverflow::discard) {
    pending_.clear();
  }
}

void PlainBalancer::save(StateDict& state, const std::string& prefix) const {
  state.put(prefix + "biases", biases_);
}

void PlainBalancer::load(const StateDict& state, const std::string& prefix) {
  set_biases(state.get<float>(prefix + "biases", biases_.size()));
}

double PlainBalancer::smallest_bias() const {
  return static_cast<double>(*std::ranges::min_element(biases_));
}

double PlainBalancer::largest_bias() const {
  return static_cast<double>(*std::ranges::max_element(biases_));
}

bool PlainBalancer::takes(const RoutedBatch& batch, std::size_t row) const {
  return batch.valid.empty() || batch.valid[row] != 0;
}

ObservedToken PlainBalancer::token(const RoutedBatch& batch, std::size_t row) const {
  const auto scores = batch.scores.row(row);
  const auto chosen = batch.indices.row(row);
  ObservedToken token{.scores = {scores.begin(), scores.end()},
                      .chosen = {chosen.begin(), chosen.end()},
                      .rank = batch.rank,
                      .forward = forwards_};
  if (top_k_ == experts()) return token;  // only the sign rule is asked for this
  std::vector<float> sums(token.scores);
  for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += biases_[j];
  std::ranges::sort(sums, std::greater{});
  token.cutoff = cutoff(sums);
  return token;
}

void PlainBalancer::move() {
  if (pending_.empty()) return;
  if (spec_.kind == BalancerKind::sign) {
    add_signs();
  } else {
    biases_ = moved(estimate(pending_));
  }
  pending_.clear();
}

std::vector<double> PlainBalancer::loads(const ObservedTokens& tokens) const {
  std::vector<double> loads(experts());
  for (const ObservedToken& token : tokens) {
    for (const std::int32_t expert : token.chosen) loads[static_cast<std::size_t>(expert)] += 1.0;
  }
  return loads;
}

void PlainBalancer::add_signs() {
  const std::vector<double> load = loads(pending_);
  const double mean =
      std::accumulate(load.begin(), load.end(), 0.0) / static_cast<double>(load.size());
  for (std::size_t j = 0; j < load.size(); ++j) {
    biases_[j] += static_cast<float>(direction(mean, load[j]) * spec_.rate);
  }
}

double PlainBalancer::direction(double mean, double load) const {
  return load < mean ? 1.0 : load > mean ? -1.0 : 0.0;
}

std::vector<double> PlainBalancer::estimate(const ObservedTokens& tokens) const {
  std::vector<double> bhat;
  for (std::size_t j = 0; j < experts(); ++j) {
    std::vector<double> r;
    for (const ObservedToken& token : tokens) {
      r.push_back(static_cast<double>(required(token, j)));
    }
    std::ranges::sort(r);
    bhat.push_back(spec_.estimator == Estimator::exact ? exact(r) : histogram(r));
  }
  return bhat;
}

double PlainBalancer::histogram(const std::vector<double>& r) const {
  const double width = (high() - low()) / static_cast<double>(spec_.bins);
  std::vector<double> counts(spec_.bins);
  for (const double value : r) {
    double& count = counts[static_cast<std::size_t>(bin_of((value - low()) / width))];
    count = counted(count);
  }
  const double q = static_cast<double>(r.size() * top_k_) / static_cast<double>(experts());
  double before = 0.0;
  std::size_t bin = 0;
  while (bin + 1 < counts.size() && before + counts[bin] < rank(q)) before += counts[bin++];
  return low() + (static_cast<double>(bin) + fraction(q, before, counts[bin])) * width;
}

double PlainBalancer::bin_of(double position) const {
  return std::clamp(std::floor(position), 0.0, static_cast<double>(spec_.bins - 1));
}

double PlainBalancer::rank(double q) const {
  return std::ceil(q);
}

double PlainBalancer::fraction(double q, double before, double own) const {
  return std::clamp((q - before) / own, 0.0, 1.0);
}

double PlainBalancer::centre(const std::vector<double>& estimate) const {
  return std::accumulate(estimate.begin(), estimate.end(), 0.0) /
         static_cast<double>(estimate.size());
}

std::vector<float> PlainBalancer::moved(std::vector<double> estimate) const {
  const double mean = centre(estimate);
  std::vector<float> biases;
  for (const double b : estimate) biases.push_back(static_cast<float>(b - mean));
  return biases;
}

}  // namespace ballast::props
