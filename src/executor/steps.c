/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steps.c - one step of one strand: look at the lane, move or add the bytes, publish. Each function returns
 * STEP_DONE, STEP_BLOCKED (nothing was changed, call again) or STEP_ERROR (run->status is set).
 *
 * Invariant: a step either happens whole or not at all; it looks at everything it needs (slots to read, a free slot to
 * write) before it touches anything.
 */
#include "executor_internal.h"

#include "kernels/kernels.h"

/* The lane a step reads, for a producer `from`. */
static struct lane *lane_in(const struct exec_run *run, const struct plan_step *s, int from)
{
    struct lane_set *set = run->comm->lanes;
    return s->flags & PLAN_IN_WIDE ? &set->in_wide[s->channel][from] : &set->in_pair[s->channel][from];
}

static struct lane *lane_out(const struct exec_run *run, const struct plan_step *s, int to)
{
    struct lane_set *set = run->comm->lanes;
    return s->flags & PLAN_OUT_WIDE ? &set->out_wide[s->out_channel] : &set->out_pair[s->out_channel][to];
}

/* base + i*stride modulo n, for strides of either sign. */
static uint32_t strided(uint32_t base, int32_t stride, uint32_t i, uint32_t n)
{
    if (i == 0)
        return base;
    int64_t v = ((int64_t)base + (int64_t)stride * (int64_t)i) % (int64_t)n;
    return (uint32_t)(v < 0 ? v + n : v);
}

int step_from(const struct exec_run *run, const struct plan_step *s, uint32_t i)
{
    return (int)strided((uint32_t)s->from, s->from_stride, i, run->binding->plan->shape.ranks);
}

int step_to(const struct exec_run *run, const struct plan_step *s, uint32_t i)
{
    return s->to < 0 ? -1 : (int)strided((uint32_t)s->to, s->to_stride, i, run->binding->plan->shape.ranks);
}

/* A slice of a block in memory. */
struct piece {
    uint8_t *at;
    size_t elems;
    size_t bytes;
};

static struct piece piece_of(const struct exec_run *run, struct plan_ref ref, int32_t stride,
                             const struct exec_cursor *c)
{
    const struct exec_binding *b = run->binding;
    struct piece p = {NULL, 0, 0};
    size_t first;
    uint32_t blocks = ref.buffer == PLAN_SCRATCH ? b->plan->scratch_blocks : b->plan->blocks;
    uint32_t block = strided(ref.block, stride, c->repeat, blocks);
    if (ref.buffer == PLAN_SCRATCH) {
        /* Scratch blocks are all as long as the longest block. */
        struct plan_layout l = b->layout;
        l.count = l.block_elems * blocks;
        plan_layout_slice(&l, block, c->pass, b->slice_elems, &first, &p.elems);
    } else {
        plan_layout_slice(&b->layout, block, c->pass, b->slice_elems, &first, &p.elems);
    }
    p.bytes = p.elems * b->layout.elem;
    uint8_t *base = ref.buffer == PLAN_IN    ? (uint8_t *)(uintptr_t)run->in
                    : ref.buffer == PLAN_OUT ? run->out
                                             : run->scratch;
    if (p.elems != 0 && ref.buffer != PLAN_NONE)
        p.at = base + first * b->layout.elem;
    return p;
}

/*
 * The next slot of our operation on a lane: skips what is left of operations that were refused or given up. NULL when
 * there is none yet, or when it bears another name under the same number (then run->status is set).
 */
static const struct lane_slot *slot_of_run(struct exec_run *run, struct lane *lane, int peer)
{
    for (;;) {
        const struct lane_slot *slot = lane_peek(lane);
        if (slot == NULL)
            return NULL;
        if (__builtin_expect(op_name_equal(&slot->name, &run->name), 1))
            return slot;
        if (slot->name.epoch == run->name.epoch && slot->name.sequence < run->name.sequence) {
            lane_release(lane);
            continue;
        }
        /* The peer gave this operation up and is further on: why, is on its way as a refusal or a first cause. */
        if (slot->name.epoch == run->name.epoch && slot->name.sequence > run->name.sequence)
            return NULL;
        struct op_name theirs = slot->name;
        exec_run_fail(run, run->comm->on_mismatch(run->comm->ctx, run, peer, &theirs));
        return NULL;
    }
}

