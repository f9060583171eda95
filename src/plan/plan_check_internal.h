/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_check_internal.h - the checker's machine: memory cells with access histories, lanes with depth and clocks. An
 * actor is one strand of one rank. Clock entries count an actor's steps; `a` happened before `b` when b's clock has at
 * least a's count in a's entry.
 */
#ifndef QUIRE_PLAN_PLAN_CHECK_INTERNAL_H
#define QUIRE_PLAN_PLAN_CHECK_INTERNAL_H

#include "base/status.h"
#include "plan.h"

enum { CHECK_MAX_RANKS = 128, CHECK_WORDS = CHECK_MAX_RANKS / 64 };

struct check_value {
    bool defined, finished, canonical;
    uint32_t block;
    uint32_t lo, hi; /* of the range of ranks, when canonical */
    uint64_t set[CHECK_WORDS];
};

struct check_cell {
    struct check_value value;
    uint32_t write_actor, write_clock; /* clock 0: never */
    uint32_t read_clock[PLAN_MAX_STRANDS];
};

struct check_slot {
    uint32_t parts;
    struct check_value *part;
    uint32_t *clock; /* of the producer at its publication */
};

struct check_lane {
    uint32_t consumers;
    uint64_t sent;
    uint64_t *read;            /* [consumer] */
    struct check_slot *slots;  /* [depth] */
    uint32_t *released;        /* [depth][consumer][actors]: clocks at release */
    struct check_value *stage; /* the slot being filled */
    uint32_t staged;
};

struct check_actor {
    uint32_t rank, strand, index;
    uint32_t step, repeat, pass;
    uint32_t *clock; /* [actors] */
};

struct check {
    const struct plan *const *plans;
    const struct plan_shape *shape;
    uint32_t ranks, depth, passes, blocks;
    bool in_place;
    bool canonical; /* the algorithm promises the canonical order */
    struct check_actor *actors;
    uint32_t actor_count;
    uint32_t *clocks;         /* of all actors, one allocation */
    struct check_cell *cells; /* [pass][rank][buffer][block] */
    struct check_lane **wide; /* [channel][producer] */
    struct check_lane **pair; /* [channel][producer][consumer] */
    uint32_t *first_actor;    /* [rank] */
    uint32_t *event_clock;    /* [rank][event][pass][actors] */
    uint32_t *event_count;    /* [rank][event]: signals so far */
    uint32_t *entry;          /* [pass][rank]: count of strand 0 when it began the pass */
    uint32_t *leave;          /* [pass][rank][actors]: joined clocks of the rank's strands at the pass's end */
};

struct check *check_create(const struct plan *const *plans, uint32_t ranks, const struct plan_check_options *options);
void check_destroy(struct check *c);

struct check_cell *check_cell(struct check *c, uint32_t pass, uint32_t rank, uint8_t buffer, uint32_t block);
/* Notes an access; false when it is unordered with an earlier one. */
bool check_read(struct check *c, const struct check_actor *a, struct check_cell *cell);
bool check_write(struct check *c, const struct check_actor *a, struct check_cell *cell);

/* Made at first use; NULL when out of memory. */
struct check_lane *check_lane(struct check *c, bool wide, uint32_t channel, uint32_t producer, uint32_t consumer);
bool check_can_send(const struct check *c, const struct check_lane *lane);
/* The parts of the next slot, cleared. */
struct check_value *check_fill(struct check_lane *lane, uint32_t parts);
void check_publish(struct check *c, struct check_actor *a, struct check_lane *lane);
const struct check_slot *check_peek(const struct check *c, const struct check_lane *lane, uint32_t consumer);
/* The actor has seen the slot. */
void check_join(struct check *c, struct check_actor *a, const struct check_slot *slot);
void check_release(struct check *c, struct check_actor *a, struct check_lane *lane, uint32_t consumer);

void check_signal(struct check *c, struct check_actor *a, uint32_t event);
bool check_wait(struct check *c, struct check_actor *a, uint32_t event);
void check_tick(struct check *c, struct check_actor *a);
void check_pass_begin(struct check *c, struct check_actor *a);
void check_pass_end(struct check *c, struct check_actor *a);

/* Every slot was read by every consumer. */
quire_status_t check_lanes_empty(const struct check *c);
/* No rank left a pass before every rank had entered it. */
quire_status_t check_barrier(const struct check *c);

#endif
