/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels.h - element-wise arithmetic on host memory. The plain C kernels (kernels_generic.c) are the definition;
 * kernels_avx2.c must give the same bits at every index, whatever the alignment and count. Chosen once at run time
 * (cpuid, QUIRE_CPU_ISA).
 *
 * Order of addition: the canonical balanced binary fold, F(lo,hi) = F(lo,mid) op F(mid,hi), mid = lo + (hi-lo)/2, over
 * the sources in the order given. float16, bfloat16 and float8 sources are converted to float32 first, folded in
 * float32 and rounded once (round to nearest even; float8 saturates finite results, NaN stays NaN; float16 and
 * bfloat16 overflow to infinity). Integers wrap (computed unsigned). NaN in any source gives NaN for every operator,
 * with min/max of zeros: min(-0,+0) = -0, max(-0,+0) = +0, in either order. No fused multiply-add, no flush to zero:
 * each call sets the SSE control word to round-to-nearest with denormals and restores the caller's.
 */
#ifndef QUIRE_KERNELS_KERNELS_H
#define QUIRE_KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "quire.h"

enum { KERNEL_MAX_SOURCES = 64 }; /* sources of one fold; more ranks than this go through several plan steps */

/*
 * dst[i] = fold over s of src[s][i], i < count; the same is stored to `also` unless it is NULL. With ranks > 0 and op
 * AVG the result is divided by `ranks` before the one rounding (integers: wrapped sum / ranks, toward zero; float32
 * and float64: sum / (type)ranks; narrow floats: in float32). AVG with ranks == 0 is a plain sum (a partial).
 * 1 <= n <= KERNEL_MAX_SOURCES. dst may equal one of the sources exactly; no other overlap. Any alignment, count 0
 * allowed. Never fails, allocates nothing, thread-safe.
 */
void kernel_fold(quire_type_t type, quire_op_t op, void *dst, void *also, const void *const *src, int n, size_t count,
                 int ranks);

/* memcpy with the flavour that suits a slot a peer will read or has read: see HOST notes in kernels.c. */
void kernel_copy(void *dst, const void *src, size_t bytes);

/* "generic" or "avx2": what kernel_fold uses. */
const char *kernel_isa(void);
/* For tests and tools: force one; false if this CPU can't. NULL goes back to the choice by QUIRE_CPU_ISA. */
int kernel_set_isa(const char *isa);

/* Scalar conversions, the definition of every narrow format; exact, all bit patterns. */
float kernel_float16_to_float(uint16_t bits);
uint16_t kernel_float_to_float16(float value);
float kernel_bfloat16_to_float(uint16_t bits);
uint16_t kernel_float_to_bfloat16(float value);
float kernel_e4m3_to_float(uint8_t bits);
uint8_t kernel_float_to_e4m3(float value);
float kernel_e5m2_to_float(uint8_t bits);
uint8_t kernel_float_to_e5m2(float value);

#endif
