/* SPDX-License-Identifier: BSD-3-Clause */
/* tables.c - the 8-bit formats as tables of 256 exact values. Written once, before anybody reads. */
#include <pthread.h>

#include "convert.h"
#include "kernels_internal.h"

enum { BYTE_VALUES = 256 };

static float e4m3[BYTE_VALUES], e5m2[BYTE_VALUES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void)
{
    for (int i = 0; i < BYTE_VALUES; i++) {
        e4m3[i] = convert_e4m3_in((uint8_t)i);
        e5m2[i] = convert_e5m2_in((uint8_t)i);
    }
}

const float *kernel_table_e4m3(void)
{
    pthread_once(&once, fill);
    return e4m3;
}

const float *kernel_table_e5m2(void)
{
    pthread_once(&once, fill);
    return e5m2;
}
