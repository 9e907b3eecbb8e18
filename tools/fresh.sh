#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Called by ./run fresh: what a new user meets. Makes a minimal Debian 12 with
# nothing but git in a temporary folder, clones HEAD there, and runs the demo and
# the tests. The mounts live in a mount namespace of their own, which ends with
# its last process; so the folder holds no mount when it is removed.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '==> fresh: %s\n' "$*" >&2; }
sudo=(sudo)
[ "$(id -u)" != 0 ] || sudo=()
as_root() { "${sudo[@]}" "$@"; }

COMMAND=${*:-'DEMO_SECONDS=5 ./run demo && ./run test'}

work=$(mktemp -d "${TMPDIR:-/tmp}/fraktor-fresh.XXXXXX")
root=$work/debian
child=
clean_up() {
    # unshare ignores polite signals; killing what is below it ends the namespace.
    if [ -n "$child" ] && kill -0 "$child" 2>/dev/null; then
        as_root pkill -KILL -P "$child" || true
        wait "$child" || true
    fi
    if grep -qF " $work/" /proc/self/mounts; then
        say "something is still mounted below $work; leaving it there"
        return
    fi
    as_root rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# This machine's own Debian sources, so that a local mirror is used if it has one.
sources=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources \
            /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -s "$file" ] && grep -qE '^(deb|URIs:).*debian' "$file" || continue
    case " ${sources[*]:-} " in *" $file "*) ;; *) sources+=("$file") ;; esac
done
[ ${#sources[@]} -gt 0 ] || { say "no Debian sources found in /etc/apt"; exit 1; }

extra=git
grep -qhE '^(deb|URIs:).*https:' "${sources[@]}" && extra=git,ca-certificates

git rev-parse --quiet --verify HEAD >/dev/null || { say "there is no commit to clone"; exit 1; }
git diff --quiet HEAD -- || say "note: the working copy has changes; HEAD is what is tested"
git bundle create --quiet "$work/fraktor.bundle" HEAD
head=$(git rev-parse HEAD)

say "making a minimal Debian 12 (sources: ${sources[*]})"
as_root mmdebstrap --quiet --variant=minbase --include="$extra" bookworm "$root" "${sources[@]}"

# Names and proxies are this machine's; everything else is Debian's.
as_root cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
apt-config dump | grep -E '^Acquire::(http|https)::Proxy' |
    as_root tee "$root/etc/apt/apt.conf.d/90proxy" >/dev/null || true
as_root cp "$work/fraktor.bundle" "$root/srv/"

as_root tee "$work/inside.sh" >/dev/null <<'INSIDE'
set -eu
root=$1 head=$2 command=$3
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || true
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for node in null zero full random urandom tty; do
    : >"$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
for pair in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${pair%%:*}" "$root/dev/${pair#*:}"; done
exec chroot "$root" /usr/bin/env -i HOME=/srv PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    TERM=dumb ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    /bin/bash -euc "
        cd /srv
        git -c advice.detachedHead=false clone --quiet fraktor.bundle fraktor
        cd fraktor
        git checkout --quiet $head
        $command"
INSIDE

say "running there: $COMMAND"
status=0
"${sudo[@]}" unshare --mount --pid --fork --kill-child --propagation private \
    bash "$work/inside.sh" "$root" "$head" "$COMMAND" &
child=$!
wait "$child" || status=$?
child=
if [ "$status" = 0 ]; then say "passed at $head"; else say "FAILED with exit code $status at $head"; fi
exit "$status"
