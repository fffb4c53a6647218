// Does the work that compare_torch.py asks for, a line each on standard input, and answers with the
// seconds it took. It calls what `ballast route` and `ballast run` call.
//
//   batch FILE TOKENS EXPERTS TOP_K                       -> ok; logits `[tokens, experts]` and
//   biases `[experts]`, fp32 route|histogram|exact THREADS                         -> seconds loads
//   -> of the last route, an integer an expert biases -> after the last exact or histogram gate
//   TOKENS HIDDEN EXPERTS THREADS                    -> seconds limits -> flop/s, bytes read/s,
//   histogram increments/s
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "core/arithmetic/products.h"
#include "sim/command/target_limit.h"
#include "sim/route/batch_balancer.h"
#include "sim/route/batch_pass.h"
#include "sim/threads/thread_pool.h"
#include "tests/bench/batch.h"
#include "tests/bench/machine_limits.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace ballast::bench {
namespace {

class LogitsInMemory final : public sim::LogitSource {
 public:
  explicit LogitsInMemory(const Matrix<float>& logits) : logits_(logits) {}
  std::size_t tokens() const override { return logits_.rows(); }
  std::size_t experts() const override { return logits_.cols(); }
  void open_window(std::size_t, std::size_t, const Executor&) override {}
  MatrixView<const float> rows(std::size_t first, std::size_t count,
                               sim::RowBuffer&) const override {
    return logits_.view().block(first, count);
  }

 private:
  const Matrix<float>& logits_;
};

/// Keeps indices, weights and cutoffs of the whole batch.
class ResultsInMemory : public sim::RoutingSink {
 public:
  explicit ResultsInMemory(const Shape& shape)
      : indices_(shape.tokens, shape.top_k),
        weights_(shape.tokens, shape.top_k),
        cutoffs_(shape.tokens) {}

  std::optional<sim::RoutingRows> room(std::size_t tokens) override {
    return sim::RoutingRows{indices_.view().block(taken_, tokens),
                            weights_.view().block(taken_, tokens),
                            std::span(cutoffs_).subspan(taken_, tokens)};
  }
  void take(const sim::RoutingRows& rows) override { taken_ += rows.indices.rows(); }

 protected:
  std::size_t taken_ = 0;

 private:
  Matrix<std::int32_t> indices_;
  Matrix<float> weights_;
  std::vector<float> cutoffs_;
};

/// Besides, weights and choices as whole matrices `[tokens, experts]`, as the code that is compared
/// with writes them.
class DenseResults final : public ResultsInMemory {
 public:
  DenseResults(const Shape& shape, const Executor& executor)
      : ResultsInMemory(shape),
        executor_(executor),
        weights_(shape.tokens, shape.experts),
        chosen_(shape.tokens, shape.experts) {}

  void take(const sim::RoutingRows& rows) override {
    const std::size_t piece = 4096 / weights_.cols() + 1;  // stays near until it is complete
    const std::size_t tokens = rows.indices.rows();
    executor_.for_each((tokens + piece - 1) / piece, [&](std::size_t i) {
      const std::size_t first = i * piece, count = std::min(piece, tokens - first);
      std::ranges::fill(weights_.view().block(taken_ + first, count).values(), 0.0f);
      std::ranges::fill(chosen_.view().block(taken_ + first, count).values(), std::uint8_t{0});
      for (std::size_t t = first; t < first + count; ++t) scatter(rows, t);
    });
    ResultsInMemory::take(rows);
  }

 private:
  void scatter(const sim::RoutingRows& rows, std::size_t t) {
    const auto weights = weights_.row(taken_ + t);
    const auto chosen = chosen_.row(taken_ + t);
    for (std::size_t slot = 0; slot < rows.indices.cols(); ++slot) {
      const auto j = static_cast<std::size_t>(rows.indices(t, slot));
      weights[j] = rows.weights(t, slot);
      chosen[j] = 1;
    }
  }

  const Executor& executor_;
  Matrix<float> weights_;
  Matrix<std::uint8_t> chosen_;
};

template <class Work>
double seconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class Worker {
 public:
  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string task;
    words >> task;
    if (task == "limits") return limits();
    if (task == "batch") return read_batch(words);
    if (task == "loads") return listed(loads_);
    if (task == "biases") return listed(balanced_);
    if (task == "gate") return gate(words);
    return routing(task, words);
  }

