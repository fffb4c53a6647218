#pragma once

#include <vector>

#include "core/random/distributions.h"
#include "sim/tokens/token_settings.h"
#include "sim/tokens/token_source.h"

namespace ballast::sim {

/// Tokens of a made-up language. There is one list of frequencies, by the chosen law; each topic
/// gives them to the vocabulary in a random order of its own. A sequence begins in a topic chosen
/// evenly, draws each token from its topic, and after each stays in it with probability
/// `topic_persistence`, else moves to another one, chosen evenly. So a token tells something about
/// the next one as far as it tells the topic; and over all topics the frequencies are flatter than
/// the law says, unless there is one topic only.
///
/// With `shift`, that share of the sequences keeps to as many topics more, which no other sequence
/// has. With `rank_skew`, that share keeps to the topic whose number is its rank, modulo the
/// topics.
///
/// Memory: 4 bytes * topics * vocabulary (twice that with `shift`), and some 16 * vocabulary. A
/// sequence takes time in its length.
class MixtureSource : public TokenSource {
 public:
  MixtureSource(const TokenSettings& settings, std::uint64_t seed);

  std::size_t vocabulary() const override { return ranks_.size(); }
  Sequence sequence(const SequenceKey& key) const override;

  /// The topic of each of the `length + 1` tokens of a sequence.
  std::vector<std::size_t> topics_of(const SequenceKey& key) const;
  /// The tokens of a topic, in the order of the list of frequencies (for Zipf: the most frequent
  /// first).
  const std::vector<std::int32_t>& order(std::size_t topic) const { return orders_[topic]; }

 private:
  Categorical ranks_;
  std::vector<std::vector<std::int32_t>>
      orders_;  ///< `[topics, vocabulary]`; with shift twice as many
  std::size_t topics_;
  double shift_;
  double rank_skew_;
  double persistence_;
  std::size_t length_;
  std::uint64_t seed_;
};

/// The frequencies of `settings.vocabulary` tokens by its law; they need not sum to 1.
std::vector<double> token_frequencies(const TokenSettings& settings, std::uint64_t seed);

}  // namespace ballast::sim