/* Bytes of a slot's part; NULL (and run->status) when the slot is too short to hold it. */
static const uint8_t *slot_part(struct exec_run *run, const struct lane *lane, const struct lane_slot *slot,
                                uint32_t part, size_t bytes, int peer)
{
    size_t at = part * run->binding->slice_bytes;
    if (__builtin_expect(bytes != 0 && at + bytes > slot->bytes, 0)) {
        exec_run_fail(run, quire_fail(QUIRE_ERR_INTERNAL, "a slot of rank %d holds %u bytes where the plan expects %zu",
                                      peer, slot->bytes, at + bytes));
        return NULL;
    }
    return (const uint8_t *)lane_data(lane, slot) + at;
}

static enum step_result blocked_or_error(const struct exec_run *run)
{
    return run->status == QUIRE_IN_PROGRESS ? STEP_BLOCKED : STEP_ERROR;
}

/* Backs the lane's payload at its first use; false with run->status set when there is no memory. */
static bool out_ready(struct exec_run *run, struct lane *lane, size_t bytes)
{
    if (bytes <= LANE_INLINE_BYTES || __builtin_expect(lane->reserved, 1))
        return true;
    quire_status_t st = lane_reserve(lane);
    if (st != QUIRE_OK)
        exec_run_fail(run, st);
    return st == QUIRE_OK;
}

static enum step_result step_send(struct exec_run *run, const struct plan_step *s, const struct exec_cursor *c)
{
    const struct exec_binding *b = run->binding;
    struct lane *lane = lane_out(run, s, step_to(run, s, c->repeat));
    if (!lane_can_send(lane))
        return STEP_BLOCKED;
    size_t used = 0;
    struct plan_ref ref = s->src;
    if (s->blocks == 1 || s->src.buffer == PLAN_NONE) {
        struct piece p = piece_of(run, ref, s->src_stride, c);
        used = s->src.buffer == PLAN_NONE ? 0 : p.bytes;
        if (!out_ready(run, lane, used))
            return STEP_ERROR;
        if (used != 0)
            kernel_copy(lane_fill(lane, used), p.at, used);
    } else {
        /* Several blocks in one slot: each at its part's place. */
        for (uint32_t i = 0; i < s->blocks; i++) {
            ref.block = s->src.block + i;
            struct piece p = piece_of(run, ref, s->src_stride, c);
            if (p.bytes != 0)
                used = i * b->slice_bytes + p.bytes;
        }
        if (!out_ready(run, lane, used))
            return STEP_ERROR;
        uint8_t *slot = lane_fill(lane, used);
        for (uint32_t i = 0; i < s->blocks; i++) {
            ref.block = s->src.block + i;
            if (s->flags & PLAN_SKIP_SELF && ref.block == b->plan->rank)
                continue;
            struct piece p = piece_of(run, ref, s->src_stride, c);
            if (p.bytes != 0)
                kernel_copy(slot + i * b->slice_bytes, p.at, p.bytes);
        }
    }
    lane_publish(lane, &run->name, (uint32_t)used);
    return STEP_DONE;
}

