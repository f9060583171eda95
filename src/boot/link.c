/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - the control plane's links between ranks. A link is made when one side wants it and lives until goodbye or
 * failure. The tree's links stand from the start (they are what liveness and floods rest on); others come with the
 * first message.
 *
 * Invariant: every living rank but the lowest has, or is making, a link to a living rank below it (its uplink: the
 * nearest living ancestor in the tree, or the lowest living rank when no ancestor lives). By induction all living
 * ranks are connected, so a flood that is passed on over all links reaches everyone.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "boot_internal.h"

/* For errors that may pass, like a full backlog: 1+2+4+8+16+32 ms. A listener lives as long as its rank, so where
   nobody listens another try is in vain. */
enum { LINK_TRIES = 6 };
/* After a goodbye: most often everybody is leaving, and looking for a new uplink would be in vain. */
#define REPARENT_PAUSE (5 * CLOCK_MS)

static void link_dial(struct boot *boot, int rank);

void link_forget_dial(struct boot *boot, int rank)
{
    struct peer *peer = &boot->peers[rank];
    dial_cancel(boot->service, peer->dial);
    peer->dial = NULL;
    timer_clear(boot->service, &peer->retry);
    while (peer->pending) {
        struct pending *pending = peer->pending;
        peer->pending = pending->next;
        blob_drop(pending->blob);
        free(pending);
    }
    peer->pending_last = &peer->pending;
}

static void link_retry(struct service *service, struct timer *timer)
{
    struct peer *peer = (struct peer *)((char *)timer - offsetof(struct peer, retry));
    link_dial(peer->boot, peer->rank);
}

static void link_dialled(struct service *service, struct dial *dial, struct conn *winner)
{
    struct boot *boot = dial->boot;
    struct peer *peer = &boot->peers[dial->peer];
    peer->dial = NULL;
    if (winner) {
        peer->tries = 0;
        link_attach(boot, dial->peer, winner);
        return;
    }
    /* Init is ended by its own deadline, and a frozen peer by whoever waits for it. */
    bool hopeless = dial->refused || dial->nobody || (!dial->slow && peer->tries >= LINK_TRIES);
    if (boot->state == BOOT_LEAVING && (hopeless || !peer->pending)) {
        link_forget_dial(boot, dial->peer);
        return;
    }
    if (boot->state != BOOT_LINKING && hopeless) {
        char why[160];
        snprintf(why, sizeof(why), "can't be reached: %.120s", dial->answer.text);
        bool absent = !peer->pending && !peer->had_link && (dial->refused || dial->nobody);
        link_forget_dial(boot, dial->peer);
        if (absent)
            liveness_absent(boot, dial->peer);
        else
            liveness_lost(boot, dial->peer, why);
        return;
    }
    int shift = peer->tries < 5 ? peer->tries : 5;
    peer->tries++;
    peer->retry.fire = link_retry;
    timer_set(service, &peer->retry, clock_ns() + (CLOCK_MS << shift));
}

static void link_dial(struct boot *boot, int rank)
{
    struct peer *peer = &boot->peers[rank];
    struct dial model = {.hello = {.from = boot->rank, .to = rank, .purpose = WIRE_FOR_LINK},
                         .target = peer->member,
                         .limit = 3 * CLOCK_S,
                         .done = link_dialled,
                         .boot = boot,
                         .peer = rank};
    memcpy(model.hello.key, boot->key, WIRE_KEY_BYTES);
    peer->dial = dial_start(boot->service, &model);
    if (peer->dial)
        return;
    peer->retry.fire = link_retry; /* memory may come back */
    timer_set(boot->service, &peer->retry, clock_ns() + 50 * CLOCK_MS);
}

bool link_want(struct boot *boot, int rank)
{
    struct peer *peer = &boot->peers[rank];
    if (rank == boot->rank || peer->gone || peer->departed)
        return false;
    if (!peer->link && !peer->dial && !peer->retry.at) {
        peer->tries = 0;
        link_dial(boot, rank);
    }
    return true;
}

