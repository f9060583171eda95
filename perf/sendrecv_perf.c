/* SPDX-License-Identifier: BSD-3-Clause */
/* sendrecv_perf.c - each rank sends to the next and receives from the one before, in one group. */
#include "perf.h"

static double factor(int ranks)
{
    return 1.0;
}

static quire_status_t call(const struct perf_call *c)
{
    int next = (c->rank + 1) % c->size, before = (c->rank + c->size - 1) % c->size;
    quire_status_t st = quire_group_start(), end;
    if (st != QUIRE_OK)
        return st;
    st = quire_send(c->send, c->count, c->type, next, c->comm, c->stream);
    if (st == QUIRE_OK)
        st = quire_recv(c->recv, c->count, c->type, before, c->comm, c->stream);
    end = quire_group_end();
    return st != QUIRE_OK ? st : end;
}

int main(int argc, char **argv)
{
    static const struct perf_test test = {
        .name = "SendRecv", .binary = "sendrecv_perf", .collective = QUIRE_SEND, .factor = factor, .call = call};
    return perf_main(&test, argc, argv);
}
