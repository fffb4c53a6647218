#!/usr/bin/env bash
# Runs the examples of a README: run_snippets.sh PROJECT BIN_DIR
#
# A block opened with "```sh run" is run by bash, with the command in BIN_DIR on the path, in a scratch folder
# that holds a copy of scenarios/; all blocks share the folder, in the README's order. A block opened with
# "```text output" must hold exactly what the block before it wrote on stdout. Other blocks are left alone.
set -euo pipefail
project=$(cd -- "$1" && pwd -P)
PATH=$(cd -- "$2" && pwd -P):$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/project"
[[ ! -d $project/scenarios ]] || cp -r "$project/scenarios" "$scratch/project/"

fail() { printf 'README.md:%s: %s\n' "$1" "$2" >&2; exit 1; }

run_block() {  # LINE
  (cd "$scratch/project" && bash -euo pipefail "$scratch/block" >"$scratch/stdout" 2>"$scratch/stderr") || {
    cat "$scratch/stdout" "$scratch/stderr" >&2
    fail "$1" "this block ends with a failure"
  }
}

compare_block() {  # LINE
  [[ -e $scratch/stdout ]] || fail "$1" "an output block with no block that was run before it"
  diff -u --label README.md --label "what it prints" "$scratch/block" "$scratch/stdout" >&2 ||
    fail "$1" "this is not what the block before prints"
}

blocks=0 kind=text number=0 start=0
while IFS= read -r line || [[ -n $line ]]; do
  number=$((number + 1))
  case $kind:$line in
    'text:```sh run') kind=run start=$number; : >"$scratch/block" ;;
    'text:```text output') kind=output start=$number; : >"$scratch/block" ;;
    'text:```'*) kind=other start=$number ;;
    text:*) ;;
    'run:```') blocks=$((blocks + 1)) kind=text; run_block "$start" ;;
    'output:```') kind=text; compare_block "$start" ;;
    'other:```') kind=text ;;
    *) printf '%s\n' "$line" >>"$scratch/block" ;;
  esac
done <"$project/README.md"
[[ $kind == text ]] || fail "$start" "this block does not end"
(( blocks > 0 )) || fail 1 'no block is opened with "```sh run", so nothing was run'
printf '%s blocks run\n' "$blocks"
