/* SPDX-License-Identifier: BSD-3-Clause */
/* emit.h - small helpers that several algorithms share: a builder or its error, plans of one rank. */
#ifndef QUIRE_ALGORITHMS_EMIT_H
#define QUIRE_ALGORITHMS_EMIT_H

#include "algorithms.h"
#include "base/status.h"

static inline quire_status_t emit_no_memory(void)
{
    return quire_fail(QUIRE_ERR_RESOURCE, "no memory to build a plan");
}

/* One rank alone: the input is the result (an average over one is itself). A barrier does nothing. */
static inline quire_status_t emit_alone(const struct plan_shape *shape, struct plan **plan)
{
    struct plan_builder *b = plan_builder_create(shape, 0, 1, 1);
    if (b == NULL)
        return emit_no_memory();
    if (shape->collective != QUIRE_BARRIER) {
        struct plan_step copy = plan_step_make(PLAN_COPY);
        copy.src.buffer = PLAN_IN;
        copy.dst.buffer = PLAN_OUT;
        plan_builder_step(b, &copy);
    }
    return plan_freeze(b, plan);
}

#endif
