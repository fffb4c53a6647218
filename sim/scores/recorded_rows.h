#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ballast::sim {

/// The choices of recorded tokens, layer by layer (sim/recordings/read_recording.h: JSON lines of
/// rows, or selections). Rows of a layer that belong to the same token index of the same sequence
/// are one token; where no index is recorded, or it begins again, rows count by their order.
/// Duplicates, faulty rows and warm-up rows are left out.
class RecordedRows {
 public:
  /// Throws InputError when the file cannot be read, holds no rows, or has more than `experts`
  /// experts.
  RecordedRows(const std::string& file, std::size_t experts);

  std::size_t layers() const { return layers_.size(); }
  std::size_t tokens() const { return tokens_; }
  /// The experts of a token, the largest weight first (where none are recorded, as listed); empty
  /// where the recording has no row of it.
  std::span<const std::int32_t> choices(std::size_t layer, std::size_t token) const;

 private:
  std::size_t tokens_ = 0;
  std::size_t top_k_ = 0;
  std::vector<std::vector<std::int32_t>> layers_;  ///< `[layers][tokens * top_k]`; -1: no row
};

/// The same, read once for each file and number of experts.
const RecordedRows& recorded_rows(const std::string& file, std::size_t experts);

/// Makes `chosen` the largest logits of a row, best first, by exchanging logits: the row has the
/// same values after as before, and all other experts keep their order but for those that had to
/// make room, which come after the chosen by as much as there was room.
void choose(std::span<const std::int32_t> chosen, std::span<float> logits);

}  // namespace ballast::sim
