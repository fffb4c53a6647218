#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/executor.h"
#include "core/matrix.h"

namespace ballast::sim {

/// Where rows are read to; it grows as needed.
struct RowBuffer {
  std::vector<float> values;
  std::vector<std::uint16_t> halves;
};

/// Tokens [first, first + count) of a batch, which one thread works on, and how many tokens of the
/// same window are in pieces before this one.
struct TokenPiece {
  std::size_t first, count, before;
};

/// The router logits of a batch, `[tokens, experts]`, which may be larger than memory: they are
/// visited window by window, and a window's pieces by several threads at once.
class LogitSource {
 public:
  virtual ~LogitSource() = default;
  virtual std::size_t tokens() const = 0;
  virtual std::size_t experts() const = 0;
  /// What it holds for windows of `window` tokens, and for a token of each reader's buffer.
  struct Bytes {
    std::uint64_t window, token_of_buffer;
  };
  virtual Bytes bytes(std::size_t /*window*/) const { return {0, 0}; }

  /// Makes these pieces the current window; what the last one took is given back.
  virtual void open_window(std::span<const TokenPiece> pieces, const Executor& executor) = 0;
  /// The rows of a piece of the current window, either in place or in `buffer`. Safe on several
  /// threads at once, each with a buffer of its own.
  virtual MatrixView<const float> rows(const TokenPiece& piece, RowBuffer& buffer) const = 0;
};

/// Logits that are in memory, of which it is a view.
std::unique_ptr<LogitSource> logits_in_memory(MatrixView<const float> logits);

/// Logits from a .npy file `[tokens, experts]` of fp32, or of bf16 as the upper halves of fp32 in
/// uint16.
std::unique_ptr<LogitSource> logits_from_file(const std::string& path);

/// Logits h W^T from hidden states h `[tokens, hidden]` and the gate W `[experts, hidden]`, each a
/// file like that of logits. W is held in memory. The products are the core's, so they do not
/// depend on the window.
std::unique_ptr<LogitSource> logits_from_hidden(const std::string& hidden_path,
                                                const std::string& gate_path);

// Files that cannot be used are an InputError.

}  // namespace ballast::sim
