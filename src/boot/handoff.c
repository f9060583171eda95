/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handoff.c - sockets and descriptors for others: dialled and accepted connections leave the service here and belong
 * to the caller; offered descriptors travel to whoever asks for their tag.
 *
 * A caller's request lives on its stack; it takes it out of the dial or connection before it leaves.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot_internal.h"

enum { HANDOFF_TRIES = 6 };

struct request {
    struct boot *boot;
    struct dial *dial;
    struct conn *conn; /* fetching */
    bool over, final;  /* final: the peer said no, another try is in vain */
    int fd;
    struct cause failure;
};

static void request_over(struct request *request, int fd, const struct cause *failure)
{
    request->dial = NULL;
    request->conn = NULL;
    request->over = true;
    request->fd = fd;
    if (failure)
        request->failure = *failure;
    boot_changed(request->boot);
}

static void request_dialled(struct service *service, struct dial *dial, struct conn *winner)
{
    struct request *request = dial->user;
    int fd = winner ? conn_take_fd(service, winner) : -1;
    request->final = dial->refused;
    request_over(request, fd, &dial->answer);
}

/* Waits for the request. OK when it is over. Lock held. */
static quire_status_t request_wait(struct request *request, int rank, uint64_t deadline, const char *what)
{
    struct boot *boot = request->boot;
    while (!request->over) {
        if (stop_seen(boot->stop) == STOP_FATAL)
            return stop_status(boot->stop);
        if (deadline_passed(deadline))
            return quire_fail(QUIRE_ERR_TIMEOUT, "rank %d did not %s rank %d in time; missing: %d", rank, what,
                              boot->rank, rank);
        boot_sleep(boot, deadline);
    }
    return QUIRE_OK;
}

static quire_status_t check_rank(const struct boot *boot, int rank)
{
    quire_status_t st = boot_usable(boot);
    if (st != QUIRE_OK)
        return st;
    if (rank < 0 || rank >= boot->size)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "rank %d is not in 0..%d", rank, boot->size - 1);
    return QUIRE_OK;
}

static struct dial dial_model(struct boot *boot, int rank, enum wire_purpose purpose, struct request *request)
{
    struct dial model = {.hello = {.from = boot->rank, .to = rank, .purpose = purpose},
                         .target = boot->peers[rank].member,
                         .limit = 3 * CLOCK_S,
                         .done = request_dialled,
                         .boot = boot,
                         .peer = rank,
                         .user = request};
    memcpy(model.hello.key, boot->key, WIRE_KEY_BYTES);
    return model;
}

/* Rounds of dialling until one wins, the peer says no, or it is clear that nobody is there. Lock held. */
static quire_status_t dial_rounds(struct boot *boot, int rank, const struct dial *model, struct request *request,
                                  uint64_t deadline)
{
    for (int tries = 0;; tries++) {
        request->over = false;
        request->dial = dial_start(boot->service, model);
        if (!request->dial)
            return quire_fail(QUIRE_ERR_RESOURCE, "no memory to dial rank %d", rank);
        quire_status_t st = request_wait(request, rank, deadline, "answer");
        if (st != QUIRE_OK)
            return st;
        if (request->fd >= 0 || request->conn)
            return QUIRE_OK;
        char who[128];
        boot_peer_text(boot, rank, who, sizeof(who));
        if (request->final || tries >= HANDOFF_TRIES || boot->peers[rank].gone || boot->peers[rank].departed)
            return quire_fail(QUIRE_ERR_LINK, "no connection to %s: %.300s", who, request->failure.text);
        uint64_t until = clock_ns() + (CLOCK_MS << tries);
        while (clock_ns() < until && stop_seen(boot->stop) != STOP_FATAL)
            boot_sleep(boot, until);
    }
}

