/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * root.c - the meeting place: collects one JOIN from every rank, sends all of them the table, waits until each has its
 * links, and says GO. Whatever goes wrong is told to everyone who has come. Works inside the service thread.
 *
 * A root exists from its opening until GO or a failure; then only its key and the verdict are kept (service->used), to
 * answer those who come late.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "boot_internal.h"

/* How long a failed meeting still answers. */
#define ROOT_LINGER (10 * CLOCK_S)

static void root_deadline(struct service *service, struct timer *timer);

struct root *root_find(struct service *service, const uint8_t meeting[WIRE_KEY_BYTES])
{
    for (struct root *root = service->roots; root; root = root->next)
        if (memcmp(root->meeting, meeting, WIRE_KEY_BYTES) == 0)
            return root;
    return NULL;
}

struct root *root_open(struct service *service, const uint8_t meeting[WIRE_KEY_BYTES], bool keep_service)
{
    struct root *root = calloc(1, sizeof(*root));
    if (!root || !bytes_random(root->key, WIRE_KEY_BYTES)) {
        free(root);
        return NULL;
    }
    memcpy(root->meeting, meeting, WIRE_KEY_BYTES);
    root->service = service;
    root->size = -1;
    root->keep_service = keep_service;
    root->deadline.fire = root_deadline;
    root->next = service->roots;
    if (root->next)
        root->next->prev = root;
    service->roots = root;
    return root;
}

void root_close(struct service *service, struct root *root)
{
    for (int i = 0; root->seats && i < root->size; i++)
        if (root->seats[i].conn)
            conn_close_softly(service, root->seats[i].conn);
    for (struct conn *conn = service->conns, *next; conn; conn = next) {
        next = conn->next;
        if (conn->root == root)
            conn_close(service, conn);
    }
    timer_clear(service, &root->deadline);
    service_unlisten(service, root->listener);
    if (root->prev)
        root->prev->next = root->next;
    else
        service->roots = root->next;
    if (root->next)
        root->next->prev = root->prev;
    if (root->keep_service) {
        service->drop_refs++;
        service_wake(service);
    }
    free(root->seats);
    free(root);
}

/* Remembers the verdict for those who come late. */
static void root_over(struct service *service, struct root *root, const struct cause *verdict)
{
    struct used_key *used = &service->used[service->used_count++ % SERVICE_USED_KEYS];
    memcpy(used->key, root->meeting, WIRE_KEY_BYTES);
    used->cause = *verdict;
    for (struct conn *conn = service->conns, *next; conn; conn = next) { /* those still at the door */
        next = conn->next;
        if (conn->root != root || conn->role == CONN_MEMBER)
            continue;
        conn_say_cause(service, conn, WIRE_FAIL, verdict);
        conn->root = NULL;
        conn_close_softly(service, conn);
    }
    root_close(service, root);
}

void root_fail(struct service *service, struct root *root, const struct cause *cause)
{
    log_info("init failed at the root: %s", cause->text);
    for (int i = 0; root->seats && i < root->size; i++)
        if (root->seats[i].conn)
            conn_say_cause(service, root->seats[i].conn, WIRE_FAIL, cause);
    if (root->keep_service) { /* nobody else may keep the service alive for those who come late */
        root->keep_service = false;
        service->lingering++;
        timer_set(service, &service->linger, clock_ns() + ROOT_LINGER);
    }
    root_over(service, root, cause);
}

static bool seat_empty(const void *arg, int rank)
{
    return !((const struct root *)arg)->seats[rank].conn;
}

static bool seat_not_ready(const void *arg, int rank)
{
    return !((const struct root *)arg)->seats[rank].ready;
}

static void root_deadline(struct service *service, struct timer *timer)
{
    struct root *root = (struct root *)((char *)timer - offsetof(struct root, deadline));
    char list[160];
    double waited = (double)root->first_timeout_ns / 1e9;
    struct cause cause;
    if (root->joined < root->size) {
        boot_rank_list(list, sizeof(list), root->size, seat_empty, root);
        cause = cause_make(QUIRE_ERR_TIMEOUT, -1, "only %d of %d ranks came within %.3g s; missing: %s", root->joined,
                           root->size, waited, list);
    } else {
        boot_rank_list(list, sizeof(list), root->size, seat_not_ready, root);
        cause = cause_make(QUIRE_ERR_TIMEOUT, -1,
                           "all %d ranks came, but within %.3g s these could not connect to their neighbours: %s",
                           root->size, waited, list);
    }
    root_fail(service, root, &cause);
}

static void root_send_table(struct service *service, struct root *root)
{
    struct wire_out out = {NULL, 0, 0, false};
    wire_table_begin(&out, root->key, root->size);
    for (int i = 0; i < root->size; i++)
        wire_member_write(&out, &root->seats[i].join.member);
    struct blob *blob = blob_from(WIRE_TABLE, 0, &out);
    bool ok = blob != NULL;
    for (int i = 0; ok && i < root->size; i++)
        ok = conn_send(service, root->seats[i].conn, blob);
    blob_drop(blob);
    root->table_sent = true;
    if (ok)
        return;
    struct cause cause =
        cause_make(QUIRE_ERR_RESOURCE, -1, "the root has no memory for the table of %d ranks", root->size);
    root_fail(service, root, &cause);
}

