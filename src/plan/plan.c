/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.c - shapes, the builder, freezing, the invariants of a plan, and layouts. See plan.h for the vocabulary.
 */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/status.h"

enum { MAX_RANKS = 1 << 20, MAX_BLOCKS = 1 << 24, MAX_STEPS = 1 << 20 };

uint64_t plan_shape_hash(const struct plan_shape *shape)
{
    uint8_t bytes[10] = {shape->collective, shape->algorithm};
    memcpy(bytes + 2, &shape->ranks, 4);
    memcpy(bytes + 6, &shape->root, 4);
    uint64_t hash = bytes_hash(BYTES_HASH_START, bytes, sizeof(bytes));
    return (uint32_t)hash == 0 ? hash | 1 : hash;
}

/* ---- builder ----------------------------------------------------------------------------------------------------- */

struct plan_builder {
    struct plan_step *steps;
    uint32_t room;
    quire_status_t error;
    const char *reason;
    struct plan plan; /* header only: its steps are in `steps` */
};

struct plan_builder *plan_builder_create(const struct plan_shape *shape, uint32_t rank, uint32_t blocks,
                                         uint32_t slot_blocks)
{
    struct plan_builder *b = calloc(1, sizeof(*b));
    if (b == NULL)
        return NULL;
    b->plan.shape = *shape;
    b->plan.rank = rank;
    b->plan.blocks = blocks;
    b->plan.slot_blocks = slot_blocks;
    b->plan.hash = plan_shape_hash(shape);
    b->plan.strand_count = 1;
    return b;
}

void plan_builder_destroy(struct plan_builder *builder)
{
    if (builder == NULL)
        return;
    free(builder->steps);
    free(builder);
}

void plan_builder_scratch(struct plan_builder *builder, uint32_t blocks)
{
    builder->plan.scratch_blocks = blocks;
}

static void builder_error(struct plan_builder *b, quire_status_t st, const char *reason)
{
    if (b->error == QUIRE_OK) {
        b->error = st;
        b->reason = reason;
    }
}

void plan_builder_strand(struct plan_builder *builder)
{
    struct plan *p = &builder->plan;
    if (p->strands[p->strand_count - 1].count == 0)
        return; /* the present one is still empty */
    if (p->strand_count == PLAN_MAX_STRANDS) {
        builder_error(builder, QUIRE_ERR_INTERNAL, "too many strands");
        return;
    }
    p->strands[p->strand_count++].first = p->step_count;
}

struct plan_step plan_step_make(enum plan_kind kind)
{
    struct plan_step step;
    memset(&step, 0, sizeof(step));
    step.kind = (uint8_t)kind;
    step.from = step.to = -1;
    step.blocks = step.repeat = 1;
    return step;
}

void plan_builder_step(struct plan_builder *builder, const struct plan_step *step)
{
    struct plan *p = &builder->plan;
    if (p->step_count == builder->room) {
        uint32_t room = builder->room == 0 ? 16 : builder->room * 2;
        struct plan_step *grown = room > MAX_STEPS ? NULL : realloc(builder->steps, room * sizeof(*grown));
        if (grown == NULL) {
            builder_error(builder, QUIRE_ERR_RESOURCE, "no memory for another step");
            return;
        }
        builder->steps = grown;
        builder->room = room;
    }
    builder->steps[p->step_count++] = *step;
    p->strands[p->strand_count - 1].count++;
}

uint32_t plan_builder_event(struct plan_builder *builder)
{
    if (builder->plan.event_count == PLAN_MAX_EVENTS) {
        builder_error(builder, QUIRE_ERR_INTERNAL, "too many events");
        return 0;
    }
    return builder->plan.event_count++;
}

quire_status_t plan_freeze(struct plan_builder *builder, struct plan **out)
{
    quire_status_t st = QUIRE_OK;
    struct plan *plan = NULL;
    if (builder->error != QUIRE_OK) {
        st = quire_fail(builder->error, "building a plan: %s", builder->reason);
        goto done;
    }
    plan = malloc(sizeof(*plan) + builder->plan.step_count * sizeof(struct plan_step));
    if (plan == NULL) {
        st = quire_fail(QUIRE_ERR_RESOURCE, "no memory for a plan of %u steps", builder->plan.step_count);
        goto done;
    }
    memcpy(plan, &builder->plan, sizeof(*plan));
    if (plan->step_count != 0)
        memcpy(plan->steps, builder->steps, plan->step_count * sizeof(struct plan_step));
    st = plan_valid(plan);
    if (st == QUIRE_OK)
        *out = plan;
    else
        plan_free(plan);
done:
    plan_builder_destroy(builder);
    return st;
}

void plan_free(struct plan *plan)
{
    free(plan);
}

/* ---- invariants -------------------------------------------------------------------------------------------------- */

static quire_status_t bad(uint32_t strand, uint32_t step, const char *what)
{
    return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "strand %u step %u: %s", strand, step, what);
}

