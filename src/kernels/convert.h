/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * convert.h - narrow floats to and from float32, as inline bit arithmetic: the definition of every format. Round to
 * nearest even; float8 saturates finite values, float16 and bfloat16 overflow to infinity; NaN stays NaN (made quiet,
 * sign kept). Nothing here depends on the floating-point mode.
 */
#ifndef QUIRE_KERNELS_CONVERT_H
#define QUIRE_KERNELS_CONVERT_H

#include <stdint.h>
#include <string.h>

static inline float convert_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint32_t convert_to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/*
 * A small float of `exponent` and `mantissa` bits, sign in front, exact. `infinity`: the top exponent is infinity and
 * NaN; without it only all ones is NaN (e4m3).
 */
static inline float convert_widen(uint32_t bits, int exponent, int mantissa, int infinity)
{
    uint32_t sign = (bits >> (exponent + mantissa) & 1) << 31;
    uint32_t e = bits >> mantissa & ((1u << exponent) - 1), m = bits & ((1u << mantissa) - 1);
    int bias = (1 << (exponent - 1)) - 1;
    uint32_t top = (1u << exponent) - 1, whole = (1u << mantissa) - 1;
    if (e == top && (infinity || m == whole)) {
        if (m == 0)
            return convert_from_bits(sign | 0x7f800000u);
        return convert_from_bits(sign | 0x7fc00000u | m << (23 - mantissa));
    }
    if (e == 0) {
        if (m == 0)
            return convert_from_bits(sign);
        int shift = __builtin_clz(m) - (31 - mantissa); /* brings the leading one to the hidden place */
        return convert_from_bits(sign | (uint32_t)(127 - bias + 1 - shift) << 23 |
                                 (m << shift & whole) << (23 - mantissa));
    }
    return convert_from_bits(sign | (e + 127u - (uint32_t)bias) << 23 | m << (23 - mantissa));
}

/*
 * The nearest small float to `value`, ties to even. `largest` is the bit pattern (without sign) of the largest finite
 * value; `over` is what finite values beyond it and infinity become; `nan` the quiet NaN.
 */
static inline uint32_t convert_narrow(float value, int exponent, int mantissa, uint32_t largest, uint32_t over,
                                      uint32_t infinite, uint32_t nan)
{
    uint32_t bits = convert_to_bits(value), magnitude = bits & 0x7fffffffu;
    uint32_t sign = bits >> 31 << (exponent + mantissa);
    int bias = (1 << (exponent - 1)) - 1, drop = 23 - mantissa;
    if (magnitude > 0x7f800000u)
        return sign | nan;
    if (magnitude == 0x7f800000u)
        return sign | infinite;
    int e = (int)(magnitude >> 23) - 127 + bias; /* the small format's exponent field, when >= 1 */
    uint32_t m = magnitude >> 23 == 0 ? magnitude & 0x7fffffu : (magnitude & 0x7fffffu) | 0x800000u;
    if (e < 1) {
        drop += 1 - e;
        if (drop > 24 + 1)
            return sign; /* less than half of the smallest */
        e = 1;
    }
    uint32_t kept = m >> drop, rest = m & ((1u << drop) - 1), half = 1u << (drop - 1);
    kept += rest > half || (rest == half && kept & 1);
    /* The hidden one, if it is there, counts as one exponent step: e-1 plus kept does it all, carries included. */
    uint32_t result = ((uint32_t)(e - 1) << mantissa) + kept;
    return sign | (result > largest ? over : result);
}

static inline float convert_half_in(uint16_t bits)
{
    return convert_widen(bits, 5, 10, 1);
}

static inline uint16_t convert_half_out(float value)
{
    return (uint16_t)convert_narrow(value, 5, 10, 0x7bff, 0x7c00, 0x7c00, 0x7e00);
}

static inline float convert_bfloat16_in(uint16_t bits)
{
    return convert_from_bits((uint32_t)bits << 16);
}

static inline uint16_t convert_bfloat16_out(float value)
{
    uint32_t bits = convert_to_bits(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    uint32_t nan = bits >> 16 & 0x8000u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan | 0x7fc0u : rounded);
}

static inline float convert_e4m3_in(uint8_t bits)
{
    return convert_widen(bits, 4, 3, 0);
}

static inline uint8_t convert_e4m3_out(float value)
{
    return (uint8_t)convert_narrow(value, 4, 3, 0x7e, 0x7e, 0x7f, 0x7f);
}

static inline float convert_e5m2_in(uint8_t bits)
{
    return convert_widen(bits, 5, 2, 1);
}

static inline uint8_t convert_e5m2_out(float value)
{
    return (uint8_t)convert_narrow(value, 5, 2, 0x7b, 0x7b, 0x7c, 0x7e);
}

#endif
