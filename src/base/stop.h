/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stop.h - the stop word, the first cause, and refusals: how every wait of a communicator learns that it should end.
 *
 * One `struct stop` per communicator end (rank). `word` is what waits look at: one relaxed load per poll. It lives in
 * memory that local peers (and, later, CUDA kernels) can see, so it is a pointer.
 *   0               nothing
 *   STOP_NOTICE     something is pending that the slow path must look at: a refusal, or an interruption
 *   STOP_FATAL      the first cause is known; every call returns it
 * Invariants: once STOP_FATAL the word never changes; `cause` is written once, before the word (release), and read
 * only after seeing it (acquire). Later causes are counted and dropped.
 *
 * Locking: `lock` protects refusals and the write of cause. Readers of the cause take no lock. Any thread may call.
 */
#ifndef QUIRE_BASE_STOP_H
#define QUIRE_BASE_STOP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "atomics.h"
#include "status.h"

enum { STOP_NONE = 0, STOP_NOTICE = 1, STOP_FATAL = 2 };
enum { CAUSE_TEXT_BYTES = 512, STOP_REFUSALS = 16 };
/* Refusals of messages of a pair have numbers with this bit; they have no order among operations, only equality. */
#define STOP_PAIR_BIT (UINT64_C(1) << 63)

/* Why a communicator, or one operation, failed: plain bytes, the same on every rank, sent as it is in floods. */
struct cause {
    uint32_t status;             /* quire_status_t */
    int32_t rank;                /* the rank it is about, -1 for none */
    uint64_t sequence;           /* refusals: the operation's sequence number; otherwise 0 */
    char text[CAUSE_TEXT_BYTES]; /* always terminated */
};

struct stop {
    uint32_t *word; /* points to `own_word` unless stop_place moved it */
    uint32_t own_word;
    uint32_t later_causes; /* counted, not printed */
    pthread_mutex_t lock;
    struct cause cause;
    struct cause refusals[STOP_REFUSALS]; /* oldest overwritten */
    uint32_t refusal_count;               /* ever */
};

void stop_init(struct stop *stop);
void stop_destroy(struct stop *stop);
/* Moves the word into shared memory (zeroed u32); keeps its value. Call before any other thread waits on it. */
void stop_place(struct stop *stop, uint32_t *word);

static inline uint32_t stop_seen(const struct stop *stop)
{
    return atom_load_relaxed(stop->word);
}

/* Records the first cause; true if this one is the first. A text for `cause` is made with cause_make. */
bool stop_fail(struct stop *stop, const struct cause *cause);
/* Adds a refusal of operation cause->sequence and raises STOP_NOTICE. */
void stop_refuse(struct stop *stop, const struct cause *cause);
/* If operation `sequence` was refused by some rank, copies that refusal and returns true. Drops refusals of earlier
   operations (numbers with STOP_PAIR_BIT are earlier than nothing, and dropped when found), and lowers STOP_NOTICE when
   none is left. */
bool stop_refused(struct stop *stop, uint64_t sequence, struct cause *out);
/* The first cause as status with its text made this thread's last error; QUIRE_OK when there is none. */
quire_status_t stop_status(struct stop *stop);
/* The first cause, or NULL. */
const struct cause *stop_cause(const struct stop *stop);

struct cause cause_make(quire_status_t status, int rank, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* False when foreign bytes are no valid cause (unknown status, text not terminated). */
bool cause_valid(const struct cause *cause);

#endif
