#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# compare_mpi.sh - all_reduce beside Open MPI as Debian ships it, interleaved in one run: medians over rounds, ratios.
#   usage: perf/compare/compare_mpi.sh [RANKS [ROUNDS]]      (default 2 ranks, 7 rounds)
# Open MPI runs with its defaults, and once more without kernel-assisted copies (CMA), which are slower on many machines:
# who tunes turns them off. The ratio is to the faster of the two; above 1 Quire is faster.
set -eu
ranks=${1:-2} rounds=${2:-7} build=${BUILD:-build}
sizes="8 1024 65536 1048576 67108864"
command -v mpicc >/dev/null || { echo "Open MPI is not installed (openmpi-bin libopenmpi-dev): nothing to compare" >&2; exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

mkdir -p "$build/compare"
gcc -O2 -D_GNU_SOURCE -Iinclude perf/compare/quire_all_reduce.c -o "$build/compare/quire" -L"$build" -lquire \
    -Wl,-rpath,"$PWD/$build"
OMPI_CC=gcc mpicc -O2 -D_GNU_SOURCE perf/compare/mpi_all_reduce.c -o "$build/compare/mpi"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bind=core
[ "$ranks" -le "$(nproc)" ] || bind=none

quire() {
    # shellcheck disable=SC2086 # sizes is a list of words
    "$build/quire-run" -n "$ranks" --bind "$bind" "$build/compare/quire" "$work/page" $sizes >>"$work/quire.txt"
    rm -f "$work/page"
}
mpi() { # name, options
    local name=$1
    shift
    # shellcheck disable=SC2086
    mpirun --oversubscribe --bind-to "$bind" "$@" -n "$ranks" "$build/compare/mpi" "$work/page" $sizes >>"$work/$name.txt"
    rm -f "$work/page"
}
openmpi() { mpi openmpi; }
nocma() { mpi nocma --mca btl_vader_single_copy_mechanism none; }
# The order turns from round to round, so that what drifts in the machine favours none.
orders=("quire openmpi nocma" "openmpi nocma quire" "nocma quire openmpi")
for round in $(seq "$rounds"); do
    for contender in ${orders[round % 3]}; do
        "$contender"
    done
    printf '\rround %d of %d' "$round" "$rounds" >&2
done
echo >&2

median() { awk -v b="$2" '$1 == b {print $2}' "$1" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
printf '%d ranks, %d rounds interleaved; median over rounds of the p50 of the slowest rank, us\n' "$ranks" "$rounds"
printf '%12s %12s %12s %14s %8s\n' bytes quire openmpi openmpi-nocma ratio
for bytes in $sizes; do
    awk -v b="$bytes" -v q="$(median "$work/quire.txt" "$bytes")" -v m="$(median "$work/openmpi.txt" "$bytes")" \
        -v n="$(median "$work/nocma.txt" "$bytes")" \
        'BEGIN {printf "%12d %12.2f %12.2f %14.2f %7.2fx\n", b, q, m, n, (m + 0 < n + 0 ? m : n) / q}'
done
