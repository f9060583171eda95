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
            plans[2]->steps[i].dst = (struct plan_ref){PLAN_NONE, plans[2]->steps[i].src.block};
            plans[2]->steps[i].dst_stride = plans[2]->steps[i].src_stride;
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
        " copy src in.0 dst out.0\nstrand 1\n copy src in.0 dst out.0\n copy src in.1 dst out.1\n",
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
    /* In the first pass the slot of the next one is taken for it; at the end one is missing. */
    refused(check(8, false, false), "deadlock");
    ck_assert(strstr(status_text_last(), "rank 1 strand 0") != NULL);
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

/* What the executor does with FINISH outside of a reduce is nothing, so an average would not be divided. */
START_TEST(finishing_where_nothing_is_added_is_refused)
{
    static const char *const text = "plan all_reduce algorithm 0 ranks 2 rank 0 scratch 1\nstrand 0\n"
                                    " send out_wide src in.0\n"
                                    " reduce in_wide fold src in.0 dst scratch.0 fold_hi 2 out_wide forward\n"
                                    " recv in_wide finish from 1 dst out.0\n";
    struct plan *plan = NULL;
    refused(plan_parse(text, strlen(text), &plan), "only a reduce finishes");
}
END_TEST

START_TEST(finishing_twice_by_a_fold_of_one_is_refused)
{
    static const char *const twice[] = {
        "plan all_reduce algorithm 0 ranks 2 rank 0\nstrand 0\n send out_wide src in.0\n"
        " reduce in_wide fold finish src in.0 dst out.0 fold_hi 2\n"
        " reduce in_wide fold finish src out.0 dst out.0 fold_lo 0 fold_hi 1\n",
        "plan all_reduce algorithm 0 ranks 2 rank 1\nstrand 0\n send out_wide src in.0\n"
        " reduce in_wide fold finish src in.0 dst out.0 fold_hi 2\n"};
    parse(twice, 2);
    refused(check(8, false, false), "finished twice");
    ck_assert(strstr(status_text_last(), "rank 0 strand 0 step 2 pass 0") != NULL);
}
END_TEST

/* The last block may be short: a longer one written there runs over the buffer's end, even when it is repaired. */
START_TEST(a_block_written_to_the_place_of_another_is_refused)
{
    static const char *const misplaced[] = {
        "plan broadcast algorithm 2 ranks 2 rank 0 blocks 2\nstrand 0\n send to 1 src in.0\n send to 1 src in.1\n"
        " copy src in.0 dst out.0\n copy src in.1 dst out.1\n",
        "plan broadcast algorithm 2 ranks 2 rank 1 blocks 2\nstrand 0\n recv from 0 dst out.1\n"
        " copy src out.1 dst out.0\n recv from 0 dst out.1\n"};
    parse(misplaced, 2);
    refused(check(8, false, false), "block 0 to the place of block 1");
}
END_TEST

/* What is only forwarded has the length of the block that the step names. */
START_TEST(a_block_forwarded_with_the_length_of_another_is_refused)
{
    static const char *const wrong[] = {
        "plan broadcast algorithm 2 ranks 3 rank 0 blocks 2\nstrand 0\n send to 1 src in.0\n send to 1 src in.1\n"
        " send to 1 src in.1\n copy src in.0 dst out.0\n copy src in.1 dst out.1\n",
        "plan broadcast algorithm 2 ranks 3 rank 1 blocks 2\nstrand 0\n recv forward from 0 to 2 dst out.0\n"
        " recv forward from 0 to 2 dst none.0\n recv from 0 dst out.1\n",
        "plan broadcast algorithm 2 ranks 3 rank 2 blocks 2\nstrand 0\n recv from 1 dst out.0\n recv from 1 dst "
        "out.1\n"};
    parse(wrong, 3);
    refused(check(8, false, false), "block 1 with the length of block 0");
    plans[1]->steps[1].dst.block = 1;
    ck_assert_msg(check(8, false, false) == QUIRE_OK, "%s", status_text_last());
}
END_TEST

/* A wait is ordered behind the signal of its own pass only, whatever the other strand has signalled since. */
START_TEST(a_write_behind_the_signal_is_a_race_in_the_first_pass)
{
    static const char *const late[] = {
        "plan broadcast algorithm 0 ranks 1 rank 0 scratch 1 events 1\nstrand 0\n signal\n copy src in.0 dst out.0\n"
        "strand 1\n wait\n copy src out.0 dst scratch.0\n"};
    parse(late, 1);
    refused(check(8, false, false), "rank 0 strand 1 step 1 pass 0: a race");
    static const char *const good[] = {
        "plan broadcast algorithm 0 ranks 1 rank 0 scratch 1 events 1\nstrand 0\n copy src in.0 dst out.0\n signal\n"
        "strand 1\n wait\n copy src out.0 dst scratch.0\n"};
    parse(good, 1);
    ck_assert_msg(check(8, false, false) == QUIRE_OK, "%s", status_text_last());
}
END_TEST

START_TEST(a_deadlock_tells_which_peer_each_strand_waits_for)
{
    static const char *const full[] = {
        "plan broadcast algorithm 2 ranks 3 rank 0\nstrand 0\n send to 1 src in.0 repeat 3\n copy src in.0 dst out.0\n",
        "plan broadcast algorithm 2 ranks 3 rank 1\nstrand 0\n recv forward from 0 to 2 dst out.0 repeat 3\n",
        "plan broadcast algorithm 2 ranks 3 rank 2\nstrand 0\n recv from 0\n recv from 1 dst out.0 repeat 3\n"};
    parse(full, 3);
    refused(check(1, false, false), "rank 0 strand 0 step 0 pass 0 (no room towards rank 1)");
    ck_assert(strstr(status_text_last(), "rank 1 strand 0 step 0 pass 0 (no room towards rank 2)") != NULL);
    ck_assert(strstr(status_text_last(), "rank 2 strand 0 step 0 pass 0 (nothing from rank 0)") != NULL);
}
END_TEST

START_TEST(plans_too_large_to_prove_are_refused_before_memory_is_taken)
{
    static const char *const large[] = {"plan broadcast algorithm 0 ranks 1 rank 0 blocks 16777216\nstrand 0\n"
                                        " copy src in.0 dst out.0 repeat 1000 src_stride 1 dst_stride 1\n"};
    parse(large, 1);
    refused(check(8, false, false), "too many blocks");
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
               finishing_never_or_twice_is_refused, finishing_where_nothing_is_added_is_refused,
               finishing_twice_by_a_fold_of_one_is_refused, a_block_written_to_the_place_of_another_is_refused,
               a_block_forwarded_with_the_length_of_another_is_refused,
               a_write_behind_the_signal_is_a_race_in_the_first_pass, a_deadlock_tells_which_peer_each_strand_waits_for,
               plans_too_large_to_prove_are_refused_before_memory_is_taken,
               another_order_of_addition_is_refused_when_the_canonical_one_is_promised,
               a_barrier_that_lets_a_rank_go_early_is_refused, plans_of_different_shapes_are_not_taken)