 private:
  template <class Values>
  static std::string listed(const Values& values) {
    std::ostringstream out;
    out.precision(9);
    for (const auto value : values) out << value << ' ';
    return out.str();
  }

  bool use(std::size_t threads) {
    if (threads == 0) return false;
    if (!pool_ || pool_->size() != threads) pool_ = std::make_unique<sim::ThreadPool>(threads);
    return true;
  }

  std::string read_batch(std::istream& words) {
    std::string path;
    words >> path >> shape_.tokens >> shape_.experts >> shape_.top_k;
    logits_ = Matrix<float>(shape_.tokens, shape_.experts);
    biases_.assign(shape_.experts, 0.0f);
    std::ifstream file(path, std::ios::binary);
    const auto read = [&file](std::span<float> values) {
      file.read(reinterpret_cast<char*>(values.data()),
                static_cast<std::streamsize>(values.size_bytes()));
    };
    read(logits_.values());
    read(biases_);
    return file ? "ok" : "cannot read " + path;
  }

  std::string routing(const std::string& task, std::istream& words) {
    std::size_t threads = 0;
    const auto choice = task == "exact"       ? sim::parse_balancer("quantile:exact")
                        : task == "histogram" ? sim::parse_balancer("quantile:histogram:1000")
                                              : std::nullopt;
    if (!(words >> threads) || !use(threads) || (!choice && task != "route")) return "what?";
    const RouterSettings settings{
        .hidden = 1, .routed_experts = shape_.experts, .top_k = shape_.top_k};
    LogitsInMemory logits(logits_);
    const sim::Batch batch{logits, {}};
    const auto keep = [&]() -> std::unique_ptr<ResultsInMemory> {
      if (task == "histogram") return std::make_unique<DenseResults>(shape_, *pool_);
      return std::make_unique<ResultsInMemory>(shape_);
    }();
    if (!choice) {
      return std::to_string(seconds([&] {
        loads_ = sim::route_batch(settings, biases_, batch, nullptr, keep.get(), *pool_).loads;
      }));
    }
    sim::BatchBalancer balancer(*choice, settings, biases_);
    const double time = seconds([&] { balancer.step(batch, keep.get(), *pool_); });
    balanced_.assign(balancer.biases().begin(), balancer.biases().end());
    return std::to_string(time);
  }

  std::string gate(std::istream& words) {
    std::size_t tokens = 0, hidden = 0, experts = 0, threads = 0;
    if (!(words >> tokens >> hidden >> experts >> threads) || !use(threads)) return "what?";
    if (x_.rows() != tokens || x_.cols() != hidden) x_ = normal_matrix(tokens, hidden, 2);
    if (w_.rows() != experts || w_.cols() != hidden) w_ = normal_matrix(experts, hidden, 3);
    Matrix<float> out(tokens, experts);
    return std::to_string(seconds(
        [&] { arithmetic::multiply_transposed<float>(x_.view(), w_.view(), out.view(), *pool_); }));
  }

  std::string limits() {
    constexpr std::size_t rounds = 4'000'000, read = 64'000'000, increments = 20'000'000;
    double operations = 0.0;
    const double fma = seconds([&] { operations = fused_multiply_adds(rounds); });
    const std::vector<float> values(read, 1.0f);
    volatile float sum = 0.0f;
    const double reading = seconds([&] { sum = read_all(values); });
    const double counting = seconds([&] { increment_counters(increments); });
    std::ostringstream out;
    out << operations / fma << ' ' << static_cast<double>(read * sizeof(float)) / reading << ' '
        << static_cast<double>(increments) / counting;
    return out.str();
  }

  std::unique_ptr<sim::ThreadPool> pool_;
  Shape shape_{};
  Matrix<float> logits_, x_, w_;
  std::vector<float> biases_, balanced_;
  std::vector<std::int64_t> loads_;
};

}  // namespace
}  // namespace ballast::bench

int main() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // as the command does
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
  if (!ballast::sim::limit_target(std::getenv("BALLAST_TARGET"), std::cerr)) return 1;
  ballast::bench::Worker worker;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << worker.answer(line) << std::endl;
}
