/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_values_test.c - the inputs and expected results of the perf binaries: right, exact in any order of addition, and
 * such that a fault of the library can't hide.
 */
#include <math.h>

#include "../base/base_test.h"
#include "harness/harness.h"

#include "../../perf/perf_values.c"

enum { COUNT = 360, MANY = 260 };
static const int rank_counts[] = {1, 2, 3, 4, 7, 8, 9, 16, 17, 40, MANY};
#define FOR_RANKS(n)                                                                                                   \
    for (size_t at_ = 0; at_ < sizeof(rank_counts) / sizeof(rank_counts[0]); at_++)                                    \
        for (int n = rank_counts[at_], once_ = 1; once_; once_ = 0)

static const struct perf_test reduces = {.has_op = true, .collective = QUIRE_ALL_REDUCE};
static const struct perf_test broadcasts = {.has_root = true, .collective = QUIRE_BROADCAST};
static const struct perf_test rings = {.collective = QUIRE_SEND};

static struct perf_values values_of(const struct perf_test *test, quire_type_t type, quire_op_t op, int ranks, int rank,
                                    size_t count)
{
    struct perf_call call = {.count = count, .type = type, .op = op, .size = ranks, .rank = rank, .root = ranks / 2};
    struct perf_values values;
    ck_assert(perf_values_make(&values, test, &call));
    return values;
}

