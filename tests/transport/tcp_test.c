/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_test.c - a tcp end against a peer that is a bare socket: every frame that breaks the rules is refused with a
 * sentence that names the rank, what is whole before it is kept, and nothing behind it is used.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "../base/base_test.h"
#include "base/clock.h"
#include "base/status.h"
#include "transport.h"
#include "wire.h"

enum { SLOT = 4096, DEPTH = 4, OWN = 1, PEER = 0 };

struct bench {
    struct stop stop;
    struct lane_set *set;
    struct transport_env env;
    struct transport_end *end;
    int near, far;
};

static quire_status_t take(void *ctx, int rank, uint32_t purpose, uint64_t deadline, int *fd)
{
    *fd = ((struct bench *)ctx)->near;
    return QUIRE_OK;
}

static void begin(struct bench *b)
{
    static const struct lane_geometry geometry = {DEPTH, SLOT, 2};
    uint8_t blob[TRANSPORT_BLOB_BYTES] = {0};
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    b->near = pair[0];
    b->far = pair[1];
    stop_init(&b->stop);
    ck_assert_int_eq(lane_set_create(&b->set, OWN, 2, &geometry), QUIRE_OK);
    b->env = (struct transport_env){b->set, &b->stop, b, take, take, NULL, NULL};
    ck_assert_int_eq(transport_tcp.open(&b->end, &b->env, blob), QUIRE_OK);
    ck_assert_int_eq(transport_tcp.attach(b->end, PEER, DEADLINE_NEVER), QUIRE_OK);
}

static void end(struct bench *b)
{
    close(b->far);
    transport_tcp.close(b->end);
    lane_set_destroy(b->set);
    stop_destroy(&b->stop);
}

