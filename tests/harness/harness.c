/* SPDX-License-Identifier: BSD-3-Clause */
/* harness.c - see harness.h. */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels/kernels.h"

enum { PAGE = 4096, PATTERN = 0xa5, MAX_RANKS = 128 };

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

struct guarded guarded_make(size_t bytes, bool at_end, size_t skew)
{
    size_t inside = (bytes + skew + PAGE - 1) / PAGE * PAGE;
    struct guarded g = {NULL, bytes, NULL, inside + 2 * PAGE};
    if (inside == 0)
        g.map_bytes += PAGE, inside = PAGE;
    g.map = mmap(NULL, g.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.map == MAP_FAILED || mprotect(g.map + PAGE, inside, PROT_READ | PROT_WRITE) != 0) {
        perror("guarded_make");
        abort();
    }
    memset(g.map + PAGE, PATTERN, inside);
    g.at = at_end ? g.map + PAGE + inside - bytes - skew : g.map + PAGE + skew;
    return g;
}

bool guarded_intact(const struct guarded *g)
{
    const uint8_t *first = g->map + PAGE, *last = g->map + g->map_bytes - PAGE;
    for (const uint8_t *p = first; p < g->at; p++)
        if (*p != PATTERN)
            return false;
    for (const uint8_t *p = g->at + g->bytes; p < last; p++)
        if (*p != PATTERN)
            return false;
    return true;
}

void guarded_free(struct guarded *g)
{
    munmap(g->map, g->map_bytes);
    g->map = g->at = NULL;
}

uint64_t harness_value(int rank, size_t index)
{
    uint64_t x = (uint64_t)index * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)rank * UINT64_C(0xd1b54a32d192ed03) + 1;
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return x >> 32;
}

void harness_put(void *buffer, size_t index, quire_type_t type, uint64_t value)
{
    size_t elem = quire_type_size(type);
    uint8_t *at = (uint8_t *)buffer + index * elem;
    float f = (float)value;
    double d = (double)value;
    uint16_t h;
    switch (type) {
    case QUIRE_FLOAT16:
        h = kernel_float_to_float16(f);
        memcpy(at, &h, 2);
        break;
    case QUIRE_BFLOAT16:
        h = kernel_float_to_bfloat16(f);
        memcpy(at, &h, 2);
        break;
    case QUIRE_FLOAT32:
        memcpy(at, &f, 4);
        break;
    case QUIRE_FLOAT64:
        memcpy(at, &d, 8);
        break;
    case QUIRE_FLOAT8_E4M3:
        *at = kernel_float_to_e4m3(f);
        break;
    case QUIRE_FLOAT8_E5M2:
        *at = kernel_float_to_e5m2(f);
        break;
    default:
        memcpy(at, &value, elem); /* little-endian */
        break;
    }
}

double harness_get(const void *buffer, size_t index, quire_type_t type)
{
    size_t elem = quire_type_size(type);
    const uint8_t *at = (const uint8_t *)buffer + index * elem;
    uint64_t u = 0;
    uint16_t h;
    float f;
    double d;
    memcpy(&u, at, elem);
    switch (type) {
    case QUIRE_FLOAT16:
        memcpy(&h, at, 2);
        return (double)kernel_float16_to_float(h);
    case QUIRE_BFLOAT16:
        memcpy(&h, at, 2);
        return (double)kernel_bfloat16_to_float(h);
    case QUIRE_FLOAT32:
        memcpy(&f, at, 4);
        return (double)f;
    case QUIRE_FLOAT64:
        memcpy(&d, at, 8);
        return d;
    case QUIRE_FLOAT8_E4M3:
        return (double)kernel_e4m3_to_float(*at);
    case QUIRE_FLOAT8_E5M2:
        return (double)kernel_e5m2_to_float(*at);
    case QUIRE_INT8:
        return (double)(int8_t)u;
    case QUIRE_INT32:
        return (double)(int32_t)u;
    case QUIRE_INT64:
        return (double)(int64_t)u;
    default:
        return (double)u;
    }
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

uint64_t harness_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int harness_failed(const char *file, int line, const char *what, quire_status_t st)
{
    fprintf(stderr, "%s:%d: pid %d: %s gave %s: %s\n", file, line, (int)getpid(), what, quire_status_name(st),
            quire_last_error(NULL));
    return 1;
}

int harness_untrue(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: pid %d: not true: %s\n", file, line, (int)getpid(), what);
    return 1;
}

/* gcc has a macro for each sanitizer, clang a feature test. */
#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif

bool harness_tsan(void)
{
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
    return true;
#else
    return false;
#endif
}

bool harness_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
    return true;
#else
    return harness_tsan();
#endif
}

