/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_check_test.c - the checker refuses planted faults, each with a text that names it. Good plans come from the
 * algorithms, or are written here as text, with one thing made wrong.
 */
#include "../base/base_test.h"
#include "algorithms.h"
#include "base/status.h"

enum { MAX = 8 };

static struct plan *plans[MAX];
static uint32_t count;

/* Plans of the last use; what is left at the end is reachable from here. */
static void drop(void)
{
    for (uint32_t r = 0; r < count; r++) {
        plan_free(plans[r]);
        plans[r] = NULL;
    }
}

static void parse(const char *const *texts, uint32_t n)
{
    drop();
    count = n;
    for (uint32_t r = 0; r < n; r++)
        ck_assert_msg(plan_parse(texts[r], strlen(texts[r]), &plans[r]) == QUIRE_OK, "%s", status_text_last());
}

static void emit(uint8_t collective, enum algorithm_id id, uint32_t n)
{
    struct plan_shape shape = {collective, (uint8_t)id, n, 0};
    drop();
    count = n;
    for (uint32_t r = 0; r < n; r++)
        ck_assert_int_eq(algorithm_emit(&shape, r, &plans[r]), QUIRE_OK);
}

static quire_status_t check(uint32_t depth, bool in_place, bool canonical)
{
    struct plan_check_options options = {depth, 3, in_place, canonical};
    return plan_check((const struct plan *const *)plans, count, &options);
}

static void refused(quire_status_t st, const char *why)
{
    ck_assert_int_eq(st, QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(status_text_last(), why) != NULL, "wanted \"%s\": %s", why, status_text_last());
}

START_TEST(a_missing_contribution_is_refused)
{
    emit(QUIRE_ALL_REDUCE, ALGORITHM_RING, 4);
    ck_assert_int_eq(check(8, false, false), QUIRE_OK);
    /* Rank 2 forwards what it got instead of adding to it. */
    for (uint32_t i = 0; i < plans[2]->step_count; i++)
        if (plans[2]->steps[i].kind == PLAN_REDUCE && !(plans[2]->steps[i].flags & PLAN_FINISH)) {
            plans[2]->steps[i].kind = PLAN_RECV;
            plans[2]->steps[i].flags = PLAN_FORWARD;
            plans[2]->steps[i].src.buffer = PLAN_NONE;
        }
    refused(check(8, false, false), "lacks the contribution of rank 2");
}
END_TEST

START_TEST(a_double_contribution_is_refused)
{
    emit(QUIRE_ALL_REDUCE, ALGORITHM_RING, 3);
    /* Rank 1's first addition goes to the block it has sent itself. */
    plans[1]->steps[1].src.block = 1;
    refused(check(8, false, false), "two different blocks");
    static const char *const twice[] = {
        "plan all_reduce algorithm 0 ranks 2 rank 0\nstrand 0\n send out_wide src in.0\n send out_wide src in.0\n"
        " reduce in_wide fold src in.0 dst out.0 fold_hi 2\n reduce in_wide from 1 src out.0 dst out.0 finish\n",
        "plan all_reduce algorithm 0 ranks 2 rank 1\nstrand 0\n send out_wide src in.0\n send out_wide src in.0\n"
        " reduce in_wide fold src in.0 dst out.0 fold_hi 2\n reduce in_wide from 0 src out.0 dst out.0 finish\n"};
    parse(twice, 2);
    refused(check(8, false, false), "a contribution is added twice");
}
END_TEST

START_TEST(a_cycle_is_a_deadlock)
{
    static const char *const cycle[] = {
        "plan broadcast algorithm 2 ranks 2 rank 0\nstrand 0\n recv from 1\n send to 1 src in.0\n copy src in.0 dst "
        "out.0\n",
        "plan broadcast algorithm 2 ranks 2 rank 1\nstrand 0\n recv from 0 dst out.0\n send to 0\n"};
    parse(cycle, 2);
    refused(check(8, false, false), "deadlock");
    ck_assert(strstr(status_text_last(), "rank 0 strand 0 step 0 pass 0") != NULL);
}
END_TEST

START_TEST(a_deadlock_of_shallow_lanes_needs_the_real_depth)
{
    /* Both send four slots before they read any. */
    static const char *const deep[] = {
        "plan barrier algorithm 4 ranks 2 rank 0\nstrand 0\n send to 1 repeat 4\n recv from 1 repeat 4\n",
        "plan barrier algorithm 4 ranks 2 rank 1\nstrand 0\n send to 0 repeat 4\n recv from 0 repeat 4\n"};
    parse(deep, 2);
    ck_assert_msg(check(4, false, false) == QUIRE_OK, "%s", status_text_last());
    refused(check(2, false, false), "deadlock with lanes of 2 slots");
}
END_TEST

