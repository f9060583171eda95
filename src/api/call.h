/* SPDX-License-Identifier: BSD-3-Clause */
/* call.h - what the entry points share: checking a call's arguments, and issuing it alone or into the open group. */
#ifndef QUIRE_API_CALL_H
#define QUIRE_API_CALL_H

#include "comm/comm.h"

/* OK or INVALID_ARGUMENT with what is wrong. */
quire_status_t call_check(const struct quire_comm *comm, const struct comm_call *call);
/* Checks the handles, then runs, queues, or adds to this thread's group. */
quire_status_t call_issue(struct quire_comm *comm, const struct comm_call *call, quire_stream *stream);

/* True while this thread has a group open. */
bool group_open(void);
/* Adds a call to it. `checked` is what call_check said: an error poisons the group. Returns `checked`, or RESOURCE. */
quire_status_t group_add(struct quire_comm *comm, const struct comm_call *call, quire_stream *stream,
                         quire_status_t checked);

#endif
