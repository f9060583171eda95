/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quire.h - the native API of Quire, a collective communication library.
 *
 * This header is the manual. It needs C standard headers only, and can be used from C and C++.
 *
 * Vocabulary
 *   rank          one participant of a communicator, 0 .. size-1. Usually a process; several ranks may live in one
 *                 process (quire_comm_init_all) and may be driven by one thread through a group.
 *   communicator  an ordered set of ranks that call the same collectives in the same order.
 *   count         a number of elements (never bytes), size_t. Zero is legal everywhere and is still ordered.
 *   stream        an ordered queue of work on this host. NULL means: the call is done when it returns.
 *
 * Rules that hold for every call
 *   - Every function returns a quire_status_t; outputs are written only on QUIRE_OK (or QUIRE_IN_PROGRESS where said).
 *   - The library never calls exit() or abort(), never raises a signal and never changes signal handlers.
 *   - Every wait ends: at completion, at the communicator's timeout, at the first failure, or at quire_comm_abort.
 *   - A communicator is used by one thread at a time; a second thread gets QUIRE_ERR_INVALID_USAGE and nothing happens.
 *     Exempt, callable from any thread at any time: quire_comm_abort, quire_comm_async_error, quire_last_error and the
 *     queries. Different communicators may be used by different threads in any order.
 *   - After fork() the child's copies are dead: calls return QUIRE_ERR_INVALID_USAGE, destroy does nothing.
 */
#ifndef QUIRE_H
#define QUIRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define QUIRE_API __attribute__((visibility("default")))
#else
#define QUIRE_API
#endif

#define QUIRE_MAJOR 0
#define QUIRE_MINOR 1
#define QUIRE_PATCH 0
/* MAJOR*10000 + MINOR*100 + PATCH, the value quire_get_version() writes. */
#define QUIRE_VERSION (QUIRE_MAJOR * 10000 + QUIRE_MINOR * 100 + QUIRE_PATCH)

/*
 * Status codes, ordered by blast radius: what the largest thing is that can no longer be used. Recovery code may test
 * ranges: [10,20) this call only, [20,30) one pair of ranks, [30,40) the communicator, 40 a bug in the library.
 * X(symbol, value, name, text). One list makes the enum, the names and the texts.
 */
#define QUIRE_STATUS_LIST(X)                                                                                           \
    X(QUIRE_OK, 0, "OK", "success")                                                                                    \
    X(QUIRE_IN_PROGRESS, 1, "IN_PROGRESS", "not finished yet, ask again")                                              \
    X(QUIRE_ERR_INVALID_ARGUMENT, 10, "INVALID_ARGUMENT", "an argument is wrong; the communicator stays good")         \
    X(QUIRE_ERR_INVALID_USAGE, 11, "INVALID_USAGE", "the call is not allowed here; the communicator stays good")       \
    X(QUIRE_ERR_RESOURCE, 12, "RESOURCE", "memory, descriptors or shared memory ran out; this call failed")            \
    X(QUIRE_ERR_LINK, 20, "LINK", "a path between two ranks died; another may exist")                                  \
    X(QUIRE_ERR_MISMATCH, 30, "MISMATCH", "ranks called different operations; the communicator is out of step")        \
    X(QUIRE_ERR_PEER_FAILED, 31, "PEER_FAILED", "a rank died; the communicator can't go on")                           \
    X(QUIRE_ERR_TIMEOUT, 32, "TIMEOUT", "the deadline passed while waiting for other ranks")                           \
    X(QUIRE_ERR_REVOKED, 33, "REVOKED", "a rank revoked the communicator")                                             \
    X(QUIRE_ERR_ABORTED, 34, "ABORTED", "this rank aborted the communicator")                                          \
    X(QUIRE_ERR_INTERNAL, 40, "INTERNAL", "a bug in the library; the text says the file and line")

#define QUIRE_STATUS_ENUM(symbol, value, name, text) symbol = value,
typedef enum { QUIRE_STATUS_LIST(QUIRE_STATUS_ENUM) QUIRE_STATUS_MAX_ = 0x7fffffff } quire_status_t;
#undef QUIRE_STATUS_ENUM

