/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane_set.c - all lanes of one rank in one segment. The layout is a function of (geometry, size) alone, so a peer
 * that maps the segment finds its lanes without asking:
 *   control page | heads: wide[channel], then pair[channel][consumer] | payloads in the same order
 * Heads are backed when the segment is made, a payload when its lane first sends.
 */
#include "lane_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/status.h"
#include "segment.h"

enum { PAGE = 4096, LANE_MAX_DEPTH = 64 };

struct lane_places lane_places_of(const struct lane_geometry *g, int size)
{
    struct lane_places p;
    size_t n = (size_t)size, peers = n - 1;
    p.wide_head = bytes_round_up(lane_head_bytes(g, (uint32_t)peers), LANE_LINE);
    p.pair_head = bytes_round_up(lane_head_bytes(g, 1), LANE_LINE);
    p.payload = bytes_round_up(lane_payload_bytes(g), PAGE);
    p.heads_at = bytes_round_up(sizeof(struct segment_control), PAGE);
    p.pairs_at = p.heads_at + TRANSPORT_WIDE_CHANNELS * p.wide_head;
    p.backed = bytes_round_up(p.pairs_at + TRANSPORT_CHANNELS * n * p.pair_head, PAGE);
    p.pair_payloads_at = p.backed + TRANSPORT_WIDE_CHANNELS * p.payload;
    p.bytes = p.pair_payloads_at + TRANSPORT_CHANNELS * n * p.payload;
    return p;
}

size_t lane_place_head(const struct lane_places *p, int size, bool wide, int channel, int consumer)
{
    return wide ? p->heads_at + (size_t)channel * p->wide_head
                : p->pairs_at + ((size_t)channel * (size_t)size + (size_t)consumer) * p->pair_head;
}

size_t lane_place_payload(const struct lane_places *p, int size, bool wide, int channel, int consumer)
{
    return wide ? p->backed + (size_t)channel * p->payload
                : p->pair_payloads_at + ((size_t)channel * (size_t)size + (size_t)consumer) * p->payload;
}

/* Backs one lane's payload at its first use. */
static quire_status_t reserve_payload(struct lane *lane, void *owner)
{
    struct lane_set *set = owner;
    size_t offset = (size_t)(lane->payload - set->segment->base);
    quire_status_t st = segment_back(set->segment, offset, lane_payload_bytes(&set->geometry));
    if (st == QUIRE_OK)
        lane->reserved = true;
    return st;
}

static void init_out(struct lane_set *set, const struct lane_places *p, struct lane *lane, bool wide, int channel,
                     int consumer, uint32_t **bells)
{
    uint32_t consumers = wide ? (uint32_t)set->size - 1 : 1;
    lane_init_producer(lane, &set->geometry,
                       set->segment->base + lane_place_head(p, set->size, wide, channel, consumer),
                       set->segment->base + lane_place_payload(p, set->size, wide, channel, consumer), consumers);
    lane->reserve = reserve_payload;
    lane->owner = set;
    lane->wide = wide;
    lane->channel = (uint8_t)channel;
    lane->peer = wide ? -1 : consumer;
    lane->bells = consumers;
    lane->bell = bells;
}

/* The lane to oneself, for send and receive in one group: plain memory, both ends here. */
static quire_status_t make_self(struct lane_set *set)
{
    size_t head = bytes_round_up(lane_head_bytes(&set->geometry, 1), LANE_LINE);
    set->self_memory = aligned_alloc(LANE_LINE, bytes_round_up(head + lane_payload_bytes(&set->geometry), LANE_LINE));
    if (set->self_memory == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a lane of %zu bytes",
                          head + lane_payload_bytes(&set->geometry));
    memset(set->self_memory, 0, head);
    struct lane *out = &set->out_pair[TRANSPORT_CHANNELS - 1][set->rank];
    lane_init_producer(out, &set->geometry, set->self_memory, set->self_memory + head, 1);
    out->reserved = true;
    out->peer = set->rank;
    out->channel = TRANSPORT_CHANNELS - 1;
    return QUIRE_OK;
}

