#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# driver_test.sh - the fuzz driver: both bounds hold, a random seed repeats its inputs, a wrong path is an error, and the
# input that brought a target down, or made it hang, is kept.
set -u
source=$PWD/tests/fuzz/driver.c
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$tree" || exit 1
bad=0
wrong() { echo "$*"; bad=1; }

# Hashes all it is given; ends by abort at a first byte of '!', hangs at '?', when told to.
cat >target.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
static uint64_t hash;
static void tell(void)
{
    printf("hash %llx\n", (unsigned long long)hash);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (hash == 0)
        atexit(tell);
    hash = hash * 31 + size + 1;
    for (size_t i = 0; i < size; i++)
        hash = hash * 31 + data[i];
    if (getenv("ARMED") && size > 0 && data[0] == '!')
        abort();
    while (getenv("ARMED") && size > 0 && data[0] == '?')
        pause();
    return 0;
}
C
${CC:-gcc} -D_GNU_SOURCE -o target target.c "$source" || exit 1
mkdir seeds
for i in 1 2 3 4 5; do echo "seed $i" >"seeds/$i"; done

timeout 20 ./target -n 1000000000000 -t 0.2 seeds >out || wrong "-t does not bound -n"
timeout 20 ./target -n 100 -t 10 -s 1 seeds | grep -q '^100 mutations$' || wrong "-n does not bound -t"
first=$(./target -n 500 -t 10 -s 7 seeds)
[ "$first" = "$(./target -n 500 -t 10 -s 7 seeds)" ] || wrong "the same random seed gave other inputs"
[ "${first##*hash}" != "$(./target -n 500 -t 10 -s 8 seeds | sed -n 's/^hash//p')" ] || wrong "another random seed gave the same inputs"
./target -n 1 seeds/none 2>/dev/null && wrong "a path that is not there is no error"

printf '!abc' >seeds/6
ARMED=1 ./target -t 10 -o kept seeds >/dev/null 2>&1 && wrong "a target that ended by abort passed"
cmp -s kept seeds/6 || wrong "the input of an abort was not kept"
printf '?abc' >seeds/6
ARMED=1 timeout 2 ./target -t 10 -o hung seeds >/dev/null 2>&1 && wrong "a target that hangs passed"
cmp -s hung seeds/6 || wrong "the input of a hang was not kept"
exit $bad
