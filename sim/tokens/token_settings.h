#pragma once

#include <cstddef>
#include <string>

namespace ballast::sim {

enum class TokenSourceKind { mixture, text, constant, recorded };
enum class FrequencyLaw { log_normal, zipf, uniform };

/// Where tokens come from, and their shape. Fields that belong to another source than the chosen
/// one are ignored here and refused in a scenario file.
struct TokenSettings {
  TokenSourceKind source = TokenSourceKind::mixture;
  std::size_t sequence_length = 64;
  double padding = 0.0;      ///< expected share of padded positions, in [0, 0.9]
  double burst_share = 0.0;  ///< share of blocks of burst_length positions that hold one token
  std::size_t burst_length = 32;
  std::size_t repeat_period = 0;  ///< positions after which a sequence repeats itself; 0: never
  std::size_t synchronised_steps = 0;  ///< steps at the start in which all sequences are the same

  // mixture
  std::size_t vocabulary = 256;
  FrequencyLaw frequency = FrequencyLaw::log_normal;
  double sigma = 1.0;              ///< of ln(frequency), for log_normal
  double exponent = 1.0;           ///< of Zipf's law
  std::size_t topics = 8;          ///< each topic ranks the vocabulary in an order of its own
  double topic_persistence = 0.9;  ///< probability that the next token stays in the topic
  double shift = 0.0;              ///< share of sequences from another set of as many topics
  double rank_skew = 0.0;          ///< share of sequences that keep to the topic of their rank

  // text: read as bytes, vocabulary 256. recorded: token ids (recorded_tokens.h).
  std::string file = "/usr/share/common-licenses/GPL-3";

  // constant: the vocabulary is `vocabulary` too
  std::size_t token = 0;
};

}  // namespace ballast::sim
