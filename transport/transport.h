/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport.h - the contract between a communicator and what carries its slots.
 *
 * A rank owns one `struct lane_set`: all its outgoing lanes, made in its own segment, and all its incoming lanes. A
 * transport connects this rank with some of its peers: `attach` makes the incoming lanes from one peer and arranges
 * that this rank's outgoing lanes reach it. The executor then works on lanes only, and calls `progress` while it
 * waits. Calls go down, nothing calls up: a transport reports trouble by status (its blast radius says how far it
 * reaches) and never raises the stop word itself.
 *
 * Order of calls: open, (blob exchanged by the communicator), reach for each peer, attach for each peer it is to
 * serve, then progress/pending/sleep at will, close. All by the thread inside the communicator, one at a time, except
 * that open..attach may block until their deadline and the stop word ends them.
 */
#ifndef QUIRE_TRANSPORT_TRANSPORT_H
#define QUIRE_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stop.h"
#include "lane.h"
#include "quire.h"

enum { TRANSPORT_BLOB_BYTES = 64, TRANSPORT_CHANNELS = 3, TRANSPORT_WIDE_CHANNELS = 2 };

struct lane_segment; /* segment.h */

/*
 * All lanes of one rank. Outgoing lanes live in `segment` and exist from lane_set_create on; incoming ones are filled
 * in by attach (slots == NULL until then). Consumer index of rank c on a wide lane of producer p: c < p ? c : c - 1.
 */
struct lane_set {
    int rank, size;
    struct lane_geometry geometry;
    struct lane_segment *segment;
    struct lane out_wide[TRANSPORT_WIDE_CHANNELS];
    struct lane *out_pair[TRANSPORT_CHANNELS]; /* [channel][consumer]; the entry of `rank` itself is the self lane */
    struct lane *in_wide[TRANSPORT_WIDE_CHANNELS]; /* [channel][producer] */
    struct lane *in_pair[TRANSPORT_CHANNELS];      /* [channel][producer] */
    /* lane_set.c's own */
    uint8_t *self_memory;
    uint32_t **bells, **in_bells;
};

/* RESOURCE with what was wanted and free. size >= 1; for size 1 only the self lane exists. */
quire_status_t lane_set_create(struct lane_set **set, int rank, int size, const struct lane_geometry *geometry);
void lane_set_destroy(struct lane_set *set);

/* What the communicator lends to transports. Functions as in boot.h; they stay valid until close. */
struct transport_env {
    struct lane_set *lanes;
    struct stop *stop;
    void *ctx;
    quire_status_t (*dial)(void *ctx, int rank, uint32_t purpose, uint64_t deadline, int *fd);
    quire_status_t (*accept)(void *ctx, int rank, uint32_t purpose, uint64_t deadline, int *fd);
    quire_status_t (*offer_fd)(void *ctx, uint64_t tag, int fd);
    quire_status_t (*fetch_fd)(void *ctx, int rank, uint64_t tag, uint64_t deadline, int *fd);
};

/* One rank's end of one transport. Concrete ends embed this first. */
struct transport_end {
    const struct transport *transport;
};

struct transport {
    const char *name;

    /*
     * Makes this rank's end; may block shortly; no peer is involved. `blob` (TRANSPORT_BLOB_BYTES, zeroed) is carried
     * to every peer. `env` outlives the end. The caller owns *end until close. RESOURCE on exhaustion.
     */
    quire_status_t (*open)(struct transport_end **end, const struct transport_env *env, void *blob);
    /*
     * Can this rank reach `rank`, whose blob is given? Proves it (never trusts names). OK, or LINK with the reason in
     * the error text; anything else is a failure of init. May block until the deadline.
     */
    quire_status_t (*reach)(struct transport_end *end, int rank, const void *blob, uint64_t deadline);
    /*
     * Serves `rank` from now on: fills in the incoming lanes from it and lets outgoing lanes reach it. Both sides call
     * it, in rank order, after both have said OK to reach. May block until the deadline.
     */
    quire_status_t (*attach)(struct transport_end *end, int rank, uint64_t deadline);
    /*
     * Moves what can be moved; never blocks, no allocation. Sets *moved when something moved. LINK or PEER_FAILED with
     * *rank set when the path to one peer broke. NULL slot: nothing to do (memory is shared).
     */
    quire_status_t (*progress)(struct transport_end *end, bool *moved, int *rank);
    /* True while published slots or credits have not left this process: an operation is not done before. May be NULL.
     */
    bool (*pending)(const struct transport_end *end);
    /* Sleeps until progress may find something, at most max_ms. NULL: the bell of the segment is enough. */
    void (*sleep)(struct transport_end *end, int max_ms);
    /* Frees; never waits for a peer; incoming lanes it made are dead after. */
    void (*close)(struct transport_end *end);
    /* One line for people: "shm 2 peers" or the like, at most bytes. */
    void (*describe)(const struct transport_end *end, char *text, size_t bytes);
};

/* The explicit array, in order of preference; NULL-terminated. */
extern const struct transport *const transport_all[];
extern const struct transport transport_self, transport_shm, transport_tcp;
/* NULL when unknown. */
const struct transport *transport_by_name(const char *name);

#endif
