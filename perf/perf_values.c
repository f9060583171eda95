/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_values.c - inputs with exactly known results, and the comparison, to the bit.
 *
 * Invariants of the inputs
 *   - Every rank contributes to many elements, whatever the number of ranks, so that a lost or doubled contribution
 * shows.
 *   - Floats are whole numbers (products: powers of two) of which every partial result, in any order of addition, is
 *     exact in the type itself. So there is one right result, and no tolerance.
 *   - Integers use all bits, so that wrapping and signs are checked as well; and so does what is only moved.
 *   - They repeat with a prime period: a block in the wrong place is seen whatever the size of blocks.
 * The floats are written here by the definition of their formats, not by the library's code, so that an error there
 * shows.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

enum { PERIOD = 16381, LARGEST = 255, PROD_RANKS = 3 };

struct format {
    int exponent, mantissa;
};

static struct format format_of(quire_type_t type)
{
    switch (type) {
    case QUIRE_FLOAT16:
        return (struct format){5, 10};
    case QUIRE_FLOAT32:
        return (struct format){8, 23};
    case QUIRE_FLOAT64:
        return (struct format){11, 52};
    case QUIRE_BFLOAT16:
        return (struct format){8, 7};
    case QUIRE_FLOAT8_E4M3:
        return (struct format){4, 3};
    case QUIRE_FLOAT8_E5M2:
        return (struct format){5, 2};
    default:
        return (struct format){0, 0};
    }
}

static bool is_float(quire_type_t type)
{
    return format_of(type).exponent != 0;
}

static bool is_signed(quire_type_t type)
{
    return type == QUIRE_INT8 || type == QUIRE_INT32 || type == QUIRE_INT64;
}

/* Up to here every whole number is exact in the type. */
static int64_t exact_limit(quire_type_t type)
{
    int mantissa = format_of(type).mantissa;
    return (int64_t)1 << (mantissa + 1 < 24 ? mantissa + 1 : 24);
}

/* A number that the format holds exactly as a normal one. */
static uint64_t encode(struct format f, double value)
{
    int e;
    if (value == 0)
        return 0;
    double fraction = frexp(fabs(value), &e) * 2; /* 1 <= fraction < 2, |value| = fraction * 2^(e-1) */
    uint64_t bias = ((uint64_t)1 << (f.exponent - 1)) - 1;
    uint64_t bits = ((uint64_t)(e - 1) + bias) << f.mantissa | (uint64_t)ldexp(fraction - 1, f.mantissa);
    return bits | (uint64_t)(value < 0) << (f.exponent + f.mantissa);
}

static void put_bits(uint8_t *at, quire_type_t type, uint64_t bits)
{
    size_t elem = quire_type_size(type);
    for (size_t i = 0; i < elem; i++) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        at[elem - 1 - i] = (uint8_t)(bits >> 8 * i);
#else
        at[i] = (uint8_t)(bits >> 8 * i);
#endif
    }
}

