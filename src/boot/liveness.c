/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liveness.c - notices dead ranks and says how they died. A link that ends without goodbye, a process handle that
 * fires, or a peer that can't be reached starts an inquest: for a local process its exit status is looked up (it may
 * take a moment until the kernel has it), then the verdict is raised here and flooded.
 *
 * The handle is watched besides the socket: a forked child that outlives its parent keeps the parent's sockets open.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "boot_internal.h"

/* How long an inquest waits for the exit status, or for the goodbye of a peer that has closed its door already. */
#define INQUEST_TIME (100 * CLOCK_MS)
#define INQUEST_STEP (2 * CLOCK_MS)

/* Linux 6.13 and 6.15: the exit status by a process handle, also after the process was reaped. */
struct liveness_pidfd_info {
    uint64_t mask, cgroup;
    uint32_t pid, tgid, ppid, ids[8];
    int32_t exit_code;
};
#define LIVENESS_PIDFD_GET_INFO _IOWR(0xFF, 11, struct liveness_pidfd_info)
enum { LIVENESS_INFO_EXIT = 1 << 3 };
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static bool exit_by_handle(int pidfd, int *status)
{
    struct liveness_pidfd_info info;
    memset(&info, 0, sizeof(info));
    info.mask = LIVENESS_INFO_EXIT;
    if (ioctl(pidfd, LIVENESS_PIDFD_GET_INFO, &info) != 0 || !(info.mask & LIVENESS_INFO_EXIT))
        return false;
    *status = info.exit_code;
    return true;
}

/* Not reaped yet: the last field but none of /proc/PID/stat. The handle proves that the number is still its own. */
static bool exit_by_zombie(int pidfd, pid_t pid, int *status)
{
    char name[40], text[1024];
    snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (got <= 0)
        return false;
    text[got] = 0;
    char *state = strrchr(text, ')');
    if (!state || state[1] != ' ' || state[2] != 'Z')
        return false;
    while (got > 0 && (text[got - 1] == '\n' || text[got - 1] == ' '))
        text[--got] = 0;
    char *last = strrchr(text, ' ');
    if (!last || syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) != 0)
        return false;
    *status = atoi(last + 1);
    return true;
}

void liveness_forget(struct boot *boot, int rank)
{
    struct peer *peer = &boot->peers[rank];
    timer_clear(boot->service, &peer->verdict);
    if (peer->pidfd.fd < 0)
        return;
    source_remove(boot->service, &peer->pidfd);
    close(peer->pidfd.fd);
    peer->pidfd.fd = -1;
}

static void report(struct boot *boot, int rank, const char *how)
{
    struct peer *peer = &boot->peers[rank];
    char who[128];
    boot_peer_text(boot, rank, who, sizeof(who));
    peer->reported = true;
    liveness_forget(boot, rank);
    struct cause cause = cause_make(QUIRE_ERR_PEER_FAILED, rank, "%s %s", who, how);
    stop_fail(boot->stop, &cause);
    flood_start(boot, WIRE_CAUSE, &cause);
}

static bool same_process(const struct boot *boot, const struct peer *peer)
{
    return peer->member.door == boot->service->self.door;
}

static void inquest(struct boot *boot, int rank)
{
    struct peer *peer = &boot->peers[rank];
    char how[256];
    int status;
    if (peer->reported || peer->departed)
        return;
    if (peer->presumed) {
        /* Not flooded: a rank with a link to it knows better. */
        atom_store_relaxed(&peer->departed, true);
        link_peer_departed(boot, rank);
        boot_changed(boot);
        return;
    }
    bool closed = strcmp(peer->why, "closed its connection") == 0;
    if (peer->pidfd.fd >= 0 &&
        (exit_by_handle(peer->pidfd.fd, &status) || exit_by_zombie(peer->pidfd.fd, peer->local_pid, &status))) {
        int signal = status & 0x7f;
        if (signal)
            snprintf(how, sizeof(how), "was killed by signal %d (%s)", signal, sigdescr_np(signal) ?: "unknown");
        else
            snprintf(how, sizeof(how), "exited with status %d without destroying its communicator", status >> 8 & 0xff);
        report(boot, rank, how);
        return;
    }
    /* Who can't be reached may have left in good order: its goodbye goes another way. */
    if ((peer->pidfd.fd >= 0 || !closed) && clock_ns() - peer->lost_at < INQUEST_TIME) {
        timer_set(boot->service, &peer->verdict, clock_ns() + INQUEST_STEP);
        return;
    }
    if (closed)
        snprintf(how, sizeof(how), "closed its connection without goodbye");
    else
        snprintf(how, sizeof(how), "is lost: it %.160s", peer->why);
    report(boot, rank, how);
}

