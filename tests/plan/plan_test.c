/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_test.c - builder, invariants (each broken once), shape hash, layouts. */
#include "../base/base_test.h"
#include "algorithms.h"
#include "base/status.h"
#include "kernels/kernels.h"

static struct plan *ring4(void)
{
    struct plan_shape shape = {QUIRE_ALL_REDUCE, ALGORITHM_RING, 4, 0};
    struct plan *plan;
    ck_assert_int_eq(algorithm_emit(&shape, 1, &plan), QUIRE_OK);
    return plan;
}

static void invalid(struct plan *plan, const char *why)
{
    ck_assert_int_eq(plan_valid(plan), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(status_text_last(), why) != NULL, "wanted \"%s\": %s", why, status_text_last());
    plan_free(plan);
}

START_TEST(each_broken_invariant_is_named)
{
    struct plan *p = ring4();
    p->rank = 4;
    invalid(p, "rank 4 of 4");
    p = ring4();
    p->steps[0].src.block = 4;
    invalid(p, "block or buffer");
    p = ring4();
    p->steps[0].repeat = 0;
    invalid(p, "repeat");
    p = ring4();
    p->steps[0].to = 1; /* itself */
    invalid(p, "sends to no other rank");
    p = ring4();
    p->steps[1].from = 9;
    invalid(p, "reads from no other rank");
    p = ring4();
    p->steps[0].kind = 17;
    invalid(p, "unknown kind");
    p = ring4();
    p->steps[0].out_channel = 3;
    invalid(p, "channel");
    p = ring4();
    p->steps[1].part = 1;
    invalid(p, "part");
    p = ring4();
    p->strands[0].count--;
    invalid(p, "behind the last strand");
    p = ring4();
    p->hash++;
    invalid(p, "hash");
    p = ring4();
    p->steps[0].flags |= PLAN_FORWARD;
    invalid(p, "forward");
    p = ring4();
    p->steps[3].flags |= PLAN_FINISH; /* a receive: the executor would not divide there */
    invalid(p, "only a reduce finishes");
    p = ring4();
    p->steps[4].dst.buffer = PLAN_IN; /* the caller's send buffer is never written */
    invalid(p, "send buffer");
    p = ring4();
    p->steps[2].src.buffer = PLAN_NONE;
    invalid(p, "without a source");
    p = ring4();
    p->steps[3].dst = (struct plan_ref){PLAN_NONE, 4}; /* tells the length of what is forwarded: none */
    invalid(p, "block or buffer");
    p = ring4();
    p->steps[4].kind = PLAN_COPY;
    invalid(p, "copy without source or destination");
}
END_TEST

/* The executor gathers the sources of a fold in an array of that many. */
START_TEST(a_fold_takes_no_more_ranks_than_the_kernels)
{
    struct plan_shape shape = {QUIRE_ALL_REDUCE, ALGORITHM_ONE_SHOT, 65, 0};
    struct plan_step fold = plan_step_make(PLAN_REDUCE);
    struct plan *plan = NULL;
    ck_assert_int_eq(PLAN_MAX_FOLD, KERNEL_MAX_SOURCES);
    fold.flags = PLAN_IN_WIDE | PLAN_FOLD;
    fold.src.buffer = PLAN_IN;
    fold.dst.buffer = PLAN_OUT;
    for (fold.fold_hi = PLAN_MAX_FOLD; fold.fold_hi <= PLAN_MAX_FOLD + 1; fold.fold_hi++) {
        struct plan_builder *b = plan_builder_create(&shape, 0, 1, 1);
        plan_builder_step(b, &fold);
        ck_assert_int_eq(plan_freeze(b, &plan), fold.fold_hi <= PLAN_MAX_FOLD ? QUIRE_OK : QUIRE_ERR_INVALID_ARGUMENT);
        plan_free(plan);
        plan = NULL;
    }
    ck_assert(strstr(status_text_last(), "at most 64 ranks") != NULL);
}
END_TEST

