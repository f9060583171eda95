/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream_objects.h - what src/api/stream.c calls: one function per public call, same meaning as in quire.h. The event
 * functions check their handles; the stream functions want a handle that stream_usable accepts.
 */
#ifndef QUIRE_EXECUTOR_STREAM_OBJECTS_H
#define QUIRE_EXECUTOR_STREAM_OBJECTS_H

#include "quire.h"

quire_status_t stream_create(quire_stream **stream);
void stream_destroy(quire_stream *stream);
quire_status_t stream_synchronize(quire_stream *stream);
quire_status_t stream_query(quire_stream *stream);
quire_status_t stream_wait_event(quire_stream *stream, quire_event *event);
quire_status_t event_create(quire_event **event);
quire_status_t event_destroy(quire_event *event);
quire_status_t event_record(quire_event *event, quire_stream *stream);
quire_status_t event_query(quire_event *event);
quire_status_t event_synchronize(quire_event *event);

#endif
