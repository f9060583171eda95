/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dissemination.c - barrier in ceil(log2 n) rounds over pair lanes: in round k tell the rank 2^k further on, hear from
 * the one 2^k before. After it every rank has heard, directly or not, from all.
 */
#include "emit.h"

static const char *unfit(const struct plan_shape *shape)
{
    return shape->collective == QUIRE_BARRIER ? NULL : "dissemination does barrier";
}

static quire_status_t emit(const struct plan_shape *shape, uint32_t rank, struct plan **plan)
{
    uint32_t n = shape->ranks;
    if (n == 1)
        return emit_alone(shape, plan);
    struct plan_builder *b = plan_builder_create(shape, rank, 1, 1);
    if (b == NULL)
        return emit_no_memory();
    for (uint64_t hop = 1; hop < n; hop *= 2) {
        struct plan_step send = plan_step_make(PLAN_SEND), recv = plan_step_make(PLAN_RECV);
        send.to = (int32_t)((rank + hop) % n);
        plan_builder_step(b, &send);
        recv.from = (int32_t)((rank + n - hop) % n);
        plan_builder_step(b, &recv);
    }
    return plan_freeze(b, plan);
}

const struct algorithm algorithm_dissemination = {.name = "dissemination", .unfit = unfit, .emit = emit};
