/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h - a lane is a ring of slots in memory: one producer, one or more consumers. Everything that moves between
 * ranks moves through lanes; a network transport is only a mover that copies published slots into a ring on the other
 * side. This file is the whole protocol: layout, flags, credits, sleeping, and the memory order that makes it right.
 *
 * Layout, in the producer's segment (its home; every consumer maps it):
 *
 *     head     | lane_control | credit line of consumer 0 | ... | slot header 0 | slot header 1 | ... depth-1 |
 *     payload  | slot_stride bytes for slot 0 | ... | depth-1 |
 *
 * The head is backed by pages when the segment is made; the payload when the producer first sends on the lane
 * (lane_reserve), always before a slot in it is published, so no access can meet a missing page.
 *
 * A slot header is one cache line: flag, operation name, byte count, and 16 bytes of data, so a small message is one
 * line transfer. Larger messages lie in the payload; or the slot is a reference to bytes in a segment that the
 * consumers can map (LANE_REF), read in place.
 *
 * Positions count slots from 0 for ever; position p lives in slot p % depth. A slot's flag is epoch (16 bits, high) and
 * position + 1 (48 bits), so a late write of a dead epoch or an old lap is never taken for data.
 *
 * Memory order (each release names the acquire it pairs with)
 *     L1 producer: store flag (release), after header and payload are written
 *        pairs with L2 consumer: load flag (acquire), before reading header and payload
 *     L3 consumer: store its credit (release), after its last read of the slot
 *        pairs with L4 producer: load credit (acquire), before it writes that slot again
 * Nothing else orders lanes; different lanes are independent.
 *
 * Sleeping: a waiter first announces itself in lane_control (consumers_asleep, or producer_asleep), looks once more,
 * then sleeps in futex on its rank's bell, at most 1 ms. Whoever publishes (or releases) looks at that word with one
 * plain load and rings the bells if it isn't 0. There is no fence between the store of the flag and that load, so a
 * wake can be missed; the cap of the sleep bounds the loss, and the hot path stays free of fences.
 *
 * Threads: the producer's view is used by one thread at a time (the one inside the communicator), so is each
 * consumer's. Views are plain memory of their process; only what is in the head is shared.
 *
 * Invariants (lane_check): depth a power of two >= 2; producer: credits <= position <= lowest credit + depth;
 * consumer: its credit == position.
 */
#ifndef QUIRE_TRANSPORT_LANE_H
#define QUIRE_TRANSPORT_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomics.h"
#include "base/op_name.h"
#include "quire.h"

enum { LANE_INLINE_BYTES = 16, LANE_LINE = 64 };
enum lane_form { LANE_BYTES = 0 /* inline or in the payload, by the byte count */, LANE_REF = 1 };

struct lane_ref {
    uint64_t offset;
    uint32_t segment;    /* number of the producer's memory segment, see segment.h */
    uint32_t generation; /* of that segment; checked by the reader after its last read */
};

struct lane_slot {
    uint64_t flag;
    struct op_name name;
    uint32_t bytes;
    uint8_t form; /* enum lane_form */
    uint8_t pad[3];
    union {
        uint8_t data[LANE_INLINE_BYTES];
        struct lane_ref ref;
    };
};
_Static_assert(sizeof(struct lane_slot) == LANE_LINE, "a slot header is one cache line");

struct lane_credit {
    uint64_t position __attribute__((aligned(LANE_LINE))); /* slots this consumer has released */
};

struct lane_control {
    uint32_t consumers_asleep __attribute__((aligned(LANE_LINE)));
    uint32_t producer_asleep;
};

/* One rank's end of a lane. */
struct lane {
    struct lane_slot *slots;
    uint8_t *payload;
    size_t slot_bytes;  /* usable payload bytes of a slot */
    size_t slot_stride; /* between payloads: not a multiple of 4096, so that slots don't share cache sets */
    uint64_t mask;      /* depth - 1 */
    uint64_t epoch_bits;
    uint64_t position; /* next slot this end writes or reads */
    struct lane_control *control;
    /* producer */
    uint64_t limit; /* positions below may be written without looking at credits */
    struct lane_credit *credits;
    uint32_t consumers;
    bool reserved; /* payload is backed by pages */
    bool producer;
    /* consumer */
    uint64_t *credit; /* my line in the producer's head */
    /* both */
    int peer; /* the other end's rank; -1 for a wide lane seen by its producer */
    uint8_t channel;
    bool wide;
    uint32_t bells;         /* of the other ends: consumers', or the producer's */
    uint32_t **bell;        /* futex words in the peers' segments; NULL entries for ends that no bell reaches */
    uint64_t sent_sequence; /* pair lanes: messages of send/receive so far, see executor */
    /* Backs the payload with pages; may be NULL when it always is. */
    quire_status_t (*reserve)(struct lane *lane, void *owner);
    void *owner;
};

