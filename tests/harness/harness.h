/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * harness.h - what all tests share: guarded buffers, values that depend on rank and position, ranks as processes or as
 * threads with a verdict from each, and counts of what a process holds.
 */
#ifndef QUIRE_TESTS_HARNESS_H
#define QUIRE_TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "quire.h"

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* `bytes` whose end (at_end) or start touches a page that can't be accessed; aborts the test when there is no memory.
 */
struct guarded {
    uint8_t *at;
    size_t bytes;
    uint8_t *map; /* the whole mapping */
    size_t map_bytes;
};
/* With at_end, `skew` bytes are left between the buffer and the guard page (and filled with a pattern). */
struct guarded guarded_make(size_t bytes, bool at_end, size_t skew);
/* True when the bytes between buffer and guard pages are as they were made. */
bool guarded_intact(const struct guarded *guarded);
void guarded_free(struct guarded *guarded);

/* A value for (rank, index): small, differs between neighbours and ranks. */
uint64_t harness_value(int rank, size_t index);
/* Writes element `index` of the type: an integer 0 .. limit-1 chosen by harness_value. */
void harness_put(void *buffer, size_t index, quire_type_t type, uint64_t value);
/* Reads an element as double. */
double harness_get(const void *buffer, size_t index, quire_type_t type);

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

/* One rank's part. Returns 0 when all was well; prints to stderr what wasn't. */
typedef int (*harness_rank)(int rank, int size, void *arg);

/*
 * Runs `size` ranks as processes (fork), or as threads; waits at most `seconds`, then kills (processes) or gives up
 * (threads: the test process ends). Returns the number of ranks that failed, telling which and how. `killed`, or -1, is
 * a rank that is expected to die by a signal.
 */
int harness_fork(int size, harness_rank run, void *arg, int seconds, int killed);
int harness_threads(int size, harness_rank run, void *arg, int seconds);
/* True when this is a sanitizer build that can't follow fork well with threads. */
bool harness_tsan(void);
/* True in any sanitizer build: freed memory is kept for a while, so resident memory tells nothing. */
bool harness_sanitized(void);

/* ---- what a process holds ---------------------------------------------------------------------------------------- */

int harness_descriptors(void);
int harness_thread_count(void);
size_t harness_resident_bytes(void);
int harness_shm_entries(void);
uint64_t harness_now_ns(void);

/* In a rank's part: prints and returns 1 when a call fails. */
#define RANK_OK(call)                                                                                                  \
    do {                                                                                                               \
        quire_status_t rank_ok_ = (call);                                                                              \
        if (rank_ok_ != QUIRE_OK)                                                                                      \
            return harness_failed(__FILE__, __LINE__, #call, rank_ok_);                                                \
    } while (0)
#define RANK_TRUE(condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return harness_untrue(__FILE__, __LINE__, #condition);                                                     \
    } while (0)
int harness_failed(const char *file, int line, const char *what, quire_status_t st);
int harness_untrue(const char *file, int line, const char *what);

#endif
