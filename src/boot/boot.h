/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot.h - how ranks find each other and stay in touch: rendezvous, the control plane, floods, liveness, the board of
 * remote ranks, and handing connections and descriptors to transports. The main header of the room.
 *
 * One `struct boot` per communicator end. All its sockets are owned by the process's one service thread (service.h);
 * the functions below post a request and wait. Every wait looks at the stop word and its deadline; on expiry the text
 * lists the ranks that are missing. Boot keeps each rank's listener and every rank's addresses for its whole life:
 * the tree is only a route, boot_dial reaches any rank, children of a dead inner node re-parent to its nearest living
 * ancestor, floods carry ids and are passed on once.
 *
 * Threads: the collective functions (all_gather, barrier, broadcast) may be used by one thread at a time per boot, in
 * the same order on all ranks. Everything else may be called from any thread.
 */
#ifndef QUIRE_BOOT_BOOT_H
#define QUIRE_BOOT_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/stop.h"
#include "board.h"
#include "quire.h"

struct boot;

enum { BOOT_HOST_BYTES = 64 };

/* Where the ranks meet. Exactly one kind. */
enum boot_meeting_kind {
    BOOT_MEET_ID,      /* a unique id: the maker's service thread is the root */
    BOOT_MEET_ADDRESS, /* "host:port" or "[v6]:port": rank 0 listens there */
    BOOT_MEET_FILE,    /* a path that all ranks see: rank 0 writes an id there (atomically), removes it when all came */
    BOOT_MEET_JOB      /* one host: an abstract Unix socket keyed by the job's id; rank 0 binds it */
};

struct boot_options {
    int rank, size;
    enum boot_meeting_kind meeting;
    const quire_unique_id *id; /* MEET_ID */
    const char *where;         /* ADDRESS: text; FILE: path; JOB: the job's id */
    uint64_t key_salt;         /* JOB, ADDRESS: how many communicators this process made there before (0, 1, ...) */
    uint64_t timeout_ns;       /* 0 none */
    struct stop *stop;         /* where causes and refusals of this communicator go; lives longer than the boot */
};

struct boot_peer {
    char host[BOOT_HOST_BYTES]; /* name for people only; never used to decide anything */
    uint64_t host_key; /* boot id and namespaces hashed: different keys, different hosts; equal keys prove nothing */
    pid_t pid;
};

/* Collective over all ranks of the id. On error nothing is left behind and *boot isn't written. */
quire_status_t boot_create(struct boot **boot, const struct boot_options *options);
/* Says goodbye to the neighbours (unless the stop word is fatal), closes everything. NULL is fine. Never waits for a
   peer: at most half a second for bytes on their way out, two for messages whose connection is being made. */
void boot_destroy(struct boot *boot);

/* Makes an id; this process becomes its root until all ranks came, or it ends. */
quire_status_t boot_make_id(quire_unique_id *id);
/* INVALID_ARGUMENT with the reason when the bytes can't be an id (fuzzed). */
quire_status_t boot_check_id(const quire_unique_id *id);

/* out holds size * bytes, rank r's at r * bytes. bytes is the same on all ranks (checked: MISMATCH). ceil(log2) rounds.
 */
quire_status_t boot_all_gather(struct boot *boot, const void *in, size_t bytes, void *out, uint64_t deadline);
quire_status_t boot_barrier(struct boot *boot, uint64_t deadline);
/* data of rank 0 to all. */
quire_status_t boot_broadcast(struct boot *boot, void *data, size_t bytes, uint64_t deadline);

const struct boot_peer *boot_peer(const struct boot *boot, int rank);
/* True once rank has said goodbye (finalize, destroy): waiting for it is in vain, though it did not fail. */
bool boot_departed(const struct boot *boot, int rank);

/*
 * Tells every rank, this one included, the first cause: raises stop words. Returns at once. Duplicate ids are dropped;
 * a cause that arrives second anywhere is counted, not reported.
 */
void boot_flood_cause(struct boot *boot, const struct cause *cause);
/* The same for a refusal: peers' stop_refuse gets it; this rank's own doesn't. */
void boot_flood_refusal(struct boot *boot, const struct cause *refusal);

/* The page that remote ranks may ask about. NULL takes it away (waits for a reader to leave). */
void boot_set_board(struct boot *boot, const struct board_page *page);
/* Asks `rank` for its entry `sequence`; also what it last posted. LINK or TIMEOUT when it does not answer. */
quire_status_t boot_ask_board(struct boot *boot, int rank, uint64_t sequence, enum board_answer *answer,
                              struct op_name *name, uint64_t *posted, uint64_t deadline);

/*
 * A stream socket to `rank` for a transport: authenticated (key, generation, ranks, purpose), non-blocking, close on
 * exec, TCP_NODELAY where it is TCP. The caller owns *fd. All of the peer's addresses are tried, the first that
 * answers wins. `purpose` is the transport's own number.
 */
quire_status_t boot_dial(struct boot *boot, int rank, uint32_t purpose, uint64_t deadline, int *fd);
/* The other end: waits until `rank` has dialled with `purpose`. The caller owns *fd. */
quire_status_t boot_accept(struct boot *boot, int rank, uint32_t purpose, uint64_t deadline, int *fd);
/* As accept, but returns IN_PROGRESS at once when nobody has dialled yet. */
quire_status_t boot_accept_poll(struct boot *boot, int rank, uint32_t purpose, int *fd);

/*
 * Descriptors between processes of one host, over its Unix socket. offer: this rank gives a duplicate of fd to any
 * member of the communicator that asks for `tag` (boot keeps its own duplicate; fd = -1 withdraws). fetch: LINK when
 * the peer has no Unix socket that answers here or does not offer the tag; the caller owns *fd.
 */
quire_status_t boot_offer_fd(struct boot *boot, uint64_t tag, int fd);
quire_status_t boot_fetch_fd(struct boot *boot, int rank, uint64_t tag, uint64_t deadline, int *fd);

#endif
