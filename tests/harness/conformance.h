/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conformance.h - the same checks for every transport: a test names one and runs the suite. Ends live in threads of one
 * process; connections and descriptors come from a table in memory instead of from boot, so nothing but the transport
 * and the lanes is under test.
 */
#ifndef QUIRE_TESTS_CONFORMANCE_H
#define QUIRE_TESTS_CONFORMANCE_H

#include "transport.h"

/* The whole suite as a Check program's main. `dead_peer`: the transport itself notices a peer that went. */
int conformance_main(const struct transport *transport, bool dead_peer);

#endif
