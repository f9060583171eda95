/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology.h - what this machine is, as far as plans and waiting need to know: cores, caches, memory nodes, and which
 * of them this process may use. Discovered once per process (discover_hwloc.c, the only file that knows hwloc).
 */
#ifndef QUIRE_TOPOLOGY_TOPOLOGY_H
#define QUIRE_TOPOLOGY_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

#include "quire.h"

enum { TOPOLOGY_MODEL_BYTES = 96 };

struct topology {
    char model[TOPOLOGY_MODEL_BYTES]; /* of the processor; "" when unknown */
    int packages, nodes;              /* sockets; memory nodes */
    int cores, threads;               /* of the machine */
    int allowed_cores;                /* cores with a hardware thread that this process may use, at least 1 */
    int allowed_threads;              /* those hardware threads, at least 1 */
    int llc_threads;                  /* hardware threads that share one last-level cache, 0 unknown */
    uint64_t llc_bytes;               /* of one last-level cache, 0 unknown */
    uint64_t l2_bytes;                /* of one second-level cache, 0 unknown */
    uint64_t memory_bytes;
};

/* This machine, cached. Never fails: where hwloc can't tell, the C library's counts stand in. Thread-safe. */
const struct topology *topology_get(void);
/* Another machine, from hwloc's XML file. INVALID_ARGUMENT when it can't be read. */
quire_status_t topology_load_xml(const char *path, struct topology *topology);
/* One screen for people. Returns the length needed as snprintf does. */
size_t topology_print(const struct topology *topology, char *text, size_t bytes);

#endif
