/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_internal.h - what stream.c (the objects) and worker.c (the thread) share. */
#ifndef QUIRE_EXECUTOR_STREAM_INTERNAL_H
#define QUIRE_EXECUTOR_STREAM_INTERNAL_H

#include "stream.h"

/* The one lock over streams, events and items. */
void worker_lock(void);
void worker_unlock(void);
/* Waits, with the lock held, until the worker has finished something. */
void worker_wait(void);
/* Tells the worker, with the lock held, that the lists have changed. */
void worker_kick(void);
quire_status_t worker_add_stream(struct quire_stream *stream);
/* Waits for the stream's items first; ends the thread with the last stream. */
void worker_remove_stream(struct quire_stream *stream);

/* With the lock held. */
void event_put(struct quire_event *event);

#endif
