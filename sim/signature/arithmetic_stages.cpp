#include <limits>
#include <span>

#include "core/arithmetic/functions.h"
#include "core/arithmetic/products.h"
#include "core/arithmetic/reductions.h"
#include "sim/signature/inputs.h"
#include "sim/signature/stage.h"

namespace ballast::sim {
namespace {

/// Ordinary arguments, large ones, and every special one.
template <class Real>
std::vector<Real> arguments() {
  using Limits = std::numeric_limits<Real>;
  auto values = normal_values<Real>(stage_stream("arguments"), 2000);
  for (std::size_t i = 1000; i < values.size(); ++i) values[i] *= Real(30);
  for (const Real edge :
       {Real(0), Limits::denorm_min(), Limits::min(), Limits::max(), Limits::infinity()}) {
    values.push_back(edge);
    values.push_back(-edge);
  }
  values.push_back(Limits::quiet_NaN());
  return values;
}

/// Of single values and of arrays: these may take another way.
template <class Real, class One, class Many>
void add_function(Digest& digest, One one, Many many) {
  const std::vector<Real> in = arguments<Real>();
  for (const Real x : in) digest.add(one(x));
  std::vector<Real> out(in.size());
  many(std::span<const Real>(in), std::span<Real>(out));
  digest.add(std::span<const Real>(out));
}

template <class Function>
Stage function_stage(const char* name, Function function) {
  return {name, [function](Digest& digest, const Executor&) {
            add_function<float>(digest, function, function);
            add_function<double>(digest, function, function);
          }};
}

/// Arrays of fp32 sigmoids are a kernel.
void add_sigmoids(Digest& digest, const Executor&) {
  for (const float x : arguments<float>()) digest.add(arithmetic::sigmoid(x));
  for (const double x : arguments<double>()) digest.add(arithmetic::sigmoid(x));
}

template <class Real>
void add_sums(Digest& digest) {
  for (const std::size_t count : {0, 1, 15, 16, 17, 255, 256, 1000}) {
    const auto a = normal_values<Real>(stage_stream("sums").child(count), count);
    const auto b = normal_values<Real>(stage_stream("dots").child(count), count);
    digest.add(arithmetic::sum(std::span<const Real>(a)));
    digest.add(arithmetic::dot(std::span<const Real>(a), std::span<const Real>(b)));
    digest.add(arithmetic::log_sum_exp(std::span<const Real>(a)));
    std::vector<Real> softmax(count);
    arithmetic::softmax(a, softmax);
    digest.add(std::span<const Real>(softmax));
  }
}

struct ProductShape {
  std::size_t m, n, p;
};

/// Those of odd sizes reach every edge of the blocks; the last one is enough work for several
/// threads.
constexpr ProductShape product_shapes[] = {{1, 1, 1}, {13, 17, 300}, {33, 64, 65}, {96, 130, 520}};

template <class Real>
void add_products(Digest& digest, const Executor& executor) {
  for (const auto [m, n, p] : product_shapes) {
    const Stream stream = stage_stream("products").child(m);
    const auto a = normal_matrix<Real>(stream.child("a"), m, p),
               b = normal_matrix<Real>(stream.child("b"), n, p);
    Matrix<Real> forward(m, n), back(m, p), gradient(n, p, Real(1));
    arithmetic::multiply_transposed<Real>(a, b, forward, executor);
    arithmetic::multiply<Real>(forward, b, back, executor);
    arithmetic::accumulate_transposed<Real>(forward, a, gradient, executor);
    for (const auto* const out : {&forward, &back, &gradient}) digest.add(out->values());
  }
}

void add_streams(Digest& digest, const Executor&) {
  Stream stream = stage_stream("streams");
  for (std::uint64_t i = 0; i < 100; ++i) {
    digest.add(stream());
    digest.add(stream.child(i)());
  }
  stream.seek(std::uint64_t{1} << 40);
  digest.add(stream());
}

void add_distributions(Digest& digest, const Executor&) {
  Stream stream = stage_stream("distributions");
  const std::vector<double> shares = zipf_shares(100, 1.1);
  digest.add(std::span<const double>(shares));
  const Categorical categorical(shares);
  for (int i = 0; i < 500; ++i) {
    digest.add(uniform(stream));
    digest.add(uniform_index(stream, 1000));
    digest.add(normal(stream));
    digest.add(log_normal(stream, 3.0));
    digest.add(static_cast<std::uint64_t>(categorical(stream)));
  }
}

}  // namespace

std::vector<Stage> arithmetic_stages() {
#define BOTH(function) [](auto... arguments) { return arithmetic::function(arguments...); }
  return {function_stage("arithmetic/exp", BOTH(exp)),
          function_stage("arithmetic/log", BOTH(log)),
          function_stage("arithmetic/tanh", BOTH(tanh)),
          {"arithmetic/sigmoid", add_sigmoids},
          {"arithmetic/sums",
           [](Digest& digest, const Executor&) {
             add_sums<float>(digest);
             add_sums<double>(digest);
           }},
          {"arithmetic/products",
           [](Digest& digest, const Executor& executor) {
             add_products<float>(digest, executor);
             add_products<double>(digest, executor);
           }},
          {"random/streams", add_streams},
          {"random/distributions", add_distributions}};
#undef BOTH
}

}  // namespace ballast::sim