static void send_bytes(const struct bench *b, const void *data, size_t bytes)
{
    ck_assert_int_eq(send(b->far, data, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

/* A data frame of pair lane 0 with bytes that follow from its position. */
static struct wire_header frame(uint64_t position, uint32_t bytes)
{
    return (struct wire_header){.type = WIRE_DATA, .lane = 2, .bytes = bytes, .position = position};
}

static void send_frame(const struct bench *b, struct wire_header h)
{
    static uint8_t data[2 * SLOT];
    memset(data, (int)h.position + 1, sizeof(data));
    wire_seal(&h);
    send_bytes(b, &h, sizeof(h));
    if (h.type == WIRE_DATA)
        send_bytes(b, data, h.bytes);
}

static quire_status_t turn(struct bench *b)
{
    bool moved = false;
    int rank = -1;
    quire_status_t st = transport_tcp.progress(b->end, &moved, &rank);
    ck_assert_int_eq(rank, st == QUIRE_OK ? -1 : PEER);
    return st;
}

static void gap(const struct bench *b)
{
    send_frame(b, frame(2, 8));
}

static void twice(const struct bench *b)
{
    send_frame(b, frame(0, 8));
}

static void longer_than_a_slot(const struct bench *b)
{
    send_frame(b, frame(1, SLOT + 1));
}

static void unknown_lane(const struct bench *b)
{
    struct wire_header h = frame(1, 8);
    h.lane = WIRE_LANES;
    send_frame(b, h);
}

static void unknown_type(const struct bench *b)
{
    struct wire_header h = frame(1, 8);
    h.type = 9;
    send_frame(b, h);
}

static void reference(const struct bench *b)
{
    struct wire_header h = frame(1, 16);
    h.form = LANE_REF;
    send_frame(b, h);
}

static void damaged_header(const struct bench *b)
{
    struct wire_header h = frame(1, 0);
    wire_seal(&h);
    h.name.root ^= 4;
    send_bytes(b, &h, sizeof(h));
}

static void damaged_bytes(const struct bench *b)
{
    struct wire_header h = frame(1, 40);
    uint8_t data[40] = {7};
    uint64_t sum = wire_sum(data, sizeof(data));
    h.checked = 1;
    wire_seal(&h);
    data[39] ^= 1;
    send_bytes(b, &h, sizeof(h));
    send_bytes(b, data, sizeof(data));
    send_bytes(b, &sum, sizeof(sum));
}

static void no_frame(const struct bench *b)
{
    static const char text[64] = "GET / HTTP/1.1";
    send_bytes(b, text, sizeof(text));
}

static void credit_for_nothing(const struct bench *b)
{
    send_frame(b, (struct wire_header){.type = WIRE_CREDIT, .lane = 2, .credit = 1});
}

static void more_than_there_is_room(const struct bench *b)
{
    for (uint64_t p = 1; p <= DEPTH; p++)
        send_frame(b, frame(p, 8));
}

static const struct {
    void (*send)(const struct bench *b);
    const char *says;
} bad[] = {{gap, "a frame was lost"},
           {twice, "a frame twice"},
           {longer_than_a_slot, "longer than a slot"},
           {unknown_lane, "a lane that does not exist"},
           {unknown_type, "unknown type"},
           {reference, "a reference"},
           {damaged_header, "header was damaged"},
           {damaged_bytes, "payload's checksum differs"},
           {no_frame, "no frame begins here"},
           {credit_for_nothing, "never sent"},
           {more_than_there_is_room, "more slots than"}};
enum { BAD = sizeof(bad) / sizeof(bad[0]) };

START_TEST(what_breaks_the_rules_is_refused_by_name_and_nothing_behind_it_is_used)
{
    struct bench b;
    for (int i = 0; i < BAD; i++) {
        begin(&b);
        struct lane *in = &b.set->in_pair[0][PEER];
        send_frame(&b, frame(0, 100));
        bad[i].send(&b);
        send_frame(&b, frame(1, 8));
        ck_assert_msg(turn(&b) == QUIRE_ERR_LINK, "case %d", i);
        ck_assert_msg(strstr(status_text_last(), bad[i].says) != NULL, "case %d: %s", i, status_text_last());
        ck_assert_msg(strstr(status_text_last(), "rank 0") != NULL, "case %d: %s", i, status_text_last());
        const struct lane_slot *slot = lane_peek(in);
        ck_assert_msg(slot != NULL && slot->bytes == 100, "case %d: what was whole is gone", i);
        ck_assert_int_eq(*(const uint8_t *)lane_data(in, slot), 1);
        if (bad[i].send != more_than_there_is_room) {
            lane_release(in);
            ck_assert_msg(lane_peek(in) == NULL, "case %d", i);
        }
        ck_assert_int_eq(turn(&b), QUIRE_OK); /* said once */
        end(&b);
    }
}
END_TEST

START_TEST(a_frame_in_pieces_is_published_when_it_is_whole)
{
    struct bench b;
    struct wire_header h = frame(0, 3000);
    uint8_t bytes[sizeof(h) + 3000];
    begin(&b);
    struct lane *in = &b.set->in_pair[0][PEER];
    wire_seal(&h);
    memcpy(bytes, &h, sizeof(h));
    for (int i = 0; i < 3000; i++)
        bytes[sizeof(h) + (size_t)i] = (uint8_t)(i * 7);
    for (size_t at = 0, piece = 1; at < sizeof(bytes); at += piece, piece = piece * 2 + 1) {
        if (piece > sizeof(bytes) - at)
            piece = sizeof(bytes) - at;
        ck_assert_ptr_eq(lane_peek(in), NULL);
        send_bytes(&b, bytes + at, piece);
        ck_assert_int_eq(turn(&b), QUIRE_OK);
    }
    const struct lane_slot *slot = lane_peek(in);
    ck_assert(slot != NULL && slot->bytes == 3000);
    ck_assert(memcmp(lane_data(in, slot), bytes + sizeof(h), 3000) == 0);
    end(&b);
}
END_TEST

START_TEST(a_peer_that_goes_in_the_middle_of_a_frame_has_failed)
{
    struct bench b;
    struct wire_header h = frame(0, 3000);
    begin(&b);
    wire_seal(&h);
    send_bytes(&b, &h, sizeof(h));
    send_bytes(&b, "some", 4);
    ck_assert_int_eq(turn(&b), QUIRE_OK);
    ck_assert_int_eq(shutdown(b.far, SHUT_WR), 0);
    ck_assert_int_eq(turn(&b), QUIRE_ERR_PEER_FAILED);
    ck_assert_ptr_eq(lane_peek(&b.set->in_pair[0][PEER]), NULL);
    end(&b);
}
END_TEST

/* The payload of the lane has no pages here: reading it would be a fault. */
START_TEST(a_reference_is_never_sent)
{
    struct bench b;
    char byte;
    begin(&b);
    struct op_name name = {.sequence = 1};
    lane_publish_ref(&b.set->out_pair[0][PEER], &name, 4000, &(struct lane_ref){0, 1, 1});
    ck_assert_int_eq(turn(&b), QUIRE_ERR_INTERNAL);
    ck_assert_int_eq(recv(b.far, &byte, 1, MSG_DONTWAIT), -1);
    end(&b);
}
END_TEST

START_TEST(a_socket_that_is_full_takes_the_rest_later)
{
    struct bench b;
    static uint8_t got[DEPTH * (SLOT + sizeof(struct wire_header))];
    size_t length = 0;
    int tiny = 1;
    begin(&b);
    struct lane *out = &b.set->out_pair[1][PEER];
    ck_assert_int_eq(setsockopt(b.near, SOL_SOCKET, SO_SNDBUF, &tiny, sizeof(tiny)), 0);
    ck_assert_int_eq(lane_reserve(out), QUIRE_OK);
    for (uint64_t n = 0; n < DEPTH; n++) {
        struct op_name name = {.sequence = n};
        memset(lane_fill(out, SLOT), (int)n + 1, SLOT);
        lane_publish(out, &name, SLOT);
    }
    ck_assert_int_eq(turn(&b), QUIRE_OK);
    ck_assert(!lane_can_send(out) || !lane_all_released(out, DEPTH));
    ck_assert(transport_tcp.pending(b.end));
    for (int idle = 0; length < sizeof(got) && idle < 1000; idle++) {
        ssize_t n = recv(b.far, got + length, sizeof(got) - length, MSG_DONTWAIT);
        length += n > 0 ? (size_t)n : 0;
        ck_assert_int_eq(turn(&b), QUIRE_OK);
    }
    ck_assert_uint_eq(length, sizeof(got));
    ck_assert(!transport_tcp.pending(b.end) && lane_all_released(out, DEPTH));
    for (size_t n = 0; n < DEPTH; n++) {
        const uint8_t *at = got + n * (SLOT + sizeof(struct wire_header));
        struct wire_header h;
        memcpy(&h, at, sizeof(h));
        ck_assert_ptr_eq(wire_check(&h, SLOT), NULL);
        ck_assert(h.position == n && h.lane == 3 && h.bytes == SLOT);
        ck_assert(at[sizeof(h)] == n + 1 && at[sizeof(h) + SLOT - 1] == n + 1);
    }
    end(&b);
}
END_TEST

BASE_TEST_MAIN("tcp", what_breaks_the_rules_is_refused_by_name_and_nothing_behind_it_is_used,
               a_frame_in_pieces_is_published_when_it_is_whole, a_peer_that_goes_in_the_middle_of_a_frame_has_failed,
               a_reference_is_never_sent, a_socket_that_is_full_takes_the_rest_later)
