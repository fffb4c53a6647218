#include <atomic>
#include <vector>

#include "core/kernels/kernels.h"

namespace ballast::kernels {

extern const Kernels scalar_kernels;
#if defined(__x86_64__)
extern const Kernels avx2_kernels;
extern const Kernels avx512_kernels;
#elif defined(__aarch64__)
extern const Kernels neon_kernels;
#endif

namespace {

std::vector<const Kernels*> find_available() {
  std::vector<const Kernels*> found = {&scalar_kernels};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v3) found.push_back(&avx2_kernels);
  if (v4) found.push_back(&avx512_kernels);
#elif defined(__aarch64__)
  found.push_back(&neon_kernels);
#endif
  return found;
}

const Kernels* widest_up_to(Target limit) {
  const Kernels* widest = available().front();
  for (const Kernels* const kernels : available()) {
    if (kernels->target <= limit) widest = kernels;
  }
  return widest;
}

/// Null until it is asked for, or set.
std::atomic<const Kernels*> in_use = nullptr;

}  // namespace

std::string_view name(Target target) {
  switch (target) {
    case Target::neon:
      return "neon";
    case Target::avx2:
      return "avx2";
    case Target::avx512:
      return "avx512";
    default:
      return "scalar";
  }
}

std::span<const Kernels* const> available() {
  static const std::vector<const Kernels*> found = find_available();
  return found;
}

const Kernels& active() {
  const Kernels* kernels = in_use.load(std::memory_order_relaxed);
  if (kernels == nullptr) {
    kernels = widest_up_to(Target::avx512);
    in_use.store(kernels, std::memory_order_relaxed);
  }
  return *kernels;
}

void limit_target(Target target) {
  in_use.store(widest_up_to(target), std::memory_order_relaxed);
}

}  // namespace ballast::kernels
