/* SPDX-License-Identifier: BSD-3-Clause */
/* all_reduce_perf.c - every byte goes in and out of every rank once less its own share: 2 (n-1)/n. */
#include "perf.h"

static double factor(int ranks)
{
    return 2.0 * (ranks - 1) / ranks;
}

static quire_status_t call(const struct perf_call *c)
{
    return quire_all_reduce(c->send, c->recv, c->count, c->type, c->op, c->comm, c->stream);
}

int main(int argc, char **argv)
{
    static const struct perf_test test = {.name = "AllReduce",
                                          .binary = "all_reduce_perf",
                                          .collective = QUIRE_ALL_REDUCE,
                                          .has_op = true,
                                          .checks_in_place = true,
                                          .factor = factor,
                                          .call = call};
    return perf_main(&test, argc, argv);
}
