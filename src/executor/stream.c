/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.c - the objects behind quire_stream_* and quire_event_*: queues, works and events. See stream.h for the rules
 * and the lock; the public functions are in src/api/stream.c.
 */
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/forked.h"
#include "stream_internal.h"
#include "stream_objects.h"

static const uint64_t STREAM_MAGIC = UINT64_C(0x7175697273747265), EVENT_MAGIC = UINT64_C(0x7175697265766e74);

quire_status_t stream_usable(const struct quire_stream *stream)
{
    if (stream == NULL || stream->magic != STREAM_MAGIC)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "the stream is NULL or was destroyed");
    if (stream->generation != fork_generation())
        return quire_fail(QUIRE_ERR_INVALID_USAGE, "the stream was made before fork() and belongs to the parent");
    return QUIRE_OK;
}

static quire_status_t event_usable(const struct quire_event *event)
{
    if (event == NULL || event->magic != EVENT_MAGIC)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "the event is NULL or was destroyed");
    if (event->generation != fork_generation())
        return quire_fail(QUIRE_ERR_INVALID_USAGE, "the event was made before fork() and belongs to the parent");
    return QUIRE_OK;
}

void event_put(struct quire_event *event)
{
    if (--event->references == 0)
        free(event);
}

/* ---- works ------------------------------------------------------------------------------------------------------- */

struct stream_work *stream_work_create(void)
{
    return calloc(1, sizeof(struct stream_work));
}

void stream_work_discard(struct stream_work *work)
{
    free(work);
}

quire_status_t stream_work_add(struct stream_work *work, struct exec_run *run, struct quire_stream *stream)
{
    int i = 0;
    while (i < work->stream_count && work->streams[i] != stream)
        i++;
    if (i == STREAM_WORK_STREAMS)
        return quire_fail(QUIRE_ERR_INVALID_USAGE, "a group uses more than %d streams", STREAM_WORK_STREAMS);
    if (i == work->stream_count)
        work->streams[work->stream_count++] = stream;
    struct exec_run **link = &work->runs;
    while (*link != NULL)
        link = &(*link)->next;
    *link = run;
    run->next = NULL;
    work->run_count++;
    return QUIRE_OK;
}

static void append(struct quire_stream *stream, struct stream_item *item)
{
    item->next = NULL;
    *stream->tail = item;
    stream->tail = &item->next;
    stream->queued++;
}

/* One ticket per communicator in the work, on all of its runs. */
static void give_tickets(struct stream_work *work)
{
    for (struct exec_run *run = work->runs; run != NULL; run = run->next) {
        struct exec_comm *comm = run->comm;
        if (comm->ticket_of != work) {
            comm->ticket_of = work;
            comm->tickets++;
        }
        run->ticket = comm->tickets;
    }
    for (struct exec_run *run = work->runs; run != NULL; run = run->next) {
        const struct exec_run *later = run->next;
        while (later != NULL && later->comm != run->comm)
            later = later->next;
        run->ticket_last = later == NULL;
        if (run->ticket_last)
            run->comm->ticket_of = NULL;
    }
}

quire_status_t stream_submit(struct stream_work *work)
{
    struct stream_item *items[STREAM_WORK_STREAMS] = {NULL};
    for (int i = 0; i < work->stream_count; i++) {
        items[i] = calloc(1, sizeof(*items[i]));
        if (items[i] == NULL) {
            while (i-- > 0)
                free(items[i]);
            return quire_fail(QUIRE_ERR_RESOURCE, "no memory to queue work on a stream");
        }
        items[i]->kind = STREAM_WORK;
        items[i]->work = work;
    }
    give_tickets(work);
    worker_lock();
    for (int i = 0; i < work->stream_count && items[i] != NULL; i++)
        append(work->streams[i], items[i]);
    worker_kick();
    worker_unlock(); /* the streams own the items now */
    return QUIRE_OK;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

quire_status_t stream_create(struct quire_stream **stream)
{
    struct quire_stream *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a stream");
    s->magic = STREAM_MAGIC;
    s->generation = fork_generation();
    s->tail = &s->head;
    quire_status_t st = worker_add_stream(s);
    if (st != QUIRE_OK) {
        free(s);
        return st;
    }
    *stream = s;
    return QUIRE_OK;
}

void stream_destroy(struct quire_stream *stream)
{
    worker_remove_stream(stream);
    stream->magic = 0;
    free(stream);
}

quire_status_t stream_synchronize(struct quire_stream *stream)
{
    worker_lock();
    uint64_t until = stream->queued;
    while (stream->done < until)
        worker_wait();
    quire_status_t st = stream->error;
    if (st != QUIRE_OK)
        quire_fail(st, "%s", stream->error_text);
    stream->error = QUIRE_OK;
    worker_unlock();
    return st;
}

quire_status_t stream_query(struct quire_stream *stream)
{
    worker_lock();
    quire_status_t st = stream->head == NULL ? QUIRE_OK : QUIRE_IN_PROGRESS;
    worker_unlock();
    return st;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

quire_status_t event_create(struct quire_event **event)
{
    struct quire_event *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for an event");
    e->magic = EVENT_MAGIC;
    e->generation = fork_generation();
    e->references = 1;
    *event = e;
    return QUIRE_OK;
}

quire_status_t event_destroy(struct quire_event *event)
{
    quire_status_t st = event_usable(event);
    if (st != QUIRE_OK)
        return st;
    worker_lock();
    event->magic = 0;
    event_put(event);
    worker_unlock();
    return QUIRE_OK;
}

static quire_status_t queue_event(struct quire_event *event, struct quire_stream *stream, enum stream_item_kind kind)
{
    quire_status_t st = event_usable(event);
    if (st == QUIRE_OK)
        st = stream_usable(stream);
    if (st != QUIRE_OK)
        return st;
    struct stream_item *item = calloc(1, sizeof(*item));
    if (item == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory to queue an event");
    item->kind = kind;
    item->event = event;
    worker_lock();
    event->references++;
    item->value = kind == STREAM_RECORD ? ++event->recorded : event->recorded;
    append(stream, item);
    worker_kick();
    worker_unlock();
    return QUIRE_OK;
}

quire_status_t event_record(struct quire_event *event, struct quire_stream *stream)
{
    return queue_event(event, stream, STREAM_RECORD);
}

quire_status_t stream_wait_event(struct quire_stream *stream, struct quire_event *event)
{
    return queue_event(event, stream, STREAM_WAIT);
}

quire_status_t event_query(struct quire_event *event)
{
    quire_status_t st = event_usable(event);
    if (st != QUIRE_OK)
        return st;
    worker_lock();
    st = event->reached >= event->recorded ? QUIRE_OK : QUIRE_IN_PROGRESS;
    worker_unlock();
    return st;
}

quire_status_t event_synchronize(struct quire_event *event)
{
    quire_status_t st = event_usable(event);
    if (st != QUIRE_OK)
        return st;
    worker_lock();
    uint64_t until = event->recorded;
    event->references++;
    while (event->reached < until)
        worker_wait();
    event_put(event);
    worker_unlock();
    return QUIRE_OK;
}