static void inquest_timer(struct service *service, struct timer *timer)
{
    struct peer *peer = (struct peer *)((char *)timer - offsetof(struct peer, verdict));
    inquest(peer->boot, peer->rank);
}

void liveness_lost(struct boot *boot, int rank, const char *why)
{
    struct peer *peer = &boot->peers[rank];
    if (peer->reported || peer->departed || peer->verdict.at)
        return;
    if (boot->state == BOOT_LEAVING || boot->state == BOOT_FAILED) {
        link_peer_gone(boot, rank);
        return;
    }
    if (boot->state != BOOT_LIVE) {
        /* The root sees the death too, and ends the init with it; unless GO was on its way already. */
        peer->lost_early = true;
        snprintf(peer->why, sizeof(peer->why), "%s", why);
        return;
    }
    snprintf(peer->why, sizeof(peer->why), "%s", why);
    peer->lost_at = clock_ns();
    peer->verdict.fire = inquest_timer;
    link_peer_gone(boot, rank);
    inquest(boot, rank);
}

/*
 * It left while we were looking for it: its goodbye went to those it had links to, and these may have left too. Had it
 * died, its neighbours' cause would come; after a moment without one it counts as departed.
 */
void liveness_absent(struct boot *boot, int rank)
{
    struct peer *peer = &boot->peers[rank];
    if (peer->reported || peer->departed || peer->verdict.at)
        return;
    peer->presumed = true;
    peer->verdict.fire = inquest_timer;
    timer_set(boot->service, &peer->verdict, clock_ns() + INQUEST_TIME);
    if (boot->uplink == rank)
        link_reparent(boot);
}

void liveness_go(struct boot *boot)
{
    for (int i = 0; i < boot->size; i++)
        if (boot->peers[i].lost_early) {
            char why[128];
            memcpy(why, boot->peers[i].why, sizeof(why));
            liveness_lost(boot, i, why);
        }
    /* A neighbour that was live before us may have left again already. */
    if (boot->uplink >= 0 && (boot->peers[boot->uplink].departed || boot->peers[boot->uplink].gone))
        link_reparent(boot);
}

static void handle_fired(struct service *service, struct source *source, uint32_t events)
{
    struct peer *peer = (struct peer *)((char *)source - offsetof(struct peer, pidfd));
    struct boot *boot = peer->boot;
    source_watch(service, source, 0); /* it stays readable */
    conn_drain(service, peer->link);  /* its goodbye may be in there */
    conn_drain(service, peer->extra);
    if (peer->departed || peer->reported)
        return;
    if (peer->verdict.at)
        inquest(boot, peer->rank);
    else
        liveness_lost(boot, peer->rank, "closed its connection");
}

void liveness_watch(struct boot *boot, int rank, struct conn *conn)
{
    struct peer *peer = &boot->peers[rank];
    if (!conn->local || peer->pidfd.fd >= 0 || same_process(boot, peer))
        return;
    struct ucred cred;
    socklen_t length = sizeof(cred);
    if (getsockopt(conn->source.fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) != 0 || cred.pid <= 0)
        return;
    int fd = -1;
    length = sizeof(fd);
    if (getsockopt(conn->source.fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) != 0)
        fd = (int)syscall(SYS_pidfd_open, cred.pid, 0); /* before Linux 6.5; close-on-exec by itself */
    if (fd < 0)
        return;
    peer->local_pid = cred.pid;
    peer->pidfd = (struct source){fd, handle_fired};
    if (!source_add(boot->service, &peer->pidfd, EPOLLIN)) {
        close(fd);
        peer->pidfd.fd = -1;
    }
}

/* Ours: tell the neighbours why we go. A peer's: its cause is news to us, or else ours is older. */
void liveness_left(struct boot *boot, int rank, const struct cause *cause)
{
    if (rank == boot->rank) {
        struct wire_out out = {NULL, 0, 0, false};
        wire_cause_write(&out, cause);
        struct blob *blob = blob_from(WIRE_LEFT, boot->generation, &out);
        link_last_word(boot, blob);
        blob_drop(blob);
        return;
    }
    struct peer *peer = &boot->peers[rank];
    if (peer->reported)
        return;
    peer->reported = true;
    link_peer_gone(boot, rank);
    liveness_forget(boot, rank);
    if (boot->state == BOOT_LEAVING || stop_seen(boot->stop) == STOP_FATAL)
        return;
    struct cause told = *cause;
    if (cause->status == QUIRE_ERR_ABORTED) {
        char who[128];
        boot_peer_text(boot, rank, who, sizeof(who));
        told = cause_make(QUIRE_ERR_PEER_FAILED, rank, "%s aborted the communicator: %.300s", who, cause->text);
    }
    stop_fail(boot->stop, &told);
    flood_start(boot, WIRE_CAUSE, &told);
}
