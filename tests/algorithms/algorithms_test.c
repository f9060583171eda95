/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * algorithms_test.c - every algorithm, every collective it does, every rank count 1 to 64, roots (all up to 9 ranks,
 * some above), in place and not, with lanes of 8 and of 2 slots: proved.
 */
#include <time.h>

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

START_TEST(all_are_proved_for_every_rank_count_and_root)
{
    int proved = 0;
    for (enum algorithm_id id = 0; id < ALGORITHM_PAIR; id++)
        for (uint8_t collective = QUIRE_ALL_REDUCE; collective <= QUIRE_BARRIER; collective++)
            for (uint32_t n = 1; n <= RANKS; n++) {
                struct plan_shape shape = {collective, (uint8_t)id, n, 0};
                if (algorithm_get(id)->unfit(&shape) != NULL)
                    continue;
                for (; shape.root < (collective == QUIRE_BROADCAST ? n : 1);
                     shape.root += n <= 9 || shape.root >= n / 2 ? (n <= 9              ? 1
                                                                    : n - n / 2 - 1 > 0 ? n - n / 2 - 1
                                                                                        : 1)
                                                                 : n / 2) {
                    prove(&shape);
                    proved++;
                }
            }
    ck_assert_int_gt(proved, 64 * 7);
}
END_TEST

START_TEST(a_ring_of_ten_thousand_is_a_handful_of_steps)
{
    struct plan_shape shape = {QUIRE_ALL_REDUCE, ALGORITHM_RING, 10000, 0};
    struct plan *plan;
    ck_assert_int_eq(algorithm_emit(&shape, 4321, &plan), QUIRE_OK);
    ck_assert_uint_le(plan->step_count, 8);
    plan_free(plan);
    shape = (struct plan_shape){QUIRE_BROADCAST, ALGORITHM_BINOMIAL, 10000, 77};
    ck_assert_int_eq(algorithm_emit(&shape, 77, &plan), QUIRE_OK);
    ck_assert_uint_le(plan->step_count, 16);
    plan_free(plan);
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

BASE_TEST_MAIN("algorithms", all_are_proved_for_every_rank_count_and_root, a_ring_of_ten_thousand_is_a_handful_of_steps,
               what_does_not_fit_is_refused_with_a_reason, names_lead_back_to_ids)
