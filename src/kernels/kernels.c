/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels.c - choosing the instruction set, and the floating-point mode around a fold.
 *
 * The choice is made at the first fold and is one pointer afterwards. kernel_set_isa is for tests: it must not run
 * beside a fold.
 */
#include "kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <string.h>

#include "base/atomics.h"
#include "base/knobs.h"
#include "convert.h"
#include "kernels_internal.h"

static kernel_fold_fn chosen; /* atomic */

static int have_avx2(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
#else
    return 0;
#endif
}

static kernel_fold_fn by_name(const char *isa)
{
    if (strcmp(isa, "generic") == 0)
        return kernel_fold_generic;
#if defined(__x86_64__)
    if ((strcmp(isa, "avx2") == 0 || strcmp(isa, "auto") == 0) && have_avx2())
        return kernel_fold_avx2;
#endif
    return strcmp(isa, "auto") == 0 ? kernel_fold_generic : NULL;
}

static kernel_fold_fn choose(void)
{
    kernel_fold_fn fold = by_name(knob_text(KNOB_CPU_ISA));
    if (fold == NULL)
        fold = kernel_fold_generic; /* asked for more than this processor has */
    atom_store_release(&chosen, fold);
    return fold;
}

int kernel_set_isa(const char *isa)
{
    kernel_fold_fn fold = isa == NULL ? by_name(knob_text(KNOB_CPU_ISA)) : by_name(isa);
    if (fold == NULL)
        return 0;
    atom_store_release(&chosen, fold);
    return 1;
}

const char *kernel_isa(void)
{
    kernel_fold_fn fold = atom_load_acquire(&chosen);
    if (fold == NULL)
        fold = choose();
    return fold == kernel_fold_generic ? "generic" : "avx2";
}

void kernel_fold(quire_type_t type, quire_op_t op, void *dst, void *also, const void *const *src, int n, size_t count,
                 int ranks)
{
    kernel_fold_fn fold = atom_load_acquire(&chosen);
    if (__builtin_expect(fold == NULL, 0))
        fold = choose();
#if defined(__x86_64__)
    /* Reading the mode is cheap, writing it isn't: callers in the default mode never pay for the write. The low six
       bits are sticky flags, not mode. */
    enum { MODE_DEFAULT = 0x1f80, FLAGS = 0x3f };
    unsigned mode = __builtin_ia32_stmxcsr();
    if (__builtin_expect((mode & ~(unsigned)FLAGS) != MODE_DEFAULT, 0)) {
        __builtin_ia32_ldmxcsr(MODE_DEFAULT);
        fold(type, op, dst, also, src, n, count, ranks);
        __builtin_ia32_ldmxcsr(mode);
        return;
    }
#endif
    fold(type, op, dst, also, src, n, count, ranks);
}

/*
 * A slot's lines are read by a peer next: ordinary stores leave them where a cache can answer. The C library's memcpy
 * uses `rep movsb` at these sizes where the processor is good at it, which was the fastest of all ways measured to
 * refill lines that another core has just read.
 */
void kernel_copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

/* ---- scalar conversions ------------------------------------------------------------------------------------------ */

float kernel_float16_to_float(uint16_t bits)
{
    return convert_half_in(bits);
}

uint16_t kernel_float_to_float16(float value)
{
    return convert_half_out(value);
}

float kernel_bfloat16_to_float(uint16_t bits)
{
    return convert_bfloat16_in(bits);
}

uint16_t kernel_float_to_bfloat16(float value)
{
    return convert_bfloat16_out(value);
}

float kernel_e4m3_to_float(uint8_t bits)
{
    return convert_e4m3_in(bits);
}

uint8_t kernel_float_to_e4m3(float value)
{
    return convert_e4m3_out(value);
}

float kernel_e5m2_to_float(uint8_t bits)
{
    return convert_e5m2_in(bits);
}

uint8_t kernel_float_to_e5m2(float value)
{
    return convert_e5m2_out(value);
}
