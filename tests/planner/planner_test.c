/* SPDX-License-Identifier: BSD-3-Clause */
/* planner_test.c - the choice follows from facts alone, is canonical where promised, and explains itself. */
#include "../base/base_test.h"
#include "base/status.h"
#include "planner/planner.h"

static struct planner_facts facts(uint32_t ranks, bool shared)
{
    return (struct planner_facts){
        .ranks = ranks, .shared = shared, .forced = ALGORITHM_COUNT, .one_shot_max = SIZE_MAX, .lane_depth = 8};
}

static struct planner_request reduce(size_t bytes)
{
    return (struct planner_request){QUIRE_ALL_REDUCE, bytes, QUIRE_FLOAT32, QUIRE_SUM, 0};
}

START_TEST(size_decides_between_one_shot_and_two_shot)
{
    for (uint32_t n = 3; n <= 64; n++) {
        struct planner_facts f = facts(n, true);
        struct planner_request small = reduce(planner_one_shot_max(n)), large = reduce(planner_one_shot_max(n) + 1);
        ck_assert_int_eq(planner_choose(&f, &small, NULL), ALGORITHM_ONE_SHOT);
        ck_assert_int_eq(planner_choose(&f, &large, NULL), ALGORITHM_TWO_SHOT);
    }
    struct planner_facts two = facts(2, true);
    struct planner_request huge = reduce((size_t)1 << 40);
    ck_assert_int_eq(planner_choose(&two, &huge, NULL), ALGORITHM_ONE_SHOT);
}
END_TEST

START_TEST(inside_a_host_and_in_deterministic_mode_the_order_is_canonical)
{
    for (uint32_t n = 1; n <= 64; n++)
        for (int variant = 0; variant < 3; variant++)
            for (size_t bytes = 0; bytes < (size_t)1 << 30; bytes = bytes * 7 + 1) {
                struct planner_facts f = facts(n, variant != 1);
                struct planner_request r = reduce(bytes);
                f.deterministic = variant >= 1;
                f.forced = variant == 2 ? ALGORITHM_RING : ALGORITHM_COUNT; /* can't be had here */
                enum algorithm_id id = planner_choose(&f, &r, NULL);
                ck_assert(id != ALGORITHM_COUNT && (algorithm_get(id)->canonical || n == 1));
            }
    struct planner_facts sockets = facts(8, false);
    struct planner_request large = reduce(1 << 24);
    ck_assert_int_eq(planner_choose(&sockets, &large, NULL), ALGORITHM_RING);
}
END_TEST

START_TEST(what_nobody_can_do_is_refused_with_every_reason)
{
    struct planner_facts f = facts(65, true);
    struct planner_request r = reduce(8);
    struct planner *planner;
    const struct plan *plan = NULL;
    ck_assert_int_eq(planner_choose(&f, &r, NULL), ALGORITHM_COUNT);
    ck_assert_int_eq(planner_create(&planner, &f, 0), QUIRE_OK);
    ck_assert_int_eq(planner_plan(planner, &r, &plan), QUIRE_ERR_INVALID_USAGE);
    ck_assert_ptr_eq(plan, NULL);
    ck_assert_msg(strstr(status_text_last(), "64 ranks") && strstr(status_text_last(), "canonical"), "%s",
                  status_text_last());
    planner_destroy(planner);
}
END_TEST

START_TEST(plans_are_cached_and_proved_when_asked)
{
    struct planner_facts f = facts(5, true);
    struct planner *planner;
    const struct plan *a, *b, *c;
    f.prove = true;
    struct planner_request r = reduce(8), larger = reduce(16), other = {QUIRE_BROADCAST, 8, QUIRE_INT8, QUIRE_SUM, 3};
    ck_assert_int_eq(planner_create(&planner, &f, 2), QUIRE_OK);
    ck_assert_int_eq(planner_plan(planner, &r, &a), QUIRE_OK);
    ck_assert_int_eq(planner_plan(planner, &larger, &b), QUIRE_OK);
    ck_assert_int_eq(planner_plan(planner, &other, &c), QUIRE_OK);
    ck_assert_ptr_eq(a, b); /* a plan belongs to a shape, not to a size */
    ck_assert_ptr_ne(a, c);
    ck_assert_uint_eq(c->shape.root, 3);
    planner_destroy(planner);
}
END_TEST

START_TEST(the_explanation_names_choice_and_candidates)
{
    struct planner_facts f = facts(4, true);
    struct planner_request r = reduce(1 << 20);
    char text[2048], small[20];
    size_t needed = planner_explain(&f, &r, text, sizeof(text));
    ck_assert_uint_eq(needed, strlen(text));
    ck_assert(strstr(text, "choice: two_shot, because") && strstr(text, "binomial does broadcast"));
    ck_assert_uint_eq(planner_explain(&f, &r, small, sizeof(small)), needed);
    ck_assert_uint_eq(strlen(small), sizeof(small) - 1);
}
END_TEST

BASE_TEST_MAIN("planner", size_decides_between_one_shot_and_two_shot,
               inside_a_host_and_in_deterministic_mode_the_order_is_canonical,
               what_nobody_can_do_is_refused_with_every_reason, plans_are_cached_and_proved_when_asked,
               the_explanation_names_choice_and_candidates)
