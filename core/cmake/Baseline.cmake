# The baseline processor: fused multiply-add is part of the arithmetic's definition, so the compiler must be
# allowed to use the instruction. Defines BALLAST_ARCHITECTURE_FLAGS and stops where there is no such instruction.
include(CheckCXXSourceCompiles)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(BALLAST_ARCHITECTURE "x86-64-v3" CACHE STRING "Value of -march, x86-64-v3 or later")
  set(BALLAST_ARCHITECTURE_FLAGS -march=${BALLAST_ARCHITECTURE})
endif()

set(CMAKE_REQUIRED_FLAGS "${BALLAST_ARCHITECTURE_FLAGS}")
check_cxx_source_compiles("
  #if !defined(__aarch64__) && !(defined(__x86_64__) && defined(__AVX2__) && defined(__FMA__) && defined(__BMI2__))
  #error below the baseline
  #endif
  int main() {}" BALLAST_BASELINE_${BALLAST_ARCHITECTURE})
unset(CMAKE_REQUIRED_FLAGS)
if(NOT BALLAST_BASELINE_${BALLAST_ARCHITECTURE})
  message(FATAL_ERROR "Ballast needs x86-64-v3 (AVX2, FMA, BMI2) or arm64; the target here is "
    "${CMAKE_SYSTEM_PROCESSOR} with flags '${BALLAST_ARCHITECTURE_FLAGS}'.")
endif()
