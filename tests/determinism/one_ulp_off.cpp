// The AVX2 kernels with one of them one unit in the last place off in some of its values: what the
// determinism matrix has to find, and to say where. BALLAST_ONE_ULP_OFF names the kernel.
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "core/kernels/kernels.h"

namespace ballast::kernels {

extern const Kernels sound_avx2_kernels;  // core/kernels/avx2.cpp, compiled under this name

namespace {

/// The next larger one, of a positive number.
float next(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) + 1);
}

/// Moves about one in `one_in` of the values, a power of two.
void move_some(std::span<float> values, std::uint32_t one_in) {
  for (float& x : values) {
    if (x != 0.0f && std::bit_cast<std::uint32_t>(x) % one_in == 0) x = next(x);
  }
}

void sigmoid(const float* in, float* out, std::size_t count) {
  sound_avx2_kernels.sigmoid(in, out, count);
  move_some({out, count}, 256);
}

void route(const RouteRows& rows) {
  sound_avx2_kernels.route(rows);
  if (rows.weights != nullptr) move_some({rows.weights, rows.tokens * rows.top_k}, 64);
}

/// The lower end of the histogram.
void count_bins(CountBins& rows) {
  const float low = rows.low;
  rows.low = next(low);
  sound_avx2_kernels.count_bins(rows);
  rows.low = low;
}

float order_statistic(float* values, float* scratch, std::size_t count, std::size_t position) {
  float value = sound_avx2_kernels.order_statistic(values, scratch, count, position);
  move_some({&value, 1}, 16);
  return value;
}

void multiply(const Product<float>& product) {
  sound_avx2_kernels.multiply(product);
  for (std::size_t i = 0; i < product.rows; ++i)
    move_some({product.out + i * product.out_stride, product.cols}, 256);
}

Kernels one_ulp_off() {
  Kernels kernels = sound_avx2_kernels;
  const char* const word = std::getenv("BALLAST_ONE_ULP_OFF");
  const std::string_view wanted = word == nullptr ? "" : word;
  if (wanted == "sigmoid") kernels.sigmoid = sigmoid;
  if (wanted == "route") kernels.route = route;
  if (wanted == "count_bins") kernels.count_bins = count_bins;
  if (wanted == "order_statistic") kernels.order_statistic = order_statistic;
  if (wanted == "multiply") kernels.multiply = multiply;
  return kernels;
}

}  // namespace

extern const Kernels avx2_kernels = one_ulp_off();

}  // namespace ballast::kernels
