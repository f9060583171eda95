/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c - entry points of streams and events: handles checked, then executor/stream.c. */
#include "executor/stream.h"
#include "base/status.h"
#include "executor/stream_objects.h"

static quire_status_t need(const void *out, const char *what)
{
    return out != NULL ? QUIRE_OK : quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s is NULL", what);
}

quire_status_t quire_stream_create(quire_stream **stream)
{
    quire_status_t st = need(stream, "stream");
    return st != QUIRE_OK ? st : stream_create(stream);
}

quire_status_t quire_stream_destroy(quire_stream *stream)
{
    if (stream == NULL)
        return QUIRE_OK;
    quire_status_t st = stream_usable(stream);
    if (st == QUIRE_OK)
        stream_destroy(stream);
    return st;
}

quire_status_t quire_stream_synchronize(quire_stream *stream)
{
    quire_status_t st = stream_usable(stream);
    return st != QUIRE_OK ? st : stream_synchronize(stream);
}

quire_status_t quire_stream_query(quire_stream *stream)
{
    quire_status_t st = stream_usable(stream);
    return st != QUIRE_OK ? st : stream_query(stream);
}

quire_status_t quire_event_create(quire_event **event)
{
    quire_status_t st = need(event, "event");
    return st != QUIRE_OK ? st : event_create(event);
}

quire_status_t quire_event_destroy(quire_event *event)
{
    return event == NULL ? QUIRE_OK : event_destroy(event);
}

quire_status_t quire_event_record(quire_event *event, quire_stream *stream)
{
    return event_record(event, stream);
}

quire_status_t quire_stream_wait_event(quire_stream *stream, quire_event *event)
{
    return stream_wait_event(stream, event);
}

quire_status_t quire_event_query(quire_event *event)
{
    return event_query(event);
}

quire_status_t quire_event_synchronize(quire_event *event)
{
    return event_synchronize(event);
}
