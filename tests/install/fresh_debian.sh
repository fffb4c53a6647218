#!/usr/bin/env bash
# Shows that the README's two commands work on a fresh Debian 12 with bash and apt only: fresh_debian.sh
#
# Needs root, debootstrap, git, and a Debian mirror (MIRROR, by default the official one). It makes a minimal system
# in a temporary folder, copies the project's files into a path with a space there, and runs in it: bootstrap.sh as a
# user who may not install (one clear line), the tests, a run, and a run from another folder with the network cut
# off. Nothing else of this machine is seen from there. Takes a few minutes; the folder is removed at the end.
set -euo pipefail
project=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
mirror=${MIRROR:-http://deb.debian.org/debian}
system=$(mktemp -d)
chmod 755 "$system"
trap 'rm -rf --one-file-system "$system"' EXIT
inside="/home/some one/ballast"

say() { printf '\nfresh_debian: %s\n' "$*"; }

# in_system UNSHARE_OPTION... -- CHROOT_OPTION... -- COMMAND, run by bash inside; /proc and its mounts end with it.
in_system() {
  local namespaces=(--mount --pid --fork) options=()
  while [[ $1 != -- ]]; do namespaces+=("$1"); shift; done; shift
  while [[ $1 != -- ]]; do options+=("$1"); shift; done; shift
  unshare "${namespaces[@]}" bash -c 'mount -t proc proc "$1/proc"; shift; exec chroot "$@"' - "$system" \
    "${options[@]}" "$system" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp bash -c "$1" </dev/null
}

say "making a minimal Debian 12"
debootstrap --variant=minbase bookworm "$system" "$mirror" >"$system.log" || { tail "$system.log"; exit 1; }
rm -f "$system.log"
[[ ! -e /etc/resolv.conf ]] || cp -L /etc/resolv.conf "$system/etc/resolv.conf"
mkdir -p "$system$inside"
(cd "$project" && git ls-files -z --cached --others --exclude-standard | tar -c --null -T - --ignore-failed-read) |
  tar -x -C "$system$inside" --no-same-owner

say "bootstrap.sh as a user who may not install"
said=$(in_system -- --userspec=nobody:nogroup -- "'$inside/bootstrap.sh' run" 2>&1) && exit 1
printf '%s\n' "$said"
[[ $said == *"run this as root first: apt-get update"* && $(wc -l <<<"$said") == 1 ]]

say "./bootstrap.sh test"
time in_system -- -- "cd '$inside' && ./bootstrap.sh test"

say "./bootstrap.sh run"
time in_system -- -- "cd '$inside' && ./bootstrap.sh run"

say "the same from another folder, with the network cut off"
time in_system --net -- -- "cd / && '$inside/bootstrap.sh' run"

say "all of it works"
