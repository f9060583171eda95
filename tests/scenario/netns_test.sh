#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netns_test.sh - 2 x 2 ranks in two network namespaces joined by a veth pair: shared memory is not to be had across
# (each side has its own mount of the abstract socket space, and the proof fails), so the transport between the halves
# is tcp, and every result is checked. Skipped, with a note, where namespaces can't be made.
set -u
build=${BUILD:-build}
a=quire-a-$$ b=quire-b-$$
if [ "$(id -u)" != 0 ] || ! ip netns add "$a" 2>/dev/null; then
    echo "skipped: network namespaces can't be made here"
    exit 0
fi
clean() { ip netns del "$a" 2>/dev/null; ip netns del "$b" 2>/dev/null; }
trap clean EXIT
ip netns add "$b" || exit 1
ip link add "qa$$" netns "$a" type veth peer name "qb$$" netns "$b" || exit 1
ip -n "$a" addr add 10.77.0.1/24 dev "qa$$" && ip -n "$b" addr add 10.77.0.2/24 dev "qb$$" || exit 1
for end in "$a qa$$" "$b qb$$"; do
    # shellcheck disable=SC2086 # two words on purpose
    set -- $end
    ip -n "$1" link set lo up && ip -n "$1" link set "$2" up || exit 1
done

# Ranks 0 and 1 in one namespace, 2 and 3 in the other, meeting at an address.
pids=()
for rank in 0 1 2 3; do
    space=$a
    [ "$rank" -ge 2 ] && space=$b
    QUIRE_RANK=$rank QUIRE_SIZE=4 QUIRE_ROOT=10.77.0.1:29517 timeout 120 ip netns exec "$space" \
        "$build/all_reduce_perf" -b 4 -e 4M -f 16 -n 3 -w 1 >"${TMPDIR:-/tmp}/quire-netns-$$-$rank" 2>&1 &
    pids+=($!)
done
status=0
for rank in 0 1 2 3; do
    wait "${pids[$rank]}" || { status=1; echo "rank $rank failed"; }
done
cat "${TMPDIR:-/tmp}/quire-netns-$$-0"
[ "$status" = 0 ] || cat "${TMPDIR:-/tmp}/quire-netns-$$-"[123]
grep -q '^# Out of bounds values : 0 OK' "${TMPDIR:-/tmp}/quire-netns-$$-0" || status=1
rm -f "${TMPDIR:-/tmp}/quire-netns-$$-"*
exit $status
