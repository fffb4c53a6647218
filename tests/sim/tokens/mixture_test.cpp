#include "sim/tokens/mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

namespace ballast::sim {
namespace {

TokenSettings one_topic(FrequencyLaw law, std::size_t vocabulary) {
  TokenSettings settings;
  settings.frequency = law;
  settings.vocabulary = vocabulary;
  settings.topics = 1;
  settings.sequence_length = 999;
  return settings;
}

/// How often each entry of the list of frequencies came up, in 1000 * `sequences` tokens of one
/// topic.
std::vector<double> rank_counts(const MixtureSource& source, std::size_t sequences) {
  std::vector<std::size_t> rank_of(source.vocabulary());
  for (std::size_t rank = 0; rank < rank_of.size(); ++rank) {
    rank_of[static_cast<std::size_t>(source.order(0)[rank])] = rank;
  }
  std::vector<double> counts(source.vocabulary(), 0.0);
  for (std::size_t i = 0; i < sequences; ++i) {
    for (const auto token : source.sequence({Split::training, 0, i}).tokens) {
      counts[rank_of[static_cast<std::size_t>(token)]] += 1.0;
    }
  }
  return counts;
}

/// Pearson's statistic in standard deviations above its mean (Wilson and Hilferty 1931): beyond 4
/// about once in 30000 seeds.
double chi_square_deviation(const std::vector<double>& counts, const std::vector<double>& weights) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  double statistic = 0.0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * weights[i] / weight;
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  const double freedom = static_cast<double>(counts.size() - 1);
  const double spread = 2.0 / (9.0 * freedom);
  return (std::cbrt(statistic / freedom) - (1.0 - spread)) / std::sqrt(spread);
}

double standard_deviation_of_logs(const std::vector<double>& values) {
  double sum = 0.0, squares = 0.0;
  for (const double value : values) {
    sum += std::log(value);
    squares += std::log(value) * std::log(value);
  }
  const double count = static_cast<double>(values.size());
  return std::sqrt(squares / count - sum / count * (sum / count));
}

/// Minus the least-squares slope of ln count over ln rank.
double zipf_slope(const std::vector<double>& counts, std::size_t ranks) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    const double x = std::log(static_cast<double>(i + 1)), y = std::log(counts[i]);
    sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  const double n = static_cast<double>(ranks);
  return -(n * sxy - sx * sy) / (n * sxx - sx * sx);
}

TEST(MixtureFrequencies, OfTheLogNormalLawHaveTheirSigma) {
  for (const double sigma : {0.0, 0.2, 1.0, 1.8}) {
    TokenSettings settings = one_topic(FrequencyLaw::log_normal, 20000);
    settings.sigma = sigma;
    // The standard error of a standard deviation of 20000 is 0.5 %.
    EXPECT_NEAR(standard_deviation_of_logs(token_frequencies(settings, 5)), sigma, 0.02 * sigma);
  }
}

TEST(MixtureFrequencies, OfTokensAreThoseOfTheirLaw) {
  for (const auto law : {FrequencyLaw::log_normal, FrequencyLaw::zipf, FrequencyLaw::uniform}) {
    const TokenSettings settings = one_topic(law, 60);
    const auto counts = rank_counts(MixtureSource(settings, 5), 200);
    EXPECT_LT(std::abs(chi_square_deviation(counts, token_frequencies(settings, 5))), 4.0);
  }
}

TEST(MixtureFrequencies, OfZipfsLawFallWithTheExponent) {
  for (const double exponent : {0.5, 1.0, 1.4}) {
    TokenSettings settings = one_topic(FrequencyLaw::zipf, 200);
    settings.exponent = exponent;
    EXPECT_NEAR(zipf_slope(rank_counts(MixtureSource(settings, 5), 200), 50), exponent, 0.03);
  }
}