/* Checks a newcomer against those who came before. False when the meeting has failed by it. */
static bool root_check_join(struct service *service, struct root *root, struct conn *conn, const struct wire_join *join)
{
    const struct wire_member *member = &join->member;
    struct cause cause;
    if (root->size >= 0 && join->size != root->size) {
        int other = 0;
        while (!root->seats[other].conn)
            other++;
        cause = cause_make(QUIRE_ERR_INVALID_ARGUMENT, join->rank,
                           "rank %d (pid %d on host %s) says there are %d ranks, rank %d (pid %d on host %s) says %d",
                           join->rank, member->pid, member->host, join->size, other, root->seats[other].join.member.pid,
                           root->seats[other].join.member.host, root->size);
    } else if (root->size >= 0 && root->seats[join->rank].conn) {
        const struct wire_member *first = &root->seats[join->rank].join.member;
        cause = cause_make(QUIRE_ERR_INVALID_ARGUMENT, join->rank,
                           "rank %d was given out twice: to pid %d on host %s and to pid %d on host %s", join->rank,
                           first->pid, first->host, member->pid, member->host);
    } else {
        return true;
    }
    conn_say_cause(service, conn, WIRE_FAIL, &cause);
    conn->root = NULL;
    conn_close_softly(service, conn);
    if (root->table_sent)
        return false; /* the communicator is as good as made; only the newcomer is wrong */
    root_fail(service, root, &cause);
    return false;
}

static void root_joined(struct service *service, struct root *root, struct conn *conn, const struct wire_join *join)
{
    if (!root_check_join(service, root, conn, join))
        return;
    if (root->size < 0) {
        root->seats = calloc((size_t)join->size, sizeof(*root->seats));
        if (!root->seats) {
            struct cause cause = cause_make(QUIRE_ERR_RESOURCE, -1, "the root has no memory for %d ranks", join->size);
            conn_say_cause(service, conn, WIRE_FAIL, &cause);
            conn->root = NULL;
            conn_close_softly(service, conn);
            root_fail(service, root, &cause);
            return;
        }
        root->size = join->size;
    }
    timer_clear(service, &conn->timer);
    conn->role = CONN_MEMBER;
    conn->peer = join->rank;
    root->seats[join->rank] = (struct root_seat){conn, false, *join};
    root->joined++;
    uint64_t at = deadline_in(join->timeout_ns);
    if (at != DEADLINE_NEVER && (!root->deadline.at || at < root->deadline.at)) {
        root->first_timeout_ns = join->timeout_ns;
        timer_set(service, &root->deadline, at);
    }
    if (root->joined == root->size)
        root_send_table(service, root);
}

static void root_go(struct service *service, struct root *root)
{
    for (int i = 0; i < root->size; i++)
        conn_say(service, root->seats[i].conn, WIRE_GO, 0, NULL);
    struct cause used =
        cause_make(QUIRE_ERR_INVALID_ARGUMENT, -1,
                   "this id was used already, by a communicator of %d ranks: make a new one for each", root->size);
    root_over(service, root, &used);
}

void root_message(struct service *service, struct conn *conn)
{
    struct root *root = conn->root;
    struct wire_join join;
    struct cause cause;
    if (conn->role == CONN_JOINING && conn->header.type == WIRE_JOIN &&
        wire_join_parse(conn->body, conn->header.length, &join) && join.rank == conn->hello.from) {
        root_joined(service, root, conn, &join);
        return;
    }
    if (conn->role == CONN_MEMBER && conn->header.type == WIRE_READY && root->table_sent) {
        if (!root->seats[conn->peer].ready && ++root->ready == root->size) {
            root_go(service, root);
            return;
        }
        root->seats[conn->peer].ready = true;
        return;
    }
    if (conn->role == CONN_MEMBER && conn->header.type == WIRE_FAIL &&
        wire_cause_parse(conn->body, conn->header.length, &cause)) {
        root_fail(service, root, &cause);
        return;
    }
    if (conn->role == CONN_MEMBER)
        root_member_lost(service, conn, "sent bytes that are not of this protocol");
    conn_close(service, conn);
}

void root_member_lost(struct service *service, struct conn *conn, const char *why)
{
    struct root *root = conn->root;
    const struct wire_member *member = &root->seats[conn->peer].join.member;
    struct cause cause = cause_make(QUIRE_ERR_PEER_FAILED, conn->peer,
                                    "rank %d (pid %d on host %s) failed during init: it %s before all ranks had come",
                                    conn->peer, member->pid, member->host, why);
    root->seats[conn->peer].conn = NULL;
    conn->root = NULL;
    root_fail(service, root, &cause);
}