START_TEST(a_lane_used_by_two_strands_is_refused)
{
    struct plan_shape shape = {QUIRE_BROADCAST, ALGORITHM_RING, 3, 0};
    struct plan_builder *b = plan_builder_create(&shape, 0, 1, 1);
    struct plan_step send = plan_step_make(PLAN_SEND);
    struct plan *plan = NULL;
    send.to = 1;
    plan_builder_step(b, &send);
    plan_builder_strand(b);
    plan_builder_step(b, &send);
    ck_assert_int_eq(plan_freeze(b, &plan), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_ptr_eq(plan, NULL);
    ck_assert(strstr(status_text_last(), "another strand") != NULL);
}
END_TEST

START_TEST(too_many_strands_and_events_are_errors_at_the_freeze)
{
    struct plan_shape shape = {QUIRE_BROADCAST, ALGORITHM_RING, 40, 0};
    struct plan_builder *b = plan_builder_create(&shape, 0, 1, 1);
    struct plan *plan = NULL;
    for (int i = 1; i < 12; i++) {
        struct plan_step send = plan_step_make(PLAN_SEND);
        send.to = i;
        plan_builder_step(b, &send);
        plan_builder_strand(b);
    }
    ck_assert_int_ne(plan_freeze(b, &plan), QUIRE_OK);
    b = plan_builder_create(&shape, 0, 1, 1);
    for (int i = 0; i <= PLAN_MAX_EVENTS; i++)
        (void)plan_builder_event(b);
    ck_assert_int_ne(plan_freeze(b, &plan), QUIRE_OK);
    ck_assert_ptr_eq(plan, NULL);
}
END_TEST

START_TEST(shapes_hash_apart)
{
    struct plan_shape a = {QUIRE_BROADCAST, ALGORITHM_RING, 4, 0}, b = a;
    ck_assert_uint_eq(plan_shape_hash(&a), plan_shape_hash(&b));
    b.root = 1;
    ck_assert(plan_shape_hash(&a) != plan_shape_hash(&b));
    b = a;
    b.ranks = 5;
    ck_assert(plan_shape_hash(&a) != plan_shape_hash(&b));
    b = a;
    b.algorithm++;
    ck_assert((uint32_t)plan_shape_hash(&a) != (uint32_t)plan_shape_hash(&b));
}
END_TEST

/* Blocks and slices tile the buffer: every element exactly once, block borders at lines. */
START_TEST(a_layout_covers_every_element_once)
{
    static const size_t counts[] = {0, 1, 3, 15, 16, 17, 100, 1000, 4099}, elems[] = {1, 2, 4, 8};
    for (size_t c = 0; c < 9; c++)
        for (size_t e = 0; e < 4; e++)
            for (uint32_t blocks = 1; blocks <= 9; blocks++) {
                struct plan_layout l = plan_layout_even(counts[c], elems[e], blocks);
                uint8_t seen[4100] = {0};
                size_t first, n, slice = 37;
                for (uint32_t b = 0; b < blocks; b++)
                    for (size_t pass = 0; pass * slice < l.block_elems || pass == 0; pass++) {
                        plan_layout_slice(&l, b, pass, slice, &first, &n);
                        for (size_t i = first; i < first + n; i++) {
                            ck_assert(i < counts[c] && seen[i] == 0 && i / (l.block_elems ? l.block_elems : 1) == b);
                            seen[i] = 1;
                        }
                    }
                for (size_t i = 0; i < counts[c]; i++)
                    ck_assert_msg(seen[i] == 1, "count %zu elem %zu blocks %u: %zu", counts[c], elems[e], blocks, i);
                ck_assert(blocks == 1 || l.block_elems * elems[e] % 64 == 0);
            }
}
END_TEST

BASE_TEST_MAIN("plan", each_broken_invariant_is_named, a_fold_takes_no_more_ranks_than_the_kernels,
               a_lane_used_by_two_strands_is_refused, too_many_strands_and_events_are_errors_at_the_freeze,
               shapes_hash_apart, a_layout_covers_every_element_once)
