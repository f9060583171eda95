/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * executor.h - runs plans on host memory. A plan bound to one call's buffers is a `struct exec_run`: a set of
 * resumable strands, so that one thread can drive many runs and a group can't deadlock. The executor knows plans,
 * lanes and kernels; who the ranks are, and what to do about a stall, it asks through the hooks of exec_comm.
 *
 * Life of a run: exec_bind (fills it in, allocates nothing) -> exec_wait, or exec_progress until it no longer returns
 * IN_PROGRESS. A run that ends with an error leaves its lanes where they are: later operations skip what is stale,
 * since every slot carries the sequence number of its operation.
 *
 * Threads: a run, and every lane of its exec_comm, is used by one thread at a time.
 */
#ifndef QUIRE_EXECUTOR_EXECUTOR_H
#define QUIRE_EXECUTOR_EXECUTOR_H

#include "base/op_name.h"
#include "base/stop.h"
#include "plan/plan.h"
#include "quire.h"
#include "transport.h"

struct exec_run;

enum { EXEC_MAX_ENDS = 4 };

/* What a communicator lends to the executor. */
struct exec_comm {
    struct lane_set *lanes;
    struct stop *stop;
    struct transport_end *ends[EXEC_MAX_ENDS]; /* those that have work to do: progress is not NULL */
    int end_count;
    uint32_t spin;           /* polls before yielding */
    uint64_t sleep_after_ns; /* idle time before sleeping */
    uint64_t timeout_ns;     /* longest wait without any progress; 0 none */
    uint64_t slow_after_ns;  /* idle time after which on_slow is asked, then again with growing gaps */
    void *ctx;
    /*
     * The run has made no progress for a while: compare boards, look for departed peers. OK to go on waiting, or the
     * status that ends the run (for fatal ones the first cause is already raised).
     */
    quire_status_t (*on_slow)(void *ctx, struct exec_run *run);
    /* The run's time is over: makes the report, raises the first cause, returns TIMEOUT. */
    quire_status_t (*on_timeout)(void *ctx, struct exec_run *run, uint64_t waited_ns);
    /* A slot of `peer` bears another name than ours. Makes both sides' text, raises MISMATCH (or returns a refusal). */
    quire_status_t (*on_mismatch)(void *ctx, struct exec_run *run, int peer, const struct op_name *theirs);
    /* A transport said that the path to `rank` broke. Raises the cause; OK when that peer had left in peace. */
    quire_status_t (*on_broken)(void *ctx, int rank, quire_status_t status);
    /* Queued work, see stream.h: tickets are given by the thread inside the communicator, done in order by the worker.
     */
    uint64_t tickets;
    uint64_t tickets_done; /* atomic; release when the work's last access is over */
    const void *ticket_of; /* the work being submitted now */
};

enum { EXEC_ERROR_BYTES = 768 };

/* What of a call doesn't change when it is repeated: cached by the communicator. */
struct exec_binding {
    const struct plan *plan;
    struct plan_layout layout;
    size_t slice_elems; /* elements of a block that go through in one pass */
    size_t slice_bytes;
    size_t passes;
    quire_type_t type;
    quire_op_t op;
    bool reduces; /* the plan has REDUCE steps with data */
};

struct exec_cursor {
    size_t pass;
    uint32_t step;   /* absolute index into plan->steps */
    uint32_t repeat; /* iteration of that step */
    uint32_t fold;   /* FOLD: sources already seen full */
};

struct exec_run {
    struct exec_comm *comm;
    const struct exec_binding *binding;
    struct op_name name;
    uint64_t refusal; /* the number under which a refusal of this operation is told, see stop_refused */
    const uint8_t *in;
    uint8_t *out;
    uint8_t *scratch;
    struct exec_run *after; /* must be done before this one starts; NULL */
    struct exec_run *next;  /* the owner's list */
    quire_status_t status;  /* IN_PROGRESS, then final */
    uint32_t active;        /* bit per strand that isn't finished */
    struct exec_cursor cursor[PLAN_MAX_STRANDS];
    size_t event[PLAN_MAX_EVENTS];          /* times signalled */
    void (*on_start)(struct exec_run *run); /* called once, when it begins (posts on the board); may be NULL */
    bool started;
    uint64_t waited_from; /* clock at the beginning of the present idle spell; 0 none */
    uint64_t next_slow;
    /* queued work only, see stream.h */
    uint64_t ticket;
    bool ticket_last;                      /* no later run of this work has the same communicator */
    void (*release)(struct exec_run *run); /* gives the run back to its owner; on the worker's thread */
    char error[EXEC_ERROR_BYTES];          /* the sentence, when status is an error */
};

/* Fills a binding: slices and passes from the lanes' geometry. */
void exec_binding_make(struct exec_binding *binding, const struct plan *plan, const struct plan_layout *layout,
                       quire_type_t type, quire_op_t op, const struct lane_geometry *geometry);

/* Readies a run; `name` is copied. */
void exec_bind(struct exec_run *run, struct exec_comm *comm, const struct exec_binding *binding,
               const struct op_name *name, const void *in, void *out, void *scratch);

/* Advances as far as it can without waiting. *moved is set when anything happened. Returns run->status. */
quire_status_t exec_progress(struct exec_run *run, bool *moved);

/*
 * Drives all runs until each is final; each ends on its own. Returns the first error in list order with its sentence
 * as this thread's last, or OK.
 */
quire_status_t exec_wait(struct exec_run *const *runs, int count);

/*
 * One turn of that loop, for callers with their own (the worker): advances every run once, and when nothing moved
 * waits a little as *idle (turns without progress so far, kept by the caller) says. Returns how many aren't final.
 */
int exec_turn(struct exec_run *const *runs, int count, uint64_t *idle);

/* Ends a run with an error whose sentence is this thread's last. The first end counts. */
void exec_run_fail(struct exec_run *run, quire_status_t status);

/*
 * Reads away what given-up operations have left on this rank's incoming lanes: slots of collectives before `sequence`.
 * (A step skips them too when it meets them; this is for lanes that the plan reads late, so that their producers don't
 * wait for credits in vain.)
 */
void exec_drain_stale(struct exec_comm *comm, uint64_t sequence, uint32_t epoch);

/* Ranks this run is waiting for now: sets bit r of mask (size bits, zeroed by the caller). Returns how many. */
int exec_missing(struct exec_run *run, uint64_t *mask);

#endif
