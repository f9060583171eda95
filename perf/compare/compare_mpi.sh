#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# compare_mpi.sh - all_reduce beside Open MPI as Debian ships it, interleaved in one run: medians over rounds, ratios.
#   usage: perf/compare/compare_mpi.sh [RANKS [ROUNDS]]      (default 2 ranks, 7 rounds)
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

quire() { # shellcheck disable=SC2086 # sizes is a list of words
    "$build/quire-run" -n "$ranks" --bind "$bind" "$build/compare/quire" "$work/page" $sizes >>"$work/quire.txt"
    rm -f "$work/page"
}
openmpi() { # shellcheck disable=SC2086
    mpirun --oversubscribe --bind-to "$bind" -n "$ranks" "$build/compare/mpi" "$work/page" $sizes >>"$work/mpi.txt"
    rm -f "$work/page"
}
# Each goes first in every other round, so that what drifts in the machine favours neither.
for round in $(seq "$rounds"); do
    if [ $((round % 2)) = 1 ]; then
        quire
        openmpi
    else
        openmpi
        quire
    fi
    printf '\rround %d of %d' "$round" "$rounds" >&2
done
echo >&2

median() { awk -v b="$2" '$1 == b {print $2}' "$1" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
printf '%d ranks, %d rounds interleaved; median over rounds of the p50 of the slowest rank, us\n' "$ranks" "$rounds"
printf '%12s %12s %12s %8s\n' bytes quire openmpi ratio
for bytes in $sizes; do
    q=$(median "$work/quire.txt" "$bytes") m=$(median "$work/mpi.txt" "$bytes")
    awk -v b="$bytes" -v q="$q" -v m="$m" 'BEGIN {printf "%12d %12.2f %12.2f %7.2fx\n", b, q, m, m / q}'
done
