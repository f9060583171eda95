/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.c - one connection: framing, the send queue, closing. Reads exactly one header, then exactly its body, never
 * more: after a handshake the socket may be handed to a transport, whose first bytes must still be in it.
 *
 * A failed send is not reported where it happens: the reading side finds the end of the connection, in the service
 * thread, so no caller of conn_send is re-entered by a loss.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "boot_internal.h"

enum { CONN_READS_PER_TURN = 64, CONN_BODY_STEP = 1 << 20 };

static void conn_ready(struct service *service, struct source *source, uint32_t events);

struct conn *conn_new(struct service *service, int fd, enum conn_role role, uint32_t events)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        close(fd);
        return NULL;
    }
    conn->source = (struct source){fd, conn_ready};
    conn->role = role;
    conn->peer = -1;
    conn->got_fd = -1;
    conn->out_last = &conn->out_first;
    int domain = 0;
    socklen_t length = sizeof(domain);
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length);
    conn->local = domain == AF_UNIX;
    if (!source_add(service, &conn->source, events)) {
        close(fd);
        free(conn);
        return NULL;
    }
    conn->next = service->conns;
    if (conn->next)
        conn->next->prev = conn;
    service->conns = conn;
    return conn;
}

static void out_free(struct conn *conn)
{
    while (conn->out_first) {
        struct out *out = conn->out_first;
        conn->out_first = out->next;
        blob_drop(out->blob);
        if (out->fd >= 0)
            close(out->fd);
        free(out);
    }
    conn->out_last = &conn->out_first;
}

static void conn_detach(struct service *service, struct conn *conn)
{
    conn->dead = true;
    timer_clear(service, &conn->timer);
    source_remove(service, &conn->source);
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        service->conns = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
    conn->prev = NULL;
    conn->next = service->graveyard;
    service->graveyard = conn;
    out_free(conn);
}

void conn_close(struct service *service, struct conn *conn)
{
    if (!conn || conn->dead)
        return;
    conn_detach(service, conn);
    close(conn->source.fd);
    conn->source.fd = -1;
    if (conn->got_fd >= 0)
        close(conn->got_fd);
    conn->got_fd = -1;
}

int conn_take_fd(struct service *service, struct conn *conn)
{
    if (conn->out_first || conn->broken) {
        conn_close(service, conn);
        return -1;
    }
    int fd = conn->source.fd;
    conn_detach(service, conn);
    conn->source.fd = -1;
    return fd;
}

void conn_free_all(struct service *service)
{
    while (service->graveyard) {
        struct conn *conn = service->graveyard;
        service->graveyard = conn->next;
        free(conn->body);
        free(conn);
    }
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

struct blob *blob_make(enum wire_type type, uint64_t generation, const void *body, size_t bytes)
{
    struct blob *blob = malloc(sizeof(*blob) + WIRE_HEADER_BYTES + bytes);
    if (!blob)
        return NULL;
    struct wire_header header = {(uint16_t)type, (uint32_t)bytes, generation};
    blob->refs = 1;
    blob->bytes = WIRE_HEADER_BYTES + bytes;
    wire_header_write(blob->data, &header);
    if (bytes)
        memcpy(blob->data + WIRE_HEADER_BYTES, body, bytes);
    return blob;
}

struct blob *blob_from(enum wire_type type, uint64_t generation, struct wire_out *body)
{
    struct blob *blob = body->failed ? NULL : blob_make(type, generation, body->bytes, body->size);
    free(body->bytes);
    body->bytes = NULL;
    return blob;
}

void blob_drop(struct blob *blob)
{
    if (blob && --blob->refs == 0)
        free(blob);
}

static ssize_t out_write(struct conn *conn, struct out *out)
{
    struct iovec part = {out->blob->data + out->sent, out->blob->bytes - out->sent};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    if (out->fd >= 0) {
        memset(&control, 0, sizeof(control));
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &out->fd, sizeof(int));
    }
    ssize_t sent = sendmsg(conn->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0 && out->fd >= 0) {
        close(out->fd);
        out->fd = -1;
    }
    return sent;
}