quire_status_t boot_dial(struct boot *boot, int rank, uint32_t purpose, uint64_t deadline, int *fd)
{
    quire_status_t st = check_rank(boot, rank);
    if (st != QUIRE_OK)
        return st;
    struct request request = {.boot = boot, .fd = -1};
    pthread_mutex_lock(&boot->service->lock);
    struct dial model = dial_model(boot, rank, WIRE_FOR_DIAL, &request);
    model.hello.number = purpose;
    st = dial_rounds(boot, rank, &model, &request, deadline);
    dial_cancel(boot->service, request.dial);
    pthread_mutex_unlock(&boot->service->lock);
    if (st == QUIRE_OK)
        *fd = request.fd;
    return st;
}

void handoff_accepted(struct service *service, struct boot *boot, struct conn *conn)
{
    int from = conn->peer;
    uint32_t number = conn->hello.number;
    struct parked_fd *parked = malloc(sizeof(*parked));
    int fd = conn_take_fd(service, conn);
    if (!parked || fd < 0) {
        free(parked);
        if (fd >= 0)
            close(fd); /* the dialler sees it end */
        return;
    }
    *parked = (struct parked_fd){NULL, from, number, fd};
    struct parked_fd **at = &boot->accepted; /* in the order they came */
    while (*at)
        at = &(*at)->next;
    *at = parked;
    boot_changed(boot);
}

static int accepted_take(struct boot *boot, int rank, uint32_t purpose)
{
    for (struct parked_fd **at = &boot->accepted; *at; at = &(*at)->next) {
        struct parked_fd *parked = *at;
        if (parked->from != rank || parked->number != purpose)
            continue;
        int fd = parked->fd;
        *at = parked->next;
        free(parked);
        return fd;
    }
    return -1;
}

quire_status_t boot_accept(struct boot *boot, int rank, uint32_t purpose, uint64_t deadline, int *fd)
{
    quire_status_t st = check_rank(boot, rank);
    if (st != QUIRE_OK)
        return st;
    int got = -1;
    pthread_mutex_lock(&boot->service->lock);
    while (st == QUIRE_OK && (got = accepted_take(boot, rank, purpose)) < 0) {
        if (stop_seen(boot->stop) == STOP_FATAL)
            st = stop_status(boot->stop);
        else if (boot->peers[rank].departed && link_silent(boot, rank))
            st = quire_fail(QUIRE_ERR_LINK, "rank %d has left and will not dial rank %d", rank, boot->rank);
        else if (deadline_passed(deadline))
            st = quire_fail(QUIRE_ERR_TIMEOUT, "rank %d did not dial rank %d in time; missing: %d", rank, boot->rank,
                            rank);
        else
            boot_sleep(boot, deadline);
    }
    pthread_mutex_unlock(&boot->service->lock);
    if (st == QUIRE_OK)
        *fd = got;
    return st;
}

