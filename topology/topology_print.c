/* SPDX-License-Identifier: BSD-3-Clause */
/* topology_print.c - a machine in one screen. */
#include <stdio.h>

#include "base/bytes.h"
#include "topology.h"

size_t topology_print(const struct topology *t, char *text, size_t bytes)
{
    char llc[16], l2[16], memory[16];
    int n =
        snprintf(text, bytes,
                 "processor   %s\n"
                 "cores       %d in %d package%s, %d hardware thread%s; %d core%s and %d thread%s are allowed here\n"
                 "caches      last level %s for %d thread%s, second level %s\n"
                 "memory      %s in %d node%s\n",
                 t->model[0] == '\0' ? "(no name)" : t->model, t->cores, t->packages, t->packages == 1 ? "" : "s",
                 t->threads, t->threads == 1 ? "" : "s", t->allowed_cores, t->allowed_cores == 1 ? "" : "s",
                 t->allowed_threads, t->allowed_threads == 1 ? "" : "s", bytes_size_text(t->llc_bytes, llc),
                 t->llc_threads, t->llc_threads == 1 ? "" : "s", bytes_size_text(t->l2_bytes, l2),
                 bytes_size_text(t->memory_bytes, memory), t->nodes, t->nodes == 1 ? "" : "s");
    return n < 0 ? 0 : (size_t)n;
}