TEST(MixtureFrequencies, OfTheUniformLawAreEqual) {
  const auto counts = rank_counts(MixtureSource(one_topic(FrequencyLaw::uniform, 50), 5), 200);
  EXPECT_LT(std::abs(chi_square_deviation(counts, std::vector<double>(50, 1.0))), 4.0);
}

TEST(MixtureTopics, EachRankTheWholeVocabularyInAnOrderOfTheirOwn) {
  TokenSettings settings;
  settings.topics = 10;
  const MixtureSource source(settings, 2);
  std::set<std::vector<std::int32_t>> orders;
  for (std::size_t topic = 0; topic < settings.topics; ++topic) {
    orders.insert(source.order(topic));
    auto sorted = source.order(topic);
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], static_cast<int>(i));
  }
  EXPECT_EQ(orders.size(), settings.topics);
}

struct TopicFigures {
  double stays = 0.0;
  std::vector<double> visits;
  std::vector<double> moves;  ///< (to - from) mod topics, 0 left out
};

TopicFigures measure_topics(const TokenSettings& settings, std::size_t sequences) {
  const MixtureSource source(settings, 7);
  TopicFigures out{0.0, std::vector<double>(settings.topics),
                   std::vector<double>(settings.topics - 1)};
  for (std::size_t i = 0; i < sequences; ++i) {
    const auto topics = source.topics_of({Split::training, 1, i});
    out.visits[topics.front()] += 1.0;
    for (std::size_t t = 0; t + 1 < topics.size(); ++t) {
      const auto move = (topics[t + 1] + settings.topics - topics[t]) % settings.topics;
      move == 0 ? out.stays += 1.0 : out.moves[move - 1] += 1.0;
    }
  }
  out.stays /= static_cast<double>(sequences * settings.sequence_length);
  return out;
}

TEST(MixtureTopics, StayWithTheirPersistenceAndElseMoveEvenly) {
  for (const double persistence : {0.0, 0.5, 0.9, 1.0}) {
    TokenSettings settings;
    settings.topics = 6;
    settings.sequence_length = 50;
    settings.topic_persistence = persistence;
    const auto figures = measure_topics(settings, 2000);
    // Four standard errors of a share of 100000 draws.
    EXPECT_NEAR(figures.stays, persistence, 4.0 * std::sqrt(persistence * (1 - persistence) / 1e5));
    EXPECT_LT(std::abs(chi_square_deviation(figures.visits, std::vector<double>(6, 1.0))), 4.0);
    if (persistence == 1.0) continue;
    EXPECT_LT(std::abs(chi_square_deviation(figures.moves, std::vector<double>(5, 1.0))), 4.0);
  }
}

TEST(MixtureTopics, OfTheTokenDecideItsFrequency) {
  TokenSettings settings;
  settings.vocabulary = 40;
  settings.topics = 3;
  settings.sequence_length = 499;
  const MixtureSource source(settings, 7);
  std::vector<std::vector<double>> counts(3, std::vector<double>(40));
  for (std::size_t i = 0; i < 200; ++i) {
    const SequenceKey key{Split::training, 1, i};
    const auto topics = source.topics_of(key);
    const auto tokens = source.sequence(key).tokens;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      counts[topics[t]][static_cast<std::size_t>(tokens[t])] += 1.0;
    }
  }
  const auto frequencies = token_frequencies(settings, 7);
  for (std::size_t topic = 0; topic < 3; ++topic) {
    std::vector<double> by_rank;
    for (const auto token : source.order(topic)) {
      by_rank.push_back(counts[topic][static_cast<std::size_t>(token)]);
    }
    EXPECT_LT(std::abs(chi_square_deviation(by_rank, frequencies)), 4.0) << topic;
  }
}

TEST(MixtureSource, CanHaveOneTopicAndOneToken) {
  TokenSettings settings = one_topic(FrequencyLaw::log_normal, 1);
  settings.topic_persistence = 0.0;
  settings.sequence_length = 3;
  EXPECT_EQ(MixtureSource(settings, 1).sequence({}).tokens,
            (std::vector<std::int32_t>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace ballast::sim
