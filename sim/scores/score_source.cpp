#include "sim/scores/score_source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "core/arithmetic/functions.h"
#include "core/random/fills.h"
#include "core/random/stream.h"
#include "sim/scores/race.h"

namespace ballast::sim {

namespace {

/// z = scale * (ln w + G) + offset, where `row` holds G.
void make_logits(std::span<const float> log_rates, float scale, float offset,
                 std::span<float> row) {
  // Blocks of fixed size in storage of their own let the compiler use vectors, whatever aliases.
  constexpr std::size_t block_size = 64;
  std::array<float, block_size> block, rates;
  std::size_t j = 0;
  for (; j + block_size <= row.size(); j += block_size) {
    std::memcpy(block.data(), &row[j], sizeof block);
    std::memcpy(rates.data(), &log_rates[j], sizeof rates);
    for (std::size_t i = 0; i < block_size; ++i) block[i] = scale * (rates[i] + block[i]) + offset;
    std::memcpy(&row[j], block.data(), sizeof block);
  }
  for (; j < row.size(); ++j) row[j] = scale * (log_rates[j] + row[j]) + offset;
}

}  // namespace

ScoreSource::ScoreSource(std::size_t layers, std::size_t experts, std::size_t top_k,
                         std::size_t ranks, std::uint64_t seed)
    : layers_(layers),
      ranks_(ranks),
      seed_(seed),
      top_k_(top_k),
      preferences_(experts, top_k, seed),
      experts_(experts) {}

void ScoreSource::prepare(const ScoreSettings& settings, std::size_t step,
                          const Executor& executor) {
  if (prepared_ && settings == settings_ && settings.drift_steps == 0) return;
  recorded_ = settings.preference == PreferenceLaw::recorded_rows
                  ? &recorded_rows(settings.file, experts_)
                  : nullptr;
  settings_ = settings;
  prepared_ = true;
  const std::size_t views = settings.rank_skew > 0.0 ? ranks_ : 1;
  log_rates_.assign(layers_ * views, {});
  executor.for_each(log_rates_.size(), [&](std::size_t i) {
    const auto inclusions = preferences_.inclusions(settings, i / views, i % views, step);
    std::vector<float>& out = log_rates_[i];
    for (const double rate : race_rates(inclusions, top_k_)) {
      out.push_back(static_cast<float>(arithmetic::log(rate)));
    }
  });
}

void ScoreSource::draw(std::size_t layer, std::size_t rank, const TokenRows& rows,
                       MatrixView<float> logits) const {
  const std::size_t views = log_rates_.size() / layers_;
  const std::vector<float>& log_rates = log_rates_[layer * views + (views == 1 ? 0 : rank)];
  const Stream noise = Stream(seed_).child("scores").child("noise").child(layer);
  const auto scale = static_cast<float>(settings_.scale);
  const auto offset = static_cast<float>(settings_.offset);
  for (std::size_t t = 0; t < logits.rows(); ++t) {
    const auto row = logits.row(t);
    if (rows.kinds[t] == TokenKind::nonfinite) {
      std::ranges::fill(row, std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    Stream own = noise.child(rows.keys[t]);
    fill_gumbel(own, row);
    make_logits(log_rates, scale, offset, row);
    if (rows.kinds[t] == TokenKind::aligned) {
      row[settings_.aligned_expert] += static_cast<float>(settings_.aligned_by);
    } else if (rows.kinds[t] == TokenKind::recorded) {
      choose(
          recorded_->choices(layer % recorded_->layers(), rows.recorded[t] % recorded_->tokens()),
          row);
    }
  }
}

}  // namespace ballast::sim
