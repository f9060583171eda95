/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collective.c - the control plane's own small collectives, over links between any two ranks. All-gather and barrier
 * are Bruck's dissemination: in round k a rank sends what it has to the rank 2^k below and receives from the rank 2^k
 * above, ceil(log2 size) rounds. Broadcast is a binomial tree from rank 0.
 *
 * Messages carry (operation, sequence, round, bytes). One that comes before its receiver asks for it waits as a
 * parcel. A parcel of this rank's current sequence number with another operation or size is a mismatch.
 *
 * A rank that has waited a while floods a note "I wait in number so-and-so", so that whoever runs out of time can tell
 * who never came; in the fast case no note is sent.
 */
#include <stdlib.h>
#include <string.h>

#include "boot_internal.h"

#define NOTE_AFTER (50 * CLOCK_MS)

struct waiting {
    struct boot *boot;
    enum wire_op op;
    uint64_t bytes, deadline, note_at;
    bool noted;
};

static const char *op_text(unsigned op)
{
    return op == WIRE_ALL_GATHER ? "an all-gather" : op == WIRE_BARRIER ? "a barrier" : "a broadcast";
}

void collective_arrived(struct boot *boot, int from, const uint8_t *body, size_t bytes)
{
    struct wire_data data;
    if (!wire_data_parse(body, bytes, &data))
        return;
    struct parcel *parcel = malloc(sizeof(*parcel));
    uint8_t *copy = malloc(data.payload_bytes ? data.payload_bytes : 1);
    if (!parcel || !copy) {
        free(parcel);
        free(copy);
        struct cause cause =
            cause_make(QUIRE_ERR_RESOURCE, boot->rank, "rank %d has no memory for %zu bytes from rank %d", boot->rank,
                       data.payload_bytes, from);
        stop_fail(boot->stop, &cause);
        flood_start(boot, WIRE_CAUSE, &cause);
        return;
    }
    memcpy(copy, data.payload, data.payload_bytes);
    *parcel = (struct parcel){boot->parcels, from, data, copy};
    parcel->data.payload = copy;
    boot->parcels = parcel;
    boot_changed(boot);
}

static void parcel_free(struct parcel *parcel)
{
    if (parcel)
        free(parcel->bytes);
    free(parcel);
}

static quire_status_t mismatch(struct waiting *w, const struct parcel *parcel)
{
    struct boot *boot = w->boot;
    struct cause cause =
        cause_make(QUIRE_ERR_MISMATCH, parcel->from,
                   "control plane operation %llu: rank %d does %s of %llu bytes, rank %d does %s of %llu bytes",
                   (unsigned long long)boot->sequence, parcel->from, op_text(parcel->data.op),
                   (unsigned long long)parcel->data.bytes, boot->rank, op_text(w->op), (unsigned long long)w->bytes);
    stop_fail(boot->stop, &cause);
    flood_start(boot, WIRE_CAUSE, &cause);
    return stop_status(boot->stop);
}

/* Finds the parcel; or one that shows a mismatch, then *wrong. */
static struct parcel *parcel_find(struct waiting *w, int from, int round, struct parcel **wrong)
{
    struct boot *boot = w->boot;
    for (struct parcel **at = &boot->parcels; *at; at = &(*at)->next) {
        struct parcel *parcel = *at;
        if (parcel->data.sequence != boot->sequence)
            continue;
        if (parcel->data.op != w->op || parcel->data.bytes != w->bytes) {
            *wrong = parcel;
            return NULL;
        }
        if (parcel->from == from && parcel->data.round == round) {
            *at = parcel->next;
            return parcel;
        }
    }
    return NULL;
}

static bool is_missing(const void *arg, int rank)
{
    const struct waiting *w = arg;
    const struct boot *boot = w->boot;
    if (rank == boot->rank || boot->peers[rank].note >= boot->sequence)
        return false;
    if (w->op != WIRE_BROADCAST)
        return true;
    int above = boot->rank; /* only those between us and the root hold us up */
    while (above > 0) {
        above &= ~(1 << (31 - __builtin_clz((unsigned)above)));
        if (above == rank)
            return true;
    }
    return false;
}

