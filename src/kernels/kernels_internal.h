/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels_internal.h - what the instruction sets share: one table of functions each, made from kernels_body.h. */
#ifndef QUIRE_KERNELS_KERNELS_INTERNAL_H
#define QUIRE_KERNELS_KERNELS_INTERNAL_H

#include "kernels.h"

typedef void (*kernel_fold_fn)(quire_type_t type, quire_op_t op, void *dst, void *also, const void *const *src, int n,
                               size_t count, int ranks);

void kernel_fold_generic(quire_type_t type, quire_op_t op, void *dst, void *also, const void *const *src, int n,
                         size_t count, int ranks);
#if defined(__x86_64__)
void kernel_fold_avx2(quire_type_t type, quire_op_t op, void *dst, void *also, const void *const *src, int n,
                      size_t count, int ranks);
#endif

/* Exact tables of the 8-bit formats, filled at first use. */
const float *kernel_table_e4m3(void);
const float *kernel_table_e5m2(void);

#endif