quire_status_t boot_accept_poll(struct boot *boot, int rank, uint32_t purpose, int *fd)
{
    quire_status_t st = check_rank(boot, rank);
    if (st != QUIRE_OK)
        return st;
    pthread_mutex_lock(&boot->service->lock);
    int got = accepted_take(boot, rank, purpose);
    if (got < 0)
        st = stop_seen(boot->stop) == STOP_FATAL ? stop_status(boot->stop)
             : boot->peers[rank].departed && link_silent(boot, rank)
                 ? quire_fail(QUIRE_ERR_LINK, "rank %d has left and will not dial rank %d", rank, boot->rank)
                 : QUIRE_IN_PROGRESS;
    pthread_mutex_unlock(&boot->service->lock);
    if (got >= 0)
        *fd = got;
    return st;
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

static struct offer **offer_find(struct boot *boot, uint64_t tag)
{
    struct offer **at = &boot->offers;
    while (*at && (*at)->tag != tag)
        at = &(*at)->next;
    return at;
}

quire_status_t boot_offer_fd(struct boot *boot, uint64_t tag, int fd)
{
    quire_status_t st = boot_usable(boot);
    if (st != QUIRE_OK)
        return st;
    struct offer *fresh = NULL;
    if (fd >= 0) {
        fresh = malloc(sizeof(*fresh));
        int copy = fresh ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
        if (copy < 0) {
            free(fresh);
            return quire_fail(QUIRE_ERR_RESOURCE, "can't keep a copy of descriptor %d: %m", fd);
        }
        *fresh = (struct offer){NULL, tag, copy};
    }
    pthread_mutex_lock(&boot->service->lock);
    struct offer **at = offer_find(boot, tag), *old = *at;
    if (old) {
        *at = old->next;
        close(old->fd);
        free(old);
    }
    if (fresh) {
        fresh->next = boot->offers;
        boot->offers = fresh;
    }
    pthread_mutex_unlock(&boot->service->lock);
    return QUIRE_OK;
}

/* Somebody asks for a tag. */
void handoff_fetch(struct service *service, struct boot *boot, struct conn *conn)
{
    struct offer *offer = *offer_find(boot, conn->hello.tag);
    int copy = offer && conn->local ? fcntl(offer->fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (copy >= 0) {
        struct blob *blob = blob_make(WIRE_FD, 0, NULL, 0);
        conn_send_fd(service, conn, blob, copy);
        blob_drop(blob);
    } else {
        struct cause no =
            cause_make(offer ? QUIRE_ERR_RESOURCE : QUIRE_ERR_LINK, boot->rank,
                       offer ? "rank %d has no descriptor left to pass" : "rank %d does not offer it", boot->rank);
        conn_say_cause(service, conn, WIRE_FD, &no);
    }
    conn_close_softly(service, conn);
}

void fetch_message(struct service *service, struct conn *conn)
{
    struct request *request = conn->user;
    struct cause no;
    if (conn->header.type == WIRE_FD && conn->header.length == 0 && conn->got_fd >= 0) {
        int fd = conn->got_fd;
        conn->got_fd = -1;
        request_over(request, fd, NULL);
    } else {
        if (conn->header.type != WIRE_FD || !wire_cause_parse(conn->body, conn->header.length, &no))
            no = cause_make(QUIRE_ERR_LINK, -1, "the answer was not understood");
        request->final = true;
        request_over(request, -1, &no);
    }
    conn_close(service, conn);
}

void fetch_lost(struct service *service, struct conn *conn, const char *why)
{
    struct cause no = cause_make(QUIRE_ERR_LINK, -1, "it %s", why);
    request_over(conn->user, -1, &no);
}

static void fetch_dialled(struct service *service, struct dial *dial, struct conn *winner)
{
    struct request *request = dial->user;
    if (!winner) {
        request_dialled(service, dial, winner);
        return;
    }
    winner->role = CONN_FETCHING;
    winner->user = request;
    request_over(request, -1, NULL);
    request->conn = winner;
}

quire_status_t boot_fetch_fd(struct boot *boot, int rank, uint64_t tag, uint64_t deadline, int *fd)
{
    quire_status_t st = check_rank(boot, rank);
    if (st != QUIRE_OK)
        return st;
    struct request request = {.boot = boot, .fd = -1};
    pthread_mutex_lock(&boot->service->lock);
    struct dial model = dial_model(boot, rank, WIRE_FOR_FETCH, &request);
    model.hello.tag = tag;
    model.unix_only = true;
    model.done = fetch_dialled;
    st = dial_rounds(boot, rank, &model, &request, deadline);
    if (st == QUIRE_OK && request.conn) {
        request.over = false;
        st = request_wait(&request, rank, deadline, "pass a descriptor to");
    }
    dial_cancel(boot->service, request.dial);
    conn_close(boot->service, request.conn);
    pthread_mutex_unlock(&boot->service->lock);
    if (st != QUIRE_OK)
        return st;
    if (request.fd < 0)
        return quire_fail(request.failure.status == QUIRE_ERR_RESOURCE ? QUIRE_ERR_RESOURCE : QUIRE_ERR_LINK,
                          "no descriptor from rank %d: %.300s", rank, request.failure.text);
    *fd = request.fd;
    return QUIRE_OK;
}

void handoff_free(struct boot *boot)
{
    while (boot->accepted) {
        struct parked_fd *parked = boot->accepted;
        boot->accepted = parked->next;
        close(parked->fd);
        free(parked);
    }
    while (boot->offers) {
        struct offer *offer = boot->offers;
        boot->offers = offer->next;
        close(offer->fd);
        free(offer);
    }
}
