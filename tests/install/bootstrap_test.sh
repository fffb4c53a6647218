#!/usr/bin/env bash
# Tests bootstrap.sh's checks without installing or building anything: bootstrap_test.sh PROJECT
set -euo pipefail
project=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
source "$project/bootstrap.sh"

failures=0
# expect NAME STATUS TEXT COMMAND...: the command ends with the status and says one line that holds the text.
expect() {
  local name=$1 status=$2 text=$3 said is=0
  shift 3
  said=$("$@" 2>&1) || is=$?
  if [[ $is != "$status" || $said != *"$text"* || $(wc -l <<<"$said") != 1 ]]; then
    printf '%s: status %s instead of %s, said: %s\n' "$name" "$is" "$status" "$said"
    failures=$((failures + 1))
  fi
}

printf 'model name\t: new\nflags\t\t: fpu avx avx2 bmi1 bmi2 fma movbe\n' >"$scratch/new"
printf 'model name\t: avx2 fma bmi2\nflags\t\t: fpu sse sse2 avx fma4 bmi1\n' >"$scratch/old"
expect "a processor of the baseline passes" 0 "" require_processor x86_64 "$scratch/new"
expect "arm64 passes without x86 flags" 0 "" require_processor aarch64 "$scratch/none"
expect "an older processor is refused by name of what it lacks" 70 "no AVX2" require_processor x86_64 "$scratch/old"
expect "another architecture is refused" 70 "riscv64" require_processor riscv64 "$scratch/new"

printf 'MemTotal: 9000000 kB\nMemAvailable: 3145728 kB\n' >"$scratch/memory"
expect "one job a core" 0 2 job_count 2 "$scratch/memory"
expect "no more jobs than GiB available" 0 3 job_count 8 "$scratch/memory"
printf 'MemAvailable: 1000 kB\n' >"$scratch/memory"
expect "one job where memory is short" 0 1 job_count 8 "$scratch/memory"
expect "one job where memory is not told" 0 1 job_count 8 "$scratch/none"

# A system of its own: only the commands put into $scratch/bin exist there.
mkdir "$scratch/bin"
without_apt() { PATH=$scratch/bin install_packages; }
expect "a system without apt is told what to install" 70 "ninja-build" without_apt

printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/dpkg-query"
printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/apt-get"
chmod +x "$scratch/bin/"*
for tool in sh env; do ln -s "$(command -v "$tool")" "$scratch/bin/"; done
expect "missing packages are installed" 70 "installing ${packages[*]}" \
  eval 'PATH=$scratch/bin install_packages 2>&1 | sed -n 1p; exit ${PIPESTATUS[0]}'
expect "a failing apt-get is said" 70 "could not install" \
  eval 'PATH=$scratch/bin install_packages 2>&1 | sed -n "\$p"; exit ${PIPESTATUS[0]}'

printf '#!/bin/sh\nprintf installed\n' >"$scratch/bin/dpkg-query"
printf '#!/bin/sh\necho apt-get was called\nexit 1\n' >"$scratch/bin/apt-get"
complete() { PATH=$scratch/bin install_packages; }
expect "apt-get is not called when nothing is missing" 0 "" complete

exit "$((failures > 0))"
