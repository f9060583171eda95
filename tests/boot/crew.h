/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crew.h - a crew of forked ranks for the tests of the boot room. Each rank runs a function and exits 0 when all its
 * expectations held. The verdict is over all ranks. A rank that the scenario kills is named, so that the others count.
 */
#ifndef QUIRE_TEST_BOOT_CREW_H
#define QUIRE_TEST_BOOT_CREW_H

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "boot/boot.h"

enum { CREW_MAX = 64 };

/* In a rank: say what did not hold, and fail. */
#define CREW_MUST(condition, ...)                                                                                      \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: pid %d: %s failed: ", __FILE__, __LINE__, (int)getpid(), #condition);              \
            fprintf(stderr, "" __VA_ARGS__);                                                                           \
            fprintf(stderr, " [last error: %s]\n", status_text_last());                                                \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static inline void crew_sleep_ms(int ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&ts, NULL);
}

/* Memory that a crew shares. */
struct crew_shared {
    uint32_t id_ready;
    quire_unique_id id;
};

struct crew {
    int size;
    const void *arg;
    struct crew_shared *shared; /* by crew_run */
};
typedef void (*crew_rank)(const struct crew *crew, int rank);

/* Forks the ranks; returns how many of those not in `doomed` (bits) did not exit 0. */
static inline int crew_run(struct crew *crew, crew_rank run, unsigned long long doomed)
{
    pid_t pid[CREW_MAX];
    int bad = 0;
    fflush(NULL);
    crew->shared = mmap(NULL, sizeof(*crew->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int rank = 0; rank < crew->size; rank++) {
        pid[rank] = fork();
        if (pid[rank] == 0) {
            run(crew, rank);
            _exit(0);
        }
    }
    for (int left = crew->size; left > 0; left--) {
        int status;
        pid_t done = waitpid(-1, &status, 0); /* any: a killed rank is reaped at once, as a launcher would */
        for (int rank = 0; rank < crew->size; rank++) {
            if (pid[rank] != done || (doomed >> rank & 1))
                continue;
            if (status != 0) {
                fprintf(stderr, "rank %d of %d: wait status 0x%x\n", rank, crew->size, (unsigned)status);
                bad++;
            }
        }
    }
    munmap(crew->shared, sizeof(*crew->shared));
    return bad;
}

/*
 * Rank 0 makes an id, the others wait for it. (Not the process that forks them: a process with threads had better not
 * fork under a sanitizer.)
 */
static inline const quire_unique_id *crew_id(const struct crew *crew, int rank)
{
    if (rank == 0) {
        quire_status_t st = boot_make_id(&crew->shared->id);
        CREW_MUST(st == QUIRE_OK, "an id: %d", (int)st);
        atom_store_release(&crew->shared->id_ready, 1);
    }
    while (!atom_load_acquire(&crew->shared->id_ready))
        crew_sleep_ms(1);
    return &crew->shared->id;
}

/* A rank's end with its stop word. */
struct crew_end {
    struct boot *boot;
    struct stop stop;
};

static inline quire_status_t crew_join(struct crew_end *end, int rank, int size, enum boot_meeting_kind meeting,
                                       const quire_unique_id *id, const char *where, uint64_t timeout_ns)
{
    struct boot_options options = {.rank = rank,
                                   .size = size,
                                   .meeting = meeting,
                                   .id = id,
                                   .where = where,
                                   .timeout_ns = timeout_ns,
                                   .stop = &end->stop};
    stop_init(&end->stop);
    end->boot = NULL;
    return boot_create(&end->boot, &options);
}

static inline void crew_leave(struct crew_end *end)
{
    boot_destroy(end->boot);
    stop_destroy(&end->stop);
}

/* Every rank by a job id of its own, the simplest meeting: a crew needs nothing in common but the id text. */
static inline void crew_must_join(struct crew_end *end, const struct crew *crew, int rank, const char *job)
{
    quire_status_t st = crew_join(end, rank, crew->size, BOOT_MEET_JOB, NULL, job, 20 * CLOCK_S);
    CREW_MUST(st == QUIRE_OK, "rank %d joins", rank);
}

/* A job id that no other test program uses at the same time. */
static inline const char *crew_job(void)
{
    static char text[64];
    static int count;
    snprintf(text, sizeof(text), "test-%d-%d", (int)getpid(), count++);
    return text;
}

static inline int crew_count_fds(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

static inline int crew_count_threads(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        count += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count;
}

static inline void *crew_nothing(void *arg)
{
    return arg;
}

/* Sanitizers start a thread of their own with the first thread of the program: have it there before counting. */
static inline void crew_warm_up(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, crew_nothing, NULL) == 0)
        pthread_join(thread, NULL);
}

/* Waits until the stop word is fatal; the time it took in ms, or -1 after `limit_ms`. */
static inline int crew_wait_fatal(struct stop *stop, int limit_ms)
{
    uint64_t start = clock_ns();
    while (stop_seen(stop) != STOP_FATAL) {
        if (clock_ns() - start > (uint64_t)limit_ms * CLOCK_MS)
            return -1;
        crew_sleep_ms(1);
    }
    return stop_cause(stop) ? (int)((clock_ns() - start) / CLOCK_MS) : -1; /* looks with acquire: the cause is whole */
}

#ifdef __SANITIZE_THREAD__
/* The root of an id lives in the process that forks the ranks, and each rank starts its own service thread. */
const char *__tsan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
    return "die_after_fork=0:atexit_sleep_ms=0";
}
#endif

#endif
