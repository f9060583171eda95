/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_values.c - inputs with exactly known results. The small floats are written and read here by the definition of
 * their formats, not by the library's code, so that an error there shows.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

enum { PERIOD = 65521, SMALL_RANKS = 8 };

struct format {
    int exponent, mantissa;
};

static struct format format_of(quire_type_t type)
{
    switch (type) {
    case QUIRE_FLOAT16:
        return (struct format){5, 10};
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

/* A small whole number that the format holds exactly. */
static uint32_t encode(struct format f, unsigned value)
{
    int e;
    if (value == 0)
        return 0;
    double fraction = frexp((double)value, &e) * 2; /* 1 <= fraction < 2, value = fraction * 2^(e-1) */
    int bias = (1 << (f.exponent - 1)) - 1;
    return (uint32_t)(e - 1 + bias) << f.mantissa | (uint32_t)((fraction - 1) * (1 << f.mantissa));
}

static double decode(struct format f, uint32_t bits)
{
    int bias = (1 << (f.exponent - 1)) - 1;
    int e = (int)(bits >> f.mantissa & ((1u << f.exponent) - 1));
    double m = (double)(bits & ((1u << f.mantissa) - 1)) / (1 << f.mantissa);
    double sign = bits >> (f.exponent + f.mantissa) & 1 ? -1 : 1;
    return e == 0 ? sign * ldexp(m, 1 - bias) : sign * ldexp(1 + m, e - bias);
}

static void put(uint8_t *at, quire_type_t type, uint64_t value)
{
    float f = (float)value;
    double d = (double)value;
    uint32_t bits;
    switch (type) {
    case QUIRE_FLOAT32:
        memcpy(at, &f, 4);
        break;
    case QUIRE_FLOAT64:
        memcpy(at, &d, 8);
        break;
    case QUIRE_FLOAT16:
    case QUIRE_BFLOAT16:
    case QUIRE_FLOAT8_E4M3:
    case QUIRE_FLOAT8_E5M2:
        bits = encode(format_of(type), (unsigned)value);
        memcpy(at, &bits, quire_type_size(type)); /* little-endian */
        break;
    default:
        memcpy(at, &value, quire_type_size(type));
        break;
    }
}

static double get(const uint8_t *at, quire_type_t type)
{
    uint32_t bits = 0;
    float f;
    double d;
    if (type == QUIRE_FLOAT32) {
        memcpy(&f, at, 4);
        return (double)f;
    }
    if (type == QUIRE_FLOAT64) {
        memcpy(&d, at, 8);
        return d;
    }
    memcpy(&bits, at, quire_type_size(type));
    return decode(format_of(type), bits);
}

static uint64_t mix(uint64_t rank, uint64_t i)
{
    uint64_t x = i * UINT64_C(0x9e3779b97f4a7c15) + (rank + 1) * UINT64_C(0xd1b54a32d192ed03);
    x ^= x >> 31;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return x >> 33;
}

/*
 * Sums stay within what the type holds exactly: 1- and 2-byte floats get 0 or 1 at the first ranks only. Products get
 * a 2 at three ranks at most. Everything else gets up to a byte.
 */
static uint64_t element(quire_type_t type, quire_op_t op, int rank, size_t i)
{
    uint64_t v = mix((uint64_t)rank, i);
    bool small = format_of(type).exponent != 0;
    if (op == QUIRE_PROD)
        return rank < 3 ? 1 + v % 2 : 1;
    if (small)
        return rank < SMALL_RANKS ? v % 2 : 0;
    return v % (quire_type_size(type) == 1 ? 2 : 256);
}

static bool is_float(quire_type_t type)
{
    return type >= QUIRE_FLOAT16;
}

/* The result of element i over all ranks, in the type's own arithmetic for integers. */
static void expect(uint8_t *at, quire_type_t type, quire_op_t op, int ranks, size_t i)
{
    uint64_t v = element(type, op, 0, i);
    for (int r = 1; r < ranks; r++) {
        uint64_t b = element(type, op, r, i);
        v = op == QUIRE_PROD ? v * b : op == QUIRE_MAX ? (b > v ? b : v) : op == QUIRE_MIN ? (b < v ? b : v) : v + b;
    }
    if (op != QUIRE_AVG) {
        put(at, type, v);
    } else if (!is_float(type)) {
        /* The wrapped sum, divided; only int8 can wrap to a negative one here. */
        int64_t sum = type == QUIRE_INT8 ? (int8_t)v : type == QUIRE_UINT8 ? (uint8_t)v : (int64_t)v;
        put(at, type, (uint64_t)(sum / ranks));
    } else {
        float f = (float)v / (float)ranks;
        double d = (double)v / ranks;
        if (type == QUIRE_FLOAT64)
            memcpy(at, &d, 8);
        else if (type == QUIRE_FLOAT32)
            memcpy(at, &f, 4);
        else
            put(at, type, 0); /* compared as numbers, see wrong_average */
    }
}

bool perf_values_make(struct perf_values *values, const struct perf_test *test, const struct perf_call *call)
{
    size_t elem = quire_type_size(call->type);
    values->elem = elem;
    values->type = call->type;
    values->tolerant = test->has_op && call->op == QUIRE_AVG && is_float(call->type);
    values->input = malloc(PERIOD * elem);
    values->expected = malloc(PERIOD * elem * (values->tolerant ? 2 : 1) + PERIOD * sizeof(double));
    if (values->input == NULL || values->expected == NULL) {
        perf_values_free(values);
        return false;
    }
    int source = test->collective == QUIRE_BROADCAST ? call->root : (call->rank + call->size - 1) % call->size;
    double *numbers = (double *)(void *)(values->expected + (PERIOD * elem + 7) / 8 * 8);
    for (size_t i = 0; i < PERIOD; i++) {
        put(values->input + i * elem, call->type, element(call->type, call->op, call->rank, i));
        if (!test->has_op)
            put(values->expected + i * elem, call->type, element(call->type, call->op, source, i));
        else
            expect(values->expected + i * elem, call->type, call->op, call->size, i);
        if (values->tolerant) {
            uint64_t sum = 0;
            for (int r = 0; r < call->size; r++)
                sum += element(call->type, call->op, r, i);
            numbers[i] = (double)sum / call->size;
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
    for (size_t done = 0; done < count; done += PERIOD) {
        size_t n = count - done < PERIOD ? count - done : PERIOD;
        memcpy(to + done * values->elem, values->input, n * values->elem);
    }
}

/* An average of floats may be off by two units in the last place. */
static bool wrong_average(const struct perf_values *values, const uint8_t *at, size_t i)
{
    const double *numbers = (const double *)(const void *)(values->expected + (PERIOD * values->elem + 7) / 8 * 8);
    struct format f = format_of(values->type);
    int mantissa = values->type == QUIRE_FLOAT64 ? 52 : values->type == QUIRE_FLOAT32 ? 23 : f.mantissa;
    double got = get(at, values->type), unit = ldexp(numbers[i], -mantissa);
    return !(fabs(got - numbers[i]) <= 2 * unit + 1e-30);
}

uint64_t perf_values_wrong(const struct perf_values *values, const void *buffer, size_t count)
{
    const uint8_t *from = buffer;
    uint64_t wrong = 0;
    for (size_t done = 0; done < count; done += PERIOD) {
        size_t n = count - done < PERIOD ? count - done : PERIOD;
        const uint8_t *at = from + done * values->elem;
        if (!values->tolerant && memcmp(at, values->expected, n * values->elem) == 0)
            continue;
        for (size_t i = 0; i < n; i++)
            wrong += values->tolerant
                         ? wrong_average(values, at + i * values->elem, i)
                         : memcmp(at + i * values->elem, values->expected + i * values->elem, values->elem) != 0;
    }
    return wrong;
}
