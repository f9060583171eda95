/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c - around a ring of pair lanes, each rank sending to the next.
 *   all_reduce  n blocks; n-1 hops of receive-add-forward leave each block summed at one rank, n-1 hops of
 *               receive-forward carry it to all. A handful of steps at any n, by repeat and strides. Each byte crosses
 *               each link twice: 2 S (n-1)/n.
 *   broadcast   a pipeline from the root; passes overlap, so a long message costs about one transfer
 *
 * The order of addition depends on the block, so ring isn't canonical (for two ranks it would be, but isn't needed).
 */
#include "emit.h"

static const char *unfit(const struct plan_shape *shape)
{
    return shape->collective == QUIRE_ALL_REDUCE || shape->collective == QUIRE_BROADCAST
               ? NULL
               : "ring does all_reduce and broadcast";
}

/*
 * Block numbers for rank r, hop k: it sends block r first, and in hop k = 1 .. n-1 receives block r-k. The block that
 * arrives complete in hop n-1 is r-(n-1) = r+1.
 */
static void all_reduce(struct plan_builder *b, uint32_t n, uint32_t r)
{
    uint32_t next = (r + 1) % n, prev = (r + n - 1) % n;
    struct plan_step send = plan_step_make(PLAN_SEND);
    send.to = (int32_t)next;
    send.src = (struct plan_ref){PLAN_IN, r};
    plan_builder_step(b, &send);

    struct plan_step add = plan_step_make(PLAN_REDUCE);
    add.from = (int32_t)prev;
    add.to = (int32_t)next;
    add.flags = PLAN_FORWARD | PLAN_SLOT_FIRST;
    add.src = (struct plan_ref){PLAN_IN, prev};
    add.src_stride = -1;
    add.repeat = n - 2;
    if (n > 2)
        plan_builder_step(b, &add); /* dst NONE: partial sums live in the slots only */

    struct plan_step last = add;
    last.flags |= PLAN_FINISH;
    last.src = (struct plan_ref){PLAN_IN, next};
    last.dst = (struct plan_ref){PLAN_OUT, next};
    last.src_stride = 0;
    last.repeat = 1;
    plan_builder_step(b, &last);

    struct plan_step pass = plan_step_make(PLAN_RECV);
    pass.from = (int32_t)prev;
    pass.to = (int32_t)next;
    pass.flags = PLAN_FORWARD;
    pass.dst = (struct plan_ref){PLAN_OUT, r};
    pass.dst_stride = -1;
    pass.repeat = n - 2;
    if (n > 2)
        plan_builder_step(b, &pass);

    struct plan_step end = pass;
    end.flags = 0;
    end.to = -1;
    end.dst = (struct plan_ref){PLAN_OUT, (r + 2) % n};
    end.dst_stride = 0;
    end.repeat = 1;
    plan_builder_step(b, &end);
}

static void broadcast(struct plan_builder *b, uint32_t n, uint32_t r, uint32_t root)
{
    uint32_t next = (r + 1) % n, prev = (r + n - 1) % n;
    if (r == root) {
        struct plan_step send = plan_step_make(PLAN_SEND), copy = plan_step_make(PLAN_COPY);
        send.to = (int32_t)next;
        send.src.buffer = PLAN_IN;
        plan_builder_step(b, &send);
        copy.src.buffer = PLAN_IN;
        copy.dst.buffer = PLAN_OUT;
        plan_builder_step(b, &copy);
        return;
    }
    struct plan_step recv = plan_step_make(PLAN_RECV);
    recv.from = (int32_t)prev;
    recv.dst.buffer = PLAN_OUT;
    if (next != root) {
        recv.flags = PLAN_FORWARD;
        recv.to = (int32_t)next;
    }
    plan_builder_step(b, &recv);
}

static quire_status_t emit(const struct plan_shape *shape, uint32_t rank, struct plan **plan)
{
    bool reduce = shape->collective == QUIRE_ALL_REDUCE;
    if (shape->ranks == 1)
        return emit_alone(shape, plan);
    struct plan_builder *b = plan_builder_create(shape, rank, reduce ? shape->ranks : 1, 1);
    if (b == NULL)
        return emit_no_memory();
    if (reduce)
        all_reduce(b, shape->ranks, rank);
    else
        broadcast(b, shape->ranks, rank, shape->root);
    return plan_freeze(b, plan);
}

const struct algorithm algorithm_ring = {.name = "ring", .unfit = unfit, .emit = emit};
