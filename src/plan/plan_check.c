/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_check.c - proves the plans of all ranks of one shape by running them on symbols instead of bytes.
 *
 * A value is "which block, whose contributions, in which order, finished or not". Lanes have their real depth. Because
 * each lane has one writing and one reading strand, what arrives doesn't depend on the schedule, so one schedule is
 * enough, provided that no two accesses of one block are unordered; vector clocks over all strands of all ranks show
 * those. Slice k of a block is moved in pass k, so different passes touch different memory.
 *
 * The state (plan_check_state.c) keeps memory, lanes and clocks; this file runs steps and judges the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_check_internal.h"

enum { MAX_CELLS = 1 << 20, MAX_SLOT_BLOCKS = 4096 }; /* some 100 bytes each */

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static quire_status_t fault(const struct check *c, const struct check_actor *a, const char *what)
{
    return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "rank %u strand %u step %u pass %u%s: %s", a->rank, a->strand,
                      a->step - c->plans[a->rank]->strands[a->strand].first, a->pass, c->in_place ? " in place" : "",
                      what);
}

static quire_status_t no_memory(void)
{
    return quire_fail(QUIRE_ERR_RESOURCE, "no memory to check plans");
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* left op right; NULL when it can be done, else why not. */
static const char *combine(struct check_value *to, const struct check_value *left, const struct check_value *right)
{
    if (!left->defined || !right->defined)
        return "adds a value that was never written";
    if (left->block != right->block)
        return "adds two different blocks";
    if (left->finished || right->finished)
        return "adds to a value that is finished already";
    struct check_value v = *left;
    for (int w = 0; w < CHECK_WORDS; w++) {
        if (left->set[w] & right->set[w])
            return "a contribution is added twice";
        v.set[w] |= right->set[w];
    }
    v.hi = right->hi;
    v.canonical = left->canonical && right->canonical && left->hi == right->lo &&
                  left->hi == left->lo + (right->hi - left->lo) / 2;
    *to = v;
    return NULL;
}

static const char *fold(struct check_value *to, const struct check_value *all, uint32_t lo, uint32_t hi)
{
    if (hi - lo == 1) {
        *to = all[lo];
        return to->defined ? NULL : "adds a value that was never written";
    }
    struct check_value left = {0}, right = {0};
    uint32_t mid = lo + (hi - lo) / 2;
    const char *why = fold(&left, all, lo, mid);
    if (why == NULL)
        why = fold(&right, all, mid, hi);
    return why != NULL ? why : combine(to, &left, &right);
}

/* ---- one step ---------------------------------------------------------------------------------------------------- */

static uint32_t strided(uint32_t base, int32_t stride, uint32_t i, uint32_t n)
{
    int64_t v = ((int64_t)base + (int64_t)stride * (int64_t)i) % (int64_t)n;
    return (uint32_t)(v < 0 ? v + n : v);
}

struct refs {
    struct check_cell *src, *dst; /* NULL for none */
    uint32_t dst_block;           /* its number, of none too */
    bool dst_any;                 /* scratch: blocks there are all as long as the longest */
};

static struct refs refs_of(struct check *c, const struct check_actor *a, const struct plan_step *s)
{
    const struct plan *p = c->plans[a->rank];
    struct plan_ref both[2] = {s->src, s->dst};
    int32_t strides[2] = {s->src_stride, s->dst_stride};
    struct check_cell *cells[2];
    uint32_t block[2];
    for (int i = 0; i < 2; i++) {
        block[i] = strided(both[i].block, strides[i], a->repeat,
                           both[i].buffer == PLAN_SCRATCH ? p->scratch_blocks : p->blocks);
        cells[i] = both[i].buffer == PLAN_NONE ? NULL : check_cell(c, a->pass, a->rank, both[i].buffer, block[i]);
    }
    return (struct refs){cells[0], cells[1], block[1], s->dst.buffer == PLAN_SCRATCH};
}

static quire_status_t load(struct check *c, struct check_actor *a, struct check_cell *cell, struct check_value *value)
{
    if (!check_read(c, a, cell))
        return fault(c, a, "a race: it reads a block that another strand writes, unordered");
    *value = cell->value;
    return value->defined ? QUIRE_OK : fault(c, a, "reads a block that was never written");
}

/* Trailing blocks may be short, so a block only goes to its own place: elsewhere it may run over the buffer's end. */
static quire_status_t store(struct check *c, struct check_actor *a, const struct refs *refs,
                            const struct check_value *v)
{
    if (!refs->dst_any && v->block != refs->dst_block) {
        char what[96];
        snprintf(what, sizeof(what), "writes block %u to the place of block %u", v->block, refs->dst_block);
        return fault(c, a, what);
    }
    if (!check_write(c, a, refs->dst))
        return fault(c, a, "a race: it writes a block that another strand reads or writes, unordered");
    refs->dst->value = *v;
    return QUIRE_OK;
}

static struct check_lane *out_lane(struct check *c, const struct check_actor *a, const struct plan_step *s)
{
    bool wide = s->flags & PLAN_OUT_WIDE;
    uint32_t to = wide ? 0 : strided((uint32_t)s->to, s->to_stride, a->repeat, c->ranks);
    return check_lane(c, wide, s->out_channel, a->rank, to);
}

static quire_status_t run_send(struct check *c, struct check_actor *a, const struct plan_step *s, bool *blocked)
{
    struct check_lane *lane = out_lane(c, a, s);
    if (lane == NULL)
        return no_memory();
    *blocked = !check_can_send(c, lane);
    if (*blocked)
        return QUIRE_OK;
    struct check_value *parts = check_fill(lane, s->blocks);
    const struct plan *p = c->plans[a->rank];
    for (uint32_t i = 0; i < s->blocks && s->src.buffer != PLAN_NONE; i++) {
        uint32_t block = s->blocks == 1 ? strided(s->src.block, s->src_stride, a->repeat,
                                                  s->src.buffer == PLAN_SCRATCH ? p->scratch_blocks : p->blocks)
                                        : s->src.block + i;
        if (s->blocks > 1 && s->flags & PLAN_SKIP_SELF && block == a->rank)
            continue;
        quire_status_t st = load(c, a, check_cell(c, a->pass, a->rank, s->src.buffer, block), &parts[i]);
        if (st != QUIRE_OK)
            return st;
    }
    check_publish(c, a, lane);
    return QUIRE_OK;
}

/* The part of a slot that a step reads. */
static quire_status_t slot_value(struct check *c, struct check_actor *a, const struct plan_step *s,
                                 const struct check_slot *slot, struct check_value *value)
{
    if (s->part >= slot->parts)
        return fault(c, a, "reads a part that the slot does not have");
    *value = slot->part[s->part];
    return value->defined ? QUIRE_OK : fault(c, a, "reads a part of a slot that was never filled");
}

/* Everything that a receive, reduce or fold needs is there: n source lanes, and room in the lane it forwards to. */
struct sources {
    struct check_lane *lane[CHECK_MAX_RANKS];
    uint32_t consumer[CHECK_MAX_RANKS];
    struct check_lane *out; /* NULL when it doesn't forward */
};

static quire_status_t find_sources(struct check *c, struct check_actor *a, const struct plan_step *s,
                                   struct sources *from, bool *blocked)
{
    bool folds = s->flags & PLAN_FOLD;
    uint32_t lo = folds ? s->fold_lo : strided((uint32_t)s->from, s->from_stride, a->repeat, c->ranks);
    uint32_t hi = folds ? s->fold_hi : lo + 1;
    for (uint32_t r = lo; r < hi; r++) {
        if (folds && r == a->rank)
            continue;
        bool wide = s->flags & PLAN_IN_WIDE;
        from->lane[r] = check_lane(c, wide, s->channel, r, wide ? 0 : a->rank);
        from->consumer[r] = wide ? (a->rank < r ? a->rank : a->rank - 1) : 0;
        if (from->lane[r] == NULL)
            return no_memory();
        *blocked = *blocked || check_peek(c, from->lane[r], from->consumer[r]) == NULL;
    }
    from->out = NULL;
    if (s->flags & PLAN_FORWARD) {
        from->out = out_lane(c, a, s);
        if (from->out == NULL)
            return no_memory();
        *blocked = *blocked || !check_can_send(c, from->out);
    }
    return QUIRE_OK;
}

static quire_status_t finish_step(struct check *c, struct check_actor *a, const struct plan_step *s,
                                  struct check_lane *out, const struct refs *refs, struct check_value *v, bool data)
{
    quire_status_t st = QUIRE_OK;
    if (s->flags & PLAN_FINISH && data) {
        if (v->finished)
            return fault(c, a, "a value is finished twice (averages would be divided twice)");
        v->finished = true;
    }
    if (refs->dst != NULL && data)
        st = store(c, a, refs, v);
    if (st == QUIRE_OK && out != NULL) {
        struct check_value *parts = check_fill(out, 1);
        if (data)
            parts[0] = *v;
        check_publish(c, a, out);
    }
    return st;
}

static quire_status_t run_fold(struct check *c, struct check_actor *a, const struct plan_step *s, bool *blocked)
{
    struct sources from;
    quire_status_t st = find_sources(c, a, s, &from, blocked);
    if (st != QUIRE_OK || *blocked)
        return st;
    struct refs refs = refs_of(c, a, s);
    struct check_value all[CHECK_MAX_RANKS] = {{0}}, result = {0};
    bool data = refs.src != NULL;
    for (uint32_t r = s->fold_lo; st == QUIRE_OK && r < s->fold_hi; r++) {
        const struct check_slot *slot = r == a->rank ? NULL : check_peek(c, from.lane[r], from.consumer[r]);
        if (slot != NULL)
            check_join(c, a, slot);
        if (data)
            st = slot == NULL ? load(c, a, refs.src, &all[r]) : slot_value(c, a, s, slot, &all[r]);
    }
    if (st != QUIRE_OK)
        return st;
    const char *why = data ? fold(&result, all, s->fold_lo, s->fold_hi) : NULL;
    if (why != NULL)
        return fault(c, a, why);
    st = finish_step(c, a, s, from.out, &refs, &result, data);
    for (uint32_t r = s->fold_lo; r < s->fold_hi; r++)
        if (r != a->rank)
            check_release(c, a, from.lane[r], from.consumer[r]);
    return st;
}

static quire_status_t run_read(struct check *c, struct check_actor *a, const struct plan_step *s, bool *blocked)
{
    struct sources from;
    uint32_t r = strided((uint32_t)s->from, s->from_stride, a->repeat, c->ranks);
    quire_status_t st = find_sources(c, a, s, &from, blocked);
    if (st != QUIRE_OK || *blocked)
        return st;
    struct refs refs = refs_of(c, a, s);
    const struct check_slot *slot = check_peek(c, from.lane[r], from.consumer[r]);
    struct check_value value = {0}, own = {0};
    bool data = refs.dst != NULL || from.out != NULL || s->kind == PLAN_REDUCE;
    check_join(c, a, slot);
    if (data && (st = slot_value(c, a, s, slot, &value)) != QUIRE_OK)
        return st;
    if (s->kind == PLAN_RECV && refs.dst == NULL && from.out != NULL && c->shape->collective != QUIRE_BARRIER &&
        value.block != refs.dst_block) {
        char what[96];
        snprintf(what, sizeof(what), "forwards block %u with the length of block %u", value.block, refs.dst_block);
        return fault(c, a, what);
    }
    if (s->kind == PLAN_REDUCE) {
        if (refs.src == NULL)
            return fault(c, a, "a reduce without a source block");
        if ((st = load(c, a, refs.src, &own)) != QUIRE_OK)
            return st;
        bool slot_first = s->flags & PLAN_SLOT_FIRST;
        const char *why = combine(&value, slot_first ? &value : &own, slot_first ? &own : &value);
        if (why != NULL)
            return fault(c, a, why);
    }
    st = finish_step(c, a, s, from.out, &refs, &value, data);
    check_release(c, a, from.lane[r], from.consumer[r]);
    return st;
}

static quire_status_t run_step(struct check *c, struct check_actor *a, bool *blocked)
{
    const struct plan_step *s = &c->plans[a->rank]->steps[a->step];
    struct refs refs;
    struct check_value value = {0};
    quire_status_t st;
    switch ((enum plan_kind)s->kind) {
    case PLAN_SEND:
        return run_send(c, a, s, blocked);
    case PLAN_RECV:
        return run_read(c, a, s, blocked);
    case PLAN_REDUCE:
        return s->flags & PLAN_FOLD ? run_fold(c, a, s, blocked) : run_read(c, a, s, blocked);
    case PLAN_COPY:
        refs = refs_of(c, a, s);
        if (refs.src == NULL || refs.dst == NULL)
            return fault(c, a, "a copy without source or destination");
        if (refs.src == refs.dst)
            return QUIRE_OK;
        st = load(c, a, refs.src, &value);
        return st != QUIRE_OK ? st : store(c, a, &refs, &value);
    case PLAN_SIGNAL:
        check_signal(c, a, s->event);
        return QUIRE_OK;
    case PLAN_WAIT:
        *blocked = !check_wait(c, a, s->event);
        return QUIRE_OK;
    case PLAN_KIND_COUNT:
        break;
    }
    return fault(c, a, "unknown kind of step");
}

/* ---- running all ------------------------------------------------------------------------------------------------- */

static void advance(struct check *c, struct check_actor *a)
{
    const struct plan *p = c->plans[a->rank];
    const struct plan_strand *strand = &p->strands[a->strand];
    if (++a->repeat < p->steps[a->step].repeat)
        return;
    a->repeat = 0;
    if (++a->step < strand->first + strand->count)
        return;
    check_pass_end(c, a);
    a->step = strand->first;
    if (++a->pass < c->passes)
        check_pass_begin(c, a);
}

/* What a blocked strand waits for, as "(...)" behind its place. */
static void tell_blocked(struct check *c, const struct check_actor *a, char *text, size_t bytes)
{
    const struct plan_step *s = &c->plans[a->rank]->steps[a->step];
    bool folds = s->flags & PLAN_FOLD, wide = s->flags & PLAN_IN_WIDE;
    if (s->kind == PLAN_WAIT) {
        snprintf(text, bytes, "event %u is not signalled", s->event);
        return;
    }
    if (s->kind != PLAN_SEND) {
        uint32_t lo = folds ? s->fold_lo : strided((uint32_t)s->from, s->from_stride, a->repeat, c->ranks);
        for (uint32_t r = lo; r < (folds ? s->fold_hi : lo + 1); r++) {
            const struct check_lane *lane =
                folds && r == a->rank ? NULL : check_lane(c, wide, s->channel, r, wide ? 0 : a->rank);
            uint32_t consumer = wide && a->rank > r ? a->rank - 1 : wide ? a->rank : 0;
            if (lane != NULL && check_peek(c, lane, consumer) == NULL) {
                snprintf(text, bytes, "nothing from rank %u", r);
                return;
            }
        }
    }
    const struct check_lane *out = out_lane(c, a, s);
    for (uint32_t i = 0; out != NULL && i < out->consumers; i++)
        if (out->sent >= out->read[i] + c->depth) {
            uint32_t to = s->flags & PLAN_OUT_WIDE ? (i < a->rank ? i : i + 1)
                                                   : strided((uint32_t)s->to, s->to_stride, a->repeat, c->ranks);
            snprintf(text, bytes, "no room towards rank %u", to);
            return;
        }
    snprintf(text, bytes, "blocked");
}

static quire_status_t deadlock(struct check *c)
{
    char text[512] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < c->actor_count && used + 128 < sizeof(text); i++) {
        const struct check_actor *a = &c->actors[i];
        const struct plan *p = c->plans[a->rank];
        if (a->pass >= c->passes)
            continue;
        char why[48];
        tell_blocked(c, a, why, sizeof(why));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%srank %u strand %u step %u pass %u (%s)",
                                 used == 0 ? "" : ", ", a->rank, a->strand, a->step - p->strands[a->strand].first,
                                 a->pass, why);
    }
    return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "deadlock with lanes of %u slots%s: %s", c->depth,
                      c->in_place ? " in place" : "", text);
}