bool link_send(struct boot *boot, int rank, struct blob *blob)
{
    struct peer *peer = &boot->peers[rank];
    if (!blob)
        return false;
    if (peer->link)
        return conn_send(boot->service, peer->link, blob);
    if (!link_want(boot, rank))
        return true;
    struct pending *pending = malloc(sizeof(*pending));
    if (!pending)
        return false;
    blob->refs++;
    *pending = (struct pending){NULL, blob};
    *peer->pending_last = pending;
    peer->pending_last = &pending->next;
    return true;
}

void link_send_all(struct boot *boot, struct blob *blob, int except)
{
    if (!blob)
        return;
    for (int i = 0; i < boot->size; i++)
        if (i != except && boot->peers[i].link)
            conn_send(boot->service, boot->peers[i].link, blob);
}

/* A host that dies says nothing: let the kernel ask. */
static void link_keep_alive(int fd)
{
    int on = 1, idle = 5, every = 1, times = 5, limit_ms = 10000;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
}

void link_attach(struct boot *boot, int rank, struct conn *conn)
{
    struct service *service = boot->service;
    struct peer *peer = &boot->peers[rank];
    timer_clear(service, &conn->timer);
    if (peer->gone || peer->extra) {
        conn_close(service, conn);
        return;
    }
    conn->role = CONN_LINK;
    conn->boot = boot;
    conn->peer = rank;
    if (!conn->local)
        link_keep_alive(conn->source.fd);
    liveness_watch(boot, rank, conn);
    if (peer->link) {
        peer->extra = conn; /* both dialled; each sends on its own */
        return;
    }
    peer->link = conn;
    peer->had_link = true;
    if (peer->presumed) { /* here it is after all */
        peer->presumed = false;
        timer_clear(service, &peer->verdict);
    }
    while (peer->pending) {
        struct pending *pending = peer->pending;
        peer->pending = pending->next;
        conn_send(service, conn, pending->blob);
        blob_drop(pending->blob);
        free(pending);
    }
    link_forget_dial(boot, rank); /* of ours, when the peer's came first */
    if (!peer->departed)
        flood_sync(boot, rank);
    boot_maybe_ready(boot);
    boot_changed(boot);
}

void link_start_tree(struct boot *boot)
{
    boot->uplink = link_tree_parent(boot->rank);
    if (boot->uplink >= 0)
        link_want(boot, boot->uplink);
}

bool link_tree_stands(const struct boot *boot)
{
    if (boot->rank > 0 && !boot->peers[link_tree_parent(boot->rank)].link)
        return false;
    for (int i = 1; i <= LINK_TREE_WIDTH; i++) {
        int child = LINK_TREE_WIDTH * boot->rank + i;
        if (child < boot->size && !boot->peers[child].link)
            return false;
    }
    return true;
}

void link_close_all(struct boot *boot)
{
    for (int i = 0; i < boot->size; i++) {
        struct peer *peer = &boot->peers[i];
        link_forget_dial(boot, i);
        conn_close(boot->service, peer->link);
        conn_close(boot->service, peer->extra);
        peer->link = peer->extra = NULL;
        liveness_forget(boot, i);
    }
}

static bool link_may_live(const struct boot *boot, int rank)
{
    const struct peer *peer = &boot->peers[rank];
    return !peer->gone && !peer->departed && !peer->presumed;
}

/* Where `rank` should have its uplink, as far as we know who lives; -1 for the lowest. */
static int link_uplink_of(const struct boot *boot, int rank)
{
    int to = link_tree_parent(rank);
    while (to >= 0 && !link_may_live(boot, to))
        to = link_tree_parent(to);
    for (int i = 0; to < 0 && i < rank; i++)
        if (link_may_live(boot, i))
            to = i;
    return to;
}

void link_reparent(struct boot *boot)
{
    if (boot->state != BOOT_LIVE)
        return;
    boot->uplink = link_uplink_of(boot, boot->rank);
    if (boot->uplink >= 0)
        link_want(boot, boot->uplink);
}