static inline uint64_t lane_flag(const struct lane *lane, uint64_t position)
{
    return lane->epoch_bits | ((position + 1) & UINT64_C(0xffffffffffff));
}

static inline uint32_t lane_depth(const struct lane *lane)
{
    return (uint32_t)lane->mask + 1;
}

/* ---- producer ---------------------------------------------------------------------------------------------------- */

/* Reads all credit lines; the slow half of lane_can_send. */
bool lane_refresh_limit(struct lane *lane);

/* True when the next slot is free: every consumer has released what lay there a lap ago. */
static inline bool lane_can_send(struct lane *lane)
{
    return lane->position < lane->limit || lane_refresh_limit(lane);
}

/* Backs the payload at first use; OK at once afterwards. Call before lane_fill when more than inline bytes come. */
static inline quire_status_t lane_reserve(struct lane *lane)
{
    return lane->reserved || lane->reserve == NULL ? QUIRE_OK : lane->reserve(lane, lane->owner);
}

/* Where the next slot's `bytes` go; only when lane_can_send. */
static inline void *lane_fill(struct lane *lane, size_t bytes)
{
    uint64_t i = lane->position & lane->mask;
    return bytes <= LANE_INLINE_BYTES ? (void *)lane->slots[i].data : (void *)(lane->payload + i * lane->slot_stride);
}

void lane_ring_bells(struct lane *lane);

static inline void lane_publish_form(struct lane *lane, const struct op_name *name, uint32_t bytes, uint8_t form)
{
    struct lane_slot *slot = &lane->slots[lane->position & lane->mask];
    slot->name = *name;
    slot->bytes = bytes;
    slot->form = form;
#if defined(LANE_MUTANT_NO_RELEASE) /* tests/transport/lane_mutant_test.sh: the sanitizer must see this */
    atom_store_relaxed(&slot->flag, lane_flag(lane, lane->position));
#else
    atom_store_release(&slot->flag, lane_flag(lane, lane->position)); /* L1 */
#endif
    lane->position++;
    if (__builtin_expect(atom_load_relaxed(&lane->control->consumers_asleep) != 0, 0))
        lane_ring_bells(lane);
}

/* Publishes what was written at lane_fill(lane, bytes). */
static inline void lane_publish(struct lane *lane, const struct op_name *name, uint32_t bytes)
{
    lane_publish_form(lane, name, bytes, LANE_BYTES);
}

/* Publishes a reference; the bytes may be reused once every consumer has released the slot (lane_all_released). */
static inline void lane_publish_ref(struct lane *lane, const struct op_name *name, uint32_t bytes,
                                    const struct lane_ref *ref)
{
    lane->slots[lane->position & lane->mask].ref = *ref;
    lane_publish_form(lane, name, bytes, LANE_REF);
}

/* True when every consumer has released every slot below `position`. */
bool lane_all_released(const struct lane *lane, uint64_t position);

/* ---- consumer ---------------------------------------------------------------------------------------------------- */

/* The next slot when it is full, else NULL. Reading it is allowed until lane_release. */
static inline const struct lane_slot *lane_peek(const struct lane *lane)
{
    const struct lane_slot *slot = &lane->slots[lane->position & lane->mask];
    return atom_load_acquire(&slot->flag) == lane_flag(lane, lane->position) ? slot : NULL; /* L2 */
}

/* The bytes of a full slot of form LANE_BYTES. */
static inline const void *lane_data(const struct lane *lane, const struct lane_slot *slot)
{
    return slot->bytes <= LANE_INLINE_BYTES
               ? (const void *)slot->data
               : (const void *)(lane->payload + (lane->position & lane->mask) * lane->slot_stride);
}

static inline void lane_release(struct lane *lane)
{
    lane->position++;
    atom_store_release(lane->credit, lane->position); /* L3 */
    if (__builtin_expect(atom_load_relaxed(&lane->control->producer_asleep) != 0, 0))
        lane_ring_bells(lane);
}

/* The invariants at the top; the sentence goes to this thread's error text. */
quire_status_t lane_check(const struct lane *lane);

/* ---- making lanes ------------------------------------------------------------------------------------------------ */

/* What all ranks of a communicator agree on. */
struct lane_geometry {
    uint32_t depth;    /* power of two, 2 .. 64 */
    size_t slot_bytes; /* multiple of 64 */
    uint16_t epoch;
};

size_t lane_head_bytes(const struct lane_geometry *g, uint32_t consumers);
size_t lane_payload_bytes(const struct lane_geometry *g);
/* Views over zeroed memory. `consumer` is the index of this consumer's credit line. */
void lane_init_producer(struct lane *lane, const struct lane_geometry *g, void *head, void *payload,
                        uint32_t consumers);
void lane_init_consumer(struct lane *lane, const struct lane_geometry *g, void *head, void *payload, uint32_t consumers,
                        uint32_t consumer);

#endif