START_TEST(a_race_that_only_in_place_has_is_refused_there)
{
    static const char *const race[] = {
        "plan broadcast algorithm 2 ranks 2 rank 0 blocks 2\nstrand 0\n send to 1 src in.0\n send to 1 src in.1\n"
        " copy src in.0 dst out.0\nstrand 1\n copy src in.1 dst out.0\n copy src in.1 dst out.1\n",
        "plan broadcast algorithm 2 ranks 2 rank 1 blocks 2\nstrand 0\n recv from 0 dst out.0\n recv from 0 dst "
        "out.1\n"};
    parse(race, 2);
    refused(check(8, false, false), "a race");
    static const char *const only_in_place[] = {
        "plan broadcast algorithm 2 ranks 2 rank 0 blocks 1 scratch 1\nstrand 0\n send to 1 src in.0\nstrand 1\n"
        " copy src in.0 dst scratch.0\n copy src scratch.0 dst out.0\n",
        "plan broadcast algorithm 2 ranks 2 rank 1 blocks 1 scratch 1\nstrand 0\n recv from 0 dst out.0\n"};
    parse(only_in_place, 2);
    ck_assert_msg(check(8, false, false) == QUIRE_OK, "%s", status_text_last());
    refused(check(8, true, false), "a race");
}
END_TEST

START_TEST(a_slot_that_nobody_reads_is_refused)
{
    static const char *const unread[] = {
        "plan broadcast algorithm 2 ranks 2 rank 0\nstrand 0\n send to 1 src in.0\n send to 1\n copy src in.0 dst "
        "out.0\n",
        "plan broadcast algorithm 2 ranks 2 rank 1\nstrand 0\n recv from 0 dst out.0\n"};
    parse(unread, 2);
    refused(check(8, false, false), "never");
}
END_TEST

START_TEST(a_read_of_what_nobody_sends_is_refused)
{
    static const char *const unsent[] = {
        "plan broadcast algorithm 2 ranks 2 rank 0\nstrand 0\n send to 1 src in.0\n copy src in.0 dst out.0\n",
        "plan broadcast algorithm 2 ranks 2 rank 1\nstrand 0\n recv from 0 dst out.0\n recv from 0\n"};
    parse(unsent, 2);
    quire_status_t st = check(8, false, false);
    ck_assert_int_eq(st, QUIRE_ERR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(finishing_never_or_twice_is_refused)
{
    emit(QUIRE_ALL_REDUCE, ALGORITHM_ONE_SHOT, 3);
    plans[1]->steps[1].flags &= (uint8_t)~PLAN_FINISH;
    refused(check(8, false, true), "never finished");
    emit(QUIRE_ALL_REDUCE, ALGORITHM_RING, 3);
    plans[0]->steps[1].flags |= PLAN_FINISH;
    refused(check(8, false, false), "finished already");
}
END_TEST

START_TEST(another_order_of_addition_is_refused_when_the_canonical_one_is_promised)
{
    emit(QUIRE_ALL_REDUCE, ALGORITHM_RING, 3);
    ck_assert_int_eq(check(8, false, false), QUIRE_OK);
    refused(check(8, false, true), "canonical order");
}
END_TEST

START_TEST(a_barrier_that_lets_a_rank_go_early_is_refused)
{
    static const char *const early[] = {"plan barrier algorithm 4 ranks 3 rank 0\nstrand 0\n send to 1\n recv from 1\n",
                                        "plan barrier algorithm 4 ranks 3 rank 1\nstrand 0\n send to 0\n recv from 0\n",
                                        "plan barrier algorithm 4 ranks 3 rank 2\nstrand 0\n signal\n wait\n"};
    char text[3][256];
    const char *texts[3] = {text[0], text[1], text[2]};
    for (int i = 0; i < 3; i++)
        snprintf(text[i], sizeof(text[i]), "%.*s events 1%s", (int)(strchr(early[i], '\n') - early[i]), early[i],
                 strchr(early[i], '\n'));
    parse(texts, 3);
    refused(check(8, false, false), "leaves barrier 0 before rank");
}
END_TEST

START_TEST(plans_of_different_shapes_are_not_taken)
{
    emit(QUIRE_ALL_REDUCE, ALGORITHM_RING, 3);
    plan_free(plans[1]);
    struct plan_shape other = {QUIRE_ALL_REDUCE, ALGORITHM_ONE_SHOT, 3, 0};
    ck_assert_int_eq(algorithm_emit(&other, 1, &plans[1]), QUIRE_OK);
    refused(check(8, false, false), "one shape");
}
END_TEST

BASE_TEST_MAIN("plan_check", a_missing_contribution_is_refused, a_double_contribution_is_refused, a_cycle_is_a_deadlock,
               a_deadlock_of_shallow_lanes_needs_the_real_depth, a_race_that_only_in_place_has_is_refused_there,
               a_slot_that_nobody_reads_is_refused, a_read_of_what_nobody_sends_is_refused,
               finishing_never_or_twice_is_refused,
               another_order_of_addition_is_refused_when_the_canonical_one_is_promised,
               a_barrier_that_lets_a_rank_go_early_is_refused, plans_of_different_shapes_are_not_taken)
