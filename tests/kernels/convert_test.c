/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * convert_test.c - narrow formats against independent definitions: every bit pattern widened by the formula of the
 * format in double arithmetic, every rounding found by searching the nearest representable value.
 */
#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

struct format {
    const char *name;
    int exponent, mantissa, infinity;
    uint32_t largest;
    float (*in)(uint32_t);
    uint32_t (*out)(float);
};

static float half_in(uint32_t b)
{
    return kernel_float16_to_float((uint16_t)b);
}
static uint32_t half_out(float f)
{
    return kernel_float_to_float16(f);
}
static float bf_in(uint32_t b)
{
    return kernel_bfloat16_to_float((uint16_t)b);
}
static uint32_t bf_out(float f)
{
    return kernel_float_to_bfloat16(f);
}
static float e4_in(uint32_t b)
{
    return kernel_e4m3_to_float((uint8_t)b);
}
static uint32_t e4_out(float f)
{
    return kernel_float_to_e4m3(f);
}
static float e5_in(uint32_t b)
{
    return kernel_e5m2_to_float((uint8_t)b);
}
static uint32_t e5_out(float f)
{
    return kernel_float_to_e5m2(f);
}

static const struct format formats[] = {
    {"half", 5, 10, 1, 0x7bff, half_in, half_out},
    {"bfloat16", 8, 7, 1, 0x7f7f, bf_in, bf_out},
    {"e4m3", 4, 3, 0, 0x7e, e4_in, e4_out},
    {"e5m2", 5, 2, 1, 0x7b, e5_in, e5_out},
};

/* The value of a pattern by the definition of floating point. */
static double value_of(const struct format *f, uint32_t bits)
{
    int bias = (1 << (f->exponent - 1)) - 1;
    uint32_t e = bits >> f->mantissa & ((1u << f->exponent) - 1), m = bits & ((1u << f->mantissa) - 1);
    double sign = bits >> (f->exponent + f->mantissa) & 1 ? -1.0 : 1.0;
    double fraction = (double)m / (double)(1u << f->mantissa);
    if (e == (1u << f->exponent) - 1 && f->infinity)
        return m == 0 ? sign * HUGE_VAL : (double)NAN;
    if (!f->infinity && (bits & ((1u << (f->exponent + f->mantissa)) - 1)) == (1u << (f->exponent + f->mantissa)) - 1)
        return (double)NAN;
    return e == 0 ? sign * ldexp(fraction, 1 - bias) : sign * ldexp(1.0 + fraction, (int)e - bias);
}

START_TEST(every_pattern_widens_to_its_value)
{
    const struct format *f = &formats[_i];
    for (uint32_t b = 0; b < 1u << (1 + f->exponent + f->mantissa); b++) {
        double want = value_of(f, b), got = (double)f->in(b);
        ck_assert_msg(isnan(want) ? isnan(got) : want == got && signbit(want) == signbit(got), "%s %#x: %g, not %g",
                      f->name, b, got, want);
        if (!isnan(want))
            ck_assert_msg(f->out((float)got) == b || isinf(want), "%s %#x comes back as %#x", f->name, b,
                          f->out((float)got));
    }
}
END_TEST

/* The nearest finite pattern below or equal `largest`, ties to the even one, by bisection over the ordered patterns. */
static uint32_t nearest(const struct format *f, double magnitude)
{
    uint32_t lo = 0, hi = f->largest;
    while (lo < hi) {
        uint32_t mid = (lo + hi + 1) / 2;
        if (value_of(f, mid) <= magnitude)
            lo = mid;
        else
            hi = mid - 1;
    }
    if (lo == f->largest)
        return lo;
    double below = magnitude - value_of(f, lo), above = value_of(f, lo + 1) - magnitude;
    return below < above ? lo : above < below ? lo + 1 : lo % 2 == 0 ? lo : lo + 1;
}

static void check_rounding(const struct format *f, float x)
{
    uint32_t sign = signbit(x) ? 1u << (f->exponent + f->mantissa) : 0, got = f->out(x), want;
    double magnitude = fabs((double)x);
    double step = value_of(f, f->largest) - value_of(f, f->largest - 1);
    if (isnan(x)) {
        ck_assert_msg(isnan(f->in(got)), "%s: NaN becomes %#x", f->name, got);
        return;
    }
    bool eight = f->exponent + f->mantissa == 7;
    if (magnitude >= value_of(f, f->largest) + step / 2 || isinf(x)) {
        /* Beyond half a step over the largest: infinity, but eight bits saturate finite values. */
        want = eight && !isinf(x) ? f->largest : f->infinity ? f->largest + 1 : 0x7f;
    } else {
        want = nearest(f, magnitude);
    }
    ck_assert_msg(got == (sign | want), "%s(%a) = %#x, not %#x", f->name, (double)x, got, sign | want);
}

START_TEST(rounding_is_to_nearest_even)
{
    const struct format *f = &formats[_i];
    uint64_t seed = 12345;
    /* Values, the midpoints between neighbours, and their own neighbours. */
    for (uint32_t b = 0; b < f->largest; b++) {
        float mid = (float)((value_of(f, b) + value_of(f, b + 1)) / 2);
        float around[] = {mid, nextafterf(mid, 0), nextafterf(mid, INFINITY), -mid, (float)value_of(f, b)};
        for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++)
            check_rounding(f, around[i]);
    }
    for (int i = 0; i < 300000; i++) {
        uint32_t bits;
        float x;
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        bits = (uint32_t)(seed >> 32);
        memcpy(&x, &bits, sizeof(x));
        check_rounding(f, x);
    }
    static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 3.4e38f, -3.4e38f, 1e-45f, 1e-30f};
    for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
        check_rounding(f, special[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("convert");
    TCase *tcase = tcase_create("convert");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, every_pattern_widens_to_its_value, 0, 4);
    tcase_add_loop_test(tcase, rounding_is_to_nearest_even, 0, 4);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
