/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels_generic.c - the definition: plain C for any processor. Other instruction sets must give the same bits. */
#include <stdbool.h>
#include <string.h>

#include "convert.h"
#include "kernels_internal.h"

typedef uint16_t half_bits __attribute__((aligned(1), may_alias));

static void half_in(float *to, const void *from, size_t n)
{
    const half_bits *f = from;
    for (size_t i = 0; i < n; i++)
        to[i] = convert_half_in(f[i]);
}

static void half_out(void *to, const float *from, size_t n)
{
    half_bits *t = to;
    for (size_t i = 0; i < n; i++)
        t[i] = convert_half_out(from[i]);
}

#define BODY_TARGET
#define BODY_FOLD kernel_fold_generic
#define BODY_HALF_IN half_in
#define BODY_HALF_OUT half_out
#include "kernels_body.h"
