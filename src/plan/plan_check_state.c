/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_check_state.c - memory, lanes and clocks of the checker; see plan_check_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "plan_check_internal.h"

enum { BUFFERS = 3 /* in, out, scratch */ };

static void join(const struct check *c, uint32_t *into, const uint32_t *other)
{
    for (uint32_t i = 0; i < c->actor_count; i++)
        if (other[i] > into[i])
            into[i] = other[i];
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static void fill_inputs(struct check *c)
{
    bool broadcast = c->shape->collective == QUIRE_BROADCAST;
    for (uint32_t pass = 0; pass < c->passes; pass++)
        for (uint32_t r = 0; r < c->ranks; r++)
            for (uint32_t b = 0; b < c->plans[r]->blocks; b++) {
                struct check_value *v = &check_cell(c, pass, r, PLAN_IN, b)->value;
                if (broadcast && r != c->shape->root)
                    continue; /* not the root: its input does not exist */
                v->defined = v->canonical = true;
                v->block = b;
                v->lo = r;
                v->hi = r + 1;
                v->set[r / 64] |= UINT64_C(1) << r % 64;
            }
}

static void make_actors(struct check *c)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < c->ranks; r++) {
        c->first_actor[r] = n;
        for (uint32_t s = 0; s < c->plans[r]->strand_count; s++, n++) {
            const struct plan_strand *strand = &c->plans[r]->strands[s];
            struct check_actor *a = &c->actors[n];
            *a = (struct check_actor){r, s, n, strand->first, 0, 0, c->clocks + (size_t)n * c->actor_count};
            a->clock[n] = 1;
            if (strand->count == 0)
                a->pass = c->passes; /* nothing to do */
        }
    }
    for (uint32_t i = 0; i < c->actor_count; i++)
        check_pass_begin(c, &c->actors[i]);
}

struct check *check_create(const struct plan *const *plans, uint32_t ranks, const struct plan_check_options *options)
{
    struct check *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->plans = plans;
    c->shape = &plans[0]->shape;
    c->ranks = ranks;
    c->depth = options->depth;
    c->passes = options->passes;
    c->in_place = options->in_place;
    c->canonical = options->canonical;
    for (uint32_t r = 0; r < ranks; r++) {
        c->actor_count += plans[r]->strand_count;
        c->blocks = plans[r]->blocks > c->blocks ? plans[r]->blocks : c->blocks;
        c->blocks = plans[r]->scratch_blocks > c->blocks ? plans[r]->scratch_blocks : c->blocks;
    }
    size_t n = ranks, actors = c->actor_count, passes = c->passes;
    c->actors = calloc(actors, sizeof(*c->actors));
    c->clocks = calloc(actors * actors, sizeof(*c->clocks));
    c->cells = calloc(passes * n * BUFFERS * c->blocks, sizeof(*c->cells));
    c->wide = calloc(PLAN_CHANNEL_COUNT * n, sizeof(*c->wide));
    c->pair = calloc(PLAN_CHANNEL_COUNT * n * n, sizeof(*c->pair));
    c->first_actor = calloc(n, sizeof(*c->first_actor));
    c->event_clock = calloc(n * PLAN_MAX_EVENTS * passes * actors, sizeof(*c->event_clock));
    c->event_count = calloc(n * PLAN_MAX_EVENTS, sizeof(*c->event_count));
    c->entry = calloc(passes * n, sizeof(*c->entry));
    c->leave = calloc(passes * n * actors, sizeof(*c->leave));
    if (c->actors == NULL || c->clocks == NULL || c->cells == NULL || c->wide == NULL || c->pair == NULL ||
        c->first_actor == NULL || c->event_clock == NULL || c->event_count == NULL || c->entry == NULL ||
        c->leave == NULL) {
        check_destroy(c);
        return NULL;
    }
    fill_inputs(c);
    make_actors(c);
    return c;
}

static void lane_free(const struct check *c, struct check_lane *lane)
{
    if (lane == NULL)
        return;
    for (uint32_t i = 0; lane->slots != NULL && i < c->depth; i++) {
        free(lane->slots[i].part);
        free(lane->slots[i].clock);
    }
    free(lane->slots);
    free(lane->stage);
    free(lane->read);
    free(lane->released);
    free(lane);
}