static quire_status_t out_of_time(struct waiting *w, int from)
{
    char list[160];
    boot_rank_list(list, sizeof(list), w->boot->size, is_missing, w);
    return quire_fail(QUIRE_ERR_TIMEOUT,
                      "rank %d ran out of time in %s (control plane operation %llu), waiting for rank %d; missing: %s",
                      w->boot->rank, op_text(w->op), (unsigned long long)w->boot->sequence, from,
                      list[0] ? list : "none known");
}

static quire_status_t has_left(struct waiting *w, int from)
{
    struct boot *boot = w->boot;
    char who[128];
    boot_peer_text(boot, from, who, sizeof(who));
    struct cause cause =
        cause_make(QUIRE_ERR_PEER_FAILED, from, "%s has left in good order, but rank %d waits for it in %s", who,
                   boot->rank, op_text(w->op));
    stop_fail(boot->stop, &cause);
    flood_start(boot, WIRE_CAUSE, &cause);
    return stop_status(boot->stop);
}

static quire_status_t receive(struct waiting *w, int from, int round, struct parcel **out)
{
    struct boot *boot = w->boot;
    for (;;) {
        struct parcel *wrong = NULL, *parcel = parcel_find(w, from, round, &wrong);
        if (stop_seen(boot->stop) == STOP_FATAL) {
            parcel_free(parcel);
            return stop_status(boot->stop);
        }
        if (wrong)
            return mismatch(w, wrong);
        if (parcel) {
            *out = parcel;
            return QUIRE_OK;
        }
        if (boot->peers[from].departed && link_silent(boot, from))
            return has_left(w, from);
        if (deadline_passed(w->deadline))
            return out_of_time(w, from);
        if (!w->noted && clock_ns() >= w->note_at) {
            struct wire_note note = {boot->rank, boot->sequence};
            flood_note(boot, -1, &note);
            w->noted = true;
        }
        boot_sleep(boot, w->noted || w->deadline < w->note_at ? w->deadline : w->note_at);
    }
}

static quire_status_t send_round(struct waiting *w, int to, int round, const void *payload, size_t bytes)
{
    struct wire_out out = {NULL, 0, 0, false};
    struct wire_data data = {(uint8_t)w->op, (uint8_t)round, w->boot->sequence, w->bytes, payload, bytes};
    wire_data_write(&out, &data);
    struct blob *blob = blob_from(WIRE_DATA, w->boot->generation, &out);
    bool ok = link_send(w->boot, to, blob);
    blob_drop(blob);
    return ok ? QUIRE_OK : quire_fail(QUIRE_ERR_RESOURCE, "no memory for a message of %zu bytes", bytes);
}

static struct waiting begin(struct boot *boot, enum wire_op op, uint64_t bytes, uint64_t deadline)
{
    uint64_t now = clock_ns(), after = NOTE_AFTER;
    if (deadline != DEADLINE_NEVER && deadline > now && (deadline - now) / 2 < after)
        after = (deadline - now) / 2;
    boot->sequence++;
    for (struct parcel **at = &boot->parcels, *parcel; (parcel = *at);) { /* of operations that were given up */
        if (parcel->data.sequence < boot->sequence) {
            *at = parcel->next;
            parcel_free(parcel);
        } else {
            at = &parcel->next;
        }
    }
    return (struct waiting){boot, op, bytes, deadline, now + after, false};
}

