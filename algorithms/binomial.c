/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * binomial.c - broadcast down a binomial tree of pair lanes: in round k every rank that has the data sends it to the
 * one 2^k further on. ceil(log2 n) rounds; the root sends ceil(log2 n) times.
 *
 * Numbers are relative to the root. A rank's parent clears its highest bit; its children set a higher one. The largest
 * subtree is served first.
 */
#include "emit.h"

static const char *unfit(const struct plan_shape *shape)
{
    return shape->collective == QUIRE_BROADCAST ? NULL : "binomial does broadcast";
}

static quire_status_t emit(const struct plan_shape *shape, uint32_t rank, struct plan **plan)
{
    uint32_t n = shape->ranks, me = (rank + n - shape->root) % n, low = 0;
    if (n == 1)
        return emit_alone(shape, plan);
    struct plan_builder *b = plan_builder_create(shape, rank, 1, 1);
    if (b == NULL)
        return emit_no_memory();
    while ((UINT64_C(1) << low) <= me)
        low++; /* children have bit `low` or a higher one more */
    if (me != 0) {
        struct plan_step recv = plan_step_make(PLAN_RECV);
        recv.from = (int32_t)(((me & ~(1u << (low - 1))) + shape->root) % n);
        recv.dst.buffer = PLAN_OUT;
        plan_builder_step(b, &recv);
    }
    for (uint32_t bit = low; (UINT64_C(1) << bit) < n; bit++) {
        uint64_t child = me + (UINT64_C(1) << bit);
        if (child >= n)
            break;
        struct plan_step send = plan_step_make(PLAN_SEND);
        send.to = (int32_t)((child + shape->root) % n);
        send.src.buffer = me == 0 ? PLAN_IN : PLAN_OUT;
        plan_builder_step(b, &send);
    }
    if (me == 0) {
        struct plan_step copy = plan_step_make(PLAN_COPY);
        copy.src.buffer = PLAN_IN;
        copy.dst.buffer = PLAN_OUT;
        plan_builder_step(b, &copy);
    }
    return plan_freeze(b, plan);
}

const struct algorithm algorithm_binomial = {.name = "binomial", .unfit = unfit, .emit = emit};