static enum step_result step_recv(struct exec_run *run, const struct plan_step *s, const struct exec_cursor *c)
{
    int from = step_from(run, s, c->repeat);
    struct lane *in = lane_in(run, s, from), *out = NULL;
    const struct lane_slot *slot = slot_of_run(run, in, from);
    if (slot == NULL)
        return blocked_or_error(run);
    if (s->flags & PLAN_FORWARD) {
        out = lane_out(run, s, step_to(run, s, c->repeat));
        if (!lane_can_send(out))
            return STEP_BLOCKED;
    }
    struct piece dst = piece_of(run, s->dst, s->dst_stride, c);
    size_t bytes = s->dst.buffer == PLAN_NONE && out == NULL ? 0 : dst.bytes;
    const uint8_t *data = slot_part(run, in, slot, s->part, bytes, from);
    if (data == NULL || (out != NULL && !out_ready(run, out, bytes)))
        return STEP_ERROR;
    if (dst.at != NULL)
        kernel_copy(dst.at, data, dst.bytes);
    if (out != NULL) {
        if (bytes != 0)
            kernel_copy(lane_fill(out, bytes), data, bytes);
        lane_publish(out, &run->name, (uint32_t)bytes);
    }
    lane_release(in);
    return STEP_DONE;
}

/* dst and `also` of a reduction: the block in memory, and the next slot of the out lane when it is forwarded. */
static enum step_result reduce_into(struct exec_run *run, const struct plan_step *s, const struct exec_cursor *c,
                                    const void *const *src, int n, size_t elems)
{
    const struct exec_binding *b = run->binding;
    struct piece dst = piece_of(run, s->dst, s->dst_stride, c);
    size_t bytes = elems * b->layout.elem;
    struct lane *out = s->flags & PLAN_FORWARD ? lane_out(run, s, step_to(run, s, c->repeat)) : NULL;
    if (out != NULL && !out_ready(run, out, bytes))
        return STEP_ERROR;
    uint8_t *also = out != NULL ? lane_fill(out, bytes) : NULL;
    uint8_t *to = dst.at != NULL ? dst.at : also;
    if (elems != 0 && to != NULL)
        kernel_fold(b->type, b->op, to, to == also ? NULL : also, src, n, elems,
                    s->flags & PLAN_FINISH ? (int)b->plan->shape.ranks : 0);
    if (out != NULL)
        lane_publish(out, &run->name, (uint32_t)bytes);
    return STEP_DONE;
}

static enum step_result step_fold(struct exec_run *run, const struct plan_step *s, struct exec_cursor *c)
{
    uint32_t me = run->binding->plan->rank;
    for (; c->fold < s->fold_hi - s->fold_lo; c->fold++) {
        uint32_t r = s->fold_lo + c->fold;
        if (r != me && slot_of_run(run, lane_in(run, s, (int)r), (int)r) == NULL)
            return blocked_or_error(run);
    }
    if (s->flags & PLAN_FORWARD && !lane_can_send(lane_out(run, s, step_to(run, s, c->repeat))))
        return STEP_BLOCKED;
    const void *src[KERNEL_MAX_SOURCES];
    struct piece own = piece_of(run, s->src, s->src_stride, c);
    for (uint32_t r = s->fold_lo; r < s->fold_hi; r++) {
        struct lane *in = lane_in(run, s, (int)r);
        src[r - s->fold_lo] = r == me ? own.at : slot_part(run, in, lane_peek(in), s->part, own.bytes, (int)r);
        if (r != me && src[r - s->fold_lo] == NULL)
            return STEP_ERROR;
    }
    enum step_result result = reduce_into(run, s, c, src, (int)(s->fold_hi - s->fold_lo), own.elems);
    if (result != STEP_DONE)
        return result;
    for (uint32_t r = s->fold_lo; r < s->fold_hi; r++)
        if (r != me)
            lane_release(lane_in(run, s, (int)r));
    c->fold = 0;
    return STEP_DONE;
}

static enum step_result step_reduce(struct exec_run *run, const struct plan_step *s, const struct exec_cursor *c)
{
    int from = step_from(run, s, c->repeat);
    struct lane *in = lane_in(run, s, from);
    const struct lane_slot *slot = slot_of_run(run, in, from);
    if (slot == NULL)
        return blocked_or_error(run);
    if (s->flags & PLAN_FORWARD && !lane_can_send(lane_out(run, s, step_to(run, s, c->repeat))))
        return STEP_BLOCKED;
    struct piece own = piece_of(run, s->src, s->src_stride, c);
    const uint8_t *data = slot_part(run, in, slot, s->part, own.bytes, from);
    if (data == NULL)
        return STEP_ERROR;
    const void *src[2] = {own.at, data};
    if (s->flags & PLAN_SLOT_FIRST) {
        src[0] = data;
        src[1] = own.at;
    }
    enum step_result result = reduce_into(run, s, c, src, 2, own.elems);
    if (result == STEP_DONE)
        lane_release(in);
    return result;
}

