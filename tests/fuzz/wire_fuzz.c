/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire_fuzz.c - any bytes as what arrives over a connection. First as frame headers: what wire_check accepts has every
 * field in range. Then as a whole stream into a tcp end: it may be refused, never crash, and slots that are published
 * are the next ones and no longer than a slot. The stream is sent as it is, and once more with its headers sealed, so
 * that the checksum does not hide what is behind it; in pieces whose length the input chooses.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport.h"
#include "wire.h"

enum { SLOT = 4096, DEPTH = 4, MAX_STREAM = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct wire_header *header)
{
    if (wire_check(header, SLOT) != NULL)
        return;
    if (header->lane >= WIRE_LANES || header->bytes > SLOT || header->checked > 1 ||
        (header->type != WIRE_DATA && header->type != WIRE_CREDIT) ||
        (header->type == WIRE_DATA && header->form != LANE_BYTES) ||
        (header->type == WIRE_CREDIT && (header->bytes != 0 || header->checked != 0)))
        abort();
}

static quire_status_t take(void *ctx, int rank, uint32_t purpose, uint64_t deadline, int *fd)
{
    *fd = *(int *)ctx;
    return QUIRE_OK;
}

static quire_status_t no_offer(void *ctx, uint64_t tag, int fd)
{
    return QUIRE_OK;
}

static quire_status_t no_fetch(void *ctx, int rank, uint64_t tag, uint64_t deadline, int *fd)
{
    return QUIRE_ERR_LINK;
}

/* Takes what is there; how many slots came so far on each lane is what their positions must say. */
static void take_slots(struct lane_set *set, uint64_t *taken)
{
    for (int number = 0; number < WIRE_LANES; number++) {
        struct lane *in =
            number < WIRE_WIDE_LANES ? &set->in_wide[number][0] : &set->in_pair[number - WIRE_WIDE_LANES][0];
        for (const struct lane_slot *slot; (slot = lane_peek(in)) != NULL; taken[number]++) {
            static volatile uint8_t sink;
            const uint8_t *at = lane_data(in, slot);
            if (slot->bytes > SLOT || slot->form != LANE_BYTES || in->position != taken[number])
                abort();
            for (uint32_t i = 0; i < slot->bytes; i++)
                sink = (uint8_t)(sink + at[i]);
            lane_release(in);
        }
        if (lane_check(in) != QUIRE_OK)
            abort();
        /* Slots come in order: behind one that isn't there none is. */
        for (uint64_t p = in->position + 1; p < in->position + DEPTH; p++)
            if (in->slots[p & in->mask].flag == lane_flag(in, p))
                abort();
    }
}

static void feed(struct transport_end *end, struct lane_set *set, int fd, const uint8_t *data, size_t size)
{
    uint64_t taken[WIRE_LANES] = {0};
    size_t piece = size == 0 ? 1 : 1 + (size_t)data[size - 1] * 16;
    quire_status_t st = QUIRE_OK;
    for (size_t at = 0; st == QUIRE_OK && at < size;) {
        size_t n = size - at < piece ? size - at : piece;
        ssize_t sent = send(fd, data + at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0)
            break;
        at += (size_t)sent;
        bool moved = false;
        int rank = -1;
        st = transport_tcp.progress(end, &moved, &rank);
        if (st != QUIRE_OK && rank != 0)
            abort();
        /* Some inputs leave the ring full, so that a slot too many is met as well. */
        if (size % 3 != 0)
            take_slots(set, taken);
    }
    take_slots(set, taken);
}

static void run_stream(const uint8_t *data, size_t size)
{
    static const struct lane_geometry geometry = {DEPTH, SLOT, 1};
    struct stop stop;
    struct lane_set *set;
    struct transport_end *end;
    uint8_t blob[TRANSPORT_BLOB_BYTES] = {0};
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
        return;
    stop_init(&stop);
    if (lane_set_create(&set, 1, 2, &geometry) == QUIRE_OK) {
        struct transport_env env = {set, &stop, &pair[0], take, take, no_offer, no_fetch};
        if (transport_tcp.open(&end, &env, blob) != QUIRE_OK)
            abort();
        if (transport_tcp.attach(end, 0, DEADLINE_NEVER) != QUIRE_OK)
            abort();
        feed(end, set, pair[1], data, size);
        close(pair[1]); /* first: the end sees off what it has, to nobody */
        transport_tcp.close(end);
        lane_set_destroy(set);
    } else {
        close(pair[0]);
        close(pair[1]);
    }
    stop_destroy(&stop);
}

/* Seals what lies where headers are expected, following their lengths as the receiver would. */
static void seal_all(uint8_t *data, size_t size)
{
    struct wire_header header;
    for (size_t at = 0; size - at >= sizeof(header);) {
        memcpy(&header, data + at, sizeof(header));
        wire_seal(&header);
        memcpy(data + at, &header, sizeof(header));
        size_t whole = sizeof(header) + header.bytes + (header.checked == 1 ? 8 : 0);
        if (whole > size - at)
            return;
        at += whole;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_header header;
    const uint8_t *rest = data;
    for (size_t left = size; left >= sizeof(header); rest += sizeof(header), left -= sizeof(header)) {
        memcpy(&header, rest, sizeof(header));
        check(&header);
        wire_seal(&header);
        check(&header);
    }
    (void)wire_sum(data, size);
    if (size == 0 || size > MAX_STREAM)
        return 0;
    run_stream(data, size);
    uint8_t *sealed = malloc(size);
    if (sealed == NULL)
        return 0;
    memcpy(sealed, data, size);
    seal_all(sealed, size);
    run_stream(sealed, size);
    free(sealed);
    return 0;
}
