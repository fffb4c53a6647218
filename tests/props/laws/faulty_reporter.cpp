#include "tests/props/laws/faulty_reporter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/metrics/moe_metrics.h"
#include "props/subjects/built_in_subject.h"

namespace ballast::props {

namespace {

using Fault = ReporterFault;
using Figures = std::map<std::string, double>;

class FaultyReporter final : public BuiltInSubject {
 public:
  explicit FaultyReporter(Fault fault) : BuiltInSubject("faulty"), fault_(fault) {}

 protected:
  Figures metrics(const Counts& counts) override {
    Figures figures = BuiltInSubject::metrics(changed(counts));
    if (fault_ == Fault::tokens_as_divisor) figures[metric_key::max_violation_mean] += 1.0;
    if (fault_ == Fault::sum_over_layers) {
      figures[metric_key::min_violation_mean] *= static_cast<double>(counts.size());
    }
    if (fault_ == Fault::sample_is_clipped && figures[metric_key::max_violation_mean] < 0.5) {
      figures[metric_key::max_violation_mean] = 0.0;
    }
    if (fault_ == Fault::weak_oversubscription)
      figures[metric_key::frac_oversubscribed_mean] = weak_share(counts);
    for (const auto& layer : counts) {
      if (fault_ != Fault::empty_layers_are_nan || sum(layer) > 0) continue;
      figures[metric_key::max_violation_mean] = std::numeric_limits<double>::quiet_NaN();
    }
    return figures;
  }

  Snapshot snapshot() override {
    Snapshot snapshot = BuiltInSubject::snapshot();
    for (auto& [name, record] : snapshot.layers) spoil(record);
    return snapshot;
  }

  Figures combine(const std::vector<Chunk>& chunks) override {
    auto asked = chunks;
    for (Chunk& chunk : asked) spoil(chunk);
    if (fault_ == Fault::weighs_first_chunk_double && !asked.empty()) asked[0].data *= 2;
    if (fault_ == Fault::zero_data_gives_zero && data_of(chunks) == 0) return {{"loss:mean", 0.0}};
    Figures combined = BuiltInSubject::combine(asked);
    for (auto& [key, value] : combined) value = spoilt(key, value, chunks);
    if (chunks.empty()) return combined;
    if (fault_ == Fault::last_unique && combined.contains("step:unique")) {
      combined["step:unique"] = chunks.back().metrics.at("step:unique");
    }
    if (fault_ == Fault::keeps_unknown) add_unknown(combined, chunks[0]);
    if (fault_ == Fault::keys_of_any_chunk) {
      for (const auto& [key, value] : chunks.back().metrics) combined.insert({key, value});
    }
    return combined;
  }

 private:
  static std::int64_t sum(const std::vector<std::int64_t>& loads) {
    return std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
  }
  static std::int64_t data_of(const std::vector<Chunk>& chunks) {
    std::int64_t data = 0;
    for (const Chunk& chunk : chunks) data += chunk.data;
    return data;
  }

  Counts changed(const Counts& counts) const {
    Counts changed = counts;
    if (fault_ == Fault::pooled_layers) {
      for (std::size_t l = 1; l < counts.size(); ++l) {
        for (std::size_t j = 0; j < counts[l].size(); ++j) changed[0][j] += counts[l][j];
      }
      changed.resize(1);
    }
    if (fault_ == Fault::over_the_wrong_axis) {
      changed.assign(counts[0].size(), std::vector<std::int64_t>(counts.size()));
      for (std::size_t l = 0; l < counts.size(); ++l) {
        for (std::size_t j = 0; j < counts[l].size(); ++j) changed[j][l] = counts[l][j];
      }
    }
    for (auto& layer : changed) {
      if (fault_ == Fault::last_expert_is_lost) layer.pop_back();
      for (std::size_t j = 0; j < layer.size(); ++j) {
        if (fault_ == Fault::counts_in_32_bits) layer[j] &= 0xffffffff;
        if (fault_ == Fault::shares_sorted_by_index) layer[j] *= static_cast<std::int64_t>(1 + j);
      }
      if (fault_ == Fault::empty_layers_count && sum(layer) == 0) std::ranges::fill(layer, 1);
    }
    return changed;
  }

  static double weak_share(const Counts& counts) {
    double shares = 0.0;
    for (const auto& layer : counts) {
      const auto experts = static_cast<std::int64_t>(layer.size());
      shares += static_cast<double>(std::ranges::count_if(
                    layer, [&](std::int64_t load) { return load * experts >= sum(layer); })) /
                static_cast<double>(experts);
    }
    return shares / static_cast<double>(counts.size());
  }

  void spoil(LayerSnapshot& record) const {
    const auto& loads = record.expert_load_counts;
    if (fault_ == Fault::tokens_are_assignments) record.tokens = sum(loads);
    if (fault_ == Fault::zeros_without_assignments && sum(loads) == 0)
      record.max_load_over_mean = 0.0;
    if (fault_ == Fault::mean_over_used_experts && record.max_load_over_mean) {
      const double used =
          static_cast<double>(static_cast<std::int64_t>(loads.size()) - *record.zero_load_experts);
      *record.max_load_over_mean *= used / static_cast<double>(loads.size());
    }
    if (fault_ == Fault::zero_load_means_at_most_one && record.zero_load_experts) {
      record.zero_load_experts =
          std::ranges::count_if(loads, [](std::int64_t load) { return load <= 1; });
    }
    for (auto& bias : record.biases) {
      if (fault_ == Fault::biases_of_zeros && bias) bias = 0.0;
      if (fault_ == Fault::nonfinite_as_zero && !bias) bias = 0.0;
    }
  }

  void spoil(Chunk& chunk) const {
    if (fault_ == Fault::unweighted_mean) chunk.data = 1;
    if (fault_ == Fault::takes_any_key) {
      std::erase_if(chunk.metrics,
                    [](const auto& m) { return std::ranges::count(m.first, ':') != 1; });
    }
    for (auto& [key, value] : chunk.metrics) {
      if (fault_ == Fault::nan_is_skipped && std::isnan(value)) value = 0.0;
    }
  }

  double spoilt(const std::string& key, double value, const std::vector<Chunk>& chunks) const {
    if (fault_ == Fault::slack_of_minimum && key.ends_with(":slack")) return -value;
    if (fault_ == Fault::slack_of_one_is_itself && key.ends_with(":slack") && chunks.size() == 1) {
      return chunks[0].metrics.at(key);
    }
    if (!key.ends_with(":hash_unordered")) return value;
    double sum = 0.0;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const double weight = fault_ == Fault::ordered_hash ? static_cast<double>(c + 1) : 1.0;
      sum += weight * std::trunc(chunks[c].metrics.at(key));
    }
    return fault_ == Fault::ordered_hash || fault_ == Fault::hash_of_sum ? std::floor(sum / 2.0)
                                                                         : value;
  }

  static void add_unknown(Figures& combined, const Chunk& chunk) {
    for (const auto& [key, value] : chunk.metrics) {
      if (key.ends_with(":median")) combined[key] = value;
    }
  }

  Fault fault_;
};

}  // namespace

std::unique_ptr<Subject> faulty_reporter(ReporterFault fault) {
  return std::make_unique<FaultyReporter>(fault);
}

}  // namespace ballast::props
