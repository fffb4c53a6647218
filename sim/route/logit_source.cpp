#include "sim/route/logit_source.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/arithmetic/products.h"
#include "sim/npy/npy_array.h"
#include "sim/npy/npy_header.h"

namespace ballast::sim {
namespace {

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

  void fetch(std::size_t first, std::size_t count) const {
    array_.fetch(first * row_bytes(), count * row_bytes());
  }
  void release(std::size_t first, std::size_t count) const {
    array_.release(first * row_bytes(), count * row_bytes());
  }

  MatrixView<const float> read(std::size_t first, std::size_t count, Matrix<float>& scratch) const {
    if (array_.dtype() == "<f4" && array_.aligned<float>()) {
      return {array_.at<float>(first * cols()), count, cols()};
    }
    if (scratch.rows() < count || scratch.cols() != cols()) scratch = Matrix<float>(count, cols());
    const MatrixView<float> out(scratch.data(), count, cols());
    if (array_.dtype() == "<f4") {
      const char* const bytes = array_.at<char>(first * row_bytes());
      std::copy_n(bytes, count * row_bytes(), reinterpret_cast<char*>(out.data()));
    } else {
      widen(array_.at<unsigned char>(first * row_bytes()), out.values());
    }
    return out;
  }

 private:
  std::size_t row_bytes() const { return cols() * (array_.dtype() == "<f4" ? 4 : 2); }

  /// bf16 is the upper half of fp32.
  static void widen(const unsigned char* halves, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint32_t bits = static_cast<std::uint32_t>(halves[2 * i] | halves[2 * i + 1] << 8);
      out[i] = std::bit_cast<float>(bits << 16);
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

  void open_window(std::size_t first, std::size_t count, const Executor&) override {
    file_.release(window_first_, window_count_);
    window_first_ = first;
    window_count_ = count;
  }
  MatrixView<const float> rows(std::size_t first, std::size_t count,
                               Matrix<float>& scratch) const override {
    file_.fetch(first, count);
    return file_.read(first, count, scratch);
  }

 private:
  RowsFile file_;
  std::size_t window_first_ = 0, window_count_ = 0;
};

class LogitsOfHidden final : public LogitSource {
 public:
  LogitsOfHidden(const std::string& hidden_path, const std::string& gate_path)
      : hidden_(hidden_path, "cannot read the hidden states", "(tokens, hidden)"),
        gate_file_(gate_path, "cannot read the gate", "(experts, hidden)") {
    if (gate_file_.cols() != hidden_.cols() || gate_file_.rows() == 0) {
      gate_file_.array().refuse(
          "its shape is " + shape_text(gate_file_.array().shape()),
          "(experts, " + std::to_string(hidden_.cols()) + ") would go with " + hidden_path);
    }
    gate_ = gate_file_.read(0, gate_file_.rows(), gate_scratch_);
  }

  std::size_t tokens() const override { return hidden_.rows(); }
  std::size_t experts() const override { return gate_.rows(); }

  void open_window(std::size_t first, std::size_t count, const Executor& executor) override {
    window_first_ = first;
    if (logits_.rows() < count) logits_ = Matrix<float>(count, experts());
    hidden_.fetch(first, count);
    arithmetic::multiply_transposed<float>(hidden_.read(first, count, hidden_scratch_), gate_,
                                           {logits_.data(), count, experts()}, executor);
    hidden_.release(first, count);
  }
  MatrixView<const float> rows(std::size_t first, std::size_t count,
                               Matrix<float>&) const override {
    return logits_.view().block(first - window_first_, count);
  }

 private:
  RowsFile hidden_, gate_file_;
  Matrix<float> gate_scratch_, hidden_scratch_;
  MatrixView<const float> gate_;
  std::size_t window_first_ = 0;
  Matrix<float> logits_;
};

}  // namespace

std::unique_ptr<LogitSource> logits_from_file(const std::string& path) {
  return std::make_unique<LogitsFile>(path);
}

std::unique_ptr<LogitSource> logits_from_hidden(const std::string& hidden_path,
                                                const std::string& gate_path) {
  return std::make_unique<LogitsOfHidden>(hidden_path, gate_path);
}

}  // namespace ballast::sim
