#include "sim/scores/score_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/model/selection.h"
#include "core/random/stream.h"
#include "sim/input_error.h"
#include "sim/scores/race.h"
#include "tests/support/paths.h"
#include "tests/support/shared_data.h"

namespace ballast::sim {
namespace {

constexpr std::size_t tokens = 20'000;

TokenRows fresh_rows(std::size_t count, std::uint64_t salt = 0) {
  TokenRows rows;
  const Stream stream = Stream(99).child("test").child(salt);
  for (std::size_t t = 0; t < count; ++t) rows.keys.push_back(stream.child(t).key());
  rows.kinds.assign(count, TokenKind::plain);
  return rows;
}

/// Share of tokens that choose each expert without bias, `[experts]`.
std::vector<double> measured(const ScoreSettings& settings, std::size_t experts, std::size_t top_k,
                             std::size_t rank = 0, std::size_t layer = 0, std::size_t step = 0) {
  ScoreSource source(layer + 1, experts, top_k, rank + 1, 5);
  source.prepare(settings, step, serial_executor());
  Matrix<float> logits(tokens, experts);
  source.draw(layer, rank, fresh_rows(tokens, rank), logits);
  const std::vector<float> no_bias(experts, 0.0f);
  std::vector<std::int64_t> counts(experts, 0);
  count_assignments(select_top_k<float>(logits, no_bias, top_k).indices, {}, counts);
  std::vector<double> shares(counts.begin(), counts.end());
  for (double& share : shares) share /= static_cast<double>(tokens);
  return shares;
}

double deviation(double share) {
  return std::sqrt(share * (1.0 - share) / tokens);
}

double sigma_of(const std::vector<double>& shares) {
  double sum = 0.0, squares = 0.0;
  for (const double share : shares) {
    sum += std::log(share);
    squares += std::log(share) * std::log(share);
  }
  const double n = static_cast<double>(shares.size());
  return std::sqrt(squares / n - sum / n * (sum / n));
}

std::vector<double> shares_of(std::vector<double> inclusions) {
  const double sum = std::accumulate(inclusions.begin(), inclusions.end(), 0.0);
  for (double& each : inclusions) each /= sum;
  return inclusions;
}

TEST(DrawnScores, ChooseEachExpertAsOftenAsIsAskedFor) {
  for (const auto& [experts, top_k] :
       {std::pair(64, 8), std::pair(8, 2), std::pair(16, 1), std::pair(128, 16)}) {
    const auto e = static_cast<std::size_t>(experts), k = static_cast<std::size_t>(top_k);
    const ScoreSettings settings{.sigma = 0.6};
    const auto wanted = Preferences(e, k, 5).inclusions(settings, 0, 0, 0);
    const auto seen = measured(settings, e, k);
    for (std::size_t j = 0; j < e; ++j) {
      EXPECT_NEAR(seen[j], wanted[j], 5 * deviation(wanted[j]) + 0.01 * wanted[j]) << e << " " << j;
    }
  }
}

TEST(DrawnScores, HaveLogNormalLoadsOfTheSigma) {
  for (const double sigma : {0.2, 0.5, 1.0}) {
    // A sample deviation of E normal values is off by sigma / sqrt(2 E); 1 / q is the noise of
    // ln(load).
    const double q = 20'000.0 * 8 / 256;
    const double seen = sigma_of(measured({.sigma = sigma}, 256, 8));
    EXPECT_NEAR(seen, std::sqrt(sigma * sigma + 1.0 / q), 4 * sigma / std::sqrt(512.0)) << sigma;
  }
}

TEST(DrawnScores, HaveOneHotExpertThatAShareOfTheTokensChooses) {
  for (const double share : {0.4, 0.77, 0.98}) {
    const auto seen = measured({.sigma = 0.4, .hot_share = share}, 64, 8);
    EXPECT_NEAR(*std::ranges::max_element(seen), share, 5 * deviation(share) + 0.01) << share;
  }
}

TEST(DrawnScores, FollowZipfsLaw) {
  auto seen = measured({.preference = PreferenceLaw::zipf, .exponent = 0.5}, 64, 4);
  std::ranges::sort(seen, std::greater<>());
  // Shares of ranks 1 and 64 are as 64^0.5 to 1.
  EXPECT_NEAR(seen.front() / seen.back(), 8.0, 8.0 * 5 * deviation(seen.back()) / seen.back());
}

TEST(DrawnScores, AreEvenUnderUniformPreference) {
  for (const double share : measured({.preference = PreferenceLaw::uniform}, 32, 4)) {
    EXPECT_NEAR(share, 0.125, 5 * deviation(0.125));
  }
}

TEST(DrawnScores, ShiftByTheTotalVariationAskedFor) {
  for (const double wanted : {0.1, 0.3}) {
    const Preferences preferences(64, 8, 5);
    const auto before = shares_of(preferences.inclusions({.sigma = 1.0}, 0, 0, 0));
    const auto after = shares_of(preferences.inclusions({.sigma = 1.0, .shift = wanted}, 0, 0, 0));
    EXPECT_NEAR(total_variation(before, after), wanted, 1e-9);
    EXPECT_NEAR(sigma_of(after), sigma_of(before), 0.25) << "the set of shares hardly changes";
    const double seen =
        total_variation(shares_of(measured({.sigma = 1.0}, 64, 8)),
                        shares_of(measured({.sigma = 1.0, .shift = wanted}, 64, 8)));
    EXPECT_NEAR(seen, wanted, 0.02);
  }
}

TEST(DrawnScores, RefuseAShiftThatTheSharesCannotMake) {
  EXPECT_THROW(Preferences(64, 8, 5).inclusions({.sigma = 0.1, .shift = 0.5}, 0, 0, 0), InputError);
}

TEST(DrawnScores, GiveEachRankADomainOfItsOwn) {
  const ScoreSettings settings{.sigma = 1.0, .rank_skew = 0.3};
  const auto rank_0 = shares_of(measured(settings, 64, 8, 0)),
             rank_1 = shares_of(measured(settings, 64, 8, 1)),
             rank_2 = shares_of(measured(settings, 64, 8, 2));
  EXPECT_NEAR(total_variation(rank_0, rank_1), 0.3, 0.02);
  EXPECT_NEAR(total_variation(rank_0, rank_2), 0.3, 0.02);
  EXPECT_GT(total_variation(rank_1, rank_2), 0.1);
}

TEST(DrawnScores, DriftToNewPreferencesAtConstantSigma) {
  const Preferences preferences(512, 8, 5);
  const auto at = [&](std::size_t step) {
    auto shares = preferences.inclusions({.sigma = 0.5, .drift_steps = 100}, 0, 0, step);
    for (double& share : shares) share = std::log(share);
    const double mean = std::accumulate(shares.begin(), shares.end(), 0.0) / 512.0;
    for (double& share : shares) share -= mean;
    return shares;
  };
  const auto correlation = [](const auto& a, const auto& b) {
    const double ab = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    return ab / std::sqrt(std::inner_product(a.begin(), a.end(), a.begin(), 0.0) *
                          std::inner_product(b.begin(), b.end(), b.begin(), 0.0));
  };
  const double chance = 4.0 / std::sqrt(512.0);
  EXPECT_NEAR(correlation(at(0), at(100)), 0.0, chance);
  EXPECT_NEAR(correlation(at(0), at(50)), std::sqrt(0.5), chance);
  EXPECT_GT(correlation(at(0), at(1)), 0.99);
  for (const std::size_t step : {0u, 30u, 50u, 99u, 250u}) {
    const auto logs = at(step);
    EXPECT_NEAR(std::sqrt(std::inner_product(logs.begin(), logs.end(), logs.begin(), 0.0) / 512.0),
                0.5, 4 * 0.5 / std::sqrt(1024.0));
  }
}

TEST(DrawnScores, TakeTheLoadsOfARecording) {
  SKIP_WITHOUT_SHARED_DATA();
  const ScoreSettings settings{
      .preference = PreferenceLaw::recorded,
      .file = test::shared_data_dir() + "/olmoe-expert-counts/expert_counts.csv"};
  const auto seen = measured(settings, 64, 8);
  const auto recorded = Preferences(64, 8, 5).inclusions(settings, 0, 0, 0);
  for (std::size_t j = 0; j < 64; ++j) {
    EXPECT_NEAR(seen[j], recorded[j], 5 * deviation(recorded[j]) + 0.01 * recorded[j]) << j;
  }
}

TEST(DrawnScores, AlignTokensWithAnExpertAndMarkOthersAsNoNumbers) {
  ScoreSource source(1, 32, 2, 1, 5);
  source.prepare({.sigma = 0.0, .aligned_expert = 7, .aligned_by = 50.0}, 0, serial_executor());
  TokenRows rows = fresh_rows(3);
  rows.kinds = {TokenKind::plain, TokenKind::aligned, TokenKind::nonfinite};
  Matrix<float> logits(3, 32);
  source.draw(0, 0, rows, logits);
  EXPECT_EQ(std::ranges::max_element(logits.row(1)) - logits.row(1).begin(), 7);
  EXPECT_TRUE(std::ranges::all_of(logits.row(2), [](float z) { return std::isnan(z); }));
  EXPECT_TRUE(std::ranges::all_of(logits.row(0), [](float z) { return std::isfinite(z); }));
}

TEST(DrawnScores, ScaleAndOffsetTheLogits) {
  const TokenRows rows = fresh_rows(2);
  const auto draw = [&](const ScoreSettings& settings) {
    ScoreSource source(1, 16, 2, 1, 5);
    source.prepare(settings, 0, serial_executor());
    Matrix<float> logits(2, 16);
    source.draw(0, 0, rows, logits);
    return logits;
  };
  const auto plain = draw({}), other = draw({.scale = 2.0, .offset = 3.0});
  for (std::size_t i = 0; i < plain.values().size(); ++i) {
    EXPECT_EQ(other.values()[i], 2.0f * plain.values()[i] + 3.0f);
  }
}

TEST(DrawnScores, OfARowDependOnItsKeyAndLayerAlone) {
  ScoreSource source(2, 40, 4, 1, 5);
  source.prepare({}, 0, serial_executor());
  const TokenRows rows = fresh_rows(6);
  Matrix<float> all(6, 40), one(1, 40), other(1, 40);
  source.draw(1, 0, rows, all);
  source.draw(1, 0, {{rows.keys[4]}, {TokenKind::plain}}, one);
  source.draw(0, 0, {{rows.keys[4]}, {TokenKind::plain}}, other);
  EXPECT_TRUE(std::ranges::equal(one.row(0), all.row(4)));
  EXPECT_FALSE(std::ranges::equal(one.row(0), other.row(0)));
}

/// Probability that the hot one of two kinds of experts is among the first k, by exact recursion.
double inclusion_of_hot(double hot, double others, std::size_t count, std::size_t top_k) {
  double missed = 1.0;
  for (std::size_t i = 0; i < top_k; ++i) {
    const double rest = others * static_cast<double>(count - i);
    missed *= rest / (rest + hot);
  }
  return 1.0 - missed;
}

TEST(RaceRates, GiveAHotExpertItsProbability) {
  for (const std::size_t k : {1u, 2u, 8u}) {
    for (const double hot : {0.3, 0.6, 0.95}) {
      constexpr std::size_t others = 63;
      std::vector<double> inclusions(others + 1, (static_cast<double>(k) - hot) / others);
      inclusions[0] = hot;
      const auto rates = race_rates(inclusions, k);
      const double tolerance = k == 2 ? 0.035 : 0.005;
      EXPECT_NEAR(inclusion_of_hot(rates[0], rates[1], others, k), hot, tolerance)
          << k << " " << hot;
    }
  }
}

}  // namespace
}  // namespace ballast::sim
