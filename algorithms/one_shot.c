/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * one_shot.c - one exchange over wide lanes: every rank publishes once, every rank reads all.
 *   all_reduce  each rank folds all contributions itself, in the canonical order, so all get the same bits
 *   broadcast   only the root publishes
 *   barrier     empty slots: having read everybody's means that everybody has entered
 */
#include "emit.h"

static const char *unfit(const struct plan_shape *shape)
{
    if (shape->collective != QUIRE_ALL_REDUCE && shape->collective != QUIRE_BROADCAST &&
        shape->collective != QUIRE_BARRIER)
        return "one_shot does all_reduce, broadcast and barrier";
    if (shape->collective != QUIRE_BROADCAST && shape->ranks > PLAN_MAX_FOLD)
        return "one fold takes at most 64 ranks";
    return NULL;
}

static void send_wide(struct plan_builder *b, enum plan_buffer buffer)
{
    struct plan_step send = plan_step_make(PLAN_SEND);
    send.flags = PLAN_OUT_WIDE;
    send.src.buffer = (uint8_t)buffer;
    plan_builder_step(b, &send);
}

static void fold_all(struct plan_builder *b, const struct plan_shape *shape)
{
    struct plan_step fold = plan_step_make(PLAN_REDUCE);
    bool data = shape->collective == QUIRE_ALL_REDUCE;
    fold.flags = PLAN_IN_WIDE | PLAN_FOLD | PLAN_FINISH;
    fold.src.buffer = data ? PLAN_IN : PLAN_NONE;
    fold.dst.buffer = data ? PLAN_OUT : PLAN_NONE;
    fold.fold_hi = shape->ranks;
    plan_builder_step(b, &fold);
}

static quire_status_t emit(const struct plan_shape *shape, uint32_t rank, struct plan **plan)
{
    if (shape->ranks == 1)
        return emit_alone(shape, plan);
    struct plan_builder *b = plan_builder_create(shape, rank, 1, 1);
    if (b == NULL)
        return emit_no_memory();
    if (shape->collective != QUIRE_BROADCAST) {
        send_wide(b, shape->collective == QUIRE_ALL_REDUCE ? PLAN_IN : PLAN_NONE);
        fold_all(b, shape);
    } else if (rank == shape->root) {
        struct plan_step copy = plan_step_make(PLAN_COPY);
        copy.src.buffer = PLAN_IN;
        copy.dst.buffer = PLAN_OUT;
        send_wide(b, PLAN_IN);
        plan_builder_step(b, &copy);
    } else {
        struct plan_step recv = plan_step_make(PLAN_RECV);
        recv.flags = PLAN_IN_WIDE;
        recv.from = (int32_t)shape->root;
        recv.dst.buffer = PLAN_OUT;
        plan_builder_step(b, &recv);
    }
    return plan_freeze(b, plan);
}

const struct algorithm algorithm_one_shot = {
    .name = "one_shot", .unfit = unfit, .emit = emit, .canonical = true, .wide = true};
