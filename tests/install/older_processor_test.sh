#!/usr/bin/env bash
# On emulated processors (Debian: qemu-user-static) below the baseline the command ends with one line, whatever it was
# asked to do, and on one that has no more than the baseline it runs and knows that.
#   older_processor_test.sh BALLAST
set -euo pipefail
ballast=$1

if ! command -v qemu-x86_64-static >/dev/null; then
  echo "skipped: there is no qemu-x86_64-static here"
  exit 77
fi

fail() { printf '%s\n' "$*" >&2; exit 1; }

expect() {  # PROCESSOR CODE WORDS ARGUMENT...: the exit code, and all that it says
  local processor=$1 code=$2 words=$3 said got=0
  shift 3
  said=$(qemu-x86_64-static -cpu "$processor" "$ballast" "$@" 2>&1) || got=$?
  [[ $got == "$code" ]] || fail "$processor: exit code $got instead of $code, saying: $said"
  [[ $said == "$words" ]] || fail "$processor: said '$said'"
}

refusal='ballast: this processor lacks AVX2, FMA or BMI2; Ballast needs x86-64-v3 or arm64'
for processor in Nehalem max,-avx2 max,-fma max,-bmi2; do
  expect "$processor" 70 "$refusal" --version
  expect "$processor" 70 "$refusal" run --set training.steps=1
done

expect max,-avx512f 0 "$("$ballast" --version)" --version  # with the same numerics
BALLAST_TARGET=avx512 expect max,-avx512f 3 \
  'ballast: BALLAST_TARGET=avx512 is none of those that run here: scalar avx2' --version