/* Element types; the numbers are NCCL's. */
typedef enum {
    QUIRE_INT8 = 0,
    QUIRE_UINT8 = 1,
    QUIRE_INT32 = 2,
    QUIRE_UINT32 = 3,
    QUIRE_INT64 = 4,
    QUIRE_UINT64 = 5,
    QUIRE_FLOAT16 = 6,
    QUIRE_FLOAT32 = 7,
    QUIRE_FLOAT64 = 8,
    QUIRE_BFLOAT16 = 9,
    QUIRE_FLOAT8_E4M3 = 10, /* the "fn" form: 448 is the largest finite value, no infinity */
    QUIRE_FLOAT8_E5M2 = 11,
    QUIRE_TYPE_COUNT = 12
} quire_type_t;

/*
 * Operators; the numbers are NCCL's. Integers wrap. 16- and 8-bit floats are summed in float32 and rounded once where
 * the algorithm allows. NaN in gives NaN out for every operator, min and max included. AVG is the sum over the number
 * of ranks (integers: the wrapped sum, divided, truncated toward zero).
 */
typedef enum {
    QUIRE_SUM = 0,
    QUIRE_PROD = 1,
    QUIRE_MAX = 2,
    QUIRE_MIN = 3,
    QUIRE_AVG = 4,
    QUIRE_OP_COUNT = 5
} quire_op_t;

/* Collectives, as quire_explain names them. */
typedef enum {
    QUIRE_ALL_REDUCE = 0,
    QUIRE_BROADCAST = 1,
    QUIRE_BARRIER = 2,
    QUIRE_SEND = 3,
    QUIRE_RECV = 4,
    QUIRE_COLLECTIVE_COUNT = 5
} quire_collective_t;

typedef struct quire_comm quire_comm;     /* one rank's end of a communicator */
typedef struct quire_stream quire_stream; /* an ordered queue of work */
typedef struct quire_event quire_event;   /* a point in a stream */

#define QUIRE_UNIQUE_ID_BYTES 128
/* Names one communicator before it exists: addresses, port, a 128-bit random key. Plain bytes; carry it by any means.
 */
typedef struct {
    unsigned char bytes[QUIRE_UNIQUE_ID_BYTES];
} quire_unique_id;

#define QUIRE_TIMEOUT_DEFAULT (-1)
/*
 * Options of one communicator. Start from QUIRE_CONFIG_INITIALIZER, then set what you need; a NULL pointer means all
 * defaults. Every rank passes the same values unless said otherwise.
 */
typedef struct {
    size_t size;           /* sizeof(quire_config), set by the initializer; guards against older headers */
    int blocking;          /* 1: init returns when the communicator works. 0: init returns QUIRE_IN_PROGRESS, poll
                              quire_comm_async_error until it is no longer IN_PROGRESS */
    int timeout_ms;        /* operations, finalize, destroy: milliseconds of waiting; 0 none; default 600,000 */
    int init_timeout_ms;   /* the same for init; default 120,000 */
    int deterministic;     /* 1: canonical order of addition everywhere, see quire_all_reduce */
    const char *name;      /* for logs and errors, copied; NULL: none. May differ between ranks */
    const char *transport; /* NULL or "auto"; "shm" or "tcp" forces one. Overridden by QUIRE_TRANSPORT */
} quire_config;
#define QUIRE_CONFIG_INITIALIZER                                                                                       \
    {                                                                                                                  \
        sizeof(quire_config), 1, QUIRE_TIMEOUT_DEFAULT, QUIRE_TIMEOUT_DEFAULT, 0, NULL, NULL                           \
    }

/* ---- library ---------------------------------------------------------------------------------------------------- */

/* Writes QUIRE_VERSION of the library that is loaded. */
QUIRE_API quire_status_t quire_get_version(int *version);
/* "PEER_FAILED", "OK", ...; static, never NULL, any value. */
QUIRE_API const char *quire_status_name(quire_status_t status);
/* One line of what the code means; static, never NULL, any value. */
QUIRE_API const char *quire_status_text(quire_status_t status);
/* Bytes of one element; 0 for an unknown type. */
QUIRE_API size_t quire_type_size(quire_type_t type);
/* "float", "bfloat16", ...: nccl-tests' names; "?" for an unknown value. Static. */
QUIRE_API const char *quire_type_name(quire_type_t type);
QUIRE_API const char *quire_op_name(quire_op_t op);
QUIRE_API const char *quire_collective_name(quire_collective_t collective);

/* What the launcher told this process; see quire_launch_info. */
typedef struct {
    int rank; /* -1 when no launcher was recognised */
    int size;
    int local_rank;       /* among the ranks of this host; -1 unknown */
    int local_size;       /* -1 unknown */
    const char *launcher; /* "quire", "torchrun", "openmpi", "slurm" or "none"; static */
} quire_launch;
/* Reads the launch environment (quire-run, torchrun, Open MPI, Slurm). Never fails for lack of one. Thread-safe. */
QUIRE_API quire_status_t quire_launch_info(quire_launch *info);

