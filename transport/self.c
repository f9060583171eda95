/* SPDX-License-Identifier: BSD-3-Clause */
/* self.c - the transport to oneself: the consumer's view of the lane that lane_set.c made in plain memory. */
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "transport.h"

struct self_end {
    struct transport_end end;
    struct lane_set *lanes;
};

static quire_status_t self_open(struct transport_end **end, const struct transport_env *env, void *blob)
{
    struct self_end *self = calloc(1, sizeof(*self));
    if (self == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a transport");
    self->end.transport = &transport_self;
    self->lanes = env->lanes;
    *end = &self->end;
    return QUIRE_OK;
}

static quire_status_t self_reach(struct transport_end *end, int rank, const void *blob, uint64_t deadline)
{
    const struct self_end *self = (const struct self_end *)end;
    return rank == self->lanes->rank ? QUIRE_OK : quire_fail(QUIRE_ERR_LINK, "self reaches its own rank only");
}

static quire_status_t self_attach(struct transport_end *end, int rank, uint64_t deadline)
{
    struct lane_set *set = ((struct self_end *)end)->lanes;
    struct lane *out = &set->out_pair[TRANSPORT_CHANNELS - 1][rank], *in = &set->in_pair[TRANSPORT_CHANNELS - 1][rank];
    lane_init_consumer(in, &set->geometry, out->control, out->payload, 1, 0);
    in->peer = rank;
    in->channel = TRANSPORT_CHANNELS - 1;
    return QUIRE_OK;
}

static void self_close(struct transport_end *end)
{
    free(end);
}

static void self_describe(const struct transport_end *end, char *text, size_t bytes)
{
    snprintf(text, bytes, "self");
}

const struct transport transport_self = {
    .name = "self",
    .open = self_open,
    .reach = self_reach,
    .attach = self_attach,
    .close = self_close,
    .describe = self_describe,
};