static bool reads_lane(const struct plan_step *s)
{
    return s->kind == PLAN_RECV || s->kind == PLAN_REDUCE;
}

static bool writes_lane(const struct plan_step *s)
{
    return s->kind == PLAN_SEND || (reads_lane(s) && s->flags & PLAN_FORWARD);
}

static bool ref_good(const struct plan *p, struct plan_ref ref)
{
    switch (ref.buffer) {
    case PLAN_NONE: /* its block still tells the length of what a receive only forwards */
    case PLAN_IN:
    case PLAN_OUT:
        return ref.block < p->blocks;
    case PLAN_SCRATCH:
        return ref.block < p->scratch_blocks;
    default:
        return false;
    }
}

/* Every peer of every iteration is another rank (itself only for send and receive). */
static bool peers_good(const struct plan *p, int32_t base, int32_t stride, uint32_t repeat)
{
    bool self = p->shape.collective == QUIRE_SEND || p->shape.collective == QUIRE_RECV;
    int64_t n = p->shape.ranks;
    if (base < 0 || base >= n)
        return false;
    if (stride == 0)
        return self || (uint32_t)base != p->rank;
    for (uint32_t i = 0; i < repeat; i++) {
        int64_t r = ((base + (int64_t)stride * i) % n + n) % n;
        if (!self && r == (int64_t)p->rank)
            return false;
    }
    return true;
}

/* Sources, destinations and flags that the executor would silently not honour, or follow into no memory. */
static const char *meaning_fault(const struct plan *p, const struct plan_step *s)
{
    if (s->dst.buffer == PLAN_IN)
        return "writes the caller's send buffer";
    if (s->flags & PLAN_FINISH && s->kind != PLAN_REDUCE)
        return "only a reduce finishes";
    if (s->kind == PLAN_COPY && (s->src.buffer == PLAN_NONE || s->dst.buffer == PLAN_NONE))
        return "a copy without source or destination";
    if (s->kind == PLAN_REDUCE && s->src.buffer == PLAN_NONE &&
        !(s->flags & PLAN_FOLD && s->dst.buffer == PLAN_NONE && p->shape.collective == QUIRE_BARRIER))
        return "a reduce without a source block";
    if (s->flags & PLAN_FOLD && s->fold_hi - s->fold_lo > PLAN_MAX_FOLD)
        return "a fold takes at most 64 ranks";
    return NULL;
}

static const char *step_fault(const struct plan *p, const struct plan_step *s)
{
    if (s->kind >= PLAN_KIND_COUNT || s->flags & ~PLAN_FLAGS_ALL)
        return "unknown kind or flag";
    if (s->repeat < 1 || s->repeat > MAX_RANKS)
        return "repeat must be at least 1";
    if (s->channel >= PLAN_CHANNEL_COUNT || s->out_channel >= PLAN_CHANNEL_COUNT)
        return "unknown channel";
    if ((s->flags & PLAN_IN_WIDE && s->channel >= PLAN_CHANNELS) ||
        (s->flags & PLAN_OUT_WIDE && s->out_channel >= PLAN_CHANNELS))
        return "there is no wide lane on this channel";
    if (!ref_good(p, s->src) || !ref_good(p, s->dst))
        return "block or buffer out of range";
    if (s->blocks < 1 || (s->kind != PLAN_SEND && s->blocks != 1) || s->blocks > p->slot_blocks)
        return "blocks out of range";
    if (s->kind == PLAN_SEND && s->src.buffer != PLAN_NONE && s->blocks > 1 &&
        (s->src.block + s->blocks > (s->src.buffer == PLAN_SCRATCH ? p->scratch_blocks : p->blocks) ||
         s->src_stride != 0))
        return "blocks of a slot out of range";
    if (s->part >= p->slot_blocks)
        return "part out of range";
    if ((s->kind == PLAN_SIGNAL || s->kind == PLAN_WAIT) && (s->event >= p->event_count || s->repeat != 1))
        return "event out of range, or repeated";
    if (s->flags & PLAN_FOLD) {
        if (s->kind != PLAN_REDUCE || !(s->flags & PLAN_IN_WIDE) || s->fold_lo >= s->fold_hi ||
            s->fold_hi > p->shape.ranks || p->rank < s->fold_lo || p->rank >= s->fold_hi)
            return "a fold is a reduce from wide lanes over a range of ranks with this one in it";
    } else if (reads_lane(s) && !peers_good(p, s->from, s->from_stride, s->repeat)) {
        return "reads from no other rank";
    }
    if (writes_lane(s) && !(s->flags & PLAN_OUT_WIDE) && !peers_good(p, s->to, s->to_stride, s->repeat))
        return "sends to no other rank";
    if (writes_lane(s) && p->shape.ranks == 1 && s->flags & PLAN_OUT_WIDE)
        return "a single rank has no wide lanes";
    if (s->flags & PLAN_FORWARD && !reads_lane(s))
        return "only a receive or reduce can forward";
    return meaning_fault(p, s);
}

