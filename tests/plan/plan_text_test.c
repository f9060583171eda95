/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_text_test.c - printing and parsing are inverse; golden texts of four ranks; errors with line and reason. */
#include "../base/base_test.h"
#include "algorithms.h"
#include "base/status.h"

static char *printed(const struct plan *plan)
{
    size_t bytes = plan_print(plan, NULL, 0);
    char *text = malloc(bytes + 1);
    ck_assert_uint_eq(plan_print(plan, text, bytes + 1), bytes);
    return text;
}

START_TEST(every_plan_comes_back_from_its_text)
{
    for (enum algorithm_id id = 0; id < ALGORITHM_COUNT; id++)
        for (uint8_t collective = 0; collective < QUIRE_COLLECTIVE_COUNT; collective++)
            for (uint32_t n = 1; n <= 9; n++)
                for (uint32_t r = 0; r < n; r++) {
                    struct plan_shape shape = {collective, (uint8_t)id, n, n / 2};
                    struct plan *plan, *back;
                    if (algorithm_get(id)->unfit(&shape) != NULL)
                        continue;
                    ck_assert_int_eq(algorithm_emit(&shape, r, &plan), QUIRE_OK);
                    char *text = printed(plan);
                    ck_assert_msg(plan_parse(text, strlen(text), &back) == QUIRE_OK, "%s\n%s", status_text_last(),
                                  text);
                    ck_assert_uint_eq(back->hash, plan->hash);
                    ck_assert_uint_eq(back->step_count, plan->step_count);
                    char *again = printed(back);
                    ck_assert_str_eq(text, again);
                    free(again);
                    free(text);
                    plan_free(back);
                    plan_free(plan);
                }
}
END_TEST

static void golden(const char *file, const struct plan_shape *shapes, size_t count)
{
    char path[256], *expect = calloc(1, 1 << 16), *got = calloc(1, 1 << 16);
    snprintf(path, sizeof(path), "tests/plan/golden/%s", file);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s: run the tests from the top of the tree", path);
    ck_assert(fread(expect, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    for (uint32_t r = 0; r < 4; r++)
        for (size_t s = 0; s < count; s++) {
            struct plan *plan;
            ck_assert_int_eq(algorithm_emit(&shapes[s], r, &plan), QUIRE_OK);
            char *text = printed(plan);
            strcat(got, text);
            free(text);
            plan_free(plan);
        }
    size_t at = 0, line = 1;
    for (; expect[at] != '\0' && expect[at] == got[at]; at++)
        line += expect[at] == '\n';
    ck_assert_msg(expect[at] == got[at], "%s differs from what is emitted now in line %zu, before:\n%.200s", path, line,
                  got + at);
    free(got);
    free(expect);
}

START_TEST(plans_of_four_ranks_are_as_they_were)
{
    const struct plan_shape reduces[] = {{QUIRE_ALL_REDUCE, ALGORITHM_ONE_SHOT, 4, 0},
                                         {QUIRE_ALL_REDUCE, ALGORITHM_TWO_SHOT, 4, 0},
                                         {QUIRE_ALL_REDUCE, ALGORITHM_RING, 4, 0}};
    const struct plan_shape others[] = {
        {QUIRE_BROADCAST, ALGORITHM_BINOMIAL, 4, 1}, {QUIRE_BARRIER, ALGORITHM_DISSEMINATION, 4, 0},
        {QUIRE_BROADCAST, ALGORITHM_ONE_SHOT, 4, 1}, {QUIRE_BROADCAST, ALGORITHM_RING, 4, 1},
        {QUIRE_BARRIER, ALGORITHM_ONE_SHOT, 4, 0},   {QUIRE_SEND, ALGORITHM_PAIR, 4, 2},
        {QUIRE_RECV, ALGORITHM_PAIR, 4, 2}};
    golden("all_reduce-4.txt", reduces, 3);
    golden("others-4.txt", others, 7);
}
END_TEST

START_TEST(errors_tell_line_and_reason)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "line 1: an empty text"},
        {"plan juggle ranks 2\n", "line 1: unknown collective: juggle"},
        {"plan barrier ranks\n", "line 1: a key without a value: ranks"},
        {"plan barrier ranks x\n", "line 1: not a number in range: x"},
        {"plan barrier ranks 2 tail 3\n", "line 1: unknown key: tail"},
        {"plan barrier ranks 2\n send to 1\n", "line 2: a step before the first strand"},
        {"plan barrier ranks 2\nstrand 1\n", "line 2: strands are numbered"},
        {"plan barrier ranks 2\nstrand 0\n hop to 1\n", "line 3: neither a strand nor a step: hop"},
        {"plan barrier ranks 2\nstrand 0\n\n# a remark\n send src in\n", "line 5: expected BUFFER.BLOCK: in"},
        {"plan barrier ranks 2\nstrand 0\n send to 1 colour 3\n", "line 3: unknown key: colour"},
        {"plan barrier ranks 2\nstrand 0\n send to 7\n", "sends to no other rank"},
        {"plan barrier ranks 99999999\nstrand 0\n", "out of range"},
        {"plan barrier ranks 99999999999999999999\n", "line 1: not a number in range"},
        {"plan barrier ranks -1\n", "line 1: not a number in range: -1"},
        {"plan barrier ranks 00000000000000000000000000000000002\n", "line 1: not a number in range"},
        {"plan barrier ranks 2\nstrand 0\n send to 1 src in.4294967296\n", "line 3: expected BUFFER.BLOCK"},
        {"plan barrier ranks 2\nstrand 0\n send to 1 repeat -1\n", "line 3: must not be negative: -1"},
        {"plan barrier ranks 2\nstrand 0\n send to 1 channel 9\n", "line 3: no such channel: 9"},
        {"plan barrier ranks 2\nstrand 0\n send to\n", "line 3: a key without a value"},
        {"plan barrier ranks 2 events 9\nstrand 0\n", "line 1: not a number in range: 9"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct plan *plan = NULL;
        ck_assert_int_eq(plan_parse(bad[i].text, strlen(bad[i].text), &plan), QUIRE_ERR_INVALID_ARGUMENT);
        ck_assert_ptr_eq(plan, NULL);
        ck_assert_msg(strstr(status_text_last(), bad[i].why) != NULL, "wanted \"%s\": %s", bad[i].why,
                      status_text_last());
    }
}
END_TEST

START_TEST(a_short_buffer_is_cut_and_ended)
{
    struct plan_shape shape = {QUIRE_ALL_REDUCE, ALGORITHM_RING, 4, 0};
    struct plan *plan;
    char text[16];
    ck_assert_int_eq(algorithm_emit(&shape, 0, &plan), QUIRE_OK);
    memset(text, 'x', sizeof(text));
    ck_assert_uint_gt(plan_print(plan, text, 8), 100);
    ck_assert_str_eq(text, "plan al");
    ck_assert_int_eq(text[8], 'x');
    plan_free(plan);
}
END_TEST

BASE_TEST_MAIN("plan_text", every_plan_comes_back_from_its_text, plans_of_four_ranks_are_as_they_were,
               errors_tell_line_and_reason, a_short_buffer_is_cut_and_ended)
