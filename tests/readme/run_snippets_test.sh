#!/usr/bin/env bash
# Tests run_snippets.sh on small READMEs, right and wrong ones.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/project"
printf '#!/bin/sh\necho "balanced: $*"\n' >"$scratch/bin/ballast"
chmod +x "$scratch/bin/ballast"

failures=0
# expect NAME STATUS TEXT, with the README on stdin.
expect() {
  local is=0 said
  cat >"$scratch/project/README.md"
  said=$(bash "$here/run_snippets.sh" "$scratch/project" "$scratch/bin" 2>&1) || is=$?
  if [[ $is != "$2" || $said != *"$3"* ]]; then
    printf '%s: status %s, said: %s\n' "$1" "$is" "$said"
    failures=$((failures + 1))
  fi
}

expect "right commands and output pass" 0 "2 blocks run" <<'END'
```sh
exit 1   # not marked, so not run
```
```sh run
ballast run >kept
```
```sh run
cat kept
```
```text output
balanced: run
```
END
expect "a command that fails is found" 1 "README.md:2" <<'END'
Text.
```sh run
false
true
```
END
expect "output that differs is found" 1 "README.md:4" <<'END'
```sh run
ballast run
```
```text output
balanced: walk
```
END
expect "output of nothing is found" 1 "README.md:1" <<'END'
```text output
```
END
expect "a block without end is found" 1 "does not end" <<'END'
```sh run
true
END
expect "a README without marked blocks is found" 1 "nothing was run" <<'END'
```sh
true
```
END
exit "$((failures > 0))"
