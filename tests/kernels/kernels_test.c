/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels_test.c - folds against a scalar reference written here, for every type and operator; AVX2 against plain C
 * bit by bit; guard pages, offsets, in place, the second output, special values, the caller's floating-point mode.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "kernels/kernels.h"

enum { MAX_N = 64, MAX_COUNT = 3000 };

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *seed >> 11;
}

/* Random bits, with special values sprinkled in: NaN, infinities, zeros of both signs, the extremes of integers. */
static void fill(void *buffer, size_t bytes, quire_type_t type, uint64_t *seed)
{
    static const float specials[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f, 1e-40f};
    uint8_t *at = buffer;
    size_t elem = quire_type_size(type);
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)next(seed);
    for (size_t i = 0; i + elem <= bytes; i += elem)
        if (next(seed) % 16 == 0) {
            float f = specials[next(seed) % 8];
            double d = (double)f;
            if (type == QUIRE_FLOAT32)
                memcpy(at + i, &f, 4);
            else if (type == QUIRE_FLOAT64)
                memcpy(at + i, &d, 8);
            else
                memset(at + i, next(seed) % 2 ? 0 : 0xff, elem);
        }
}

/* ---- the reference ----------------------------------------------------------------------------------------------- */

static double real_op(quire_op_t op, double a, double b, bool single)
{
    if (isnan(a) || isnan(b))
        return (double)NAN;
    switch (op) {
    case QUIRE_PROD:
        return single ? (double)(float)(a * b) : a * b;
    case QUIRE_MAX:
        return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
    case QUIRE_MIN:
        return a == b ? (signbit(a) ? a : b) : a < b ? a : b;
    default:
        return single ? (double)((float)a + (float)b) : a + b;
    }
}

static double real_fold(quire_type_t type, quire_op_t op, const void *const *src, int lo, int hi, size_t i)
{
    if (hi - lo == 1)
        return harness_get(src[lo], i, type);
    int mid = lo + (hi - lo) / 2;
    return real_op(op, real_fold(type, op, src, lo, mid, i), real_fold(type, op, src, mid, hi, i),
                   type != QUIRE_FLOAT64);
}

static uint64_t integer_get(const void *buffer, size_t i, quire_type_t type)
{
    uint64_t u = 0;
    size_t elem = quire_type_size(type);
    memcpy(&u, (const uint8_t *)buffer + i * elem, elem);
    switch (type) {
    case QUIRE_INT8:
        return (uint64_t)(int64_t)(int8_t)u;
    case QUIRE_INT32:
        return (uint64_t)(int64_t)(int32_t)u;
    default:
        return u;
    }
}

/* Wrapped to the type's width, as the type reads it. */
static uint64_t wrapped(uint64_t v, quire_type_t type)
{
    return integer_get(&v, 0, type);
}

static uint64_t integer_fold(quire_type_t type, quire_op_t op, const void *const *src, int n, size_t i, int ranks)
{
    bool is_signed = type == QUIRE_INT8 || type == QUIRE_INT32 || type == QUIRE_INT64;
    uint64_t v = integer_get(src[0], i, type);
    for (int s = 1; s < n; s++) {
        uint64_t b = integer_get(src[s], i, type);
        bool less = is_signed ? (int64_t)b < (int64_t)v : b < v;
        v = op == QUIRE_PROD ? v * b : op == QUIRE_MAX ? (less ? v : b) : op == QUIRE_MIN ? (less ? b : v) : v + b;
    }
    v = wrapped(v, type);
    if (op == QUIRE_AVG && ranks > 0)
        v = is_signed ? (uint64_t)((int64_t)v / ranks) : v / (uint64_t)ranks;
    return wrapped(v, type);
}

static bool is_integer(quire_type_t type)
{
    return type < QUIRE_FLOAT16;
}

static void check_against_reference(quire_type_t type, quire_op_t op, const void *const *src, int n, size_t count,
                                    int ranks, const void *got)
{
    uint8_t want[8];
    for (size_t i = 0; i < count; i++) {
        if (is_integer(type)) {
            ck_assert_msg(integer_get(got, i, type) == integer_fold(type, op, src, n, i, ranks), "%s %s n %d at %zu",
                          quire_type_name(type), quire_op_name(op), n, i);
            continue;
        }
        double v = real_fold(type, op, src, 0, n, i);
        if (op == QUIRE_AVG && ranks > 0)
            v = type == QUIRE_FLOAT64 ? v / ranks : (double)((float)v / (float)ranks);
        float f = (float)v;
        uint16_t h = type == QUIRE_FLOAT16 ? kernel_float_to_float16(f) : kernel_float_to_bfloat16(f);
        uint8_t b = type == QUIRE_FLOAT8_E4M3 ? kernel_float_to_e4m3(f) : kernel_float_to_e5m2(f);
        memcpy(want,
               type == QUIRE_FLOAT64        ? (void *)&v
               : type == QUIRE_FLOAT32      ? (void *)&f
               : quire_type_size(type) == 2 ? (void *)&h
                                            : (void *)&b,
               quire_type_size(type));
        double w = harness_get(want, 0, type), g = harness_get(got, i, type);
        ck_assert_msg(isnan(w)
                          ? isnan(g)
                          : memcmp(want, (const uint8_t *)got + i * quire_type_size(type), quire_type_size(type)) == 0,
                      "%s %s n %d at %zu: %g, not %g", quire_type_name(type), quire_op_name(op), n, i, g, w);
    }
}

