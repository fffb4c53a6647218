#include <algorithm>
#include <cmath>

#include "props/mutants/altered.h"
#include "props/mutants/families.h"

namespace ballast::props {

namespace {

using Figures = std::map<std::string, double>;
using Chunks = std::vector<Chunk>;

/// Combines other chunks than it was given.
struct ChangesChunks : BuiltInSubject {
  virtual void change(Chunks& chunks) = 0;
  Figures combine(const Chunks& chunks) override {
    Chunks changed = chunks;
    change(changed);
    return BuiltInSubject::combine(changed);
  }
};
/// Changes the values of one reduction afterwards.
struct ChangesReduction : BuiltInSubject {
  virtual const char* reduction() const = 0;
  virtual double value(const std::string& key, double right, const Chunks& chunks) const = 0;
  Figures combine(const Chunks& chunks) override {
    Figures combined = BuiltInSubject::combine(chunks);
    for (auto& [key, figure] : combined) {
      if (key.ends_with(reduction())) figure = value(key, figure, chunks);
    }
    return combined;
  }
};

struct UnweightedMean : ChangesChunks {
  void change(Chunks& chunks) override {
    for (Chunk& chunk : chunks) chunk.data = 1;
  }
};
struct FirstChunkWeighsDouble : ChangesChunks {
  void change(Chunks& chunks) override {
    if (!chunks.empty()) chunks[0].data *= 2;
  }
};
struct ChunksWithoutDataAreNone : ChangesChunks {
  void change(Chunks& chunks) override {
    if (std::ranges::all_of(chunks, [](const Chunk& chunk) { return chunk.data == 0; })) return;
    std::erase_if(chunks, [](const Chunk& chunk) { return chunk.data == 0; });
  }
};
struct NaNIsSkipped : ChangesChunks {
  void change(Chunks& chunks) override {
    for (Chunk& chunk : chunks) {
      for (auto& [key, value] : chunk.metrics) {
        if (std::isnan(value)) value = 0.0;
      }
    }
  }
};
struct NaNIsEverywhere : ChangesChunks {
  void change(Chunks& chunks) override {
    for (Chunk& chunk : chunks) {
      if (std::ranges::none_of(chunk.metrics, [](auto& m) { return std::isnan(m.second); })) {
        continue;
      }
      for (auto& [key, value] : chunk.metrics) value = NAN;
    }
  }
};
struct TakesAnyKey : ChangesChunks {
  void change(Chunks& chunks) override {
    for (Chunk& chunk : chunks) {
      std::erase_if(chunk.metrics,
                    [](const auto& m) { return std::ranges::count(m.first, ':') != 1; });
    }
  }
};
struct KeysOfAnyChunk : BuiltInSubject {
  Figures combine(const Chunks& chunks) override {
    Figures combined = BuiltInSubject::combine(chunks);
    for (const Chunk& chunk : chunks) combined.insert(chunk.metrics.begin(), chunk.metrics.end());
    return combined;
  }
};
struct KeepsUnknownReductions : BuiltInSubject {
  Figures combine(const Chunks& chunks) override {
    Figures combined = BuiltInSubject::combine(chunks);
    if (chunks.empty()) return combined;
    for (const auto& [key, value] : chunks[0].metrics) {
      if (key.ends_with(":median")) combined[key] = value;
    }
    return combined;
  }
};
struct LastUniqueOnly : BuiltInSubject {
  Figures combine(const Chunks& chunks) override {
    Figures combined = BuiltInSubject::combine(chunks);
    for (auto& [key, value] : combined) {
      const auto last = chunks.back().metrics.find(key);
      if (key.ends_with(":unique") && last != chunks.back().metrics.end()) value = last->second;
    }
    return combined;
  }
};
struct NoDataGivesZero : BuiltInSubject {
  Figures combine(const Chunks& chunks) override {
    const bool any = std::ranges::any_of(chunks, [](const Chunk& chunk) { return chunk.data > 0; });
    return any || chunks.empty() ? BuiltInSubject::combine(chunks) : Figures{{"loss:mean", 0.0}};
  }
};

struct SlackOfTheMinimum : ChangesReduction {
  const char* reduction() const override { return ":slack"; }
  double value(const std::string&, double right, const Chunks&) const override { return -right; }
};
struct SlackOfOneIsItself : ChangesReduction {
  const char* reduction() const override { return ":slack"; }
  double value(const std::string& key, double right, const Chunks& chunks) const override {
    return chunks.size() == 1 ? chunks[0].metrics.at(key) : right;
  }
};
/// A maximum that begins at zero.
struct MaxIsAtLeastZero : ChangesReduction {
  const char* reduction() const override { return ":max"; }
  double value(const std::string&, double right, const Chunks&) const override {
    return std::max(0.0, right);
  }
};
struct SumIsMean : ChangesReduction {
  const char* reduction() const override { return ":sum"; }
  double value(const std::string&, double right, const Chunks& chunks) const override {
    return right / static_cast<double>(chunks.size());
  }
};
struct OrderedHash : ChangesReduction {
  const char* reduction() const override { return ":hash_unordered"; }
  double value(const std::string& key, double, const Chunks& chunks) const override {
    double hash = 0.0;
    for (const Chunk& chunk : chunks) hash = 31.0 * hash + std::trunc(chunk.metrics.at(key));
    return hash;
  }
};
struct HashOfTheSum : ChangesReduction {
  const char* reduction() const override { return ":hash_unordered"; }
  double value(const std::string& key, double, const Chunks& chunks) const override {
    double sum = 0.0;
    for (const Chunk& chunk : chunks) sum += std::trunc(chunk.metrics.at(key));
    return std::floor(sum / 2.0);
  }
};

}  // namespace

std::vector<Mutant> combine_mutants() {
  const std::vector<std::string> rules = {"algorithms 4.3"};
  return {
      mutant<UnweightedMean>("unweighted-mean", "combine.rules", rules,
                             "Takes the mean of chunks without weighing them by their data."),
      mutant<FirstChunkWeighsDouble>("first-chunk-weighs-double", "combine.order", rules,
                                     "Weighs the first chunk twice."),
      mutant<ChunksWithoutDataAreNone>("chunks-without-data-are-none", "combine.rules", rules,
                                       "Leaves chunks without data out of sums and extremes."),
      mutant<SumIsMean>("sum-is-mean", "combine.rules", {"M94", "algorithms 4.3"},
                        "Divides a sum by the number of chunks."),
      mutant<MaxIsAtLeastZero>("max-is-at-least-zero", "combine.rules", rules,
                               "Begins a maximum at zero."),
      mutant<SlackOfTheMinimum>("slack-of-the-minimum", "combine.rules", rules,
                                "Takes the slack as mean - maximum."),
      mutant<SlackOfOneIsItself>("slack-of-one-is-itself", "combine.single", rules,
                                 "Passes the slack of a single chunk on."),
      mutant<LastUniqueOnly>("last-unique-only", "combine.rules", rules,
                             "Puts the last chunk's value under the key of unique values."),
      mutant<KeysOfAnyChunk>("keys-of-any-chunk", "combine.keys", rules,
                             "Keeps keys that not all chunks have."),
      mutant<KeepsUnknownReductions>("keeps-unknown-reductions", "combine.keys", rules,
                                     "Passes the first chunk's value of an unknown reduction on."),
      mutant<TakesAnyKey>("takes-any-key", "combine.malformed-key", rules,
                          "Ignores keys that are not a name, a colon and a reduction."),
      mutant<NoDataGivesZero>("no-data-gives-zero", "combine.no-data", {"M51", "algorithms 4.3"},
                              "Makes the mean over no data 0."),
      mutant<OrderedHash>("ordered-hash", "combine.hash", rules,
                          "Hashes values in the order of the chunks."),
      mutant<HashOfTheSum>("hash-of-the-sum", "combine.hash", rules,
                           "Hashes the sum of the values."),
      mutant<NaNIsSkipped>("nan-is-skipped", "combine.nan", {"M79", "M135"},
                           "Takes a NaN for 0."),
      mutant<NaNIsEverywhere>("nan-is-everywhere", "combine.nan", {"M79", "M135"},
                              "Lets a NaN of one metric into all others."),
  };
}

}  // namespace ballast::props
