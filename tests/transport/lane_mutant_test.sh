#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# lane_mutant_test.sh - the memory order of lane.h is needed, and the thread sanitizer would tell: a small program is
# clean as it is, and reported when the release of a published slot is taken out (LANE_MUTANT_NO_RELEASE).
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/mutant.c" <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "lane.h"
void lane_ring_bells(struct lane *lane) { (void)lane; }
bool lane_refresh_limit(struct lane *lane)
{
    lane->limit = atom_load_acquire(&lane->credits[0].position) + lane_depth(lane);
    return lane->position < lane->limit;
}
static struct lane out, in;
static void *consume(void *arg)
{
    unsigned long sum = 0;
    for (int n = 0; n < 2000; n++) {
        const struct lane_slot *slot;
        while ((slot = lane_peek(&in)) == NULL)
            atom_pause();
        sum += *(const unsigned char *)lane_data(&in, slot) + slot->name.sequence;
        lane_release(&in);
    }
    printf("%lu\n", sum);
    return arg;
}
int main(void)
{
    static struct lane_slot slots[4];
    static struct lane_credit credit;
    static struct lane_control control;
    static uint8_t payload[4 * 64];
    pthread_t thread;
    out = (struct lane){.slots = slots, .payload = payload, .slot_bytes = 64, .slot_stride = 64, .mask = 3,
                        .control = &control, .credits = &credit, .consumers = 1, .limit = 4, .producer = true};
    in = out;
    in.credit = &credit.position;
    pthread_create(&thread, NULL, consume, NULL);
    for (int n = 0; n < 2000; n++) {
        struct op_name name = {.sequence = (uint64_t)n};
        while (!lane_can_send(&out))
            atom_pause();
        memset(lane_fill(&out, 32), n, 32);
        lane_publish(&out, &name, 32);
    }
    pthread_join(thread, NULL);
    return 0;
}
C
build() { gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=thread -pthread -Iinclude -Isrc -Itransport "$@" "$work/mutant.c"; }
build -o "$work/good"
build -DLANE_MUTANT_NO_RELEASE -o "$work/bad"
export TSAN_OPTIONS=exitcode=66
"$work/good" >/dev/null || { echo "the real lane is reported by the thread sanitizer"; exit 1; }
if "$work/bad" >/dev/null 2>"$work/report"; then
    echo "a lane without its release is not reported: the test can't see what it is for"
    exit 1
fi
grep -q "data race" "$work/report" || { cat "$work/report"; exit 1; }
echo "clean as it is, reported without the release"