/* ---- communicators ---------------------------------------------------------------------------------------------- */

/*
 * Makes an id. This process listens (in its service thread) until every rank has joined or the process ends; any rank
 * may be the one that calls it. An id is good for one communicator; a second use is refused.
 */
QUIRE_API quire_status_t quire_get_unique_id(quire_unique_id *id);

/*
 * Creates rank `rank` of `size`. Collective: returns when all ranks have joined, or with
 *   INVALID_ARGUMENT  rank/size out of range, id malformed, used or unreachable
 *   TIMEOUT           the text lists the ranks that did not come
 *   RESOURCE          the text says what was wanted and what was free (told to every rank)
 * With config.blocking = 0 it returns QUIRE_IN_PROGRESS at once; *comm is valid for async_error, abort and destroy.
 */
QUIRE_API quire_status_t quire_comm_init_rank(quire_comm **comm, int size, const quire_unique_id *id, int rank,
                                              const quire_config *config);
/*
 * The same, with everything from the launch environment: rank and size from the launcher; the meeting place from
 * QUIRE_ROOT ("host:port", "[v6]:port" or "file:PATH"), the launcher's own address if it gives one, or on one host an
 * abstract socket keyed by the job id. Without a launcher it makes a communicator of one rank.
 */
QUIRE_API quire_status_t quire_comm_init_env(quire_comm **comm, const quire_config *config);
/*
 * Creates all `size` ranks in this process; comms[i] is rank i. One thread may drive them through a group, or one
 * thread each may drive one. On failure no entry of comms is written.
 */
QUIRE_API quire_status_t quire_comm_init_all(quire_comm **comms, int size, const quire_config *config);

/* Waits for queued work and says goodbye to the peers; afterwards only queries and destroy are legal. Collective. */
QUIRE_API quire_status_t quire_comm_finalize(quire_comm *comm);
/* Frees. Finalizes first if the communicator is healthy, aborts it if it isn't. NULL is fine. The handle is dead after.
 */
QUIRE_API quire_status_t quire_comm_destroy(quire_comm *comm);
/*
 * Local, needs no peer, from any thread: every call on this communicator returns QUIRE_ERR_ABORTED, peers see a failed
 * rank. Frees what it can when no other thread is inside; the handle may still be passed to quire_comm_destroy.
 */
QUIRE_API quire_status_t quire_comm_abort(quire_comm *comm);
/* The communicator's state: OK, IN_PROGRESS (non-blocking init), or the first cause's code. */
QUIRE_API quire_status_t quire_comm_async_error(quire_comm *comm, quire_status_t *status);
/*
 * The sentence of the last error of this communicator, or with NULL of this thread. Never NULL; empty if none. Valid
 * until the next call of this thread into the library.
 */
QUIRE_API const char *quire_last_error(quire_comm *comm);
QUIRE_API quire_status_t quire_comm_rank(const quire_comm *comm, int *rank);
QUIRE_API quire_status_t quire_comm_size(const quire_comm *comm, int *size);
/* The device of this rank: always -1 (host memory) in this version. */
QUIRE_API quire_status_t quire_comm_device(const quire_comm *comm, int *device);

/* ---- collectives ------------------------------------------------------------------------------------------------ */
/*
 * Common to all: every rank passes the same count, type, op and root, else all get QUIRE_ERR_MISMATCH within a second.
 * Buffers are host memory of any alignment; nothing outside the named range is read or written; inputs are never
 * written unless the call is in place; partial overlap of input and output is INVALID_ARGUMENT.
 */

/*
 * recv[i] = op over all ranks of send[i]; count elements each. In place: send == recv. Every rank gets the same bits.
 * Inside one host the order of addition is the balanced binary fold over contiguous rank ranges,
 * F(lo,hi) = F(lo,mid) + F(mid,hi), mid = lo + (hi-lo)/2, at every size; with config.deterministic everywhere.
 */
QUIRE_API quire_status_t quire_all_reduce(const void *send, void *recv, size_t count, quire_type_t type, quire_op_t op,
                                          quire_comm *comm, quire_stream *stream);
/* recv = root's send; count elements. send is read at the root only, and may be NULL elsewhere. In place: send == recv.
 */
