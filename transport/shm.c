/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.c - the transport between ranks that share memory: each maps the other's segment. Nothing is copied here; the
 * lanes are the memory. Sharing is proved by reading the peer's nonce through the mapping, never by names.
 *
 * Ranks that are threads of one process get the mapping that exists already (segment.c's registry).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "lane_set.h"
#include "segment.h"
#include "shm.h"

enum { SHM_TAG = 0x73686d };

struct shm_blob {
    uint64_t nonce[2];
};
_Static_assert(sizeof(struct shm_blob) <= TRANSPORT_BLOB_BYTES, "the blob fits");

struct shm_end {
    struct transport_end end;
    const struct transport_env *env;
    struct lane_segment **peers; /* [rank]; NULL until reached */
    int attached;
};

static quire_status_t shm_open(struct transport_end **end, const struct transport_env *env, void *blob)
{
    struct shm_end *shm = calloc(1, sizeof(*shm));
    if (shm == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a transport");
    shm->end.transport = &transport_shm;
    shm->env = env;
    shm->peers = calloc((size_t)env->lanes->size, sizeof(*shm->peers));
    if (shm->peers == NULL) {
        free(shm);
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for %d peers", env->lanes->size);
    }
    struct shm_blob own;
    memcpy(own.nonce, env->lanes->segment->nonce, sizeof(own.nonce));
    memcpy(blob, &own, sizeof(own));
    quire_status_t st = env->offer_fd(env->ctx, SHM_TAG, env->lanes->segment->fd);
    if (st != QUIRE_OK) {
        free(shm->peers);
        free(shm);
        return st;
    }
    *end = &shm->end;
    return QUIRE_OK;
}

static quire_status_t shm_reach(struct transport_end *end, int rank, const void *blob, uint64_t deadline)
{
    struct shm_end *shm = (struct shm_end *)end;
    struct lane_set *set = shm->env->lanes;
    struct shm_blob theirs;
    int fd;
    memcpy(&theirs, blob, sizeof(theirs));
    quire_status_t st = shm->env->fetch_fd(shm->env->ctx, rank, SHM_TAG, deadline, &fd);
    if (st != QUIRE_OK)
        return st;
    struct lane_segment *segment;
    st = segment_map(&segment, fd, theirs.nonce, true);
    close(fd);
    if (st != QUIRE_OK)
        return st;
    if (segment->bytes != lane_places_of(&set->geometry, set->size).bytes) {
        segment_put(segment);
        return quire_fail(QUIRE_ERR_LINK, "rank %d's segment has another layout than ours", rank);
    }
    segment_put(shm->peers[rank]);
    shm->peers[rank] = segment;
    return QUIRE_OK;
}

static quire_status_t shm_attach(struct transport_end *end, int rank, uint64_t deadline)
{
    struct shm_end *shm = (struct shm_end *)end;
    struct lane_segment *peer = shm->peers[rank];
    if (peer == NULL)
        return QUIRE_BUG("attach of rank %d before reach", rank);
    lane_set_map_incoming(shm->env->lanes, rank, peer->base, &peer->control->bell);
    shm->attached++;
    return QUIRE_OK;
}

const void *shm_board(const struct transport_end *end, int rank)
{
    const struct shm_end *shm = (const struct shm_end *)end;
    return shm->peers[rank] == NULL ? NULL : shm->peers[rank]->control->board;
}

static void shm_close(struct transport_end *end)
{
    struct shm_end *shm = (struct shm_end *)end;
    (void)shm->env->offer_fd(shm->env->ctx, SHM_TAG, -1);
    for (int r = 0; r < shm->env->lanes->size; r++)
        segment_put(shm->peers[r]);
    free(shm->peers);
    free(shm);
}

static void shm_describe(const struct transport_end *end, char *text, size_t bytes)
{
    snprintf(text, bytes, "shm to %d peers", ((const struct shm_end *)end)->attached);
}

const struct transport transport_shm = {
    .name = "shm",
    .open = shm_open,
    .reach = shm_reach,
    .attach = shm_attach,
    .close = shm_close,
    .describe = shm_describe,
};
