/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - the communicator: one rank's end, what it owns, and how calls get in and out. The main header of the room.
 *
 *   create.c     making one: rendezvous, facts, lanes, transports, in phases that all ranks end together
 *   facts.c      what all ranks must agree on, and the sentence when they don't
 *   operation.c  one call: name, plan, run, refusal
 *   watch.c      what a waiting run asks: boards, departed peers, timeouts, mismatches, broken paths
 *   close.c      finalize, abort, destroy
 *
 * Threads: one thread at a time is inside (`busy`); everything not listed below belongs to it, or, while work is
 * queued on streams, its runs and lanes belong to the worker (executor/stream.h). Exempt, from any thread: `stop`
 * (base/stop.h has its own lock), `state` (atomic), `error` (error_lock), rank and size (never change).
 *
 * Life: COMM_STARTING -> COMM_READY -> COMM_FINALIZED or COMM_CLOSED; a failed start goes to COMM_CLOSED with the
 * cause in `stop`.
 */
#ifndef QUIRE_COMM_COMM_H
#define QUIRE_COMM_COMM_H

#include <pthread.h>

#include "base/op_name.h"
#include "base/stop.h"
#include "boot/boot.h"
#include "executor/executor.h"
#include "planner/planner.h"
#include "quire.h"
#include "transport.h"

enum comm_state { COMM_STARTING, COMM_READY, COMM_FINALIZED, COMM_CLOSED };

enum { COMM_NAME_BYTES = 64, COMM_CACHE = 64, COMM_TRANSPORTS = 4 };

/* One call as a plain value. */
struct comm_call {
    quire_collective_t collective;
    quire_type_t type; /* ignored by barrier */
    quire_op_t op;     /* all_reduce */
    int root;          /* broadcast: root; send, recv: peer */
    size_t count;      /* elements */
    const void *send;
    void *recv;
};

/* What of a call decides plan, layout and slices. */
struct comm_key {
    uint64_t count;
    uint32_t root;
    uint8_t collective, type, op, used;
};

struct comm_cached {
    struct comm_key key;
    struct exec_binding binding;
};

/* A queued or grouped call. Pooled per communicator, so that nothing is allocated after first use. */
struct comm_operation {
    struct exec_run run; /* first: a run is turned back into its operation */
    struct exec_binding binding;
    struct quire_comm *comm;
    struct comm_operation *next; /* in the pool */
};

struct quire_comm {
    uint64_t magic;
    uint32_t generation; /* of the process */
    uint32_t busy;       /* atomic: 1 while a thread is inside */
    uint32_t state;      /* atomic: enum comm_state */
    int rank, size;
    uint32_t epoch;

    /* configuration, environment applied */
    char name[COMM_NAME_BYTES];
    uint64_t timeout_ns, init_timeout_ns;
    bool deterministic;
    const char *forced_transport; /* "auto", "shm" or "tcp"; static */

    struct stop stop;
    struct boot *boot;
    struct lane_set *lanes;
    struct transport_env env;
    struct transport_end *ends[COMM_TRANSPORTS]; /* as transport_all */
    uint8_t *via;                                /* [rank]: index into transport_all */
    struct board_page *board;
    struct board_page *own_board; /* when there is no segment to hold it */

    struct planner *planner;
    struct planner_facts planner_facts;
    struct exec_comm exec;
    uint64_t sequence; /* of the last collective named */
    struct comm_cached cache[COMM_CACHE];
    struct comm_operation *pool;     /* free operations */
    struct comm_operation *returned; /* atomic: given back by the worker */
    struct exec_run *last_run;       /* of the group being submitted: the last collective, for order */
    struct exec_run **last_pair[2];  /* [0] send, [1] recv: the last run of the group with that peer */

    int ask_next;            /* watch.c: whose board is asked next */
    uint64_t departed_since; /* watch.c: clock when a departed rank was first waited for */

    pthread_t starter; /* non-blocking init */
    bool starter_running;

    pthread_mutex_t error_lock;
    char error[STATUS_TEXT_BYTES];
};

/* ---- create.c ---------------------------------------------------------------------------------------------------- */

struct comm_options {
    int rank, size;
    enum boot_meeting_kind meeting;
    const quire_unique_id *id;
    const char *where;
    uint64_t key_salt;
    const quire_config *config; /* NULL: defaults */
};

/* INVALID_ARGUMENT when the values make no sense. */
quire_status_t comm_check_config(const quire_config *config);
/* Blocking or not, by the config; see quire_comm_init_rank. */
quire_status_t comm_create(struct quire_comm **comm, const struct comm_options *options);

/* ---- facts.c ----------------------------------------------------------------------------------------------------- */

/*
 * A phase of creation ends together on all ranks: each tells how it went, `st` with this thread's last sentence. OK
 * when all are; else the first failed rank's status and text on every rank.
 */
quire_status_t comm_agree(struct quire_comm *comm, quire_status_t st, uint64_t deadline);
/* Exchanges facts and transports' blobs (size entries of bytes each); MISMATCH names the fact and the ranks. */
quire_status_t comm_exchange_facts(struct quire_comm *comm, quire_status_t st, const void *blobs, size_t bytes,
                                   void *all_blobs, uint64_t deadline);

/* ---- operation.c ------------------------------------------------------------------------------------------------- */

/* Takes the communicator for this thread. INVALID_USAGE when it is taken, not ready, or of another process; the first
   cause when it has failed. */
quire_status_t comm_enter(struct quire_comm *comm);
void comm_leave(struct quire_comm *comm);
/* The handle is usable at all (magic, process). For the exempt calls. */
quire_status_t comm_usable(const struct quire_comm *comm);

/* Runs a checked call to its end in this thread. Between enter and leave. */
quire_status_t comm_run(struct quire_comm *comm, const struct comm_call *call);
/* Names and binds a call for a group or a stream; NULL on error. Owned by the communicator until comm_give_back. */
quire_status_t comm_prepare(struct quire_comm *comm, const struct comm_call *call, struct comm_operation **operation);
void comm_give_back(struct comm_operation *operation);
/* After a group was submitted: forget the order of its runs. */
void comm_group_over(struct quire_comm *comm);
/* The call is refused with `st` and this thread's sentence: it takes its place in the order, and peers are told. */
void comm_refuse(struct quire_comm *comm, const struct comm_call *call, quire_status_t st);
/* The same for one that has its name and run already; gives it back. */
void comm_refuse_prepared(struct comm_operation *operation, quire_status_t st);
/* Remembers this thread's sentence as the communicator's last error; returns st. */
quire_status_t comm_note_error(struct quire_comm *comm, quire_status_t st);

/* ---- watch.c ----------------------------------------------------------------------------------------------------- */

quire_status_t comm_on_slow(void *ctx, struct exec_run *run);
quire_status_t comm_on_timeout(void *ctx, struct exec_run *run, uint64_t waited_ns);
quire_status_t comm_on_mismatch(void *ctx, struct exec_run *run, int peer, const struct op_name *theirs);
quire_status_t comm_on_broken(void *ctx, int rank, quire_status_t status);
/* Raises the first cause here and at every rank; returns the status that is now the first. */
quire_status_t comm_fail_all(struct quire_comm *comm, const struct cause *cause);

/* ---- close.c ----------------------------------------------------------------------------------------------------- */

quire_status_t comm_finalize(struct quire_comm *comm);
quire_status_t comm_abort(struct quire_comm *comm);
quire_status_t comm_destroy(struct quire_comm *comm);
/* Gives back what creation took; the shell stays for queries. Idempotent. */
void comm_release(struct quire_comm *comm);

#endif
