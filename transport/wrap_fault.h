/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wrap_fault.h - disturbs a transport on purpose, for tests and for QUIRE_FAULT. The spec is
 *   tcp:KEY=VALUE,...    drop=P corrupt=P corrupt_bytes=P (probabilities a frame, 0 to 1), delay=T (each frame waits),
 *                        kill=RANK@N (the connection to that rank breaks at its Nth frame), seed=N
 * What it does is noticed by the receiver and named: a lost frame as a gap, a flipped bit by a checksum. One exception:
 * a lost frame behind which nothing follows leaves no gap, and ends in the timeout of whoever waits for it, as on a
 * real network whose sender went silent. Shared memory has no mover in which frames could be disturbed, so only tcp can
 * be named.
 */
#ifndef QUIRE_TRANSPORT_WRAP_FAULT_H
#define QUIRE_TRANSPORT_WRAP_FAULT_H

#include "transport.h"

/* INVALID_ARGUMENT with the reason when the spec can't be read. An end of another transport is left alone. */
quire_status_t wrap_fault(struct transport_end *end, const char *spec);

#endif
