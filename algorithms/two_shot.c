/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * two_shot.c - all_reduce in two exchanges over wide lanes. The buffer is n blocks; rank b owns block b.
 *   first   every rank publishes, in one slot, the blocks it doesn't own
 *   second  the owner folds its block over all ranks (canonical order) and publishes the result; all others take it
 *
 * Two strands so that the passes overlap: contributions and folds in one, results in the other. In place a result
 * overwrites a contribution; no event is needed between the strands, since the result can't arrive before its owner has
 * read that contribution, which this rank sent before (the checker proves it).
 */
#include "emit.h"

static const char *unfit(const struct plan_shape *shape)
{
    if (shape->collective != QUIRE_ALL_REDUCE)
        return "two_shot does all_reduce";
    if (shape->ranks > PLAN_MAX_FOLD)
        return "one fold takes at most 64 ranks";
    return NULL;
}

static void contribute_and_fold(struct plan_builder *b, uint32_t n, uint32_t rank)
{
    struct plan_step send = plan_step_make(PLAN_SEND), fold = plan_step_make(PLAN_REDUCE);
    send.flags = PLAN_OUT_WIDE | PLAN_SKIP_SELF;
    send.src.buffer = PLAN_IN;
    send.blocks = n;
    plan_builder_step(b, &send);
    fold.flags = PLAN_IN_WIDE | PLAN_FOLD | PLAN_FINISH | PLAN_FORWARD | PLAN_OUT_WIDE;
    fold.out_channel = 1;
    fold.src = (struct plan_ref){PLAN_IN, rank};
    fold.dst = (struct plan_ref){PLAN_OUT, rank};
    fold.part = rank;
    fold.fold_hi = n;
    plan_builder_step(b, &fold);
}

/* Results of the n-1 other owners, beginning with the next rank so that not everybody reads the same lane first. */
static void collect(struct plan_builder *b, uint32_t n, uint32_t rank)
{
    struct plan_step recv = plan_step_make(PLAN_RECV);
    recv.flags = PLAN_IN_WIDE;
    recv.channel = 1;
    recv.from = (int32_t)((rank + 1) % n);
    recv.from_stride = 1;
    recv.dst = (struct plan_ref){PLAN_OUT, (rank + 1) % n};
    recv.dst_stride = 1;
    recv.repeat = n - 1;
    plan_builder_step(b, &recv);
}

static quire_status_t emit(const struct plan_shape *shape, uint32_t rank, struct plan **plan)
{
    uint32_t n = shape->ranks;
    if (n == 1)
        return emit_alone(shape, plan);
    struct plan_builder *b = plan_builder_create(shape, rank, n, n);
    if (b == NULL)
        return emit_no_memory();
    contribute_and_fold(b, n, rank);
    plan_builder_strand(b);
    collect(b, n, rank);
    return plan_freeze(b, plan);
}

const struct algorithm algorithm_two_shot = {
    .name = "two_shot", .unfit = unfit, .emit = emit, .canonical = true, .wide = true};
