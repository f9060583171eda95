#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh - the machine in one screen, then a checked all_reduce sweep on 4 processes. Fails when anything was wrong.
set -eu
build=${BUILD:-build}

echo
"$build/quire-info"
echo
echo "all_reduce on 4 processes; every element is checked on every rank (#wrong):"
echo
exec "$build/quire-run" -n 4 "$build/all_reduce_perf" -b 8 -e 16M -f 4 -n 20 -w 5