static void conn_flush(struct service *service, struct conn *conn)
{
    if (conn->connecting || conn->dead)
        return;
    bool had = conn->out_first != NULL;
    while (conn->out_first && !conn->broken) {
        struct out *out = conn->out_first;
        ssize_t sent = out_write(conn, out);
        if (sent < 0) {
            if (errno == EINTR)
                continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                conn->broken = true;
            break;
        }
        out->sent += (size_t)sent;
        if (out->sent < out->blob->bytes)
            continue;
        conn->out_first = out->next;
        if (!conn->out_first)
            conn->out_last = &conn->out_first;
        blob_drop(out->blob);
        free(out);
    }
    if (conn->broken)
        out_free(conn);
    if (had)
        source_watch(service, &conn->source, conn->out_first ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

bool conn_send_fd(struct service *service, struct conn *conn, struct blob *blob, int fd)
{
    struct out *out = blob && !conn->dead && !conn->broken ? malloc(sizeof(*out)) : NULL;
    if (!out) {
        if (fd >= 0)
            close(fd);
        return blob && (conn->dead || conn->broken); /* the loss is found by reading */
    }
    blob->refs++;
    *out = (struct out){NULL, blob, 0, fd};
    bool first = !conn->out_first;
    *conn->out_last = out;
    conn->out_last = &out->next;
    if (first)
        conn_flush(service, conn);
    return true;
}

bool conn_send(struct service *service, struct conn *conn, struct blob *blob)
{
    return conn_send_fd(service, conn, blob, -1);
}

bool conn_say(struct service *service, struct conn *conn, enum wire_type type, uint64_t generation,
              struct wire_out *body)
{
    struct wire_out none = {NULL, 0, 0, false};
    struct blob *blob = blob_from(type, generation, body ? body : &none);
    bool ok = conn_send(service, conn, blob);
    blob_drop(blob);
    return ok;
}

bool conn_say_cause(struct service *service, struct conn *conn, enum wire_type type, const struct cause *cause)
{
    struct wire_out out = {NULL, 0, 0, false};
    wire_cause_write(&out, cause);
    return conn_say(service, conn, type, 0, &out);
}

static void soft_late(struct service *service, struct timer *timer)
{
    conn_close(service, (struct conn *)((char *)timer - offsetof(struct conn, timer)));
}

void conn_close_softly(struct service *service, struct conn *conn)
{
    if (!conn || conn->dead)
        return;
    if (!conn->out_first || conn->broken || conn->connecting) {
        conn_close(service, conn);
        return;
    }
    conn->role = CONN_CLOSING;
    conn->boot = NULL;
    conn->root = NULL;
    conn->dial = NULL;
    conn->timer.fire = soft_late;
    timer_set(service, &conn->timer, clock_ns() + CLOCK_S);
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

static void conn_message(struct service *service, struct conn *conn)
{
    switch (conn->role) {
    case CONN_STRANGER:
    case CONN_PARKED:
    case CONN_GREETED:
        service_stranger_message(service, conn);
        return;
    case CONN_DIALLING:
        dial_message(service, conn);
        return;
    case CONN_JOINING:
    case CONN_MEMBER:
        root_message(service, conn);
        return;
    case CONN_JOINED:
        join_message(service, conn);
        return;
    case CONN_LINK:
        link_message(service, conn);
        return;
    case CONN_FETCHING:
        fetch_message(service, conn);
        return;
    case CONN_CLOSING:
        return;
    }
}

static void conn_lost(struct service *service, struct conn *conn, const char *why)
{
    switch (conn->role) {
    case CONN_DIALLING:
        dial_lost(service, conn, why);
        break;
    case CONN_MEMBER:
        root_member_lost(service, conn, why);
        break;
    case CONN_JOINED:
        join_lost(service, conn, why);
        break;
    case CONN_LINK:
        link_lost(service, conn, why);
        break;
    case CONN_FETCHING:
        fetch_lost(service, conn, why);
        break;
    default:
        break;
    }
    conn_close(service, conn);
}

/* One read. 1: got some; 0: nothing there now; -1: the connection has ended, *why says how. */
static int conn_read(struct conn *conn, void *into, size_t bytes, size_t *got, const char **why)
{
    struct iovec part = {into, bytes};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    bool fetching = conn->role == CONN_FETCHING; /* others get no room for descriptors: the kernel drops them */
    if (fetching) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
    }
    ssize_t rc = recvmsg(conn->source.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (rc < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
            return 0;
        *why = errno == ECONNRESET || errno == EPIPE ? "closed its connection" : strerrordesc_np(errno);
        return -1;
    }
    if (fetching)
        for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head))
            if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
                head->cmsg_len == CMSG_LEN(sizeof(int))) {
                if (conn->got_fd >= 0)
                    close(conn->got_fd);
                memcpy(&conn->got_fd, CMSG_DATA(head), sizeof(int));
            }
    if (rc == 0) {
        *why = "closed its connection";
        return -1;
    }
    *got = (size_t)rc;
    return 1;
}

