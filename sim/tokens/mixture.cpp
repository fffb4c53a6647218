#include "sim/tokens/mixture.h"

#include <numeric>
#include <utility>

#include "sim/tokens/sequence_stream.h"

namespace ballast::sim {
namespace {

/// Every order of 0 .. count - 1 equally likely (Fisher and Yates 1938; Durstenfeld 1964).
std::vector<std::int32_t> random_order(std::size_t count, Stream stream) {
  std::vector<std::int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t left = count; left > 1; --left) {
    std::swap(order[left - 1], order[uniform_index(stream, left)]);
  }
  return order;
}

}  // namespace

std::vector<double> token_frequencies(const TokenSettings& settings, std::uint64_t seed) {
  if (settings.frequency == FrequencyLaw::zipf) {
    return zipf_shares(settings.vocabulary, settings.exponent);
  }
  std::vector<double> frequencies(settings.vocabulary, 1.0);
  if (settings.frequency == FrequencyLaw::log_normal) {
    Stream stream = vocabulary_stream(seed).child("frequencies");
    for (double& frequency : frequencies) frequency = log_normal(stream, settings.sigma);
  }
  return frequencies;
}

MixtureSource::MixtureSource(const TokenSettings& settings, std::uint64_t seed)
    : ranks_(token_frequencies(settings, seed)),
      topics_(settings.topics),
      shift_(settings.shift),
      rank_skew_(settings.rank_skew),
      persistence_(settings.topic_persistence),
      length_(settings.sequence_length),
      seed_(seed) {
  const Stream topics = vocabulary_stream(seed).child("topics");
  for (std::size_t topic = 0; topic < topics_ * (shift_ > 0.0 ? 2 : 1); ++topic) {
    orders_.push_back(random_order(settings.vocabulary, topics.child(topic)));
  }
}

std::vector<std::size_t> MixtureSource::topics_of(const SequenceKey& key) const {
  const Stream own = sequence_stream(seed_, key);
  Stream stream = own.child("topics"), shift = own.child("shift"), rank = own.child("rank");
  const std::size_t count = topics_;
  if (uniform(rank) < rank_skew_) return std::vector<std::size_t>(length_ + 1, key.rank % count);
  const std::size_t first = uniform(shift) < shift_ ? count : 0;
  std::vector<std::size_t> topics(length_ + 1);
  std::size_t topic = uniform_index(stream, count);
  for (std::size_t& each : topics) {
    each = first + topic;
    const bool stays = uniform(stream) < persistence_;
    if (!stays && count > 1) topic = (topic + 1 + uniform_index(stream, count - 1)) % count;
  }
  return topics;
}

Sequence MixtureSource::sequence(const SequenceKey& key) const {
  Stream stream = sequence_stream(seed_, key).child("ranks");
  Sequence out{.tokens = {}, .valid = length_};
  for (const std::size_t topic : topics_of(key)) {
    out.tokens.push_back(orders_[topic][ranks_(stream)]);
  }
  return out;
}

}  // namespace ballast::sim
