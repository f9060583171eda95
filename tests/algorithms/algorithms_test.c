/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * algorithms_test.c - every algorithm, every collective it does, every rank count 1 to 64, roots (all up to 17
 * ranks, some above), in place and not, with lanes of 8 and of 2 slots: proved.
 */
#include "../base/base_test.h"
#include "algorithms.h"
#include "base/status.h"

enum { RANKS = 64 };

static void prove(const struct plan_shape *shape)
{
    struct plan *plans[RANKS];
    const struct algorithm *algorithm = algorithm_get((enum algorithm_id)shape->algorithm);
    for (uint32_t r = 0; r < shape->ranks; r++)
        ck_assert_msg(algorithm_emit(shape, r, &plans[r]) == QUIRE_OK, "%s", status_text_last());
    for (int variant = 0; variant < 4; variant++) {
        struct plan_check_options options = {variant & 1 ? 2 : 8, 3, variant & 2,
                                             algorithm->canonical && shape->collective == QUIRE_ALL_REDUCE};
        ck_assert_msg(plan_check((const struct plan *const *)plans, shape->ranks, &options) == QUIRE_OK,
                      "%s %s ranks %u root %u depth %u: %s", algorithm->name,
                      quire_collective_name((quire_collective_t)shape->collective), shape->ranks, shape->root,
                      options.depth, status_text_last());
    }
    for (uint32_t r = 0; r < shape->ranks; r++)
        plan_free(plans[r]);
}

/* All roots up to 17 ranks; above, the ends, their neighbours and the middle. */
static bool root_is_tried(uint32_t root, uint32_t n)
{
    return n <= 17 || root <= 1 || root == n / 2 || root == n - 1;
}

START_TEST(all_are_proved_for_every_rank_count_and_root)
{
    int proved = 0;
    for (enum algorithm_id id = 0; id < ALGORITHM_PAIR; id++)
        for (uint8_t collective = QUIRE_ALL_REDUCE; collective <= QUIRE_BARRIER; collective++)
            for (uint32_t n = 1; n <= RANKS; n++) {
                struct plan_shape shape = {collective, (uint8_t)id, n, 0};
                if (algorithm_get(id)->unfit(&shape) != NULL)
                    continue;
                for (; shape.root < (collective == QUIRE_BROADCAST ? n : 1); shape.root++)
                    if (root_is_tried(shape.root, n)) {
                        prove(&shape);
                        proved++;
                    }
            }
    /* 3 all_reduces and 2 barriers of 64 counts; 3 broadcasts of 17 * 18 / 2 small and 47 * 4 large shapes. */
    ck_assert_int_eq(proved, 5 * 64 + 3 * (17 * 18 / 2 + 47 * 4));
}
END_TEST

/* Slots a rank publishes in one pass, and the blocks in them. */
static uint64_t published(const struct plan *plan, uint64_t *blocks)
{
    uint64_t slots = 0;
    *blocks = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct plan_step *s = &plan->steps[i];
        if (s->kind != PLAN_SEND && !(s->flags & PLAN_FORWARD))
            continue;
        slots += s->repeat;
        *blocks += (uint64_t)s->repeat * (s->blocks - (s->flags & PLAN_SKIP_SELF ? 1 : 0));
    }
    return slots;
}

/* The traffic that README.md tells: a ring moves each block 2(n-1) times a rank, two_shot n-1 blocks and one. */
START_TEST(each_algorithm_sends_as_much_as_its_table_says)
{
    for (uint32_t n = 2; n <= RANKS; n++)
        for (uint32_t r = 0; r < n; r++) {
            static const enum algorithm_id ids[] = {ALGORITHM_ONE_SHOT, ALGORITHM_TWO_SHOT, ALGORITHM_RING};
            const uint64_t slots[] = {1, 2, 2 * (uint64_t)(n - 1)}, wanted[] = {1, n, 2 * (uint64_t)(n - 1)};
            for (int i = 0; i < 3; i++) {
                struct plan_shape shape = {QUIRE_ALL_REDUCE, (uint8_t)ids[i], n, 0};
                struct plan *plan;
                uint64_t blocks;
                ck_assert_int_eq(algorithm_emit(&shape, r, &plan), QUIRE_OK);
                ck_assert_uint_eq(published(plan, &blocks), slots[i]);
                ck_assert_uint_eq(blocks, wanted[i]);
                plan_free(plan);
            }
        }
}
END_TEST