/* Grows as bytes come, so a header that promises much costs its sender much. */
static bool conn_body_room(struct conn *conn)
{
    if (conn->body_cap > conn->body_got || conn->header.length == 0)
        return true;
    size_t cap = conn->body_cap ? 2 * conn->body_cap : 256;
    if (cap < CONN_BODY_STEP && conn->header.length <= CONN_BODY_STEP)
        cap = conn->header.length;
    if (cap > conn->header.length)
        cap = conn->header.length;
    uint8_t *grown = realloc(conn->body, cap);
    if (!grown)
        return false;
    conn->body = grown;
    conn->body_cap = cap;
    return true;
}

static bool conn_header_done(struct conn *conn)
{
    if (!wire_header_parse(conn->head, &conn->header))
        return false;
    if ((conn->role == CONN_STRANGER || conn->role == CONN_GREETED) && conn->header.type != WIRE_HELLO &&
        conn->header.type != WIRE_CONFIRM)
        return false; /* before it makes us allocate for a table or data */
    conn->body_got = 0;
    return true;
}

/* One step of reading: as conn_read. Calls conn_message when a message is whole. */
static int conn_step(struct service *service, struct conn *conn, const char **why)
{
    size_t got = 0;
    int rc;
    if (conn->head_got < WIRE_HEADER_BYTES) {
        rc = conn_read(conn, conn->head + conn->head_got, WIRE_HEADER_BYTES - conn->head_got, &got, why);
        if (rc <= 0)
            return rc;
        conn->head_got += got;
        if (conn->head_got < WIRE_HEADER_BYTES)
            return 1;
        if (!conn_header_done(conn)) {
            *why = "sent bytes that are not of this protocol";
            return -1;
        }
    }
    if (conn->body_got < conn->header.length) {
        if (!conn_body_room(conn)) {
            *why = "sent a message that there is no memory for";
            return -1;
        }
        /* The buffer may be larger than this body, from an earlier one. */
        size_t end = conn->body_cap < conn->header.length ? conn->body_cap : conn->header.length;
        rc = conn_read(conn, conn->body + conn->body_got, end - conn->body_got, &got, why);
        if (rc <= 0)
            return rc;
        conn->body_got += got;
        if (conn->body_got < conn->header.length)
            return 1;
    }
    conn->head_got = 0;
    conn_message(service, conn);
    if (conn->dead)
        return 0;
    if (conn->body_cap > CONN_BODY_STEP) {
        free(conn->body);
        conn->body = NULL;
        conn->body_cap = 0;
    }
    conn->body_got = 0;
    return 1;
}

static void conn_pump(struct service *service, struct conn *conn, int turns)
{
    const char *why = NULL;
    int rc = 1;
    while (rc > 0 && !conn->dead && turns-- > 0)
        rc = conn_step(service, conn, &why);
    if (rc < 0 && !conn->dead)
        conn_lost(service, conn, why);
}

void conn_drain(struct service *service, struct conn *conn)
{
    if (conn && !conn->dead && !conn->connecting)
        conn_pump(service, conn, 1 << 20);
}

static void conn_ready(struct service *service, struct source *source, uint32_t events)
{
    struct conn *conn = (struct conn *)source;
    if (conn->connecting) {
        int error = 0;
        socklen_t length = sizeof(error);
        if (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
            error = errno;
        if (error == 0 && !(events & EPOLLOUT))
            return;
        conn->connecting = false;
        source_watch(service, source, EPOLLIN);
        dial_connected(service, conn, error);
        return;
    }
    if (events & EPOLLOUT) {
        conn_flush(service, conn);
        if (conn->role == CONN_CLOSING && !conn->out_first) {
            conn_close(service, conn);
            return;
        }
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        conn_pump(service, conn, CONN_READS_PER_TURN);
}
