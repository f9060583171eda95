/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory_left.h - how many bytes can still be had without the kernel killing somebody for them: what the machine has,
 * and what each control group above this process allows (a batch system's job, a container), whichever is least.
 */
#ifndef QUIRE_TRANSPORT_MEMORY_LEFT_H
#define QUIRE_TRANSPORT_MEMORY_LEFT_H

#include <stdint.h>

/*
 * UINT64_MAX when nothing is known. Memory that only caches files counts as free: the kernel drops it first. `root` is
 * put before every path that is read: "" for the machine, a directory for tests.
 */
uint64_t memory_left(const char *root);

#endif