static quire_status_t run_all(struct check *c)
{
    for (bool moved = true, open = true; open;) {
        if (!moved)
            return deadlock(c);
        moved = open = false;
        for (uint32_t i = 0; i < c->actor_count; i++) {
            struct check_actor *a = &c->actors[i];
            while (a->pass < c->passes) {
                bool blocked = false;
                quire_status_t st = run_step(c, a, &blocked);
                if (st != QUIRE_OK)
                    return st;
                if (blocked)
                    break;
                check_tick(c, a);
                advance(c, a);
                moved = true;
            }
            open = open || a->pass < c->passes;
        }
    }
    return QUIRE_OK;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static quire_status_t judge_block(const struct check *c, uint32_t pass, uint32_t rank, uint32_t block,
                                  const struct check_value *v)
{
    const char *what = NULL;
    bool reduces = c->shape->collective == QUIRE_ALL_REDUCE;
    uint32_t root = c->shape->root;
    int missing = -1;
    if (!v->defined)
        what = "was never written";
    else if (v->block != block)
        what = "holds another block";
    for (uint32_t r = 0; what == NULL && r < c->ranks; r++) {
        bool has = v->set[r / 64] >> r % 64 & 1, wants = reduces || r == root;
        if (wants && !has) {
            missing = (int)r;
            what = "lacks the contribution of rank";
        } else if (has && !wants) {
            what = "holds more than the root's contribution";
        }
    }
    if (what == NULL && reduces && c->ranks > 1 && !v->finished)
        what = "was never finished (averages would not be divided)";
    if (what == NULL && reduces && c->canonical && !(v->canonical && v->lo == 0 && v->hi == c->ranks))
        what = "was not added in the canonical order";
    if (what == NULL)
        return QUIRE_OK;
    char number[16] = "";
    if (missing >= 0)
        snprintf(number, sizeof(number), " %d", missing);
    return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "rank %u, pass %u%s: output block %u %s%s", rank, pass,
                      c->in_place ? " in place" : "", block, what, number);
}

