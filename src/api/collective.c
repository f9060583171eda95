/* SPDX-License-Identifier: BSD-3-Clause */
/* collective.c - entry points of the collectives and of send and receive: arguments into a plain value, then call.c. */
#include "call.h"

quire_status_t quire_all_reduce(const void *send, void *recv, size_t count, quire_type_t type, quire_op_t op,
                                quire_comm *comm, quire_stream *stream)
{
    struct comm_call call = {QUIRE_ALL_REDUCE, type, op, 0, count, send, recv};
    return call_issue(comm, &call, stream);
}

quire_status_t quire_broadcast(const void *send, void *recv, size_t count, quire_type_t type, int root,
                               quire_comm *comm, quire_stream *stream)
{
    struct comm_call call = {QUIRE_BROADCAST, type, QUIRE_SUM, root, count, send, recv};
    return call_issue(comm, &call, stream);
}

quire_status_t quire_barrier(quire_comm *comm, quire_stream *stream)
{
    struct comm_call call = {QUIRE_BARRIER, QUIRE_INT8, QUIRE_SUM, 0, 0, NULL, NULL};
    return call_issue(comm, &call, stream);
}

quire_status_t quire_send(const void *send, size_t count, quire_type_t type, int peer, quire_comm *comm,
                          quire_stream *stream)
{
    struct comm_call call = {QUIRE_SEND, type, QUIRE_SUM, peer, count, send, NULL};
    return call_issue(comm, &call, stream);
}

quire_status_t quire_recv(void *recv, size_t count, quire_type_t type, int peer, quire_comm *comm, quire_stream *stream)
{
    struct comm_call call = {QUIRE_RECV, type, QUIRE_SUM, peer, count, NULL, recv};
    return call_issue(comm, &call, stream);
}
