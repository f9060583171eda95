/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomics.h - the few atomic operations the library uses, by their meaning. Words shared with other processes or
 * threads are plain integers accessed only through these. Pairs are labelled at their use (A1 with R1, ...).
 */
#ifndef QUIRE_BASE_ATOMICS_H
#define QUIRE_BASE_ATOMICS_H

#include <stdbool.h>
#include <stdint.h>

#define atom_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define atom_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define atom_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define atom_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define atom_add(p, v) __atomic_add_fetch((p), (v), __ATOMIC_ACQ_REL)
#define atom_sub(p, v) __atomic_sub_fetch((p), (v), __ATOMIC_ACQ_REL)
#define atom_swap(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)

/* True when *p was `expected` and is now `desired`. */
#define atom_cas(p, expected, desired)                                                                                 \
    __extension__({                                                                                                    \
        __typeof__(*(p)) atom_expected_ = (expected);                                                                  \
        __atomic_compare_exchange_n((p), &atom_expected_, (desired), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);       \
    })

/* A polite spin: tells the core that we wait. */
static inline void atom_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

#endif