/* A set of (channel, peer) with the strand that uses each; peer == ranks for wide output. */
struct lane_use {
    uint8_t *strand; /* 0 none, else strand + 1 */
    uint32_t ranks;
};

static bool use_lane(struct lane_use *use, bool out, bool wide, uint32_t channel, uint32_t peer, uint32_t strand)
{
    size_t row = (size_t)use->ranks + 1;
    size_t at = ((((size_t)out * 2 + wide) * PLAN_CHANNEL_COUNT) + channel) * row + (out && wide ? use->ranks : peer);
    if (use->strand[at] != 0 && use->strand[at] != strand + 1)
        return false;
    use->strand[at] = (uint8_t)(strand + 1);
    return true;
}

static bool step_lanes(const struct plan *p, const struct plan_step *s, uint32_t strand, struct lane_use *use)
{
    int64_t n = p->shape.ranks;
    bool good = true;
    if (s->flags & PLAN_FOLD) {
        for (uint32_t r = s->fold_lo; r < s->fold_hi; r++)
            good = good && (r == p->rank || use_lane(use, false, true, s->channel, r, strand));
    } else if (reads_lane(s)) {
        for (uint32_t i = 0; i < (s->from_stride == 0 ? 1 : s->repeat); i++)
            good = good && use_lane(use, false, s->flags & PLAN_IN_WIDE, s->channel,
                                    (uint32_t)(((s->from + (int64_t)s->from_stride * i) % n + n) % n), strand);
    }
    if (!writes_lane(s))
        return good;
    if (s->flags & PLAN_OUT_WIDE)
        return good && use_lane(use, true, true, s->out_channel, 0, strand);
    for (uint32_t i = 0; i < (s->to_stride == 0 ? 1 : s->repeat); i++)
        good = good && use_lane(use, true, false, s->out_channel,
                                (uint32_t)(((s->to + (int64_t)s->to_stride * i) % n + n) % n), strand);
    return good;
}

static quire_status_t strands_valid(const struct plan *p, struct lane_use *use)
{
    uint8_t signalled[PLAN_MAX_EVENTS] = {0};
    uint32_t next = 0;
    for (uint32_t i = 0; i < p->strand_count; i++) {
        if (p->strands[i].first != next || p->strands[i].count > p->step_count - next)
            return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "strand %u does not follow the one before it", i);
        for (uint32_t k = 0; k < p->strands[i].count; k++) {
            const struct plan_step *s = &p->steps[next + k];
            const char *fault = step_fault(p, s);
            if (fault != NULL)
                return bad(i, k, fault);
            if (!step_lanes(p, s, i, use))
                return bad(i, k, "a lane is used by another strand too, on the same side");
            if (s->kind == PLAN_SIGNAL && signalled[s->event]++ != 0)
                return bad(i, k, "an event is signalled twice a pass");
        }
        next += p->strands[i].count;
    }
    return next == p->step_count ? QUIRE_OK : quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "steps behind the last strand");
}

quire_status_t plan_valid(const struct plan *p)
{
    if (p->shape.ranks < 1 || p->shape.ranks > MAX_RANKS || p->rank >= p->shape.ranks)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "rank %u of %u is out of range", p->rank, p->shape.ranks);
    if (p->shape.collective >= QUIRE_COLLECTIVE_COUNT || p->shape.root >= p->shape.ranks)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "unknown collective, or root %u out of range", p->shape.root);
    if (p->blocks < 1 || p->blocks > MAX_BLOCKS || p->scratch_blocks > MAX_BLOCKS || p->slot_blocks < 1 ||
        p->slot_blocks > MAX_BLOCKS)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%u blocks, %u in scratch, %u in a slot: out of range", p->blocks,
                          p->scratch_blocks, p->slot_blocks);
    if (p->strand_count < 1 || p->strand_count > PLAN_MAX_STRANDS || p->event_count > PLAN_MAX_EVENTS ||
        p->step_count > MAX_STEPS)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "too many strands, events or steps");
    if (p->hash != plan_shape_hash(&p->shape))
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "the hash is not its shape's");
    struct lane_use use = {calloc(4 * PLAN_CHANNEL_COUNT, (size_t)p->shape.ranks + 1), p->shape.ranks};
    if (use.strand == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory to check a plan of %u ranks", p->shape.ranks);
    quire_status_t st = strands_valid(p, &use);
    free(use.strand);
    return st;
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

struct plan_layout plan_layout_even(size_t count, size_t elem, uint32_t blocks)
{
    struct plan_layout l = {count, elem, blocks, 0};
    size_t line = elem >= 64 ? 1 : 64 / elem;
    size_t share = count / blocks + (count % blocks != 0);
    l.block_elems = bytes_round_up(share, blocks == 1 ? 1 : line);
    return l;
}