enum step_result step_run(struct exec_run *run, const struct plan_step *s, struct exec_cursor *c)
{
    switch ((enum plan_kind)s->kind) {
    case PLAN_SEND:
        return step_send(run, s, c);
    case PLAN_RECV:
        return step_recv(run, s, c);
    case PLAN_REDUCE:
        return s->flags & PLAN_FOLD ? step_fold(run, s, c) : step_reduce(run, s, c);
    case PLAN_COPY: {
        struct piece src = piece_of(run, s->src, s->src_stride, c), dst = piece_of(run, s->dst, s->dst_stride, c);
        if (src.bytes != 0 && src.at != NULL && dst.at != NULL && src.at != dst.at)
            memcpy(dst.at, src.at, src.bytes);
        return STEP_DONE;
    }
    case PLAN_SIGNAL:
        run->event[s->event]++;
        return STEP_DONE;
    case PLAN_WAIT:
        return run->event[s->event] > c->pass ? STEP_DONE : STEP_BLOCKED;
    case PLAN_KIND_COUNT:
        break;
    }
    exec_run_fail(run, QUIRE_BUG("step kind %u in a plan", s->kind));
    return STEP_ERROR;
}

void step_missing(struct exec_run *run, const struct plan_step *s, const struct exec_cursor *c, uint64_t *mask)
{
    if (s->kind == PLAN_REDUCE && s->flags & PLAN_FOLD) {
        for (uint32_t r = s->fold_lo; r < s->fold_hi; r++)
            if (r != run->binding->plan->rank && lane_peek(lane_in(run, s, (int)r)) == NULL)
                mask[r / 64] |= UINT64_C(1) << r % 64;
    } else if (s->kind == PLAN_RECV || s->kind == PLAN_REDUCE) {
        uint32_t r = (uint32_t)step_from(run, s, c->repeat);
        if (lane_peek(lane_in(run, s, (int)r)) == NULL)
            mask[r / 64] |= UINT64_C(1) << r % 64;
    }
    if (s->kind != PLAN_SEND && !(s->flags & PLAN_FORWARD))
        return;
    struct lane *out = lane_out(run, s, step_to(run, s, c->repeat));
    uint32_t me = run->binding->plan->rank;
    if (lane_can_send(out))
        return;
    for (uint32_t i = 0; i < out->consumers; i++) {
        uint32_t r = out->wide ? (i < me ? i : i + 1) : (uint32_t)step_to(run, s, c->repeat);
        if (atom_load_acquire(&out->credits[i].position) + lane_depth(out) <= out->position)
            mask[r / 64] |= UINT64_C(1) << r % 64;
    }
}

void step_announce(struct exec_run *run, const struct plan_step *s, const struct exec_cursor *c, int add)
{
    if (s->kind == PLAN_REDUCE && s->flags & PLAN_FOLD) {
        for (uint32_t r = s->fold_lo; r < s->fold_hi; r++)
            if (r != run->binding->plan->rank)
                atom_add(&lane_in(run, s, (int)r)->control->consumers_asleep, (uint32_t)add);
    } else if (s->kind == PLAN_RECV || s->kind == PLAN_REDUCE) {
        atom_add(&lane_in(run, s, step_from(run, s, c->repeat))->control->consumers_asleep, (uint32_t)add);
    }
    if (s->kind == PLAN_SEND || s->flags & PLAN_FORWARD)
        atom_add(&lane_out(run, s, step_to(run, s, c->repeat))->control->producer_asleep, (uint32_t)add);
}
