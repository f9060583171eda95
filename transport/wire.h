/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - the frames that the tcp mover sends: one header per slot, then the slot's bytes. Both ends are the same
 * build on little-endian machines (checked by the version in boot's handshake and by the magic here).
 *
 * Invariant: whatever bytes arrive, wire_check accepts a header only when its checksum is right and every field is in
 * range for the lanes of this communicator; nothing of a refused frame is used.
 */
#ifndef QUIRE_TRANSPORT_WIRE_H
#define QUIRE_TRANSPORT_WIRE_H

#include "lane.h"

enum { WIRE_MAGIC = 0x31575251, WIRE_DATA = 1, WIRE_CREDIT = 2 };
/* Lanes of a pair of ranks in one direction: two wide ones, three pair ones. */
enum { WIRE_WIDE_LANES = 2, WIRE_LANES = 5 };

struct wire_header {
    uint32_t magic;
    uint8_t type;
    uint8_t lane;    /* 0, 1: the wide lanes; 2, 3, 4: the pair lanes of channel 0, 1, 2 */
    uint8_t form;    /* enum lane_form */
    uint8_t checked; /* 1: eight bytes with a checksum of the payload follow it */
    uint32_t bytes;
    uint32_t check;    /* of all other fields */
    uint64_t position; /* DATA: of the slot */
    uint64_t credit;   /* slots that this end has released on its incoming lane of the same number */
    struct op_name name;
};
_Static_assert(sizeof(struct wire_header) == 64, "a frame header is one cache line");

/* Sets magic and checksum. */
void wire_seal(struct wire_header *header);
/* NULL when the header can be trusted, else what is wrong with it (static). */
const char *wire_check(const struct wire_header *header, size_t slot_bytes);
uint64_t wire_sum(const void *data, size_t bytes);

#endif
