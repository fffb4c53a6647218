#if defined(__x86_64__)

#include <type_traits>
#include <utility>

#include "core/arithmetic/formats.h"
#include "core/kernels/kernels.h"
#include "core/kernels/simd_avx2.h"

namespace ballast::kernels {
namespace avx2 {
namespace {

#include "core/kernels/kernels.inc"

}  // namespace
}  // namespace avx2

extern const Kernels avx2_kernels = {
    Target::avx2,          avx2::sigmoid,        avx2::route,           avx2::count_few,
    avx2::count_bins,      avx2::collect_inside, avx2::order_statistic, avx2::random_fills,
    avx2::functions,       avx2::reductions,     avx2::adamw,           avx2::multiply<float>,
    avx2::multiply<double>};

}  // namespace ballast::kernels

#endif
