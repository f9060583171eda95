/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conformance.h - the same checks for every transport: a test names one and runs the suite. Ends live in threads of one
 * process and in processes of their own; connections and descriptors come from a world made beforehand instead of from
 * boot, so nothing but the transport and the lanes is under test. The world is there for other tests too.
 */
#ifndef QUIRE_TESTS_CONFORMANCE_H
#define QUIRE_TESTS_CONFORMANCE_H

#include <pthread.h>

#include "transport.h"

struct conformance {
    const struct transport *transport;
    bool dead_peer;               /* the transport itself notices a peer that went */
    bool (*connect)(int pair[2]); /* makes the two ends of a connection; NULL: Unix sockets */
};

/* The whole suite as a Check program's main. */
int conformance_main(const struct conformance *what);

enum { CONF_ENDS = 5, CONF_DEPTH = 4, CONF_SLOT = 4096, CONF_EPOCH = 3 };

/* In memory that forked ranks share. */
struct conf_world {
    pthread_barrier_t barrier;
    int size;
    bool processes; /* ranks are processes, not threads */
    bool (*connect)(int pair[2]);
    const struct transport *via[CONF_ENDS][CONF_ENDS];
    int hands[CONF_ENDS][CONF_ENDS]; /* [a][b]: over which a hands an end of a connection to b, and takes one */
    struct {
        int pid, fd;
    } offered[CONF_ENDS];
    uint8_t blobs[2][CONF_ENDS][TRANSPORT_BLOB_BYTES]; /* of shm, of the others */
    uint64_t said;                                     /* atomic: one number that ranks tell each other */
};

/* One rank. */
struct conf_place {
    struct conf_world *world;
    int rank;
    struct lane_set *set;
    struct stop stop;
    struct transport_env env;
    struct transport_end *self, *shm, *other;
};

/* All pairs by `transport`; other choices can be written to `via` before ranks start. */
struct conf_world *conf_world_make(int size, const struct transport *transport, bool (*connect)(int pair[2]));
void conf_world_free(struct conf_world *world);
/* Runs in each rank: lanes, ends, blobs, reach, attach. 0, or 1 with the reason printed. */
int conf_join(struct conf_place *place, struct conf_world *world, int rank);
void conf_leave(struct conf_place *place);
/* One turn of every end: their first failure, with *rank. */
quire_status_t conf_progress(struct conf_place *place, bool *moved, int *rank);

#endif
