/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp.h - the hook by which wrap_fault.c disturbs the tcp mover. Without it nothing of this is looked at. */
#ifndef QUIRE_TRANSPORT_TCP_H
#define QUIRE_TRANSPORT_TCP_H

#include "transport.h"

struct tcp_fault;

enum tcp_fault_action {
    TCP_FAULT_NONE,
    TCP_FAULT_HOLD,          /* not now: ask again */
    TCP_FAULT_DROP,          /* the frame is lost on the way */
    TCP_FAULT_CORRUPT,       /* a bit of its header flips */
    TCP_FAULT_CORRUPT_BYTES, /* a bit of its payload's checksum flips, as if one of the payload had */
    TCP_FAULT_KILL           /* the connection breaks */
};

/*
 * From now on frames carry payload checksums, go out one by one, and each asks tcp_fault_next until the answer isn't
 * HOLD. The end owns `fault`.
 */
void tcp_set_fault(struct transport_end *end, struct tcp_fault *fault);

/* In wrap_fault.c. `held_until` is the connection's own (0 at first), so that delays of peers don't queue behind each
   other. */
enum tcp_fault_action tcp_fault_next(struct tcp_fault *fault, int rank, uint64_t *held_until);
void tcp_fault_free(struct tcp_fault *fault);

#endif
