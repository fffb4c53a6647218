#include "core/random/fills.h"

#include <cstdint>

#include "core/kernels/kernels.h"
#include "core/random/normal_table.h"

namespace ballast {
namespace {

/// What the next values are made of, which the stream leaves behind.
kernels::RandomFill take(Stream& stream, std::span<float> out) {
  const std::uint64_t position = stream.position();
  stream.seek(position + (out.size() + 1) / 2);
  return {.key = stream.key(), .position = position, .out = out.data(), .count = out.size()};
}

}  // namespace

void fill_uniform(Stream& stream, std::span<float> out) {
  kernels::active().random.uniform(take(stream, out));
}

void fill_normal(Stream& stream, std::span<float> out) {
  kernels::active().random.normal(take(stream, out), normal_table());
}

void fill_log_normal(Stream& stream, float sigma, std::span<float> out) {
  kernels::active().random.log_normal(take(stream, out), normal_table(), sigma);
}

void fill_gumbel(Stream& stream, std::span<float> out) {
  kernels::active().random.gumbel(take(stream, out));
}

}  // namespace ballast
