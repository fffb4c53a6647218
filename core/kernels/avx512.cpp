#if defined(__x86_64__)

#include <type_traits>
#include <utility>

#include "core/arithmetic/formats.h"
#include "core/kernels/kernels.h"
#include "core/kernels/simd_avx512.h"

namespace ballast::kernels {
namespace avx512 {
namespace {

#include "core/kernels/kernels.inc"

}  // namespace
}  // namespace avx512

extern const Kernels avx512_kernels = {
    Target::avx512,          avx512::sigmoid,      avx512::route,
    avx512::count_few,       avx512::count_bins,   avx512::collect_inside,
    avx512::order_statistic, avx512::random_fills, avx512::functions,
    avx512::reductions,      avx512::adamw,        avx512::multiply<float>,
    avx512::multiply<double>};

}  // namespace ballast::kernels

#endif