bool link_has_orphans(const struct boot *boot)
{
    for (int i = 0; i < boot->size; i++)
        if (i != boot->rank && !boot->peers[i].link && link_may_live(boot, i) && !boot->peers[i].reported &&
            link_uplink_of(boot, i) == boot->rank)
            return true;
    return false;
}

void link_reparent_fire(struct service *service, struct timer *timer)
{
    link_reparent((struct boot *)((char *)timer - offsetof(struct boot, reparent)));
}

void link_peer_gone(struct boot *boot, int rank)
{
    struct peer *peer = &boot->peers[rank];
    if (peer->gone)
        return;
    peer->gone = true;
    link_forget_dial(boot, rank);
    board_peer_gone(boot, rank);
    boot_changed(boot);
    if (boot->uplink == rank && !peer->departed)
        link_reparent(boot);
}

void link_peer_departed(struct boot *boot, int rank)
{
    link_forget_dial(boot, rank);
    if (boot->uplink == rank && boot->state == BOOT_LIVE)
        timer_set(boot->service, &boot->reparent, clock_ns() + REPARENT_PAUSE);
}

/* A connection from `rank` that is acknowledged: it may have confirmed it and sent on, which we have not read yet. */
static bool link_on_its_way(const struct boot *boot, int rank)
{
    for (const struct conn *conn = boot->service->conns; conn; conn = conn->next)
        if (conn->boot == boot && conn->role == CONN_GREETED && conn->peer == rank)
            return true;
    return false;
}

bool link_silent(const struct boot *boot, int rank)
{
    const struct peer *peer = &boot->peers[rank];
    return peer->gone || (peer->departed && !peer->link && !link_on_its_way(boot, rank));
}

void link_last_word(struct boot *boot, struct blob *blob)
{
    if (!blob)
        return;
    for (struct conn *conn = boot->service->conns; conn; conn = conn->next)
        if (conn->boot == boot &&
            (conn->role == CONN_LINK || (conn->role == CONN_GREETED && conn->hello.purpose == WIRE_FOR_LINK)))
            conn_send(boot->service, conn, blob);
}

void link_lost(struct service *service, struct conn *conn, const char *why)
{
    struct boot *boot = conn->boot;
    struct peer *peer = &boot->peers[conn->peer];
    if (peer->link == conn) {
        peer->link = peer->extra;
        peer->extra = NULL;
    } else if (peer->extra == conn) {
        peer->extra = NULL;
    }
    int rank = conn->peer;
    conn_close(service, conn);
    conn_drain(service, peer->link); /* a goodbye may still be in the other one */
    if (!peer->departed)
        liveness_lost(boot, rank, why);
    else if (!peer->link) {
        board_peer_gone(boot, rank);
        boot_changed(boot);
    }
}

void link_message(struct service *service, struct conn *conn)
{
    struct boot *boot = conn->boot;
    const uint8_t *body = conn->body;
    size_t bytes = conn->header.length;
    struct wire_note note;
    struct cause cause;
    bool ok = conn->header.generation == boot->generation;
    if (ok)
        switch (conn->header.type) {
        case WIRE_DATA:
            collective_arrived(boot, conn->peer, body, bytes);
            return;
        case WIRE_NOTE:
            if ((ok = wire_note_parse(body, bytes, &note) && note.rank < boot->size))
                flood_note(boot, conn->peer, &note);
            break;
        case WIRE_GOODBYE:
            if ((ok = wire_note_parse(body, bytes, &note) && note.rank < boot->size))
                flood_goodbye(boot, conn->peer, note.rank);
            break;
        case WIRE_CAUSE:
        case WIRE_REFUSAL:
            flood_arrived(boot, conn->peer, (enum wire_type)conn->header.type, body, bytes);
            break;
        case WIRE_LEFT:
            if ((ok = wire_cause_parse(body, bytes, &cause)))
                liveness_left(boot, conn->peer, &cause);
            break;
        case WIRE_ASK:
            board_asked(boot, conn->peer, body, bytes);
            break;
        case WIRE_ANSWER:
            board_answered(boot, body, bytes);
            break;
        default:
            ok = false;
        }
    if (!ok && !conn->dead)
        link_lost(service, conn, "sent bytes that are not of this protocol");
}
