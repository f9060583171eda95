/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp.h - the hook by which wrap_fault.c disturbs the tcp mover. Without it nothing of this is looked at. */
#ifndef QUIRE_TRANSPORT_TCP_H
#define QUIRE_TRANSPORT_TCP_H

#include "transport.h"

struct tcp_fault;

/* From now on frames carry payload checksums, and each batch asks tcp_fault_allows before it goes out. */
void tcp_set_fault(struct transport_end *end, struct tcp_fault *fault);
/*
 * In wrap_fault.c. False: not now (a delay). To drop or corrupt it writes to `fd` itself, or shuts it down.
 */
bool tcp_fault_allows(struct tcp_fault *fault, int rank, int fd);

#endif
