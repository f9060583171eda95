/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flood.c - what everyone must hear: first causes, refusals, goodbyes, notes of who waits where. Each rank passes a
 * flood on over all its links once, but not to where it came from. Causes and refusals carry ids (origin and count);
 * goodbyes and notes are recognised by what they say.
 *
 * A rank that dies between hearing and passing on can't hide a flood: whoever finds a new uplink for it is told all
 * that the other side knows (flood_sync), in both directions.
 */
#include <stdlib.h>

#include "boot_internal.h"

static uint64_t *flood_slot(uint64_t *table, uint64_t id)
{
    size_t at = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 52); /* 12 bits: FLOOD_SLOTS */
    while (table[at] != 0 && table[at] != id)
        at = (at + 1) % FLOOD_SLOTS;
    return &table[at];
}

bool flood_log_add(struct flood_log *log, uint64_t id)
{
    if (!log->young)
        log->young = calloc(FLOOD_SLOTS, sizeof(*log->young));
    if (!log->young || id == 0)
        return false;
    if (*flood_slot(log->young, id) == id || (log->old && *flood_slot(log->old, id) == id))
        return false;
    if (log->count == FLOOD_SLOTS / 2) {
        /* No link repeats what is older than this: only the last few are ever sent twice. */
        uint64_t *fresh = calloc(FLOOD_SLOTS, sizeof(*fresh));
        if (!fresh)
            return false;
        free(log->old);
        log->old = log->young;
        log->young = fresh;
        log->count = 0;
    }
    *flood_slot(log->young, id) = id;
    log->count++;
    return true;
}

bool flood_log_check(const struct flood_log *log)
{
    size_t count = 0;
    for (size_t i = 0; log->young && i < FLOOD_SLOTS; i++)
        count += log->young[i] != 0;
    return count == log->count && count <= FLOOD_SLOTS / 2 && (log->young || !log->old);
}

void flood_log_free(struct flood_log *log)
{
    free(log->young);
    free(log->old);
    log->young = log->old = NULL;
    log->count = 0;
}

static void flood_keep(struct boot *boot, enum wire_type type, const struct wire_flood *flood)
{
    struct kept *kept = &boot->floods.kept[boot->floods.kept_count++ % FLOOD_KEPT];
    kept->type = type;
    kept->flood = *flood;
}

static struct blob *flood_blob(const struct boot *boot, enum wire_type type, const struct wire_flood *flood)
{
    struct wire_out out = {NULL, 0, 0, false};
    wire_flood_write(&out, flood);
    return blob_from(type, boot->generation, &out);
}

void flood_start(struct boot *boot, enum wire_type type, const struct cause *cause)
{
    struct wire_flood flood = {((uint64_t)boot->rank + 1) << 32 | ++boot->flood_next, *cause};
    flood_log_add(&boot->floods, flood.id);
    flood_keep(boot, type, &flood);
    struct blob *blob = flood_blob(boot, type, &flood);
    link_send_all(boot, blob, -1);
    blob_drop(blob);
    boot_changed(boot);
}

void flood_arrived(struct boot *boot, int from, enum wire_type type, const uint8_t *body, size_t bytes)
{
    struct wire_flood flood;
    if (!wire_flood_parse(body, bytes, &flood) || !flood_log_add(&boot->floods, flood.id))
        return;
    flood_keep(boot, type, &flood);
    struct blob *blob = flood_blob(boot, type, &flood);
    link_send_all(boot, blob, from);
    blob_drop(blob);
    if (type == WIRE_CAUSE)
        stop_fail(boot->stop, &flood.cause);
    else
        stop_refuse(boot->stop, &flood.cause);
    boot_changed(boot);
}

static struct blob *note_blob(const struct boot *boot, enum wire_type type, int rank, uint64_t sequence)
{
    struct wire_out out = {NULL, 0, 0, false};
    struct wire_note note = {rank, sequence};
    wire_note_write(&out, &note);
    return blob_from(type, boot->generation, &out);
}

void flood_goodbye(struct boot *boot, int from, int rank)
{
    struct peer *peer = &boot->peers[rank];
    if (peer->departed)
        return;
    atom_store_relaxed(&peer->departed, true);
    struct blob *blob = note_blob(boot, WIRE_GOODBYE, rank, 0);
    if (rank == boot->rank)
        link_last_word(boot, blob);
    else
        link_send_all(boot, blob, from);
    blob_drop(blob);
    if (rank != boot->rank) {
        link_peer_departed(boot, rank);
        liveness_forget(boot, rank);
    }
    boot_changed(boot);
}

void flood_note(struct boot *boot, int from, const struct wire_note *note)
{
    struct peer *peer = &boot->peers[note->rank];
    if (note->sequence <= peer->note)
        return;
    peer->note = note->sequence;
    struct blob *blob = note_blob(boot, WIRE_NOTE, note->rank, note->sequence);
    link_send_all(boot, blob, from);
    blob_drop(blob);
}

void flood_sync(struct boot *boot, int rank)
{
    struct conn *link = boot->peers[rank].link;
    unsigned count = boot->floods.kept_count, first = count > FLOOD_KEPT ? count - FLOOD_KEPT : 0;
    for (unsigned i = first; i < count; i++) {
        const struct kept *kept = &boot->floods.kept[i % FLOOD_KEPT];
        struct blob *blob = flood_blob(boot, kept->type, &kept->flood);
        conn_send(boot->service, link, blob);
        blob_drop(blob);
    }
    for (int i = 0; i < boot->size; i++) {
        if (!boot->peers[i].departed)
            continue;
        struct blob *blob = note_blob(boot, WIRE_GOODBYE, i, 0);
        conn_send(boot->service, link, blob);
        blob_drop(blob);
    }
}

void boot_flood_cause(struct boot *boot, const struct cause *cause)
{
    if (!boot || !service_alive(boot->service))
        return;
    pthread_mutex_lock(&boot->service->lock);
    stop_fail(boot->stop, cause);
    flood_start(boot, WIRE_CAUSE, cause);
    pthread_mutex_unlock(&boot->service->lock);
}

void boot_flood_refusal(struct boot *boot, const struct cause *refusal)
{
    if (!boot || !service_alive(boot->service))
        return;
    pthread_mutex_lock(&boot->service->lock);
    flood_start(boot, WIRE_REFUSAL, refusal);
    pthread_mutex_unlock(&boot->service->lock);
}
