/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_internal.h - what the room's own files share. */
#ifndef QUIRE_COMM_COMM_INTERNAL_H
#define QUIRE_COMM_COMM_INTERNAL_H

#include "comm.h"

#define COMM_MAGIC UINT64_C(0x71756972656d6d31)

/* An empty communicator in state STARTING; NULL when out of memory. */
struct quire_comm *comm_shell(int rank, int size);
/* Frees a shell whose contents were released. */
void comm_shell_free(struct quire_comm *comm);

/* The sequence number of the run as a refusal of it would carry; see operation.c. */
void comm_run_text(const struct exec_run *run, char *text, size_t bytes);

#endif
