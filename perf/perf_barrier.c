/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_barrier.c - a barrier of our own for --latency: the ranks of one host start an operation within a few cache
 * misses of each other, and what is measured is not helped or hurt by the barrier of the library under test.
 *
 * One page that all ranks map: rank 0 makes it without a name, the others open it through /proc. A token in it proves
 * that it is the same page; where one rank can't have it (another host, other namespaces), all do without and the
 * library's barrier is used. `arrived` counts up to the number of ranks; the last sets it to 0, then moves `round`.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perf.h"

enum {
    SPINS = 200,      /* about 5 us: a yield costs 0.4 us, and that much skew would be measured as the operation */
    LOOK_EVERY = 4096 /* yields between looks whether a rank has failed */
};

struct perf_barrier {
    uint32_t arrived __attribute__((aligned(64)));
    uint32_t round __attribute__((aligned(64)));
    uint8_t token[16] __attribute__((aligned(64)));
};

struct invitation {
    int32_t pid, fd;
    uint8_t token[16];
};

static struct perf_barrier *map(int fd)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct perf_barrier))
        return NULL;
    void *at = mmap(NULL, sizeof(struct perf_barrier), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static struct perf_barrier *make(struct invitation *invitation)
{
    struct perf_barrier *barrier = NULL;
    invitation->pid = (int32_t)getpid();
    invitation->fd = memfd_create("quire-perf", MFD_CLOEXEC);
    if (invitation->fd >= 0 && ftruncate(invitation->fd, sizeof(struct perf_barrier)) == 0)
        barrier = map(invitation->fd);
    if (barrier != NULL && getrandom(invitation->token, sizeof(invitation->token), 0) == sizeof(invitation->token))
        memcpy(barrier->token, invitation->token, sizeof(barrier->token));
    return barrier;
}

static struct perf_barrier *join(const struct invitation *invitation)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)invitation->pid, (int)invitation->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct perf_barrier *barrier = map(fd);
    if (fd >= 0)
        close(fd);
    if (barrier != NULL && memcmp(barrier->token, invitation->token, sizeof(barrier->token)) != 0) {
        munmap(barrier, sizeof(*barrier));
        barrier = NULL;
    }
    return barrier;
}

quire_status_t perf_barrier_open(struct perf_barrier **barrier, quire_comm *comm, int rank)
{
    struct invitation invitation = {0, -1, {0}};
    struct perf_barrier *own = rank == 0 ? make(&invitation) : NULL;
    quire_status_t st = quire_broadcast(&invitation, &invitation, sizeof(invitation), QUIRE_UINT8, 0, comm, NULL);
    if (st == QUIRE_OK && rank != 0)
        own = join(&invitation);
    uint8_t all = own != NULL;
    if (st == QUIRE_OK)
        st = quire_all_reduce(&all, &all, 1, QUIRE_UINT8, QUIRE_MIN, comm, NULL);
    if (rank == 0 && invitation.fd >= 0)
        close(invitation.fd);
    if ((st != QUIRE_OK || !all) && own != NULL) {
        munmap(own, sizeof(*own));
        own = NULL;
    }
    if (st == QUIRE_OK)
        *barrier = own;
    return st;
}

void perf_barrier_close(struct perf_barrier *barrier)
{
    if (barrier != NULL)
        munmap(barrier, sizeof(*barrier));
}

quire_status_t perf_barrier_wait(struct perf_barrier *barrier, quire_comm *comm, int size)
{
    if (barrier == NULL)
        return quire_barrier(comm, NULL);
    uint32_t round = __atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == (uint32_t)size) {
        __atomic_store_n(&barrier->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&barrier->round, round + 1, __ATOMIC_RELEASE);
        return QUIRE_OK;
    }
    for (unsigned n = 0; __atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) == round; n++) {
        quire_status_t state, st;
        if (n >= SPINS)
            sched_yield();
#if defined(__x86_64__)
        else
            __builtin_ia32_pause();
#endif
        /* A rank that has died never comes; the library notices. */
        if (n % LOOK_EVERY == LOOK_EVERY - 1 &&
            ((st = quire_comm_async_error(comm, &state)) != QUIRE_OK || (st = state) != QUIRE_OK))
            return st;
    }
    return QUIRE_OK;
}