/* One rank needs no other: no lane is named, so a communicator of one needs none. */
START_TEST(a_rank_alone_uses_no_lanes)
{
    for (enum algorithm_id id = 0; id < ALGORITHM_PAIR; id++)
        for (uint8_t collective = QUIRE_ALL_REDUCE; collective <= QUIRE_BARRIER; collective++) {
            struct plan_shape shape = {collective, (uint8_t)id, 1, 0};
            struct plan *plan;
            if (algorithm_get(id)->unfit(&shape) != NULL)
                continue;
            ck_assert_int_eq(algorithm_emit(&shape, 0, &plan), QUIRE_OK);
            ck_assert_uint_eq(plan->step_count, collective == QUIRE_BARRIER ? 0 : 1);
            ck_assert(collective == QUIRE_BARRIER || plan->steps[0].kind == PLAN_COPY);
            plan_free(plan);
        }
}
END_TEST

START_TEST(ten_thousand_ranks_take_a_handful_of_steps_and_lines)
{
    const struct plan_shape shapes[] = {{QUIRE_ALL_REDUCE, ALGORITHM_RING, 10000, 0},
                                        {QUIRE_BROADCAST, ALGORITHM_RING, 10000, 77},
                                        {QUIRE_BROADCAST, ALGORITHM_ONE_SHOT, 10000, 77},
                                        {QUIRE_BROADCAST, ALGORITHM_BINOMIAL, 10000, 77},
                                        {QUIRE_BARRIER, ALGORITHM_DISSEMINATION, 10000, 0}};
    static const uint32_t most[] = {5, 2, 2, 15, 28};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (uint32_t rank = 0; rank < 10000; rank += rank == 77 ? 4000 : 77) {
            struct plan *plan, *back;
            char text[4096];
            ck_assert_int_eq(algorithm_emit(&shapes[i], rank, &plan), QUIRE_OK);
            ck_assert_uint_le(plan->step_count, most[i]);
            size_t bytes = plan_print(plan, text, sizeof(text));
            ck_assert_uint_lt(bytes, sizeof(text));
            ck_assert_msg(plan_parse(text, bytes, &back) == QUIRE_OK, "%s", status_text_last());
            ck_assert_uint_eq(back->step_count, plan->step_count);
            plan_free(back);
            plan_free(plan);
        }
}
END_TEST

START_TEST(what_does_not_fit_is_refused_with_a_reason)
{
    struct plan_shape shape = {QUIRE_ALL_REDUCE, ALGORITHM_ONE_SHOT, 65, 0};
    struct plan *plan = NULL;
    ck_assert_int_eq(algorithm_emit(&shape, 0, &plan), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert(strstr(status_text_last(), "64 ranks") != NULL);
    shape = (struct plan_shape){QUIRE_BARRIER, ALGORITHM_RING, 4, 0};
    ck_assert_int_eq(algorithm_emit(&shape, 0, &plan), QUIRE_ERR_INVALID_ARGUMENT);
    shape = (struct plan_shape){QUIRE_BROADCAST, ALGORITHM_RING, 4, 4};
    ck_assert_int_eq(algorithm_emit(&shape, 0, &plan), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_ptr_eq(plan, NULL);
}
END_TEST

START_TEST(names_lead_back_to_ids)
{
    for (enum algorithm_id id = 0; id < ALGORITHM_COUNT; id++)
        ck_assert_int_eq(algorithm_by_name(algorithm_get(id)->name), id);
    ck_assert_int_eq(algorithm_by_name("auto"), ALGORITHM_COUNT);
}
END_TEST

BASE_TEST_MAIN("algorithms", all_are_proved_for_every_rank_count_and_root,
               each_algorithm_sends_as_much_as_its_table_says, a_rank_alone_uses_no_lanes,
               ten_thousand_ranks_take_a_handful_of_steps_and_lines, what_does_not_fit_is_refused_with_a_reason,
               names_lead_back_to_ids)
