/* SPDX-License-Identifier: BSD-3-Clause */
/* pair.c - send and receive: one step over the pair's own lane. shape.root is the peer (this rank itself is allowed).
 */
#include "emit.h"

static const char *unfit(const struct plan_shape *shape)
{
    return shape->collective == QUIRE_SEND || shape->collective == QUIRE_RECV ? NULL : "pair does send and recv";
}

static quire_status_t emit(const struct plan_shape *shape, uint32_t rank, struct plan **plan)
{
    struct plan_builder *b = plan_builder_create(shape, rank, 1, 1);
    if (b == NULL)
        return emit_no_memory();
    bool sends = shape->collective == QUIRE_SEND;
    struct plan_step step = plan_step_make(sends ? PLAN_SEND : PLAN_RECV);
    step.channel = step.out_channel = PLAN_CHANNEL_P2P;
    if (sends) {
        step.to = (int32_t)shape->root;
        step.src.buffer = PLAN_IN;
    } else {
        step.from = (int32_t)shape->root;
        step.dst.buffer = PLAN_OUT;
    }
    plan_builder_step(b, &step);
    return plan_freeze(b, plan);
}

const struct algorithm algorithm_pair = {.name = "pair", .unfit = unfit, .emit = emit};