static uint64_t mix(uint64_t who, uint64_t i)
{
    uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (who + 1) * UINT64_C(0xd1b54a32d192ed03);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* 0 .. most, at most LARGEST. */
static int64_t up_to(int64_t most, uint64_t bits)
{
    return (int64_t)(bits % (uint64_t)((most < LARGEST ? most : LARGEST) + 1));
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

/* As a number of the type: cut to its size, with its sign. */
static uint64_t narrow(quire_type_t type, uint64_t v)
{
    int drop = 64 - 8 * (int)quire_type_size(type);
    return is_signed(type) ? (uint64_t)((int64_t)(v << drop) >> drop) : v << drop >> drop;
}

static uint64_t integer(quire_type_t type, quire_op_t op, int rank, size_t i)
{
    uint64_t v = mix((uint64_t)rank, i);
    return narrow(type, op == QUIRE_PROD ? v | 1 : v); /* odd: a few even factors would make every product 0 */
}

static uint64_t integer_result(quire_type_t type, quire_op_t op, int ranks, size_t i)
{
    uint64_t v = integer(type, op, 0, i);
    for (int r = 1; r < ranks; r++) {
        uint64_t b = integer(type, op, r, i);
        bool more = is_signed(type) ? (int64_t)b > (int64_t)v : b > v;
        switch (op) {
        case QUIRE_PROD:
            v *= b;
            break;
        case QUIRE_MAX:
            v = more ? b : v;
            break;
        case QUIRE_MIN:
            v = more ? v : b;
            break;
        default:
            v += b;
            break;
        }
    }
    v = narrow(type, v);
    if (op != QUIRE_AVG)
        return v;
    return is_signed(type) ? (uint64_t)((int64_t)v / ranks) : v / (uint64_t)ranks; /* the wrapped sum, toward zero */
}

/* ---- floats ------------------------------------------------------------------------------------------------------ */

/* An average is a whole number that all ranks share, plus deviations that cancel: ranks in pairs, one above it and one
 * as much below. */
static int64_t average_part(quire_type_t type, int ranks, int rank, size_t i)
{
    int64_t limit = exact_limit(type), each = limit / ranks;
    int pair = rank / 2, pairs = ranks / 2;
    int64_t shared = up_to(each == 1 ? 1 : each / 2, mix(UINT64_MAX, i));
    int64_t most = each == 1 ? 0 : each - each / 2;
    if (pair == pairs)
        return shared;
    if (each == 0) /* too many ranks: in each element other ones take part */
        most = (pair + (int64_t)i) % pairs < limit / 2 ? 1 : 0;
    int64_t deviation = up_to(most, mix((uint64_t)pair + UINT64_C(0x100000000), i));
    return shared + (rank % 2 == 0 ? deviation : -deviation);
}

static double real(quire_type_t type, quire_op_t op, int ranks, int rank, size_t i)
{
    int64_t limit = exact_limit(type), each = limit / ranks, v;
    uint64_t bits = mix((uint64_t)rank, i);
    switch (op) {
    case QUIRE_PROD:
        if ((rank + (int64_t)i) % ranks >= PROD_RANKS)
            bits = 1 | (bits & 256); /* plus or minus 1 */
        return (bits & 256 ? -1.0 : 1.0) * ldexp(0.5, (int)((bits & 255) % 3));
    case QUIRE_MAX:
    case QUIRE_MIN:
        v = up_to(limit, bits >> 1);
        return (double)(bits & 1 ? -v : v);
    case QUIRE_AVG:
        v = average_part(type, ranks, rank, i);
        break;
    default:
        if (each == 0) /* too many ranks: in each element other ones take part */
            each = (rank + (int64_t)i) % ranks < limit ? 1 : 0;
        v = up_to(each, bits);
        break;
    }
    return (double)(mix(UINT64_MAX - 1, i) & 1 ? -v : v); /* one sign for all ranks: partial sums only grow */
}

static double real_result(quire_type_t type, quire_op_t op, int ranks, size_t i)
{
    double v = real(type, op, ranks, 0, i);
    for (int r = 1; r < ranks; r++) {
        double b = real(type, op, ranks, r, i);
        if (op == QUIRE_PROD)
            v *= b;
        else if (op == QUIRE_MAX)
            v = b > v ? b : v;
        else if (op == QUIRE_MIN)
            v = b < v ? b : v;
        else
            v += b;
    }
    return op == QUIRE_AVG ? v / ranks : v;
}

/* ---- periods ----------------------------------------------------------------------------------------------------- */

bool perf_values_make(struct perf_values *values, const struct perf_test *test, const struct perf_call *call)
{
    quire_type_t type = call->type;
    quire_op_t op = call->op;
    struct format f = format_of(type);
    int source = test->collective == QUIRE_BROADCAST ? call->root : (call->rank + call->size - 1) % call->size;
    values->elem = quire_type_size(type);
    values->period = call->count < PERIOD ? call->count : PERIOD;
    values->input = malloc(values->period * values->elem + 1);
    values->expected = malloc(values->period * values->elem + 1);
    if (values->input == NULL || values->expected == NULL) {
        perf_values_free(values);
        return false;
    }
    for (size_t i = 0; i < values->period; i++) {
        uint8_t *in = values->input + i * values->elem, *out = values->expected + i * values->elem;
        if (!test->has_op) {
            put_bits(in, type, mix((uint64_t)call->rank, i));
            put_bits(out, type, mix((uint64_t)source, i));
        } else if (is_float(type)) {
            put_bits(in, type, encode(f, real(type, op, call->size, call->rank, i)));
            put_bits(out, type, encode(f, real_result(type, op, call->size, i)));
        } else {
            put_bits(in, type, integer(type, op, call->rank, i));
            put_bits(out, type, integer_result(type, op, call->size, i));
        }
    }
    return true;
}

void perf_values_free(struct perf_values *values)
{
    free(values->input);
    free(values->expected);
    values->input = values->expected = NULL;
}

void perf_values_fill(const struct perf_values *values, void *buffer, size_t count)
{
    uint8_t *to = buffer;
    for (size_t done = 0; done < count; done += values->period) {
        size_t n = count - done < values->period ? count - done : values->period;
        memcpy(to + done * values->elem, values->input, n * values->elem);
    }
}

static uint64_t differ(const struct perf_values *values, const uint8_t *want, const uint8_t *buffer, size_t count)
{
    size_t elem = values->elem;
    uint64_t wrong = 0;
    for (size_t done = 0; done < count; done += values->period) {
        size_t n = count - done < values->period ? count - done : values->period;
        const uint8_t *at = buffer + done * elem;
        if (memcmp(at, want, n * elem) == 0)
            continue;
        for (size_t i = 0; i < n; i++)
            wrong += memcmp(at + i * elem, want + i * elem, elem) != 0;
    }
    return wrong;
}

uint64_t perf_values_wrong(const struct perf_values *values, const void *buffer, size_t count)
{
    return differ(values, values->expected, buffer, count);
}

uint64_t perf_values_changed(const struct perf_values *values, const void *buffer, size_t count)
{
    return differ(values, values->input, buffer, count);
}