/* have[0 .. size) holds rank (own + i) % size's block; block 0 is there. */
static quire_status_t disseminate(struct waiting *w, uint8_t *have)
{
    struct boot *boot = w->boot;
    int size = boot->size;
    for (int distance = 1, round = 0; distance < size; distance *= 2, round++) {
        int count = distance < size - distance ? distance : size - distance;
        size_t bytes = (size_t)count * w->bytes;
        quire_status_t st = send_round(w, (boot->rank - distance + size) % size, round, have, bytes);
        struct parcel *parcel = NULL;
        if (st == QUIRE_OK)
            st = receive(w, (boot->rank + distance) % size, round, &parcel);
        if (st != QUIRE_OK || parcel == NULL)
            return st;
        if (parcel->data.payload_bytes == bytes && bytes)
            memcpy(have + (size_t)distance * w->bytes, parcel->bytes, bytes);
        bool whole = parcel->data.payload_bytes == bytes;
        parcel_free(parcel);
        if (!whole)
            return QUIRE_BUG("a round of an all-gather has the wrong length");
    }
    return QUIRE_OK;
}

static quire_status_t gather(struct boot *boot, enum wire_op op, const void *in, size_t bytes, void *out,
                             uint64_t deadline)
{
    quire_status_t st = boot_usable(boot);
    if (st != QUIRE_OK)
        return st;
    if (bytes > (size_t)WIRE_MAX_DATA / (size_t)boot->size)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "the control plane gathers at most %d bytes, not %d times %zu",
                          WIRE_MAX_DATA, boot->size, bytes);
    size_t size = (size_t)boot->size, own = (size_t)boot->rank;
    uint8_t *have = malloc(bytes ? size * bytes : 1);
    if (!have)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory to gather %zu times %zu bytes", size, bytes);
    if (bytes)
        memcpy(have, in, bytes);
    pthread_mutex_lock(&boot->service->lock);
    struct waiting w = begin(boot, op, bytes, deadline);
    st = stop_seen(boot->stop) == STOP_FATAL ? stop_status(boot->stop) : disseminate(&w, have);
    pthread_mutex_unlock(&boot->service->lock);
    if (st == QUIRE_OK && bytes) {
        memcpy((uint8_t *)out + own * bytes, have, (size - own) * bytes);
        memcpy(out, have + (size - own) * bytes, own * bytes);
    }
    free(have);
    return st;
}

quire_status_t boot_all_gather(struct boot *boot, const void *in, size_t bytes, void *out, uint64_t deadline)
{
    return gather(boot, WIRE_ALL_GATHER, in, bytes, out, deadline);
}

quire_status_t boot_barrier(struct boot *boot, uint64_t deadline)
{
    return gather(boot, WIRE_BARRIER, NULL, 0, NULL, deadline);
}

static quire_status_t spread(struct waiting *w, void *data, size_t bytes)
{
    struct boot *boot = w->boot;
    quire_status_t st = QUIRE_OK;
    int top = boot->rank ? 31 - __builtin_clz((unsigned)boot->rank) : -1;
    if (top >= 0) {
        struct parcel *parcel = NULL;
        st = receive(w, boot->rank & ~(1 << top), 0, &parcel);
        if (st != QUIRE_OK || parcel == NULL)
            return st;
        if (parcel->data.payload_bytes != bytes)
            st = QUIRE_BUG("a broadcast has the wrong length");
        else if (bytes)
            memcpy(data, parcel->bytes, bytes);
        parcel_free(parcel);
    }
    for (int bit = top + 1; st == QUIRE_OK && bit < 30 && boot->rank + (1 << bit) < boot->size; bit++)
        st = send_round(w, boot->rank + (1 << bit), 0, data, bytes);
    return st;
}

quire_status_t boot_broadcast(struct boot *boot, void *data, size_t bytes, uint64_t deadline)
{
    quire_status_t st = boot_usable(boot);
    if (st != QUIRE_OK)
        return st;
    if (bytes > WIRE_MAX_DATA)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "the control plane broadcasts at most %d bytes, not %zu",
                          WIRE_MAX_DATA, bytes);
    pthread_mutex_lock(&boot->service->lock);
    struct waiting w = begin(boot, WIRE_BROADCAST, bytes, deadline);
    st = stop_seen(boot->stop) == STOP_FATAL ? stop_status(boot->stop) : spread(&w, data, bytes);
    pthread_mutex_unlock(&boot->service->lock);
    return st;
}
