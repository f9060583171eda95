/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp.c - a mover over sockets, driven by whoever waits: progress() carries published slots of this rank's lanes to
 * the peers and puts what arrives into shadow rings, which are this rank's incoming lanes. One socket per pair of
 * ranks carries all lanes both ways.
 *
 * Flow: a slot is sent once the peer has room (its reported credit + depth), and is released to the producer when all
 * of its bytes are with the kernel. Credits travel in every data frame, and in frames of their own after half a ring,
 * so a ring never runs dry by a missing report.
 *
 * Invariants per lane and peer: released <= sent <= position of the producer; sent <= acked + depth; received <=
 * position of the consumer + depth. A frame that is half out stays in the batch until it is whole.
 *
 * Threads: the thread inside the communicator only.
 */
#include "tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "lane_set.h"
#include "wire.h"

enum {
    TCP_PURPOSE = 1,    /* of boot's dial and accept */
    BATCH = 16,         /* frames in one system call */
    STAGE_BYTES = 8192, /* small frames are read many at once */
    POLL_FROM = 4,      /* with more peers than this, one poll finds the readable ones */
    CLOSE_FLUSH_MS = 200,
};

struct tcp_out {
    struct lane *lane;
    uint32_t consumer; /* index of the peer's credit line in the lane */
    uint64_t sent;     /* next position that enters a batch */
    uint64_t acked;    /* the peer's consumer has released these */
};

struct tcp_in {
    struct lane *lane;
    uint8_t *memory;   /* head of the shadow ring */
    uint64_t received; /* next position expected */
    uint64_t reported; /* credit last told to the peer */
};

struct tcp_frame {
    struct wire_header header;
    const void *payload;
    uint64_t sum;        /* trailer, when header.checked */
    struct tcp_out *out; /* NULL for credits */
    size_t whole;        /* bytes of the frame */
};

struct tcp_peer {
    int rank, fd;
    bool attached, broken, send_dead;
    struct tcp_out out[WIRE_LANES];
    struct tcp_in in[WIRE_LANES];
    /* sending */
    struct tcp_frame batch[BATCH];
    int batch_count, batch_first; /* frames [first, count) are not whole out yet */
    size_t batch_done;            /* bytes of frame `first` that are */
    bool blocked;                 /* the kernel took less than offered */
    bool judged;                  /* the fault injector has had its say on frame `first` */
    uint64_t held_until;          /* its delay of that frame */
    /* receiving */
    uint8_t stage[STAGE_BYTES];
    size_t stage_first, stage_end;
    bool in_payload;
    struct wire_header header;
    uint8_t *into;
    size_t missing; /* of the payload */
};

struct tcp_end {
    struct transport_end end;
    const struct transport_env *env;
    struct tcp_peer **peers; /* attached ones, dense */
    int count;
    struct pollfd *polls;
    struct tcp_fault *fault; /* see tcp.h */
};

