/* SPDX-License-Identifier: BSD-3-Clause */
/* broadcast_perf.c - every byte reaches every rank once. */
#include "perf.h"

static double factor(int ranks)
{
    return 1.0;
}

static quire_status_t call(const struct perf_call *c)
{
    return quire_broadcast(c->send, c->recv, c->count, c->type, c->root, c->comm, c->stream);
}

int main(int argc, char **argv)
{
    static const struct perf_test test = {.name = "Broadcast",
                                          .binary = "broadcast_perf",
                                          .collective = QUIRE_BROADCAST,
                                          .has_root = true,
                                          .checks_in_place = true,
                                          .factor = factor,
                                          .call = call};
    return perf_main(&test, argc, argv);
}