QUIRE_API quire_status_t quire_broadcast(const void *send, void *recv, size_t count, quire_type_t type, int root,
                                         quire_comm *comm, quire_stream *stream);
/* Returns (or completes on the stream) after every rank has entered. */
QUIRE_API quire_status_t quire_barrier(quire_comm *comm, quire_stream *stream);

/*
 * Matched in order per pair of ranks and communicator. Sizes must agree, else MISMATCH with both sizes. To send to
 * oneself put the matching receive in the same group. A lone send may return before the receive is posted when the
 * library holds the data; do not rely on either.
 */
QUIRE_API quire_status_t quire_send(const void *send, size_t count, quire_type_t type, int peer, quire_comm *comm,
                                    quire_stream *stream);
QUIRE_API quire_status_t quire_recv(void *recv, size_t count, quire_type_t type, int peer, quire_comm *comm,
                                    quire_stream *stream);

/*
 * Calls between start and end (on any communicators of this thread) are collected and make progress together, in any
 * listing order. Nests; the outermost end submits and, for calls without a stream, waits. A call that fails inside
 * poisons the group: end returns that error and nothing of this rank's group starts.
 */
QUIRE_API quire_status_t quire_group_start(void);
QUIRE_API quire_status_t quire_group_end(void);

/* ---- streams and events ------------------------------------------------------------------------------------------ */
/* Work in one stream runs in order, on a worker thread of the library. Streams and events may be used by any thread. */
QUIRE_API quire_status_t quire_stream_create(quire_stream **stream);
/* Waits for the stream's work first. NULL is fine. */
QUIRE_API quire_status_t quire_stream_destroy(quire_stream *stream);
/* Waits until everything queued so far is done; returns the first error of that work since the last synchronize. */
QUIRE_API quire_status_t quire_stream_synchronize(quire_stream *stream);
/* QUIRE_OK when the stream is idle, QUIRE_IN_PROGRESS when not. */
QUIRE_API quire_status_t quire_stream_query(quire_stream *stream);
QUIRE_API quire_status_t quire_event_create(quire_event **event);
QUIRE_API quire_status_t quire_event_destroy(quire_event *event);
/* The event happens when the work queued in the stream so far is done. Recording again moves it. */
QUIRE_API quire_status_t quire_event_record(quire_event *event, quire_stream *stream);
/* Later work in the stream waits for the event (as recorded now). */
QUIRE_API quire_status_t quire_stream_wait_event(quire_stream *stream, quire_event *event);
QUIRE_API quire_status_t quire_event_query(quire_event *event);
QUIRE_API quire_status_t quire_event_synchronize(quire_event *event);

/* ---- memory ------------------------------------------------------------------------------------------------------ */
/*
 * Memory that local peers can map and read in place, page aligned, zeroed, backed at once (so exhaustion is RESOURCE
 * here and never a signal later). Free it with quire_mem_free when no operation uses it. Thread-safe.
 */
QUIRE_API quire_status_t quire_mem_alloc(void **memory, size_t bytes);
QUIRE_API quire_status_t quire_mem_free(void *memory);
/*
 * Tells the communicator that a buffer will be used again and again. Memory from quire_mem_alloc needs no registration.
 * Other host memory can't be mapped by peers: the call succeeds, the buffer is used through the lanes as before, and
 * the handle is only bookkeeping. Deregister accepts a NULL handle.
 */
QUIRE_API quire_status_t quire_comm_register(quire_comm *comm, void *buffer, size_t bytes, void **handle);
QUIRE_API quire_status_t quire_comm_deregister(quire_comm *comm, void *handle);

/*
 * Writes, as text, what the communicator would do for this call and why: candidates, the choice, the plan of this
 * rank. Returns RESOURCE when `bytes` is too small, after writing what fits (always terminated when bytes > 0).
 */
QUIRE_API quire_status_t quire_explain(quire_comm *comm, quire_collective_t collective, size_t count, quire_type_t type,
                                       quire_op_t op, char *text, size_t bytes);

/*
 * Calls `visit` for each environment variable the library knows, in a fixed order: its name, type ("size", "int",
 * "time", "bool", "string", "choice"), default, value in force, whether it was set, and a help line. For tools.
 */
typedef void (*quire_knob_visit)(void *arg, const char *name, const char *type, const char *def, const char *value,
                                 int was_set, const char *help);
QUIRE_API quire_status_t quire_visit_knobs(quire_knob_visit visit, void *arg);

#ifdef __cplusplus
}
#endif
#endif
