#!/usr/bin/env bash
# From a fresh Debian 12 to a running or tested Ballast; needs bash and apt only. See usage() below.
set -euo pipefail

# Every Debian package the build needs, and why.
packages=(
  g++                            # the compiler (C++20)
  cmake                          # the build
  ninja-build                    # what CMake's presets build with
  libboost-program-options-dev   # the command line; brings Boost's headers, of which Random is used
  nlohmann-json3-dev             # scenario files and every --json output
  libxxhash-dev                  # digests: 128 bits at memory speed, the same on every platform
  libgtest-dev                   # the tests
  librapidcheck-dev              # laws and property tests
  libmpfr-dev                    # tests only: the exact values that arithmetic is measured against
  python3                        # tests only: the example subject in Python (python3-minimal has no json)
)

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)

usage() {
  cat <<'END'
usage: ./bootstrap.sh run [SCENARIO] [OPTION...]   build, then `ballast run` with these arguments
       ./bootstrap.sh test [CTEST-OPTION...]       build, then run the tests
       ./bootstrap.sh build                        build only; the command is then build/release/ballast
       ./bootstrap.sh help                         this text
Missing Debian packages are installed first, with sudo where needed. Nothing is downloaded when nothing is missing.
END
}

say() { printf 'bootstrap: %s\n' "$*" >&2; }
fail() { say "$*"; exit 70; }  # the command's own code for an internal error: no verdict was reached

# Fused multiply-add is part of the arithmetic's definition, so older processors can not run Ballast.
require_processor() {  # MACHINE CPUINFO
  local machine=$1 cpuinfo=$2 flag
  case $machine in
    aarch64 | arm64) return ;;
    x86_64) ;;
    *) fail "this processor is $machine; Ballast needs x86-64-v3 (AVX2, FMA, BMI2) or arm64" ;;
  esac
  for flag in avx2 fma bmi2; do
    grep -qE "^flags[[:space:]]*:.* $flag( |\$)" "$cpuinfo" ||
      fail "this processor has no ${flag^^}; Ballast needs x86-64-v3 (AVX2, FMA, BMI2) or arm64"
  done
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      printf '%s\n' "$package"
  done
}

# Runs a command, and shows what it said only if it fails.
quietly() {
  local said
  said=$("$@" 2>&1) || { printf '%s\n' "$said" >&2; return 1; }
}

install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail "this system has no apt; install what these Debian 12 packages hold: ${packages[*]};" \
      "then: cmake --workflow --preset release"
  fi
  local missing as_root=() options=(-y -q --no-install-recommends -o DPkg::Lock::Timeout=300)
  mapfile -t missing < <(missing_packages)
  (( ${#missing[@]} )) || return 0
  if (( EUID != 0 )); then
    command -v sudo >/dev/null ||
      fail "run this as root first: apt-get update && apt-get install --no-install-recommends ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update &&
    quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install "${options[@]}" "${missing[@]}" ||
    fail "apt-get could not install ${missing[*]}"
}

# One compiler a core, and at least 1 GiB of memory for each.
job_count() {  # CORES MEMINFO
  local cores=$1 available_kib jobs
  available_kib=$(awk '/^MemAvailable:/ {print $2}' "$2" 2>/dev/null) || true
  jobs=$(( ${available_kib:-0} / 1048576 ))
  (( jobs < cores )) || jobs=$cores
  (( jobs > 0 )) || jobs=1
  printf '%s\n' "$jobs"
}

# On a terminal ninja shows its progress in one line; elsewhere only a failure is shown.
build() {  # JOBS TARGET
  cd -- "$root"
  quietly cmake --preset release || fail "could not configure the build"
  local compile=(cmake --build --preset release -j "$1" --target "$2") show=quietly
  [[ ! -t 2 ]] || show=
  say "building in build/release, $1 at a time"
  $show "${compile[@]}" >&2 || fail "the build failed"
}

main() {
  local verb=${1:-help} jobs
  (( $# == 0 )) || shift
  case $verb in
    run | test | build) ;;
    help | -h | --help) usage; return ;;
    *) usage >&2; exit 3 ;;
  esac
  require_processor "$(uname -m)" /proc/cpuinfo
  install_packages
  jobs=$(job_count "$(nproc)" /proc/meminfo)
  case $verb in
    run)
      (build "$jobs" ballast) || exit
      exec "$root/build/release/ballast" run "$@" ;;
    test)
      build "$jobs" all
      exec ctest --preset release -j "$jobs" "$@" ;;
    build)
      build "$jobs" all ;;
  esac
}

# Tests source this file for its functions.
[[ ${BASH_SOURCE[0]} != "$0" ]] || main "$@"
