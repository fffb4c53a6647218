#include "sim/replay/fingerprint.h"

#include <cstddef>
#include <span>
#include <vector>

#include "core/arithmetic/functions.h"
#include "core/arithmetic/products.h"
#include "core/arithmetic/reductions.h"
#include "core/random/distributions.h"
#include "core/random/stream.h"
#include "sim/digest.h"

namespace ballast::sim {
namespace {

template <class Real>
std::vector<Real> normal_values(Stream stream, std::size_t count) {
  std::vector<Real> values(count);
  for (Real& value : values) value = static_cast<Real>(normal(stream));
  return values;
}

template <class Real>
void add_functions(Digest& digest, const Stream& stream) {
  std::vector<Real> values = normal_values<Real>(stream, 1000);
  for (const Real scale : {Real(1), Real(30)}) {
    for (const Real x : values) {
      digest.add(arithmetic::exp(x * scale));
      digest.add(arithmetic::log(x < 0 ? -x : x));
      digest.add(arithmetic::sigmoid(x * scale));
      digest.add(arithmetic::tanh(x));
    }
  }
  digest.add(arithmetic::sum(std::span<const Real>(values)));
  digest.add(arithmetic::log_sum_exp(std::span<const Real>(values)));
  std::vector<Real> softmax(values.size());
  arithmetic::softmax(values, softmax);
  digest.add(std::span<const Real>(softmax));
}

template <class Real>
void add_products(Digest& digest, const Stream& stream) {
  constexpr std::size_t m = 13, n = 17, p = 300;
  std::vector<Real> a = normal_values<Real>(stream.child("a"), m * p);
  std::vector<Real> b = normal_values<Real>(stream.child("b"), n * p);
  Matrix<Real> out(m, n);
  arithmetic::multiply_transposed<Real>({a.data(), m, p}, {b.data(), n, p}, out.view(),
                                        serial_executor());
  digest.add(std::span<const Real>(out.values()));
  Matrix<Real> back(m, p);
  arithmetic::multiply<Real>(out.view(), {b.data(), n, p}, back.view(), serial_executor());
  digest.add(std::span<const Real>(back.values()));
}

void add_random(Digest& digest, Stream stream) {
  for (int i = 0; i < 100; ++i) {
    digest.add(stream());
    digest.add(uniform_index(stream, 1000));
    digest.add(log_normal(stream, 3.0));
  }
  const std::vector<double> shares = zipf_shares(100, 1.1);
  digest.add(std::span<const double>(shares));
}

}  // namespace

std::string numerics_fingerprint() {
  const Stream stream = Stream(1).child("fingerprint");
  Digest digest;
  add_functions<float>(digest, stream.child("float"));
  add_functions<double>(digest, stream.child("double"));
  add_products<float>(digest, stream.child("float"));
  add_products<double>(digest, stream.child("double"));
  add_random(digest, stream.child("random"));
  return digest.hex();
}

}  // namespace ballast::sim
