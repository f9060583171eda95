/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * algorithms.h - the algorithms, one file per family. Each only emits steps into a plan builder: no I/O, no lanes, no
 * sizes, nothing local to a machine. What rank r emits depends on (shape, r) alone and takes O(r's own steps).
 */
#ifndef QUIRE_ALGORITHMS_ALGORITHMS_H
#define QUIRE_ALGORITHMS_ALGORITHMS_H

#include <stdbool.h>

#include "plan/plan.h"

enum algorithm_id {
    ALGORITHM_ONE_SHOT,      /* every rank publishes, every rank folds all: all_reduce, broadcast, barrier */
    ALGORITHM_TWO_SHOT,      /* rank b folds block b, then publishes it: all_reduce */
    ALGORITHM_RING,          /* reduce-scatter and all-gather around a ring of pair lanes: all_reduce, broadcast */
    ALGORITHM_BINOMIAL,      /* down a binomial tree of pair lanes: broadcast */
    ALGORITHM_DISSEMINATION, /* ceil(log2 n) rounds of pair lanes: barrier */
    ALGORITHM_PAIR,          /* send, recv */
    ALGORITHM_COUNT
};

struct algorithm {
    const char *name; /* as in QUIRE_ALGORITHM and quire-plan */
    /* NULL when the algorithm can do this shape, else a sentence that says why not (static). */
    const char *(*unfit)(const struct plan_shape *shape);
    /* The plan of one rank. RESOURCE when out of memory. */
    quire_status_t (*emit)(const struct plan_shape *shape, uint32_t rank, struct plan **plan);
    bool canonical; /* adds in the canonical order (DESIGN: the balanced binary fold) */
    bool wide;      /* needs wide lanes, to every other rank */
};

extern const struct algorithm algorithm_one_shot, algorithm_two_shot, algorithm_ring, algorithm_binomial,
    algorithm_dissemination, algorithm_pair;

/* By id, never NULL for id < ALGORITHM_COUNT. */
const struct algorithm *algorithm_get(enum algorithm_id id);
/* ALGORITHM_COUNT when the name is unknown. */
enum algorithm_id algorithm_by_name(const char *name);
/* Checks fit, emits. INVALID_ARGUMENT with the reason when it doesn't fit. */
quire_status_t algorithm_emit(const struct plan_shape *shape, uint32_t rank, struct plan **plan);

#endif