/* Every rank's input as numbers, read by the harness's own reading of the formats. */
static double *inputs_of(quire_type_t type, quire_op_t op, int ranks)
{
    double *in = malloc((size_t)ranks * COUNT * sizeof(*in));
    for (int r = 0; r < ranks; r++)
        for (size_t i = 0; i < COUNT; i++) {
            uint8_t at[8];
            put_bits(at, type, encode(format_of(type), real(type, op, ranks, r, i)));
            in[(size_t)r * COUNT + i] = harness_get(at, 0, type);
        }
    struct perf_values values = values_of(&reduces, type, op, ranks, ranks - 1, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        ck_assert(harness_get(values.input, i, type) == in[(size_t)(ranks - 1) * COUNT + i]);
    perf_values_free(&values);
    return in;
}

static double fold(quire_op_t op, double a, double b)
{
    return op == QUIRE_PROD ? a * b : op == QUIRE_MAX ? fmax(a, b) : op == QUIRE_MIN ? fmin(a, b) : a + b;
}

START_TEST(results_of_floats_are_those_of_a_plain_fold)
{
    for (int type = QUIRE_FLOAT16; type < QUIRE_TYPE_COUNT; type++)
        for (int op = 0; op < QUIRE_OP_COUNT; op++)
            FOR_RANKS(n)
            {
                double *in = inputs_of((quire_type_t)type, (quire_op_t)op, n);
                struct perf_values values = values_of(&reduces, (quire_type_t)type, (quire_op_t)op, n, n - 1, COUNT);
                for (size_t i = 0; i < COUNT; i++) {
                    double v = in[i];
                    for (int r = 1; r < n; r++)
                        v = fold((quire_op_t)op, v, in[(size_t)r * COUNT + i]);
                    v = op == QUIRE_AVG ? v / n : v;
                    ck_assert_msg(harness_get(values.expected, i, (quire_type_t)type) == v,
                                  "type %d op %d ranks %d element %zu: %g, fold %g", type, op, n, i,
                                  harness_get(values.expected, i, (quire_type_t)type), v);
                }
                perf_values_free(&values);
                free(in);
            }
}
END_TEST

START_TEST(sums_are_exact_in_any_order)
{
    /* Whole numbers whose absolute values add up to no more than what the type counts without gaps. */
    for (int type = QUIRE_FLOAT16; type < QUIRE_TYPE_COUNT; type++)
        for (int avg = 0; avg < 2; avg++)
            FOR_RANKS(n)
            {
                double *in = inputs_of((quire_type_t)type, avg ? QUIRE_AVG : QUIRE_SUM, n);
                double limit = (double)exact_limit((quire_type_t)type);
                for (size_t i = 0; i < COUNT; i++) {
                    double sum = 0;
                    for (int r = 0; r < n; r++) {
                        double v = in[(size_t)r * COUNT + i];
                        ck_assert(v == floor(v));
                        sum += fabs(v);
                    }
                    ck_assert_msg(sum <= limit, "type %d ranks %d element %zu: %g", type, n, i, sum);
                }
                free(in);
            }
}
END_TEST

START_TEST(every_ranks_contribution_is_missed)
{
    /* Without a rank, or with it twice, some element of a few hundred differs; sums and averages show each rank. */
    for (int type = QUIRE_FLOAT16; type < QUIRE_TYPE_COUNT; type++)
        for (int op = 0; op < QUIRE_OP_COUNT; op++) {
            FOR_RANKS(n)
            {
                if (op == QUIRE_MAX || op == QUIRE_MIN) /* most ranks are no extreme of any element */
                    continue;
                double *in = inputs_of((quire_type_t)type, (quire_op_t)op, n);
                for (int r = 0; r < n; r++) {
                    bool shows = false;
                    for (size_t i = 0; i < COUNT && !shows; i++) {
                        double v = in[(size_t)r * COUNT + i];
                        shows = op == QUIRE_PROD ? v != 1 : v != 0;
                    }
                    bool alone = op == QUIRE_AVG && r == n - 1 && n % 2 == 1 && n > exact_limit((quire_type_t)type);
                    ck_assert_msg(shows || alone, "type %d op %d rank %d of %d", type, op, r, n);
                }
                free(in);
            }
        }
}
END_TEST

START_TEST(integers_wrap_and_keep_their_sign)
{
    FOR_RANKS(n)
    {
        if (n == MANY) /* nothing new for integers */
            continue;
        bool wraps = false;
        for (int op = 0; op < QUIRE_OP_COUNT; op++) {
            struct perf_values values = values_of(&reduces, QUIRE_INT8, (quire_op_t)op, n, 0, COUNT);
            struct perf_values wide = values_of(&reduces, QUIRE_UINT32, (quire_op_t)op, n, 0, COUNT);
            int8_t(*in)[COUNT] = malloc((size_t)n * sizeof(*in));
            uint32_t(*in32)[COUNT] = malloc((size_t)n * sizeof(*in32));
            for (int r = 0; r < n; r++) {
                struct perf_values a = values_of(&reduces, QUIRE_INT8, (quire_op_t)op, n, r, COUNT);
                struct perf_values b = values_of(&reduces, QUIRE_UINT32, (quire_op_t)op, n, r, COUNT);
                memcpy(in[r], a.input, sizeof(*in));
                memcpy(in32[r], b.input, sizeof(*in32));
                perf_values_free(&a);
                perf_values_free(&b);
            }
            for (size_t i = 0; i < COUNT; i++) {
                int8_t v = in[0][i], want;
                uint32_t v32 = in32[0][i], want32;
                for (int r = 1; r < n; r++) {
                    int8_t b = in[r][i];
                    uint32_t b32 = in32[r][i];
                    if (op == QUIRE_MAX || op == QUIRE_MIN) {
                        v = (op == QUIRE_MAX) == (b > v) ? b : v;
                        v32 = (op == QUIRE_MAX) == (b32 > v32) ? b32 : v32;
                    } else {
                        wraps = wraps || v + b > 127;
                        v = (int8_t)(uint8_t)(op == QUIRE_PROD ? v * b : v + b);
                        v32 = op == QUIRE_PROD ? v32 * b32 : v32 + b32;
                    }
                }
                memcpy(&want, values.expected + i, 1);
                memcpy(&want32, wide.expected + 4 * i, 4);
                ck_assert_int_eq(want, op == QUIRE_AVG ? v / n : v);
                ck_assert_uint_eq(want32, op == QUIRE_AVG ? v32 / (uint32_t)n : v32);
            }
            free(in);
            free(in32);
            perf_values_free(&values);
            perf_values_free(&wide);
        }
        ck_assert(wraps || n == 1);
    }
}
END_TEST

START_TEST(what_is_moved_tells_its_source)
{
    for (int type = 0; type < QUIRE_TYPE_COUNT; type++) {
        size_t bytes = COUNT * quire_type_size((quire_type_t)type);
        struct perf_values root = values_of(&broadcasts, (quire_type_t)type, QUIRE_SUM, 40, 20, COUNT);
        for (int r = 0; r < 40; r++) {
            struct perf_values b = values_of(&broadcasts, (quire_type_t)type, QUIRE_SUM, 40, r, COUNT);
            struct perf_values s = values_of(&rings, (quire_type_t)type, QUIRE_SUM, 40, r, COUNT);
            struct perf_values before = values_of(&rings, (quire_type_t)type, QUIRE_SUM, 40, (r + 39) % 40, COUNT);
            ck_assert_mem_eq(b.expected, root.input, bytes);
            ck_assert_mem_eq(s.expected, before.input, bytes);
            ck_assert(r == 20 || memcmp(b.input, b.expected, bytes) != 0);
            perf_values_free(&b);
            perf_values_free(&s);
            perf_values_free(&before);
        }
        perf_values_free(&root);
    }
}
END_TEST

START_TEST(planted_faults_are_counted)
{
    /* Longer than two periods and no multiple of one; a bit, a byte, swapped blocks. */
    size_t count = 2 * PERIOD + 1234, block = 4096;
    for (int type = 0; type < QUIRE_TYPE_COUNT; type++) {
        struct perf_values values = values_of(&reduces, (quire_type_t)type, QUIRE_SUM, 3, 1, count);
        struct perf_values result = values;
        size_t elem = values.elem;
        uint8_t *buffer = malloc(count * elem);
        result.input = values.expected; /* fill() with results */
        perf_values_fill(&result, buffer, count);
        ck_assert_uint_eq(perf_values_wrong(&values, buffer, count), 0);
        for (size_t i = 0; i < count; i += count / 7) {
            buffer[i * elem] ^= 1;
            ck_assert_uint_eq(perf_values_wrong(&values, buffer, count), 1);
            buffer[i * elem] ^= 1;
        }
        buffer[count * elem - 1] ^= 0x80;
        buffer[0] ^= 0x10;
        ck_assert_uint_eq(perf_values_wrong(&values, buffer, count), 2);
        ck_assert_uint_eq(perf_values_wrong(&values, buffer, count - 1), 1);
        buffer[count * elem - 1] ^= 0x80;
        buffer[0] ^= 0x10;
        memmove(buffer + block * elem, buffer, block * elem);
        ck_assert_uint_gt(perf_values_wrong(&values, buffer, count), block / 8);
        perf_values_fill(&values, buffer, count);
        ck_assert_uint_eq(perf_values_changed(&values, buffer, count), 0);
        buffer[(count - 1) * elem] ^= 1;
        ck_assert_uint_eq(perf_values_changed(&values, buffer, count), 1);
        ck_assert_uint_eq(perf_values_wrong(&values, buffer, 0), 0);
        free(buffer);
        perf_values_free(&values);
    }
}
END_TEST

BASE_TEST_MAIN("perf_values", results_of_floats_are_those_of_a_plain_fold, sums_are_exact_in_any_order,
               every_ranks_contribution_is_missed, integers_wrap_and_keep_their_sign, what_is_moved_tells_its_source,
               planted_faults_are_counted)
