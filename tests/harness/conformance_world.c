/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conformance_world.c - the environment that transports are lent in tests. Who dials makes both ends of the connection
 * and hands one to the peer (SCM_RIGHTS), so nobody else holds a copy and the end of a process is the end of its
 * connections. A descriptor that is offered is fetched through /proc. Both work between threads and between processes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "harness/conformance.h"
#include "harness/harness.h"

static bool unix_pair(int pair[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0;
}

union fd_message {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

static quire_status_t dial(void *ctx, int rank, uint32_t purpose, uint64_t deadline, int *fd)
{
    const struct conf_place *p = ctx;
    union fd_message control;
    int pair[2];
    char byte = 0;
    struct iovec v = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)};
    if (!(p->world->connect != NULL ? p->world->connect(pair) : unix_pair(pair)))
        return quire_fail(QUIRE_ERR_LINK, "making a connection: %m");
    memset(&control, 0, sizeof(control));
    control.header =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &pair[1], sizeof(int));
    ssize_t n = sendmsg(p->world->hands[p->rank][rank], &message, MSG_NOSIGNAL);
    close(pair[1]);
    if (n != 1) {
        close(pair[0]);
        return quire_fail(QUIRE_ERR_LINK, "handing a connection over: %m");
    }
    *fd = pair[0];
    return QUIRE_OK;
}

static quire_status_t take(void *ctx, int rank, uint32_t purpose, uint64_t deadline, int *fd)
{
    const struct conf_place *p = ctx;
    union fd_message control;
    char byte;
    struct iovec v = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)};
    if (recvmsg(p->world->hands[p->rank][rank], &message, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&message) == NULL)
        return quire_fail(QUIRE_ERR_LINK, "no connection came from rank %d: %m", rank);
    memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    return QUIRE_OK;
}

static quire_status_t offer(void *ctx, uint64_t tag, int fd)
{
    struct conf_place *p = ctx;
    p->world->offered[p->rank].pid = (int)getpid();
    p->world->offered[p->rank].fd = fd;
    return QUIRE_OK;
}

static quire_status_t fetch(void *ctx, int rank, uint64_t tag, uint64_t deadline, int *fd)
{
    const struct conf_place *p = ctx;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", p->world->offered[rank].pid, p->world->offered[rank].fd);
    *fd = open(path, O_RDWR | O_CLOEXEC);
    return *fd < 0 ? quire_fail(QUIRE_ERR_LINK, "%s: %m", path) : QUIRE_OK;
}

struct conf_world *conf_world_make(int size, const struct transport *transport, bool (*connect)(int pair[2]))
{
    static const struct timeval patience = {10, 0};
    pthread_barrierattr_t shared;
    struct conf_world *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w == MAP_FAILED || size < 1 || size > CONF_ENDS)
        abort();
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&w->barrier, &shared, (unsigned)size);
    w->size = size;
    w->connect = connect;
    for (int a = 0; a < size; a++)
        for (int b = 0; b <= a; b++) {
            int pair[2] = {-1, -1};
            w->via[a][b] = w->via[b][a] = transport;
            if (a != b && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
                abort();
            for (int i = 0; a != b && i < 2; i++)
                (void)setsockopt(pair[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
            w->hands[a][b] = pair[0];
            w->hands[b][a] = pair[1];
        }
    return w;
}

void conf_world_free(struct conf_world *w)
{
    for (int a = 0; a < w->size; a++)
        for (int b = 0; b < w->size; b++)
            if (w->hands[a][b] >= 0)
                close(w->hands[a][b]);
    pthread_barrier_destroy(&w->barrier);
    munmap(w, sizeof(*w));
}

static int reach_all(struct conf_place *p)
{
    struct conf_world *w = p->world;
    for (int pass = 0; pass < 2; pass++) {
        for (int r = 0; r < w->size; r++) {
            bool shm = w->via[p->rank][r] == &transport_shm;
            struct transport_end *end = shm ? p->shm : p->other;
            uint64_t deadline = deadline_in(5 * CLOCK_S);
            if (r == p->rank || end == NULL)
                continue;
            if (pass == 0)
                RANK_OK(end->transport->reach(end, r, w->blobs[shm ? 0 : 1][r], deadline));
            else
                RANK_OK(end->transport->attach(end, r, deadline));
        }
        pthread_barrier_wait(&w->barrier);
    }
    return 0;
}

int conf_join(struct conf_place *p, struct conf_world *w, int rank)
{
    struct lane_geometry g = {CONF_DEPTH, CONF_SLOT, CONF_EPOCH};
    uint8_t no_blob[TRANSPORT_BLOB_BYTES] = {0};
    memset(p, 0, sizeof(*p));
    p->world = w;
    p->rank = rank;
    stop_init(&p->stop);
    RANK_OK(lane_set_create(&p->set, rank, w->size, &g));
    p->env = (struct transport_env){p->set, &p->stop, p, dial, take, offer, fetch};
    RANK_OK(transport_self.open(&p->self, &p->env, no_blob));
    RANK_OK(transport_self.attach(p->self, rank, DEADLINE_NEVER));
    for (int r = 0; r < w->size; r++) {
        const struct transport *t = w->via[rank][r];
        if (r == rank || t == &transport_self)
            continue;
        struct transport_end **end = t == &transport_shm ? &p->shm : &p->other;
        if (*end == NULL)
            RANK_OK(t->open(end, &p->env, w->blobs[t == &transport_shm ? 0 : 1][rank]));
    }
    pthread_barrier_wait(&w->barrier);
    return reach_all(p);
}

void conf_leave(struct conf_place *p)
{
    struct transport_end *const ends[3] = {p->other, p->shm, p->self};
    for (int i = 0; i < 3; i++)
        if (ends[i] != NULL)
            ends[i]->transport->close(ends[i]);
    lane_set_destroy(p->set);
    stop_destroy(&p->stop);
}

quire_status_t conf_progress(struct conf_place *p, bool *moved, int *rank)
{
    struct transport_end *const ends[2] = {p->shm, p->other};
    for (int i = 0; i < 2; i++) {
        quire_status_t st = ends[i] == NULL || ends[i]->transport->progress == NULL
                                ? QUIRE_OK
                                : ends[i]->transport->progress(ends[i], moved, rank);
        if (st != QUIRE_OK)
            return st;
    }
    return QUIRE_OK;
}