static quire_status_t judge(struct check *c)
{
    quire_status_t st = check_lanes_empty(c);
    if (st == QUIRE_OK && c->shape->collective == QUIRE_BARRIER)
        return check_barrier(c);
    for (uint32_t pass = 0; st == QUIRE_OK && pass < c->passes; pass++)
        for (uint32_t r = 0; st == QUIRE_OK && r < c->ranks; r++)
            for (uint32_t b = 0; st == QUIRE_OK && b < c->plans[r]->blocks; b++)
                st = judge_block(c, pass, r, b, &check_cell(c, pass, r, PLAN_OUT, b)->value);
    return st;
}

static quire_status_t admit(const struct plan *const *plans, uint32_t ranks, const struct plan_check_options *options)
{
    if (ranks < 1 || ranks > CHECK_MAX_RANKS)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%u ranks: the checker takes 1 to %d", ranks, CHECK_MAX_RANKS);
    if (options->depth < 1 || options->depth > 1024 || options->passes < 1 || options->passes > 16)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "depth %u, %u passes: out of range", options->depth,
                          options->passes);
    for (uint32_t r = 0; r < ranks; r++) {
        quire_status_t st = plan_valid(plans[r]);
        if (st != QUIRE_OK)
            return st;
        if (!plan_shape_equal(&plans[r]->shape, &plans[0]->shape) || plans[r]->rank != r ||
            plans[r]->shape.ranks != ranks || plans[r]->blocks != plans[0]->blocks ||
            plans[r]->slot_blocks != plans[0]->slot_blocks)
            return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                              "plan %u is rank %u's of %u: the plans of one shape, in rank order, are wanted", r,
                              plans[r]->rank, plans[r]->shape.ranks);
    }
    /* 128 ranks in two_shot or ring have 128 blocks each: far from this. */
    uint64_t blocks = plans[0]->blocks;
    for (uint32_t r = 0; r < ranks; r++)
        blocks = plans[r]->scratch_blocks > blocks ? plans[r]->scratch_blocks : blocks;
    if (blocks * ranks * options->passes > MAX_CELLS || plans[0]->slot_blocks > MAX_SLOT_BLOCKS)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                          "%llu blocks on %u ranks over %u passes, %u in a slot: too many "
                          "blocks to prove",
                          (unsigned long long)blocks, ranks, options->passes, plans[0]->slot_blocks);
    if (plans[0]->shape.collective > QUIRE_BARRIER)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                          "%s concerns one pair of ranks; there is nothing to prove together",
                          quire_collective_name((quire_collective_t)plans[0]->shape.collective));
    return QUIRE_OK;
}

quire_status_t plan_check(const struct plan *const *plans, uint32_t ranks, const struct plan_check_options *options)
{
    quire_status_t st = admit(plans, ranks, options);
    if (st != QUIRE_OK)
        return st;
    struct check *c = check_create(plans, ranks, options);
    if (c == NULL)
        return no_memory();
    st = run_all(c);
    if (st == QUIRE_OK)
        st = judge(c);
    check_destroy(c);
    return st;
}