void check_destroy(struct check *c)
{
    size_t n = c->ranks;
    for (size_t i = 0; c->wide != NULL && i < PLAN_CHANNEL_COUNT * n; i++)
        lane_free(c, c->wide[i]);
    for (size_t i = 0; c->pair != NULL && i < PLAN_CHANNEL_COUNT * n * n; i++)
        lane_free(c, c->pair[i]);
    free(c->leave);
    free(c->entry);
    free(c->event_count);
    free(c->event_clock);
    free(c->first_actor);
    free(c->pair);
    free(c->wide);
    free(c->cells);
    free(c->clocks);
    free(c->actors);
    free(c);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

struct check_cell *check_cell(struct check *c, uint32_t pass, uint32_t rank, uint8_t buffer, uint32_t block)
{
    size_t which = buffer == PLAN_SCRATCH ? 2 : buffer == PLAN_OUT && !c->in_place ? 1 : 0;
    return &c->cells[(((size_t)pass * c->ranks + rank) * BUFFERS + which) * c->blocks + block];
}

static bool after_write(const struct check_actor *a, const struct check_cell *cell)
{
    return cell->write_clock == 0 || cell->write_clock <= a->clock[cell->write_actor];
}

bool check_read(struct check *c, const struct check_actor *a, struct check_cell *cell)
{
    if (!after_write(a, cell))
        return false;
    cell->read_clock[a->strand] = a->clock[a->index];
    return true;
}

bool check_write(struct check *c, const struct check_actor *a, struct check_cell *cell)
{
    if (!after_write(a, cell))
        return false;
    for (uint32_t s = 0; s < c->plans[a->rank]->strand_count; s++)
        if (cell->read_clock[s] > a->clock[c->first_actor[a->rank] + s])
            return false;
    cell->write_actor = a->index;
    cell->write_clock = a->clock[a->index];
    return true;
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

static struct check_lane *lane_make(const struct check *c, uint32_t consumers)
{
    struct check_lane *lane = calloc(1, sizeof(*lane));
    if (lane == NULL)
        return NULL;
    lane->consumers = consumers;
    lane->read = calloc(consumers, sizeof(*lane->read));
    lane->slots = calloc(c->depth, sizeof(*lane->slots));
    lane->released = calloc((size_t)c->depth * consumers * c->actor_count, sizeof(*lane->released));
    lane->stage = calloc(c->plans[0]->slot_blocks, sizeof(*lane->stage));
    bool good = lane->stage != NULL && lane->read != NULL && lane->slots != NULL && lane->released != NULL;
    for (uint32_t i = 0; good && i < c->depth; i++) {
        lane->slots[i].part = calloc(c->plans[0]->slot_blocks, sizeof(struct check_value));
        lane->slots[i].clock = calloc(c->actor_count, sizeof(uint32_t));
        good = lane->slots[i].part != NULL && lane->slots[i].clock != NULL;
    }
    if (good)
        return lane;
    lane_free(c, lane);
    return NULL;
}

struct check_lane *check_lane(struct check *c, bool wide, uint32_t channel, uint32_t producer, uint32_t consumer)
{
    struct check_lane **at = wide ? &c->wide[(size_t)channel * c->ranks + producer]
                                  : &c->pair[((size_t)channel * c->ranks + producer) * c->ranks + consumer];
    if (*at == NULL)
        *at = lane_make(c, wide ? c->ranks - 1 : 1);
    return *at;
}

bool check_can_send(const struct check *c, const struct check_lane *lane)
{
    for (uint32_t i = 0; i < lane->consumers; i++)
        if (lane->sent >= lane->read[i] + c->depth)
            return false;
    return true;
}

struct check_value *check_fill(struct check_lane *lane, uint32_t parts)
{
    lane->staged = parts;
    memset(lane->stage, 0, parts * sizeof(*lane->stage));
    return lane->stage;
}

void check_publish(struct check *c, struct check_actor *a, struct check_lane *lane)
{
    uint32_t at = (uint32_t)(lane->sent % c->depth);
    struct check_slot *slot = &lane->slots[at];
    /* Reuse comes after every consumer's release of what lay there. */
    for (uint32_t i = 0; i < lane->consumers; i++)
        join(c, a->clock, lane->released + ((size_t)at * lane->consumers + i) * c->actor_count);
    slot->parts = lane->staged;
    memcpy(slot->part, lane->stage, lane->staged * sizeof(*slot->part));
    memcpy(slot->clock, a->clock, c->actor_count * sizeof(*slot->clock));
    lane->sent++;
}

const struct check_slot *check_peek(const struct check *c, const struct check_lane *lane, uint32_t consumer)
{
    return lane->read[consumer] < lane->sent ? &lane->slots[lane->read[consumer] % c->depth] : NULL;
}

void check_join(struct check *c, struct check_actor *a, const struct check_slot *slot)
{
    join(c, a->clock, slot->clock);
}

void check_release(struct check *c, struct check_actor *a, struct check_lane *lane, uint32_t consumer)
{
    size_t at = lane->read[consumer]++ % c->depth;
    memcpy(lane->released + (at * lane->consumers + consumer) * c->actor_count, a->clock,
           c->actor_count * sizeof(*a->clock));
}

quire_status_t check_lanes_empty(const struct check *c)
{
    for (size_t i = 0; i < (size_t)PLAN_CHANNEL_COUNT * c->ranks * (c->ranks + 1); i++) {
        bool wide = i < (size_t)PLAN_CHANNEL_COUNT * c->ranks;
        size_t at = wide ? i : i - (size_t)PLAN_CHANNEL_COUNT * c->ranks;
        const struct check_lane *lane = wide ? c->wide[at] : c->pair[at];
        for (uint32_t k = 0; lane != NULL && k < lane->consumers; k++)
            if (lane->read[k] != lane->sent)
                return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                                  "a slot is never read: rank %zu sent %llu on its %s lane of channel %zu, consumer %u "
                                  "read %llu",
                                  wide ? at % c->ranks : at / c->ranks % c->ranks, (unsigned long long)lane->sent,
                                  wide ? "wide" : "pair", wide ? at / c->ranks : at / c->ranks / c->ranks,
                                  wide ? k : (uint32_t)(at % c->ranks), (unsigned long long)lane->read[k]);
    }
    return QUIRE_OK;
}

/* ---- events, passes ---------------------------------------------------------------------------------------------- */

/* One clock a pass: a wait is behind the signal of its pass, not behind what the other strand did since. */
static uint32_t *event_clock(const struct check *c, size_t at, uint32_t pass)
{
    return c->event_clock + (at * c->passes + pass) * c->actor_count;
}

void check_signal(struct check *c, struct check_actor *a, uint32_t event)
{
    size_t at = (size_t)a->rank * PLAN_MAX_EVENTS + event;
    c->event_count[at]++;
    join(c, event_clock(c, at, a->pass), a->clock);
}

bool check_wait(struct check *c, struct check_actor *a, uint32_t event)
{
    size_t at = (size_t)a->rank * PLAN_MAX_EVENTS + event;
    if (c->event_count[at] <= a->pass)
        return false;
    join(c, a->clock, event_clock(c, at, a->pass));
    return true;
}

void check_tick(struct check *c, struct check_actor *a)
{
    a->clock[a->index]++;
}

void check_pass_begin(struct check *c, struct check_actor *a)
{
    if (a->strand != 0 || a->pass >= c->passes)
        return;
    check_tick(c, a);
    c->entry[(size_t)a->pass * c->ranks + a->rank] = a->clock[a->index];
}

void check_pass_end(struct check *c, struct check_actor *a)
{
    join(c, c->leave + ((size_t)a->pass * c->ranks + a->rank) * c->actor_count, a->clock);
}

quire_status_t check_barrier(const struct check *c)
{
    for (uint32_t pass = 0; pass < c->passes; pass++)
        for (uint32_t r = 0; r < c->ranks; r++)
            for (uint32_t q = 0; q < c->ranks; q++) {
                const uint32_t *leave = c->leave + ((size_t)pass * c->ranks + r) * c->actor_count;
                if (q != r && leave[c->first_actor[q]] < c->entry[(size_t)pass * c->ranks + q])
                    return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                                      "rank %u leaves barrier %u before rank %u has entered", r, pass, q);
            }
    return QUIRE_OK;
}