static quire_status_t make_shared(struct lane_set *set)
{
    struct lane_places p = lane_places_of(&set->geometry, set->size);
    size_t n = (size_t)set->size, peers = n - 1;
    quire_status_t st = segment_create(&set->segment, p.bytes, p.backed, true);
    if (st != QUIRE_OK)
        return st;
    set->segment->control->rank = set->rank;
    set->bells =
        calloc(TRANSPORT_WIDE_CHANNELS * peers + 2 * (size_t)TRANSPORT_CHANNELS * n + TRANSPORT_WIDE_CHANNELS * n,
               sizeof(*set->bells));
    if (set->bells == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for %zu lanes", n);
    uint32_t **bell = set->bells;
    for (int channel = 0; channel < TRANSPORT_WIDE_CHANNELS; channel++, bell += peers)
        init_out(set, &p, &set->out_wide[channel], true, channel, 0, bell);
    for (int channel = 0; channel < TRANSPORT_CHANNELS; channel++)
        for (int c = 0; c < set->size; c++, bell++)
            if (c != set->rank)
                init_out(set, &p, &set->out_pair[channel][c], false, channel, c, bell);
    set->in_bells = bell;
    return QUIRE_OK;
}

/* Refuses what no layout exists for, above all offsets that would wrap: lane_places_of doesn't look. */
static quire_status_t check_geometry(int rank, int size, const struct lane_geometry *g)
{
    size_t lanes, slots, bytes;
    if (size < 1 || rank < 0 || rank >= size)
        return QUIRE_BUG("lanes of rank %d of %d", rank, size);
    if (g->depth < 2 || g->depth > LANE_MAX_DEPTH || (g->depth & (g->depth - 1)) != 0 || g->slot_bytes == 0 ||
        g->slot_bytes % LANE_LINE != 0)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                          "lanes of %u slots of %zu bytes: slots are a power of two from 2 to %d, their bytes a "
                          "multiple of %d",
                          g->depth, g->slot_bytes, LANE_MAX_DEPTH, LANE_LINE);
    /* Every slot's stride, header and credit line, and the rounding to pages, are below slot_bytes + 2 pages. */
    lanes = (size_t)TRANSPORT_CHANNELS * (size_t)size + TRANSPORT_WIDE_CHANNELS + 1;
    if (g->slot_bytes > SIZE_MAX - 2 * PAGE || !bytes_mul(lanes, g->depth, &slots) ||
        !bytes_mul(slots, g->slot_bytes + 2 * PAGE, &bytes) || bytes > INT64_MAX)
        return quire_fail(QUIRE_ERR_RESOURCE, "%zu lanes of %u slots of %zu bytes need more than can be addressed",
                          lanes, g->depth, g->slot_bytes);
    return QUIRE_OK;
}

quire_status_t lane_set_create(struct lane_set **out, int rank, int size, const struct lane_geometry *geometry)
{
    quire_status_t valid = check_geometry(rank, size, geometry);
    if (valid != QUIRE_OK)
        return valid;
    struct lane_set *set = calloc(1, sizeof(*set));
    size_t n = (size_t)size;
    if (set == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a set of lanes");
    set->rank = rank;
    set->size = size;
    set->geometry = *geometry;
    bool good = true;
    for (int channel = 0; channel < TRANSPORT_CHANNELS; channel++) {
        set->out_pair[channel] = calloc(n, sizeof(struct lane));
        set->in_pair[channel] = calloc(n, sizeof(struct lane));
        good = good && set->out_pair[channel] != NULL && set->in_pair[channel] != NULL;
    }
    for (int channel = 0; channel < TRANSPORT_WIDE_CHANNELS; channel++) {
        set->in_wide[channel] = calloc(n, sizeof(struct lane));
        good = good && set->in_wide[channel] != NULL;
    }
    quire_status_t st = good ? make_self(set) : quire_fail(QUIRE_ERR_RESOURCE, "no memory for %zu lanes", n);
    if (st == QUIRE_OK && size > 1)
        st = make_shared(set);
    if (st != QUIRE_OK) {
        lane_set_destroy(set);
        return st;
    }
    *out = set;
    return QUIRE_OK;
}

void lane_set_destroy(struct lane_set *set)
{
    if (set == NULL)
        return;
    segment_put(set->segment);
    free(set->bells);
    free(set->self_memory);
    for (int channel = 0; channel < TRANSPORT_CHANNELS; channel++) {
        free(set->in_pair[channel]);
        free(set->out_pair[channel]);
    }
    for (int channel = 0; channel < TRANSPORT_WIDE_CHANNELS; channel++)
        free(set->in_wide[channel]);
    free(set);
}

/* ---- incoming ---------------------------------------------------------------------------------------------------- */

static uint32_t consumer_index(int consumer, int producer)
{
    return (uint32_t)(consumer < producer ? consumer : consumer - 1);
}

static void bell_to_producer(struct lane_set *set, struct lane *lane, int slot, uint32_t *bell)
{
    lane->bell = &set->in_bells[slot];
    lane->bell[0] = bell;
    lane->bells = 1;
}

void lane_set_map_incoming(struct lane_set *set, int producer, uint8_t *base, uint32_t *bell)
{
    struct lane_places p = lane_places_of(&set->geometry, set->size);
    uint32_t peers = (uint32_t)set->size - 1;
    for (int channel = 0; channel < TRANSPORT_WIDE_CHANNELS; channel++) {
        struct lane *lane = &set->in_wide[channel][producer];
        lane_init_consumer(lane, &set->geometry, base + lane_place_head(&p, set->size, true, channel, 0),
                           base + lane_place_payload(&p, set->size, true, channel, 0), peers,
                           consumer_index(set->rank, producer));
        lane->wide = true;
        lane->channel = (uint8_t)channel;
        lane->peer = producer;
        bell_to_producer(set, lane, channel * set->size + producer, bell);
        set->out_wide[channel].bell[consumer_index(producer, set->rank)] = bell;
    }
    for (int channel = 0; channel < TRANSPORT_CHANNELS; channel++) {
        struct lane *lane = &set->in_pair[channel][producer];
        lane_init_consumer(lane, &set->geometry, base + lane_place_head(&p, set->size, false, channel, set->rank),
                           base + lane_place_payload(&p, set->size, false, channel, set->rank), 1, 0);
        lane->channel = (uint8_t)channel;
        lane->peer = producer;
        bell_to_producer(set, lane, (TRANSPORT_WIDE_CHANNELS + channel) * set->size + producer, bell);
        set->out_pair[channel][producer].bell[0] = bell;
    }
}

uint32_t lane_set_consumer(const struct lane_set *set, int consumer)
{
    return consumer_index(consumer, set->rank);
}