START_TEST(folds_match_the_scalar_reference)
{
    quire_type_t type = (quire_type_t)_i;
    static const int ns[] = {1, 2, 3, 4, 5, 7, 8, 9, 17, 64};
    uint64_t seed = 7 + (uint64_t)_i;
    size_t count = 67, bytes = count * quire_type_size(type);
    const void *src[MAX_N];
    for (size_t k = 0; k < sizeof(ns) / sizeof(ns[0]); k++)
        for (quire_op_t op = 0; op < QUIRE_OP_COUNT; op++) {
            uint8_t *out = malloc(bytes), *memory = malloc(bytes * MAX_N);
            fill(memory, bytes * MAX_N, type, &seed);
            for (int s = 0; s < ns[k]; s++)
                src[s] = memory + bytes * (size_t)s;
            for (int ranks = 0; ranks <= ns[k]; ranks += ns[k]) {
                kernel_fold(type, op, out, NULL, src, ns[k], count, ranks);
                check_against_reference(type, op, src, ns[k], count, ranks, out);
            }
            free(memory);
            free(out);
        }
}
END_TEST

/* One fold of guarded buffers at odd offsets, in one of three shapes, with both instruction sets. */
static void compare_isas(quire_type_t type, quire_op_t op, int n, size_t count, size_t skew, int shape, uint64_t *seed)
{
    size_t bytes = count * quire_type_size(type);
    struct guarded in[9], out[2], also[2];
    const void *src[9];
    uint8_t *kept = malloc(bytes + 1);
    for (int s = 0; s < n; s++) {
        in[s] = guarded_make(bytes, true, (skew + (size_t)s) % 16);
        fill(in[s].at, bytes, type, seed);
        src[s] = in[s].at;
    }
    memcpy(kept, in[n - 1].at, bytes);
    for (int isa = 0; isa < 2; isa++) {
        out[isa] = guarded_make(bytes, isa == 0, skew);
        also[isa] = guarded_make(bytes, true, skew / 2);
        ck_assert(kernel_set_isa(isa == 0 ? "generic" : "avx2"));
        /* Shape 0 plain, 1 with the second output, 2 in place over the last source. */
        kernel_fold(type, op, shape == 2 ? in[n - 1].at : out[isa].at, shape == 1 ? also[isa].at : NULL, src, n, count,
                    op == QUIRE_AVG ? n : 0);
        if (shape == 2) {
            memcpy(out[isa].at, in[n - 1].at, bytes);
            memcpy(in[n - 1].at, kept, bytes);
        }
        ck_assert(guarded_intact(&out[isa]) && guarded_intact(&also[isa]));
    }
    ck_assert_msg(memcmp(out[0].at, out[1].at, bytes) == 0, "%s %s n %d count %zu skew %zu shape %d",
                  quire_type_name(type), quire_op_name(op), n, count, skew, shape);
    if (shape == 1)
        ck_assert(memcmp(out[0].at, also[0].at, bytes) == 0 && memcmp(out[1].at, also[1].at, bytes) == 0);
    for (int i = 0; i < 2; i++) {
        guarded_free(&out[i]);
        guarded_free(&also[i]);
    }
    for (int s = 0; s < n; s++) {
        ck_assert(guarded_intact(&in[s]));
        guarded_free(&in[s]);
    }
    free(kept);
}

START_TEST(avx2_gives_the_bits_of_plain_c)
{
    quire_type_t type = (quire_type_t)_i;
    uint64_t seed = 99 + (uint64_t)_i;
    if (!kernel_set_isa("avx2"))
        return; /* this processor has none: plain C is all there is */
    for (quire_op_t op = 0; op < QUIRE_OP_COUNT; op++) {
        for (size_t count = 0; count <= 70; count++)
            compare_isas(type, op, 1 + (int)(next(&seed) % 9), count, next(&seed) % 16, (int)(count % 3), &seed);
        for (int n = 2; n <= 5; n++)
            compare_isas(type, op, n, 1000 + next(&seed) % (MAX_COUNT - 1000), next(&seed) % 16, n % 3, &seed);
    }
    kernel_set_isa(NULL);
}
END_TEST

#if defined(__x86_64__)
START_TEST(a_caller_in_flush_to_zero_mode_gets_denormals)
{
    float a[9], b[9], out[9];
    const void *src[2] = {a, b};
    for (int i = 0; i < 9; i++)
        a[i] = b[i] = 1e-40f;
    unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040); /* flush to zero, denormals are zero */
    kernel_fold(QUIRE_FLOAT32, QUIRE_SUM, out, NULL, src, 2, 9, 0);
    unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    ck_assert_uint_eq(after & 0x8040, 0x8040);
    for (int i = 0; i < 9; i++) {
        uint32_t bits, want;
        float twice = 2e-40f;
        memcpy(&bits, &out[i], 4);
        memcpy(&want, &twice, 4);
        ck_assert(bits - want + 1 <= 2); /* 1e-40 doubled, to a unit in the last place of the literal */
    }
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("kernels");
    TCase *tcase = tcase_create("kernels");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, folds_match_the_scalar_reference, 0, QUIRE_TYPE_COUNT);
    tcase_add_loop_test(tcase, avx2_gives_the_bits_of_plain_c, 0, QUIRE_TYPE_COUNT);
#if defined(__x86_64__)
    tcase_add_test(tcase, a_caller_in_flush_to_zero_mode_gets_denormals);
#endif
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
