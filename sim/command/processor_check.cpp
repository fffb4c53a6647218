// Refuses processors below the baseline with one line instead of an illegal instruction.
//
// All other files are compiled for the baseline, and their static objects are made before main, so
// the check is a constructor that runs before those, and this file alone is compiled for any
// x86-64.
#if defined(__x86_64__)

#include <unistd.h>

#include <string_view>

namespace {

constexpr std::string_view message =
    "ballast: this processor lacks AVX2, FMA or BMI2; Ballast needs x86-64-v3 or arm64\n";
constexpr int exit_internal_error = 70;

// 101 is the earliest priority that is not the implementation's own.
[[gnu::constructor(101)]] void refuse_processors_below_the_baseline() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return;
  }
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message.data(), message.size());
  _exit(exit_internal_error);
}

}  // namespace

#endif
