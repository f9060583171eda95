/* SPDX-License-Identifier: BSD-3-Clause */
/* call.c - one call between the entry point and the communicator: arguments checked, then run, queued or grouped. */
#include "call.h"

#include "base/bytes.h"
#include "base/status.h"
#include "executor/stream.h"

static const char *noun(const struct comm_call *call)
{
    return quire_collective_name(call->collective);
}

/* The buffer exists and doesn't wrap around the address space. */
static quire_status_t check_buffer(const struct comm_call *call, const char *which, const void *buffer, size_t bytes)
{
    if (bytes == 0)
        return QUIRE_OK;
    if (buffer == NULL)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s: the %s buffer is NULL, with %zu bytes to move", noun(call),
                          which, bytes);
    if ((uintptr_t)buffer > UINTPTR_MAX - bytes)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s: the %s buffer of %zu bytes wraps around the address space",
                          noun(call), which, bytes);
    return QUIRE_OK;
}

static quire_status_t check_overlap(const struct comm_call *call, size_t bytes)
{
    uintptr_t a = (uintptr_t)call->send, b = (uintptr_t)call->recv;
    if (bytes == 0 || a == b || a + bytes <= b || b + bytes <= a)
        return QUIRE_OK;
    return quire_fail(
        QUIRE_ERR_INVALID_ARGUMENT,
        "%s: send and receive buffers of %zu bytes overlap but aren't equal; pass the same pointer for in "
        "place, or disjoint buffers",
        noun(call), bytes);
}

quire_status_t call_check(const struct quire_comm *comm, const struct comm_call *call)
{
    if (call->collective == QUIRE_BARRIER)
        return QUIRE_OK;
    size_t elem = quire_type_size(call->type), bytes;
    bool all_reduce = call->collective == QUIRE_ALL_REDUCE, broadcast = call->collective == QUIRE_BROADCAST;
    bool sends = all_reduce || call->collective == QUIRE_SEND || (broadcast && call->root == comm->rank);
    bool receives = all_reduce || broadcast || call->collective == QUIRE_RECV;
    if (elem == 0)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s: %d is no element type", noun(call), (int)call->type);
    if (all_reduce && (unsigned)call->op >= QUIRE_OP_COUNT)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s: %d is no operator", noun(call), (int)call->op);
    if (call->root < 0 || call->root >= comm->size)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s: %s %d is out of range, the communicator has ranks 0 to %d",
                          noun(call), broadcast ? "root" : "peer", call->root, comm->size - 1);
    if (!bytes_mul(call->count, elem, &bytes))
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s: %zu elements of %zu bytes overflow", noun(call), call->count,
                          elem);
    quire_status_t st = sends ? check_buffer(call, "send", call->send, bytes) : QUIRE_OK;
    if (st == QUIRE_OK && receives)
        st = check_buffer(call, "receive", call->recv, bytes);
    if (st == QUIRE_OK && sends && receives)
        st = check_overlap(call, bytes);
    return st;
}

static quire_status_t run_queued(struct quire_comm *comm, const struct comm_call *call, quire_stream *stream)
{
    struct comm_operation *operation;
    struct stream_work *work = stream_work_create();
    if (work == NULL) {
        comm_refuse(comm, call, quire_fail(QUIRE_ERR_RESOURCE, "no memory to queue %s", noun(call)));
        return QUIRE_ERR_RESOURCE;
    }
    quire_status_t st = comm_prepare(comm, call, &operation);
    comm_group_over(comm);
    if (st != QUIRE_OK) {
        comm_refuse(comm, call, st);
        stream_work_discard(work);
        return st;
    }
    st = stream_work_add(work, &operation->run, stream);
    if (st == QUIRE_OK)
        st = stream_submit(work);
    if (st != QUIRE_OK) {
        comm_refuse_prepared(operation, st);
        stream_work_discard(work);
    }
    return st;
}

/* Sending to oneself outside a group would wait for a receive that can't be posted. */
static quire_status_t check_alone(const struct quire_comm *comm, const struct comm_call *call)
{
    bool pair = call->collective == QUIRE_SEND || call->collective == QUIRE_RECV;
    if (!pair || call->root != comm->rank)
        return QUIRE_OK;
    return quire_fail(QUIRE_ERR_INVALID_USAGE,
                      "%s: the peer is this rank itself; put the send and its receive into one "
                      "group (quire_group_start, quire_group_end)",
                      noun(call));
}

quire_status_t call_issue(struct quire_comm *comm, const struct comm_call *call, quire_stream *stream)
{
    quire_status_t st = comm_usable(comm);
    if (st != QUIRE_OK)
        return st;
    quire_status_t checked = stream == NULL ? QUIRE_OK : stream_usable(stream);
    if (checked == QUIRE_OK)
        checked = call_check(comm, call);
    if (group_open())
        return group_add(comm, call, stream, checked);
    st = comm_enter(comm);
    if (st != QUIRE_OK)
        return st;
    if (checked == QUIRE_OK && (checked = check_alone(comm, call)) != QUIRE_OK) {
        st = comm_note_error(comm, checked); /* no peer is involved: nothing to refuse */
    } else if (checked != QUIRE_OK) {
        /* comm_enter may have changed the sentence: make it anew. */
        checked = stream == NULL ? QUIRE_OK : stream_usable(stream);
        checked = checked == QUIRE_OK ? call_check(comm, call) : checked;
        comm_refuse(comm, call, checked);
        st = comm_note_error(comm, checked);
    } else if (stream == NULL) {
        st = comm_run(comm, call);
    } else {
        st = comm_note_error(comm, run_queued(comm, call, stream));
    }
    comm_leave(comm);
    return st;
}
