/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels_avx2.c - the same folds compiled for AVX2, and float16 by F16C. Chosen at run time, so only these functions
 * carry the target attribute. No fused multiply-add.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "convert.h"
#include "kernels_internal.h"

#define BODY_TARGET __attribute__((target("avx2,f16c")))

typedef uint16_t half_bits __attribute__((aligned(1), may_alias));

BODY_TARGET static void half_in(float *to, const void *from, size_t n)
{
    const half_bits *f = from;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(f + i))));
    for (; i < n; i++)
        to[i] = convert_half_in(f[i]);
}

BODY_TARGET static void half_out(void *to, const float *from, size_t n)
{
    half_bits *t = to;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(t + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++)
        t[i] = convert_half_out(from[i]);
}

#define BODY_FOLD kernel_fold_avx2
#define BODY_HALF_IN half_in
#define BODY_HALF_OUT half_out
#include "kernels_body.h"
#endif
