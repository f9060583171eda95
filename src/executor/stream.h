/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h - queued work: streams, events, and the worker thread that runs them.
 *
 * A stream is an ordered queue of items. A `struct stream_work` is a set of runs that start together (one call, or a
 * group); it has one item on each stream that its calls named and starts when it heads all of them and every earlier
 * work on its communicators is done. One worker thread per process advances all started work, so work on different
 * streams overlaps and can't deadlock.
 *
 * Locking: one lock (worker.c) guards every stream, event and item. Works are touched by the submitting thread until
 * stream_submit, by the worker afterwards. Runs and lanes of a communicator with work queued belong to the worker; the
 * thread inside the communicator calls exec_queue_wait before it touches them itself.
 */
#ifndef QUIRE_EXECUTOR_STREAM_H
#define QUIRE_EXECUTOR_STREAM_H

#include "executor.h"

struct quire_event {
    uint64_t magic;
    uint32_t generation; /* of the process, see base/forked.h */
    uint32_t references; /* the owner's and those of items */
    uint64_t recorded;   /* times recorded */
    uint64_t reached;    /* highest recording that has happened */
};

enum stream_item_kind { STREAM_WORK, STREAM_RECORD, STREAM_WAIT };

struct stream_item {
    struct stream_item *next;
    enum stream_item_kind kind;
    bool arrived; /* WORK: this item heads its stream and was counted */
    struct stream_work *work;
    struct quire_event *event;
    uint64_t value; /* of the event */
};

struct quire_stream {
    uint64_t magic;
    uint32_t generation;
    struct stream_item *head, **tail;
    uint64_t queued, done; /* items */
    quire_status_t error;  /* the first since the last synchronize */
    char error_text[EXEC_ERROR_BYTES];
    struct quire_stream *next; /* the worker's list */
};

enum { STREAM_WORK_STREAMS = 16 }; /* different streams in one group */

struct stream_work {
    struct exec_run *runs; /* list by run->next */
    int run_count;
    struct quire_stream *streams[STREAM_WORK_STREAMS];
    int stream_count;
    int arrived; /* of its items that head their streams */
    bool started;
    struct stream_work *next; /* started works */
};

/* A new empty work; NULL when out of memory. */
struct stream_work *stream_work_create(void);
void stream_work_discard(struct stream_work *work);
/* Adds a run (bound, with release set) that was called on `stream`. INVALID_USAGE when there are too many streams. */
quire_status_t stream_work_add(struct stream_work *work, struct exec_run *run, struct quire_stream *stream);
/* Queues it. On error (RESOURCE) nothing is queued and the caller still owns the runs. */
quire_status_t stream_submit(struct stream_work *work);

/* True when no queued work of this communicator is left. The thread inside the communicator only. */
static inline bool exec_queue_idle(const struct exec_comm *comm)
{
    return comm->tickets == atom_load_acquire(&comm->tickets_done);
}
/* Waits for that; queued work ends by the communicator's own timeout or stop word. */
void exec_queue_wait(struct exec_comm *comm);

/* INVALID_ARGUMENT or INVALID_USAGE when the handle can't be used in this process. */
quire_status_t stream_usable(const struct quire_stream *stream);

#endif
