#include "sim/route/logit_source.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "core/arithmetic/products.h"
#include "sim/npy/npy_array.h"
#include "sim/npy/npy_header.h"

namespace ballast::sim {
namespace {

class LogitsInMemory final : public LogitSource {
 public:
  explicit LogitsInMemory(MatrixView<const float> logits) : logits_(logits) {}

  std::size_t tokens() const override { return logits_.rows(); }
  std::size_t experts() const override { return logits_.cols(); }
  void open_window(std::span<const TokenPiece>, const Executor&) override {}
  MatrixView<const float> rows(const TokenPiece& piece, RowBuffer&) const override {
    return logits_.block(piece.first, piece.count);
  }

 private:
  MatrixView<const float> logits_;
};

/// A file of numbers `[rows, cols]` that are read as fp32.
class RowsFile {
 public:
  RowsFile(const std::string& path, const std::string& what, const std::string& shape)
      : array_(path, what) {
    if (array_.dtype() != "<f4" && array_.dtype() != "<u2") {
      array_.refuse("its values have the type '" + array_.dtype() + "'",
                    "'<f4' (float32) or '<u2' (the bits of bfloat16 in uint16) would be right");
    }
    if (array_.shape().size() != 2 || array_.shape()[1] == 0) {
      array_.refuse("its shape is " + shape_text(array_.shape()),
                    "two dimensions " + shape + " would be right");
    }
  }

  const NpyArray& array() const { return array_; }
  std::size_t rows() const { return array_.shape()[0]; }
  std::size_t cols() const { return array_.shape()[1]; }

  /// What a row takes in a buffer that it is read to.
  std::uint64_t bytes_of_row() const {
    return cols() * (sizeof(float) + (array_.dtype() == "<f4" ? 0 : sizeof(std::uint16_t)));
  }

  /// Rows [first, first + count), which become the buffer's rows from `to` on; those before it
  /// stay.
  MatrixView<const float> read(std::size_t first, std::size_t count, RowBuffer& buffer,
                               std::size_t to = 0) const {
    const std::size_t values = count * cols(), begin = to * cols();
    if (buffer.values.size() < begin + values) buffer.values.resize(begin + values);
    const auto out = std::span(buffer.values).subspan(begin, values);
    if (array_.dtype() == "<f4") {
      array_.read(first * cols() * sizeof(float), values * sizeof(float), out.data());
    } else {
      if (buffer.halves.size() < values) buffer.halves.resize(values);
      array_.read(first * cols() * 2, values * 2, buffer.halves.data());
      widen(std::span(buffer.halves).first(values), out);
    }
    return {out.data(), count, cols()};
  }

 private:
  /// bf16 is the upper half of fp32.
  static void widen(std::span<const std::uint16_t> halves, std::span<float> out) {
    for (std::size_t i = 0; i < halves.size(); ++i) {
      out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(halves[i]) << 16);
    }
  }

  NpyArray array_;
};

class LogitsFile final : public LogitSource {
 public:
  explicit LogitsFile(const std::string& path)
      : file_(path, "cannot read the logits", "(tokens, experts)") {}

  std::size_t tokens() const override { return file_.rows(); }
  std::size_t experts() const override { return file_.cols(); }
  Bytes bytes(std::size_t) const override { return {0, file_.bytes_of_row()}; }

  void open_window(std::span<const TokenPiece>, const Executor&) override {}
  MatrixView<const float> rows(const TokenPiece& piece, RowBuffer& buffer) const override {
    return file_.read(piece.first, piece.count, buffer);
  }

 private:
  RowsFile file_;
};

class LogitsOfHidden final : public LogitSource {
 public:
  LogitsOfHidden(const std::string& hidden_path, const std::string& gate_path)
      : hidden_(hidden_path, "cannot read the hidden states", "(tokens, hidden)") {
    const RowsFile gate(gate_path, "cannot read the gate", "(experts, hidden)");
    if (gate.cols() != hidden_.cols() || gate.rows() == 0) {
      gate.array().refuse(
          "its shape is " + shape_text(gate.array().shape()),
          "(experts, " + std::to_string(hidden_.cols()) + ") would go with " + hidden_path);
    }
    gate_ = gate.read(0, gate.rows(), gate_buffer_);
    gate_bytes_ = gate.rows() * gate.bytes_of_row();
  }

  std::size_t tokens() const override { return hidden_.rows(); }
  std::size_t experts() const override { return gate_.rows(); }
  Bytes bytes(std::size_t window) const override {
    return {gate_bytes_ + window * (hidden_.bytes_of_row() + experts() * sizeof(float)), 0};
  }

  void open_window(std::span<const TokenPiece> pieces, const Executor& executor) override {
    const std::size_t count = pieces.back().before + pieces.back().count;
    auto& values = hidden_buffer_.values;  // which must not grow piece by piece
    values.resize(std::max(values.size(), count * hidden_.cols()));
    for (const TokenPiece& piece : pieces)
      hidden_.read(piece.first, piece.count, hidden_buffer_, piece.before);
    logits_.resize(std::max(logits_.size(), count * experts()));
    arithmetic::multiply_transposed<float>({values.data(), count, hidden_.cols()}, gate_,
                                           {logits_.data(), count, experts()}, executor);
  }
  MatrixView<const float> rows(const TokenPiece& piece, RowBuffer&) const override {
    return {logits_.data() + piece.before * experts(), piece.count, experts()};
  }

 private:
  RowsFile hidden_;
  RowBuffer gate_buffer_, hidden_buffer_;
  MatrixView<const float> gate_;
  std::uint64_t gate_bytes_ = 0;
  std::vector<float> logits_;
};

}  // namespace

std::unique_ptr<LogitSource> logits_in_memory(MatrixView<const float> logits) {
  return std::make_unique<LogitsInMemory>(logits);
}

std::unique_ptr<LogitSource> logits_from_file(const std::string& path) {
  return std::make_unique<LogitsFile>(path);
}

std::unique_ptr<LogitSource> logits_from_hidden(const std::string& hidden_path,
                                                const std::string& gate_path) {
  return std::make_unique<LogitsOfHidden>(hidden_path, gate_path);
}

}  // namespace ballast::sim
