/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dial.c - one round of outgoing connections to one process, see struct dial. A wrong process at a right address (many
 * hosts have the same private ones) answers NACK or not at all, so it can't win.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "boot_internal.h"

static void dial_finish(struct service *service, struct dial *dial, struct conn *winner)
{
    for (int i = 0; i < WIRE_MAX_ADDRESSES; i++)
        if (dial->attempts[i] && dial->attempts[i] != winner) {
            dial->attempts[i]->dial = NULL;
            conn_close(service, dial->attempts[i]);
        }
    timer_clear(service, &dial->timer);
    if (winner)
        winner->dial = NULL;
    dial->done(service, dial, winner);
    free(dial);
}

static bool dial_live(const struct dial *dial)
{
    for (int i = 0; i < WIRE_MAX_ADDRESSES; i++)
        if (dial->attempts[i])
            return true;
    return false;
}

static void dial_forget(struct dial *dial, const struct conn *conn)
{
    for (int i = 0; i < WIRE_MAX_ADDRESSES; i++)
        if (dial->attempts[i] == conn)
            dial->attempts[i] = NULL;
}

static void dial_answer(struct dial *dial, const char *why)
{
    dial->nobody = strcmp(why, strerrordesc_np(ECONNREFUSED)) == 0;
    if (!dial->refused)
        dial->answer = cause_make(QUIRE_ERR_LINK, dial->hello.to, "%s", why);
}

static void dial_say_hello(struct service *service, struct conn *conn)
{
    struct wire_out out = {NULL, 0, 0, false};
    wire_hello_write(&out, &conn->dial->hello);
    conn_say(service, conn, WIRE_HELLO, 0, &out);
}

static void dial_try(struct dial *dial, int slot, const struct sockaddr_storage *address, socklen_t length)
{
    struct service *service = dial->service;
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0) {
        dial_answer(dial, strerrordesc_np(errno));
        return;
    }
    if (address->ss_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    bool later = false;
    if (connect(fd, (const struct sockaddr *)address, length) != 0) {
        if (errno != EINPROGRESS) { /* a full Unix backlog is EAGAIN: the next round tries again */
            dial_answer(dial, strerrordesc_np(errno));
            close(fd);
            return;
        }
        later = true;
    }
    if (!later && !service_may_trust(fd)) {
        dial_answer(dial, "another user's process holds that name");
        close(fd);
        return;
    }
    struct conn *conn = conn_new(service, fd, CONN_DIALLING, later ? EPOLLIN | EPOLLOUT : EPOLLIN);
    if (!conn) {
        dial_answer(dial, "no memory or descriptors for a connection");
        return;
    }
    conn->dial = dial;
    conn->connecting = later;
    dial->attempts[slot] = conn;
    if (!later)
        dial_say_hello(service, conn);
}

/* Starts the next stage that has any attempt; at the end the round is over. */
static void dial_next(struct dial *dial)
{
    struct sockaddr_storage address;
    socklen_t length;
    while (!dial_live(dial) && dial->stage < 2) {
        if (dial->stage++ == 0) {
            if (dial->unix_name[0])
                length = service_unix_name(dial->unix_name, &address);
            else
                length = service_door_name(dial->target.door, &address);
            if (dial->unix_only || (dial->target.host_key == dial->service->self.host_key && dial->target.door != 0))
                dial_try(dial, 0, &address, length);
            continue;
        }
        if (dial->unix_only || dial->target.port == 0)
            continue;
        for (int i = 0; i < dial->target.address_count; i++)
            if (address_to_sockaddr(&dial->target.address[i], dial->target.port, &address, &length))
                dial_try(dial, i, &address, length);
    }
    if (!dial_live(dial))
        timer_set(dial->service, &dial->timer, 1); /* over, but `done` must not run inside the caller */
}

static void dial_timer(struct service *service, struct timer *timer)
{
    struct dial *dial = (struct dial *)((char *)timer - offsetof(struct dial, timer));
    dial->slow = dial_live(dial);
    if (dial->slow)
        dial_answer(dial, "no answer in time");
    else if (!dial->answer.status)
        dial_answer(dial, "it has no address that can be tried from here");
    dial_finish(service, dial, NULL);
}

struct dial *dial_start(struct service *service, const struct dial *model)
{
    struct dial *dial = malloc(sizeof(*dial));
    if (!dial)
        return NULL;
    *dial = *model;
    dial->service = service;
    dial->stage = 0;
    dial->refused = dial->nobody = dial->slow = false;
    dial->answer.status = 0;
    dial->timer = (struct timer){.fire = dial_timer};
    memset(dial->attempts, 0, sizeof(dial->attempts));
    timer_set(service, &dial->timer, clock_ns() + dial->limit);
    dial_next(dial);
    return dial;
}

void dial_cancel(struct service *service, struct dial *dial)
{
    if (!dial)
        return;
    for (int i = 0; i < WIRE_MAX_ADDRESSES; i++)
        conn_close(service, dial->attempts[i]);
    timer_clear(service, &dial->timer);
    free(dial);
}

void dial_lost(struct service *service, struct conn *conn, const char *why)
{
    struct dial *dial = conn->dial;
    if (!dial)
        return;
    conn->dial = NULL;
    dial_forget(dial, conn);
    dial_answer(dial, why);
    dial_next(dial);
}

void dial_connected(struct service *service, struct conn *conn, int error)
{
    if (error) {
        dial_lost(service, conn, strerrordesc_np(error));
        conn_close(service, conn);
        return;
    }
    dial_say_hello(service, conn);
}

void dial_message(struct service *service, struct conn *conn)
{
    struct dial *dial = conn->dial;
    if (conn->header.type == WIRE_ACK) {
        dial_forget(dial, conn);
        conn_say(service, conn, WIRE_CONFIRM, 0, NULL);
        dial_finish(service, dial, conn);
        return;
    }
    struct cause no;
    if (conn->header.type == WIRE_NACK && wire_cause_parse(conn->body, conn->header.length, &no)) {
        dial->answer = no;
        dial->refused = true;
        dial_lost(service, conn, "");
    } else {
        dial_lost(service, conn, "answered what was not asked");
    }
    conn_close(service, conn);
}