static quire_status_t tcp_open(struct transport_end **end, const struct transport_env *env, void *blob)
{
    struct tcp_end *tcp = calloc(1, sizeof(*tcp));
    size_t n = (size_t)env->lanes->size;
    if (tcp == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a transport");
    tcp->end.transport = &transport_tcp;
    tcp->env = env;
    tcp->peers = calloc(n, sizeof(*tcp->peers));
    tcp->polls = calloc(n, sizeof(*tcp->polls));
    if (tcp->peers == NULL || tcp->polls == NULL) {
        free(tcp->polls);
        free(tcp->peers);
        free(tcp);
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for %zu peers", n);
    }
    *end = &tcp->end;
    return QUIRE_OK;
}

static quire_status_t tcp_reach(struct transport_end *end, int rank, const void *blob, uint64_t deadline)
{
    /* Boot has proved already that the ranks can talk; attach makes the connection. */
    return QUIRE_OK;
}

/* ---- attaching --------------------------------------------------------------------------------------------------- */

static struct lane *in_lane(struct lane_set *set, int lane, int rank)
{
    return lane < WIRE_WIDE_LANES ? &set->in_wide[lane][rank] : &set->in_pair[lane - WIRE_WIDE_LANES][rank];
}

static void attach_out(struct lane_set *set, struct tcp_peer *peer, int lane)
{
    struct tcp_out *out = &peer->out[lane];
    bool wide = lane < WIRE_WIDE_LANES;
    out->lane = wide ? &set->out_wide[lane] : &set->out_pair[lane - WIRE_WIDE_LANES][peer->rank];
    out->consumer = wide ? lane_set_consumer(set, peer->rank) : 0;
}

static quire_status_t attach_in(struct lane_set *set, struct tcp_peer *peer, int number)
{
    struct tcp_in *in = &peer->in[number];
    size_t head = bytes_round_up(lane_head_bytes(&set->geometry, 1), LANE_LINE);
    in->lane = in_lane(set, number, peer->rank);
    in->memory = aligned_alloc(LANE_LINE, head);
    if (in->memory == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a lane from rank %d", peer->rank);
    memset(in->memory, 0, head);
    lane_init_consumer(in->lane, &set->geometry, in->memory, NULL, 1, 0);
    in->lane->wide = number < WIRE_WIDE_LANES;
    in->lane->channel = (uint8_t)(number < WIRE_WIDE_LANES ? number : number - WIRE_WIDE_LANES);
    in->lane->peer = peer->rank;
    return QUIRE_OK;
}

static void peer_free(struct lane_set *set, struct tcp_peer *peer)
{
    for (int i = 0; i < WIRE_LANES; i++)
        if (peer->in[i].lane != NULL) {
            free(peer->in[i].lane->payload);
            free(peer->in[i].memory);
            memset(peer->in[i].lane, 0, sizeof(*peer->in[i].lane));
        }
    if (peer->fd >= 0)
        close(peer->fd);
    free(peer);
}

static quire_status_t tcp_attach(struct transport_end *end, int rank, uint64_t deadline)
{
    struct tcp_end *tcp = (struct tcp_end *)end;
    struct lane_set *set = tcp->env->lanes;
    struct tcp_peer *peer = calloc(1, sizeof(*peer));
    quire_status_t st = QUIRE_OK;
    if (peer == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a connection to rank %d", rank);
    peer->rank = rank;
    peer->fd = -1;
    for (int i = 0; st == QUIRE_OK && i < WIRE_LANES; i++) {
        attach_out(set, peer, i);
        st = attach_in(set, peer, i);
    }
    if (st == QUIRE_OK)
        st = set->rank < rank ? tcp->env->dial(tcp->env->ctx, rank, TCP_PURPOSE, deadline, &peer->fd)
                              : tcp->env->accept(tcp->env->ctx, rank, TCP_PURPOSE, deadline, &peer->fd);
    if (st != QUIRE_OK) {
        peer_free(set, peer);
        return st;
    }
    peer->attached = true;
    tcp->peers[tcp->count++] = peer;
    return QUIRE_OK;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* The next slot of a lane that is published and has room at the peer; NULL when there is none. */
static const struct lane_slot *next_slot(const struct tcp_out *out)
{
    const struct lane *lane = out->lane;
    const struct lane_slot *slot = &lane->slots[out->sent & lane->mask];
    if (out->sent >= lane->position || out->sent >= out->acked + lane_depth(lane))
        return NULL;
    return atom_load_acquire(&slot->flag) == lane_flag(lane, out->sent) ? slot : NULL; /* L2 */
}

static void add_data(struct tcp_end *tcp, struct tcp_peer *peer, int number, const struct lane_slot *slot)
{
    struct tcp_out *out = &peer->out[number];
    struct tcp_frame *frame = &peer->batch[peer->batch_count++];
    struct tcp_in *in = &peer->in[number];
    const struct lane *lane = out->lane;
    in->reported = in->lane->position;
    frame->header = (struct wire_header){.type = WIRE_DATA,
                                         .lane = (uint8_t)number,
                                         .form = slot->form,
                                         .bytes = slot->bytes,
                                         .position = out->sent,
                                         .credit = in->reported,
                                         .name = slot->name};
    frame->payload = slot->bytes <= LANE_INLINE_BYTES ? (const void *)slot->data
                                                      : lane->payload + (out->sent & lane->mask) * lane->slot_stride;
    frame->out = out;
    frame->whole = sizeof(frame->header) + slot->bytes;
    if (tcp->fault != NULL) {
        frame->header.checked = 1;
        frame->sum = wire_sum(frame->payload, slot->bytes);
        frame->whole += sizeof(frame->sum);
    }
    wire_seal(&frame->header);
    out->sent++;
}

static void add_credit(struct tcp_peer *peer, int number)
{
    struct tcp_frame *frame = &peer->batch[peer->batch_count++];
    struct tcp_in *in = &peer->in[number];
    in->reported = in->lane->position;
    frame->header = (struct wire_header){.type = WIRE_CREDIT, .lane = (uint8_t)number, .credit = in->reported};
    frame->payload = NULL;
    frame->out = NULL;
    frame->whole = sizeof(frame->header);
    wire_seal(&frame->header);
}

static bool credit_due(const struct tcp_in *in)
{
    return in->lane->position - in->reported >= lane_depth(in->lane) / 2;
}

/* A reference means memory that the peer can't map; its payload may have no pages, so it must not even be read. */
static quire_status_t fill_batch(struct tcp_end *tcp, struct tcp_peer *peer)
{
    const struct lane_slot *slot;
    for (int i = 0; i < WIRE_LANES; i++)
        while (peer->batch_count < BATCH && (slot = next_slot(&peer->out[i])) != NULL) {
            if (slot->form != LANE_BYTES)
                return QUIRE_BUG("a slot of form %d on a lane to rank %d, which tcp serves", slot->form, peer->rank);
            add_data(tcp, peer, i, slot);
        }
    for (int i = 0; i < WIRE_LANES; i++)
        if (peer->batch_count < BATCH && credit_due(&peer->in[i]))
            add_credit(peer, i);
    return QUIRE_OK;
}

/* What is left of the batch as vectors, or of its first frame: disturbed frames go one by one. */
static int batch_vectors(struct tcp_peer *peer, struct iovec *v, bool one)
{
    size_t skip = peer->batch_done;
    int n = 0, end = one ? peer->batch_first + 1 : peer->batch_count;
    for (int i = peer->batch_first; i < end; i++) {
        struct tcp_frame *f = &peer->batch[i];
        const struct iovec parts[3] = {{&f->header, sizeof(f->header)},
                                       {(void *)(uintptr_t)f->payload, f->header.bytes},
                                       {&f->sum, f->header.checked ? sizeof(f->sum) : 0}};
        for (int p = 0; p < 3; p++) {
            if (parts[p].iov_len <= skip) {
                skip -= parts[p].iov_len;
                continue;
            }
            v[n].iov_base = (uint8_t *)parts[p].iov_base + skip;
            v[n++].iov_len = parts[p].iov_len - skip;
            skip = 0;
        }
    }
    return n;
}

/* The kernel took `bytes`: whole frames release their slots to the producer. */
static void batch_advance(struct tcp_peer *peer, size_t bytes)
{
    peer->batch_done += bytes;
    while (peer->batch_first < peer->batch_count && peer->batch_done >= peer->batch[peer->batch_first].whole) {
        struct tcp_frame *f = &peer->batch[peer->batch_first++];
        peer->batch_done -= f->whole;
        peer->judged = false;
        if (f->out != NULL)
            atom_store_release(&f->out->lane->credits[f->out->consumer].position, f->header.position + 1); /* L3 */
    }
    if (peer->batch_first == peer->batch_count)
        peer->batch_first = peer->batch_count = 0;
}

/* Lets the fault injector act, once, on the frame that goes out next; false: not now, or nothing is left to send. */
static bool disturb(struct tcp_end *tcp, struct tcp_peer *peer)
{
    while (peer->batch_count != 0 && !peer->judged) {
        struct tcp_frame *f = &peer->batch[peer->batch_first];
        enum tcp_fault_action action = tcp_fault_next(tcp->fault, peer->rank, &peer->held_until);
        if (action == TCP_FAULT_HOLD)
            return false;
        peer->judged = true;
        if (action == TCP_FAULT_DROP)
            batch_advance(peer, f->whole); /* and the next one is judged */
        else if (action == TCP_FAULT_CORRUPT)
            f->header.name.count ^= 1; /* without sealing it again */
        else if (action == TCP_FAULT_CORRUPT_BYTES)
            f->sum ^= 1;
        else if (action == TCP_FAULT_KILL)
            (void)shutdown(peer->fd, SHUT_RDWR);
    }
    return peer->batch_count != 0;
}

static quire_status_t send_some(struct tcp_end *tcp, struct tcp_peer *peer, bool *moved)
{
    struct iovec v[3 * BATCH];
    while (!peer->send_dead) {
        quire_status_t st = peer->batch_count == 0 ? fill_batch(tcp, peer) : QUIRE_OK;
        if (st != QUIRE_OK || peer->batch_count == 0)
            return st;
        if (tcp->fault != NULL && !disturb(tcp, peer))
            return QUIRE_OK;
        struct msghdr message = {.msg_iov = v, .msg_iovlen = (size_t)batch_vectors(peer, v, tcp->fault != NULL)};
        ssize_t n = sendmsg(peer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        peer->blocked = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (n < 0) {
            /* What the peer sent before it went may still be readable: receiving reports the break. */
            peer->send_dead = !peer->blocked;
            return QUIRE_OK;
        }
        *moved = true;
        batch_advance(peer, (size_t)n);
    }
    return QUIRE_OK;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

static quire_status_t refuse(const struct tcp_peer *peer, const char *why)
{
    return quire_fail(QUIRE_ERR_LINK, "the connection from rank %d carried %s", peer->rank, why);
}

static quire_status_t take_credit(struct tcp_peer *peer, const struct wire_header *h)
{
    struct tcp_out *out = &peer->out[h->lane];
    if (h->credit > out->sent)
        return refuse(peer, "a credit for slots that were never sent");
    if (h->credit > out->acked)
        out->acked = h->credit;
    return QUIRE_OK;
}

/* Where a data frame's bytes go: the slot of its position, which must be the next one and free. */
static quire_status_t begin_slot(struct tcp_end *tcp, struct tcp_peer *peer, const struct wire_header *h)
{
    struct tcp_in *in = &peer->in[h->lane];
    struct lane *lane = in->lane;
    if (h->position != in->received)
        return refuse(peer, h->position > in->received ? "a gap: a frame was lost" : "a frame twice");
    if (in->received >= lane->position + lane_depth(lane))
        return refuse(peer, "more slots than the lane has room for");
    if (h->bytes > LANE_INLINE_BYTES && lane->payload == NULL) {
        lane->payload = malloc(lane_payload_bytes(&tcp->env->lanes->geometry));
        if (lane->payload == NULL)
            return quire_fail(QUIRE_ERR_RESOURCE, "no memory for %zu bytes of slots from rank %d",
                              lane_payload_bytes(&tcp->env->lanes->geometry), peer->rank);
    }
    struct lane_slot *slot = &lane->slots[h->position & lane->mask];
    peer->into =
        h->bytes <= LANE_INLINE_BYTES ? slot->data : lane->payload + (h->position & lane->mask) * lane->slot_stride;
    peer->missing = h->bytes;
    peer->in_payload = true;
    return QUIRE_OK;
}

static void publish(struct tcp_peer *peer)
{
    const struct wire_header *h = &peer->header;
    struct tcp_in *in = &peer->in[h->lane];
    struct lane_slot *slot = &in->lane->slots[h->position & in->lane->mask];
    slot->name = h->name;
    slot->bytes = h->bytes;
    slot->form = h->form;
    atom_store_release(&slot->flag, lane_flag(in->lane, h->position)); /* L1 */
    in->received++;
    peer->in_payload = false;
}

/* The payload's checksum, when the frame has one; *whole is false when its bytes are not all here yet. */
static quire_status_t check_payload(struct tcp_peer *peer, bool *whole)
{
    const struct wire_header *h = &peer->header;
    uint64_t sum;
    *whole = true;
    if (!h->checked)
        return QUIRE_OK;
    *whole = peer->stage_end - peer->stage_first >= sizeof(sum);
    if (!*whole)
        return QUIRE_OK;
    memcpy(&sum, peer->stage + peer->stage_first, sizeof(sum));
    peer->stage_first += sizeof(sum);
    return sum == wire_sum(peer->into - h->bytes, h->bytes)
               ? QUIRE_OK
               : refuse(peer, "damaged bytes: a payload's checksum differs");
}

/* Works through the stage; stops when a frame isn't whole there. */
static quire_status_t parse_stage(struct tcp_end *tcp, struct tcp_peer *peer)
{
    for (;;) {
        size_t here = peer->stage_end - peer->stage_first;
        quire_status_t st;
        if (peer->in_payload) {
            bool whole;
            size_t n = here < peer->missing ? here : peer->missing;
            memcpy(peer->into, peer->stage + peer->stage_first, n);
            peer->stage_first += n;
            peer->into += n;
            peer->missing -= n;
            if (peer->missing != 0)
                return QUIRE_OK;
            st = check_payload(peer, &whole);
            if (st != QUIRE_OK || !whole)
                return st;
            publish(peer);
            continue;
        }
        if (here < sizeof(peer->header))
            return QUIRE_OK;
        memcpy(&peer->header, peer->stage + peer->stage_first, sizeof(peer->header));
        peer->stage_first += sizeof(peer->header);
        const char *fault = wire_check(&peer->header, tcp->env->lanes->geometry.slot_bytes);
        st = fault != NULL ? refuse(peer, fault) : take_credit(peer, &peer->header);
        if (st == QUIRE_OK && peer->header.type == WIRE_DATA)
            st = begin_slot(tcp, peer, &peer->header);
        if (st != QUIRE_OK)
            return st;
    }
}

/* Reads until the socket is empty: a long payload straight into its slot, what follows it into the stage. */
static quire_status_t receive_some(struct tcp_end *tcp, struct tcp_peer *peer, bool *moved)
{
    for (;;) {
        if (peer->stage_first == peer->stage_end)
            peer->stage_first = peer->stage_end = 0;
        else if (peer->stage_first != 0) {
            memmove(peer->stage, peer->stage + peer->stage_first, peer->stage_end - peer->stage_first);
            peer->stage_end -= peer->stage_first;
            peer->stage_first = 0;
        }
        bool direct = peer->in_payload && peer->missing != 0;
        struct iovec v[2] = {{peer->into, direct ? peer->missing : 0},
                             {peer->stage + peer->stage_end, STAGE_BYTES - peer->stage_end}};
        size_t wanted = v[0].iov_len + v[1].iov_len;
        struct msghdr message = {.msg_iov = direct ? v : v + 1, .msg_iovlen = direct ? 2 : 1};
        ssize_t n = recvmsg(peer->fd, &message, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return QUIRE_OK;
        if (n <= 0)
            return n == 0 ? quire_fail(QUIRE_ERR_PEER_FAILED, "rank %d closed its connection", peer->rank)
                          : quire_fail(QUIRE_ERR_PEER_FAILED, "the connection to rank %d: %m", peer->rank);
        *moved = true;
        size_t got = (size_t)n, placed = direct ? (got < peer->missing ? got : peer->missing) : 0;
        if (direct) {
            peer->into += placed;
            peer->missing -= placed;
        }
        peer->stage_end += got - placed;
        quire_status_t st = parse_stage(tcp, peer);
        if (st != QUIRE_OK)
            return st;
        if (got < wanted)
            return QUIRE_OK; /* the socket had no more */
    }
}

/* ---- the contract ------------------------------------------------------------------------------------------------ */

static void find_readable(struct tcp_end *tcp)
{
    for (int i = 0; i < tcp->count; i++)
        tcp->polls[i] = (struct pollfd){tcp->peers[i]->broken ? -1 : tcp->peers[i]->fd, POLLIN, 0};
    (void)poll(tcp->polls, (nfds_t)tcp->count, 0);
}

/* One peer's turn: out, in, and out once more when credits may have come for slots that waited for them. */
static quire_status_t move_peer(struct tcp_end *tcp, struct tcp_peer *peer, bool readable, bool *moved)
{
    bool came = false;
    quire_status_t st = send_some(tcp, peer, moved);
    if (st != QUIRE_OK || (!readable && !peer->send_dead))
        return st;
    st = receive_some(tcp, peer, &came);
    *moved = *moved || came;
    return st == QUIRE_OK && came ? send_some(tcp, peer, moved) : st;
}

static quire_status_t tcp_progress(struct transport_end *end, bool *moved, int *rank)
{
    struct tcp_end *tcp = (struct tcp_end *)end;
    bool polled = tcp->count > POLL_FROM;
    if (polled)
        find_readable(tcp);
    for (int i = 0; i < tcp->count; i++) {
        struct tcp_peer *peer = tcp->peers[i];
        if (peer->broken)
            continue;
        quire_status_t st = move_peer(tcp, peer, !polled || tcp->polls[i].revents != 0, moved);
        if (st == QUIRE_OK)
            continue;
        peer->broken = true; /* said once; the lanes stay as they are */
        *rank = peer->rank;
        return st;
    }
    return QUIRE_OK;
}

static bool peer_pending(const struct tcp_peer *peer)
{
    if (peer->broken || peer->send_dead)
        return false;
    if (peer->batch_count != 0)
        return true;
    for (int i = 0; i < WIRE_LANES; i++)
        if (peer->out[i].sent < peer->out[i].lane->position || credit_due(&peer->in[i]))
            return true;
    return false;
}

static bool tcp_pending(const struct transport_end *end)
{
    const struct tcp_end *tcp = (const struct tcp_end *)end;
    for (int i = 0; i < tcp->count; i++)
        if (peer_pending(tcp->peers[i]))
            return true;
    return false;
}

/* True when a frame could be made at once: sleeping would hold it up, since poll knows nothing of it. */
static bool has_to_send(const struct tcp_peer *peer)
{
    if (peer->broken || peer->send_dead || peer->batch_count != 0)
        return false; /* a batch that waits for the kernel is polled for */
    for (int i = 0; i < WIRE_LANES; i++)
        if (next_slot(&peer->out[i]) != NULL || credit_due(&peer->in[i]))
            return true;
    return false;
}

static void tcp_sleep(struct transport_end *end, int max_ms)
{
    struct tcp_end *tcp = (struct tcp_end *)end;
    for (int i = 0; i < tcp->count; i++) {
        const struct tcp_peer *peer = tcp->peers[i];
        if (has_to_send(peer))
            return;
        short events = (short)(POLLIN | (peer->batch_count != 0 ? POLLOUT : 0));
        tcp->polls[i] = (struct pollfd){peer->broken ? -1 : peer->fd, events, 0};
    }
    (void)poll(tcp->polls, (nfds_t)tcp->count, max_ms);
}

/* Bytes that the peer's kernel doesn't have yet. Data handed to a Unix socket is the peer's at once. */
static bool in_flight(const struct tcp_peer *peer)
{
    struct sockaddr_storage own = {0};
    socklen_t length = sizeof(own);
    int queued = 0;
    if (getsockname(peer->fd, (struct sockaddr *)&own, &length) != 0 || own.ss_family == AF_UNIX)
        return false;
    return ioctl(peer->fd, SIOCOUTQ, &queued) == 0 && queued > 0;
}

/*
 * Closing a socket that holds unread bytes resets the connection and throws away what we sent last, so the last bytes
 * are seen off first: bounded, and not at all after a failure.
 */
static void see_off(struct tcp_end *tcp)
{
    uint64_t deadline = deadline_in(CLOSE_FLUSH_MS * CLOCK_MS);
    bool open = stop_seen(tcp->env->stop) != STOP_FATAL;
    while (open && !deadline_passed(deadline)) {
        bool moved = false;
        int rank;
        (void)tcp_progress(&tcp->end, &moved, &rank);
        open = false;
        for (int i = 0; i < tcp->count; i++) {
            struct tcp_peer *peer = tcp->peers[i];
            open = open || peer_pending(peer) || (!peer->broken && !peer->send_dead && in_flight(peer));
        }
        struct timespec nap = {0, 100000};
        if (open && !moved)
            nanosleep(&nap, NULL);
    }
}

static void tcp_close(struct transport_end *end)
{
    struct tcp_end *tcp = (struct tcp_end *)end;
    see_off(tcp);
    for (int i = 0; i < tcp->count; i++)
        peer_free(tcp->env->lanes, tcp->peers[i]);
    tcp_fault_free(tcp->fault);
    free(tcp->polls);
    free(tcp->peers);
    free(tcp);
}

static void tcp_describe(const struct transport_end *end, char *text, size_t bytes)
{
    snprintf(text, bytes, "tcp to %d peers", ((const struct tcp_end *)end)->count);
}

void tcp_set_fault(struct transport_end *end, struct tcp_fault *fault)
{
    ((struct tcp_end *)end)->fault = fault;
}

const struct transport transport_tcp = {
    .name = "tcp",
    .open = tcp_open,
    .reach = tcp_reach,
    .attach = tcp_attach,
    .progress = tcp_progress,
    .pending = tcp_pending,
    .sleep = tcp_sleep,
    .close = tcp_close,
    .describe = tcp_describe,
};
