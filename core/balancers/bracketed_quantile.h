#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/executor.h"
#include "core/kernels/score_tile.h"

namespace ballast {

/// Intervals in which order statistics of required biases are expected, `[experts]` each: low <=
/// high, infinite ends included.
struct Brackets {
  std::vector<float> low, high;
  std::size_t expected = 0;  ///< values of an expert inside it, for which there is room at first
};

/// Exact order statistics of the required biases of each expert, from one pass over a batch and the
/// memory of a small part of it: values below the expert's bracket are counted, those inside it
/// kept. Parts of a batch add up, in any order, to the whole. Where a bracket was wrong there is no
/// result, and PooledQuantile finds it by more passes.
class BracketedQuantile {
 public:
  explicit BracketedQuantile(Brackets brackets);
  /// An empty one with the same brackets.
  BracketedQuantile fork() const { return BracketedQuantile(brackets_); }

  /// A tile with scores or with logits.
  void observe(const ScoreTile& tile);
  /// Adds what another one with the same brackets has observed, which is of no use afterwards.
  void merge(BracketedQuantile& other);

  std::int64_t tokens() const { return tokens_; }
  /// Whether the (position + 1)-th smallest value of the expert is inside its bracket; 0 <=
  /// position < tokens().
  bool has(std::size_t expert, std::int64_t position) const;
  /// Room to find values in; one for each thread that does.
  struct Scratch {
    std::vector<float> values, others;
  };
  /// That value, if it is. Linear in the number of values inside.
  float value(std::size_t expert, std::int64_t position, Scratch& scratch) const;
  float value(std::size_t expert, std::int64_t position) const;

  /// Brackets for the (position + 1)-th smallest of `tokens` values of each expert, of which these
  /// are a sample, as if drawn at random: bracket_reach to each side. Room is made at first for
  /// what `coming` tokens are expected to have inside. Nothing if the sample is empty, or an end of
  /// any expert was outside its bracket.
  std::optional<Brackets> narrowed(std::int64_t position, std::int64_t tokens, double deviations,
                                   std::size_t coming,
                                   const Executor& executor = serial_executor()) const;

 private:
  /// The values inside one expert's bracket, in memory with room for whole vectors behind them.
  struct Kept {
    std::unique_ptr<float[]> values;
    std::size_t count = 0;
    std::size_t capacity = 0;

    void make_room(std::size_t more, std::size_t first_capacity);
  };

  std::size_t inside(std::size_t expert) const;
  bool is_known(std::size_t expert, std::int64_t position) const;
  float end(std::size_t expert, std::int64_t position, Scratch& scratch) const;

  Brackets brackets_;
  std::vector<std::int64_t> below_;
  std::vector<Kept> kept_;                 ///< of each expert,
  std::vector<std::vector<Kept>> merged_;  ///< and what others have kept
  std::vector<float*> ends_;
  std::int64_t tokens_ = 0;
};

/// Calls `work` for every expert, on all threads of the executor, which must leave others' alone.
void for_each_expert(std::size_t experts, const Executor& executor,
                     const std::function<void(std::size_t, BracketedQuantile::Scratch&)>& work);

/// Brackets that hold everything: for a batch of about so many tokens that may be kept whole.
Brackets open_brackets(std::size_t experts, std::size_t tokens = 0);

/// How many of n sample values a bracket reaches to each side of the one that `share` of all values
/// are below: so many standard deviations of the number below it, sqrt(n share (1 - share)), and
/// one.
double bracket_reach(double n, double share, double deviations);

}  // namespace ballast
