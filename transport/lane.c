/* SPDX-License-Identifier: BSD-3-Clause */
/* lane.c - the slow half of lane.h: credits, bells, making views over memory, the check. */
#include "lane.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/status.h"

/* Added to each slot's stride so that the same offset in different slots falls into different cache sets. */
enum { STRIDE_SKEW = 3 * LANE_LINE };

bool lane_refresh_limit(struct lane *lane)
{
    uint64_t lowest = UINT64_MAX;
    for (uint32_t i = 0; i < lane->consumers; i++) {
        uint64_t credit = atom_load_acquire(&lane->credits[i].position); /* L4 */
        if (credit < lowest)
            lowest = credit;
    }
    if (lane->consumers == 0)
        lowest = lane->position;
    lane->limit = lowest + lane_depth(lane);
    return lane->position < lane->limit;
}

bool lane_all_released(const struct lane *lane, uint64_t position)
{
    for (uint32_t i = 0; i < lane->consumers; i++)
        if (atom_load_acquire(&lane->credits[i].position) < position)
            return false;
    return true;
}

void lane_ring_bells(struct lane *lane)
{
    for (uint32_t i = 0; i < lane->bells; i++) {
        uint32_t *bell = lane->bell[i];
        if (bell == NULL)
            continue;
        (void)atom_add(bell, 1u);
        (void)syscall(SYS_futex, bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

quire_status_t lane_check(const struct lane *lane)
{
    uint64_t depth = lane->mask + 1;
    if (depth < 2 || (depth & lane->mask) != 0)
        return quire_fail(QUIRE_ERR_INTERNAL, "lane depth %llu is no power of two >= 2", (unsigned long long)depth);
    if (!lane->producer) {
        uint64_t credit = atom_load_acquire(lane->credit);
        return credit == lane->position
                   ? QUIRE_OK
                   : quire_fail(QUIRE_ERR_INTERNAL, "a consumer is at %llu but its credit says %llu",
                                (unsigned long long)lane->position, (unsigned long long)credit);
    }
    for (uint32_t i = 0; i < lane->consumers; i++) {
        uint64_t credit = atom_load_acquire(&lane->credits[i].position);
        if (credit > lane->position || lane->position > credit + depth)
            return quire_fail(QUIRE_ERR_INTERNAL, "a producer is at %llu, consumer %u's credit at %llu, depth %llu",
                              (unsigned long long)lane->position, i, (unsigned long long)credit,
                              (unsigned long long)depth);
    }
    return QUIRE_OK;
}

size_t lane_head_bytes(const struct lane_geometry *g, uint32_t consumers)
{
    return sizeof(struct lane_control) + consumers * sizeof(struct lane_credit) + g->depth * sizeof(struct lane_slot);
}

static size_t stride_of(const struct lane_geometry *g)
{
    size_t stride = bytes_round_up(g->slot_bytes, LANE_LINE) + STRIDE_SKEW;
    return stride % 4096 == 0 ? stride + LANE_LINE : stride;
}

size_t lane_payload_bytes(const struct lane_geometry *g)
{
    return g->depth * stride_of(g);
}

static void init_common(struct lane *lane, const struct lane_geometry *g, void *head, void *payload, uint32_t consumers)
{
    memset(lane, 0, sizeof(*lane));
    lane->control = head;
    lane->credits = (struct lane_credit *)((uint8_t *)head + sizeof(struct lane_control));
    lane->slots = (struct lane_slot *)(lane->credits + consumers);
    lane->payload = payload;
    lane->slot_bytes = g->slot_bytes;
    lane->slot_stride = stride_of(g);
    lane->mask = g->depth - 1;
    lane->epoch_bits = (uint64_t)g->epoch << 48;
    lane->consumers = consumers;
    lane->peer = -1;
}

void lane_init_producer(struct lane *lane, const struct lane_geometry *g, void *head, void *payload, uint32_t consumers)
{
    init_common(lane, g, head, payload, consumers);
    lane->producer = true;
    lane->limit = g->depth;
}

void lane_init_consumer(struct lane *lane, const struct lane_geometry *g, void *head, void *payload, uint32_t consumers,
                        uint32_t consumer)
{
    init_common(lane, g, head, payload, consumers);
    lane->credit = &lane->credits[consumer].position;
}
