// Does the work that compare_torch.py asks for, a line each on standard input, and answers a line
// each. It calls what `ballast route` and `ballast run` call. Seconds are the median of three runs,
// or as many as take a tenth of a second.
//
//   batch FILE TOKENS EXPERTS TOP_K      -> ok; fp32 logits `[tokens, experts]`, biases `[experts]`
//   route|histogram|exact|dense THREADS  -> seconds; dense: histogram, and dense outputs
//   loads                                -> of the last route, an integer an expert
//   biases                               -> after the last exact or histogram
//   gate TOKENS HIDDEN EXPERTS THREADS   -> seconds
//   limits                               -> flop/s, bytes read/s, histogram increments/s
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
#include "sim/command/kept_memory.h"
#include "sim/command/target_limit.h"
#include "sim/route/batch_balancer.h"
#include "sim/route/batch_pass.h"
#include "sim/threads/thread_pool.h"
#include "tests/bench/batch.h"
#include "tests/bench/machine_limits.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace ballast::bench {
namespace {

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

/// Copies to where nothing is read soon, past the caches: else each line would be read before it is
/// written.
template <class Value>
void stream(std::span<const Value> values, Value* to) {
  std::size_t done = 0;
#if defined(__AVX2__)
  const auto* const from = reinterpret_cast<const __m256i*>(values.data());
  const std::size_t vectors = values.size_bytes() / sizeof(__m256i);
  for (std::size_t i = 0; i < vectors; ++i)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + i, _mm256_loadu_si256(from + i));
  _mm_sfence();
  done = vectors * sizeof(__m256i) / sizeof(Value);
#endif
  std::ranges::copy(values.subspan(done), to + done);
}

/// Weights and choices of some tokens, `[tokens, experts]`.
struct DenseRows {
  MatrixView<float> weights;
  MatrixView<std::uint8_t> chosen;

  void set(std::span<const std::int32_t> experts, std::span<const float> values, std::size_t t) {
    for (std::size_t slot = 0; slot < experts.size(); ++slot) {
      const auto j = static_cast<std::size_t>(experts[slot]);
      weights(t, j) = values[slot];
      chosen(t, j) = 1;
    }
  }
  void clear(std::span<const std::int32_t> experts, std::size_t t) {
    for (const std::int32_t expert : experts) {
      const auto j = static_cast<std::size_t>(expert);
      weights(t, j) = 0.0f;
      chosen(t, j) = 0;
    }
  }
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
    constexpr std::size_t fits_caches = std::size_t{32} << 20;  // streaming would empty them first
    const bool streams = weights_.values().size_bytes() > fits_caches;
    const std::size_t experts = weights_.cols(), tokens = rows.indices.rows();
    const std::size_t piece = (4096 / experts / 32 + 1) * 32;  // stays near, and in step with lines
    executor_.for_each((tokens + piece - 1) / piece, [&](std::size_t i) {
      const std::size_t first = i * piece, count = std::min(piece, tokens - first);
      const DenseRows out{weights_.view().block(taken_ + first, count),
                          chosen_.view().block(taken_ + first, count)};
      streams ? write_past_caches(rows, first, out) : write(rows, first, out);
    });
    ResultsInMemory::take(rows);
  }

 private:
  static void write(const sim::RoutingRows& rows, std::size_t first, DenseRows out) {
    std::ranges::fill(out.weights.values(), 0.0f);
    std::ranges::fill(out.chosen.values(), std::uint8_t{0});
    for (std::size_t t = 0; t < out.weights.rows(); ++t)
      out.set(rows.indices.row(first + t), rows.weights.row(first + t), t);
  }

  static void write_past_caches(const sim::RoutingRows& rows, std::size_t first, DenseRows out) {
    const std::size_t count = out.weights.rows(), experts = out.weights.cols();
    thread_local std::vector<float> weights;  // zeros between two uses
    thread_local std::vector<std::uint8_t> chosen;
    weights.resize(std::max(weights.size(), count * experts));
    chosen.resize(std::max(chosen.size(), count * experts));
    DenseRows near{{weights.data(), count, experts}, {chosen.data(), count, experts}};
    for (std::size_t t = 0; t < count; ++t)
      near.set(rows.indices.row(first + t), rows.weights.row(first + t), t);
    stream<float>(near.weights.values(), out.weights.data());
    stream<std::uint8_t>(near.chosen.values(), out.chosen.data());
    for (std::size_t t = 0; t < count; ++t) near.clear(rows.indices.row(first + t), t);
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

/// The median time of work that tells its time, thrice and again for a while: the first runs find
/// caches, the processor's clock and the places of threads as others left them.
template <class Work>
double settled(Work work) {
  constexpr double least = 0.1;
  constexpr std::size_t runs = 3;
  std::vector<double> times;
  for (double sum = 0.0; sum < least || times.size() < runs; sum += times.back())
    times.push_back(work());
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
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
    const auto choice = task == "exact" ? sim::parse_balancer("quantile:exact")
                        : task == "histogram" || task == "dense"
                            ? sim::parse_balancer("quantile:histogram:1000")
                            : std::nullopt;
    if (!(words >> threads) || !use(threads) || (!choice && task != "route")) return "what?";
    const RouterSettings settings{
        .hidden = 1, .routed_experts = shape_.experts, .top_k = shape_.top_k};
    const auto logits = sim::logits_in_memory(logits_.view());
    const sim::Batch batch{*logits, {}};
    const auto keep = [&]() -> std::unique_ptr<ResultsInMemory> {
      if (task == "dense") return std::make_unique<DenseResults>(shape_, *pool_);
      return std::make_unique<ResultsInMemory>(shape_);
    };
    return std::to_string(settled([&] {
      const auto kept = keep();
      if (!choice) {
        return seconds([&] {
          loads_ = sim::route_batch(settings, biases_, batch, nullptr, kept.get(), *pool_).loads;
        });
      }
      sim::BatchBalancer balancer(*choice, settings, biases_);
      const double time = seconds([&] { balancer.step(batch, kept.get(), *pool_); });
      balanced_.assign(balancer.biases().begin(), balancer.biases().end());
      return time;
    }));
  }

  std::string gate(std::istream& words) {
    std::size_t tokens = 0, hidden = 0, experts = 0, threads = 0;
    if (!(words >> tokens >> hidden >> experts >> threads) || !use(threads)) return "what?";
    if (x_.rows() != tokens || x_.cols() != hidden) x_ = normal_matrix(tokens, hidden, 2);
    if (w_.rows() != experts || w_.cols() != hidden) w_ = normal_matrix(experts, hidden, 3);
    Matrix<float> out(tokens, experts);
    return std::to_string(settled([&] {
      return seconds([&] {
        arithmetic::multiply_transposed<float>(x_.view(), w_.view(), out.view(), *pool_);
      });
    }));
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
  ballast::sim::keep_memory();
  if (!ballast::sim::limit_target(std::getenv("BALLAST_TARGET"), std::cerr)) return 1;
  ballast::bench::Worker worker;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << worker.answer(line) << std::endl;
}