/* Judges one ended rank; 1 when it counts as failed. */
static int judge(int rank, int status, int killed)
{
    if (rank == killed) {
        if (WIFSIGNALED(status))
            return 0;
        fprintf(stderr, "rank %d was to die by a signal, and did not\n", rank);
        return 1;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFSIGNALED(status))
        fprintf(stderr, "rank %d died by signal %d (%s)\n", rank, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        fprintf(stderr, "rank %d exited with %d\n", rank, WEXITSTATUS(status));
    return 1;
}

int harness_fork(int size, harness_rank run, void *arg, int seconds, int killed)
{
    pid_t pids[MAX_RANKS];
    int failed = 0, left = 0;
    if (size > MAX_RANKS) {
        fprintf(stderr, "%d ranks are more than this harness has room for (%d)\n", size, MAX_RANKS);
        return size;
    }
    uint64_t deadline = harness_now_ns() + (uint64_t)seconds * 1000000000u;
    fflush(NULL);
    for (int r = 0; r < size; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            int bad = run(r, size, arg);
            fflush(NULL);
            if (harness_tsan())
                _exit(bad != 0);
            exit(bad != 0);
        }
        if (pids[r] < 0) {
            /* Without this rank the others can only wait; they are given no time. */
            fprintf(stderr, "rank %d was not started: fork: %s\n", r, strerror(errno));
            failed++;
            deadline = 0;
        } else {
            left++;
        }
    }
    while (left > 0) {
        int before = left;
        for (int r = 0; r < size; r++) {
            int status;
            if (pids[r] > 0 && waitpid(pids[r], &status, WNOHANG) == pids[r]) {
                pids[r] = 0;
                left--;
                failed += judge(r, status, killed);
            }
        }
        if (left == before && harness_now_ns() > deadline)
            break;
        if (left == before)
            usleep(1000);
    }
    for (int r = 0; r < size; r++)
        if (pids[r] > 0) {
            fprintf(stderr, "rank %d did not end within %d s\n", r, seconds);
            kill(pids[r], SIGKILL);
            waitpid(pids[r], NULL, 0);
            failed++;
        }
    return failed;
}

struct thread_rank {
    pthread_t thread;
    harness_rank run;
    void *arg;
    int rank, size, bad;
};

static void *thread_main(void *p)
{
    struct thread_rank *t = p;
    t->bad = t->run(t->rank, t->size, t->arg);
    return NULL;
}

int harness_threads(int size, harness_rank run, void *arg, int seconds)
{
    static struct thread_rank ranks[MAX_RANKS];
    struct timespec until;
    int failed = 0;
    if (size > MAX_RANKS) {
        fprintf(stderr, "%d ranks are more than this harness has room for (%d)\n", size, MAX_RANKS);
        return size;
    }
    for (int r = 0; r < size; r++) {
        ranks[r] = (struct thread_rank){.run = run, .arg = arg, .rank = r, .size = size};
        if (pthread_create(&ranks[r].thread, NULL, thread_main, &ranks[r]) != 0)
            abort();
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    for (int r = 0; r < size; r++) {
        if (pthread_timedjoin_np(ranks[r].thread, NULL, &until) != 0) {
            fprintf(stderr, "rank %d did not end within %d s\n", r, seconds);
            _exit(1);
        }
        if (ranks[r].bad)
            fprintf(stderr, "rank %d failed\n", r);
        failed += ranks[r].bad != 0;
    }
    return failed;
}

/* ---- what a process holds ---------------------------------------------------------------------------------------- */

static int entries(const char *path, const char *prefix)
{
    DIR *dir = opendir(path);
    int n = 0;
    if (dir == NULL)
        return -1;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(dir);
    return n;
}

int harness_descriptors(void)
{
    return entries("/proc/self/fd", "");
}

int harness_thread_count(void)
{
    return entries("/proc/self/task", "");
}

int harness_shm_entries(void)
{
    return entries("/dev/shm", "");
}

size_t harness_resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long total = 0, resident = 0;
    if (f == NULL)
        return 0;
    if (fscanf(f, "%lu %lu", &total, &resident) != 2)
        resident = 0;
    fclose(f);
    return (size_t)resident * PAGE;
}
