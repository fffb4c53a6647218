#if defined(__aarch64__)

#include <type_traits>
#include <utility>

#include "core/arithmetic/formats.h"
#include "core/kernels/kernels.h"
#include "core/kernels/simd_neon.h"

namespace ballast::kernels {
namespace neon {
namespace {

#include "core/kernels/kernels.inc"

}  // namespace
}  // namespace neon

extern const Kernels neon_kernels = {
    Target::neon,          neon::sigmoid,        neon::route,           neon::count_few,
    neon::count_bins,      neon::collect_inside, neon::order_statistic, neon::random_fills,
    neon::functions,       neon::reductions,     neon::adamw,           neon::multiply<float>,
    neon::multiply<double>};

}  // namespace ballast::kernels

#endif
