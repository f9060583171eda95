/* SPDX-License-Identifier: BSD-3-Clause */
/* lane_set.h - where lanes lie in a rank's segment; for transports that map it or mirror it. */
#ifndef QUIRE_TRANSPORT_LANE_SET_H
#define QUIRE_TRANSPORT_LANE_SET_H

#include "transport.h"

/* Offsets and sizes in bytes. */
struct lane_places {
    size_t wide_head, pair_head, payload; /* of one lane */
    size_t heads_at, pairs_at;
    size_t backed;           /* control and heads: backed at creation */
    size_t pair_payloads_at; /* wide payloads begin at `backed` */
    size_t bytes;
};

struct lane_places lane_places_of(const struct lane_geometry *g, int size);
size_t lane_place_head(const struct lane_places *p, int size, bool wide, int channel, int consumer);
size_t lane_place_payload(const struct lane_places *p, int size, bool wide, int channel, int consumer);

/*
 * Fills in the incoming lanes from `producer`, whose segment lies at `base`, and points bells both ways at the
 * producer's bell.
 */
void lane_set_map_incoming(struct lane_set *set, int producer, uint8_t *base, uint32_t *bell);
/* Index of `consumer`'s credit line in this rank's wide lanes. */
uint32_t lane_set_consumer(const struct lane_set *set, int consumer);

#endif
