/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.c - calls collected between quire_group_start and quire_group_end, then started together.
 *
 * A group belongs to a thread. Its calls are plain values until the outermost end, which takes every communicator in
 * it, names and binds all calls in listing order, and drives them together: no order of listing can deadlock. Calls of
 * one kind on one lane keep their order through run->after.
 *
 * Invariant: outside quire_group_end no communicator is held; when the group is poisoned every call in it is refused,
 * so that no peer waits for it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "call.h"
#include "executor/stream.h"

struct group_call {
    struct quire_comm *comm;
    quire_stream *stream;
    struct comm_call call;
    struct comm_operation *operation;
};

struct group {
    int depth;
    quire_status_t poison;
    char poison_text[STATUS_TEXT_BYTES];
    struct group_call *calls;
    int count, room;
    struct quire_comm **comms; /* each once */
    int comm_count, comm_room;
    int entered; /* comms[0 .. entered) are held */
    struct exec_run **runs;
    int run_room;
};

static __thread struct group *this_group;
static pthread_key_t group_key;
static pthread_once_t group_once = PTHREAD_ONCE_INIT;

static void group_free(void *arg)
{
    struct group *g = arg;
    free(g->runs);
    free(g->comms);
    free(g->calls);
    free(g);
}

static void make_key(void)
{
    (void)pthread_key_create(&group_key, group_free);
}

static struct group *group_get(void)
{
    if (this_group != NULL)
        return this_group;
    pthread_once(&group_once, make_key);
    struct group *g = calloc(1, sizeof(*g));
    if (g == NULL || pthread_setspecific(group_key, g) != 0) {
        free(g);
        return NULL;
    }
    this_group = g;
    return g;
}

bool group_open(void)
{
    return this_group != NULL && this_group->depth > 0;
}

static quire_status_t poison(struct group *g, quire_status_t st)
{
    if (g->poison == QUIRE_OK) {
        g->poison = st;
        snprintf(g->poison_text, sizeof(g->poison_text), "%s", status_text_last());
    }
    return st;
}

/* Room for one more entry of `size` bytes; doubles. */
static bool grow(void **array, int count, int *room, size_t size)
{
    if (count < *room)
        return true;
    int wanted = *room == 0 ? 8 : *room * 2;
    void *grown = realloc(*array, (size_t)wanted * size);
    if (grown == NULL)
        return false;
    *array = grown;
    *room = wanted;
    return true;
}

static bool know_comm(struct group *g, struct quire_comm *comm)
{
    for (int i = g->comm_count - 1; i >= 0; i--)
        if (g->comms[i] == comm)
            return true;
    if (!grow((void **)&g->comms, g->comm_count, &g->comm_room, sizeof(struct quire_comm *)))
        return false;
    g->comms[g->comm_count++] = comm;
    return true;
}

quire_status_t group_add(struct quire_comm *comm, const struct comm_call *call, quire_stream *stream,
                         quire_status_t checked)
{
    struct group *g = this_group;
    if (!grow((void **)&g->calls, g->count, &g->room, sizeof(*g->calls)) || !know_comm(g, comm))
        return poison(g, quire_fail(QUIRE_ERR_RESOURCE, "no memory for a call in a group"));
    g->calls[g->count++] = (struct group_call){comm, stream, *call, NULL};
    return checked == QUIRE_OK ? QUIRE_OK : poison(g, checked);
}

quire_status_t quire_group_start(void)
{
    struct group *g = group_get();
    if (g == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a group");
    if (g->depth++ == 0) {
        g->poison = QUIRE_OK;
        g->count = g->comm_count = g->entered = 0;
    }
    return QUIRE_OK;
}

/* ---- the outermost end ------------------------------------------------------------------------------------------- */

static quire_status_t enter_all(struct group *g)
{
    for (; g->entered < g->comm_count; g->entered++) {
        quire_status_t st = comm_enter(g->comms[g->entered]);
        if (st != QUIRE_OK)
            return st;
    }
    return QUIRE_OK;
}

static bool is_entered(const struct group *g, const struct quire_comm *comm)
{
    for (int i = 0; i < g->entered; i++)
        if (g->comms[i] == comm)
            return true;
    return false;
}

/* Every send to oneself needs its receive, in this group. */
static quire_status_t check_self(const struct group *g)
{
    for (int i = 0; i < g->comm_count; i++) {
        int sends = 0, receives = 0;
        for (int c = 0; c < g->count; c++) {
            const struct comm_call *call = &g->calls[c].call;
            if (g->calls[c].comm != g->comms[i] || call->root != g->comms[i]->rank)
                continue;
            sends += call->collective == QUIRE_SEND;
            receives += call->collective == QUIRE_RECV;
        }
        if (sends != receives)
            return quire_fail(
                QUIRE_ERR_INVALID_USAGE,
                "the group has %d sends of rank %d to itself and %d receives: each needs its partner in the "
                "same group",
                sends, g->comms[i]->rank, receives);
    }
    return QUIRE_OK;
}

static quire_status_t prepare_all(struct group *g)
{
    for (int i = 0; i < g->count; i++) {
        struct group_call *c = &g->calls[i];
        quire_status_t st = comm_prepare(c->comm, &c->call, &c->operation);
        if (st != QUIRE_OK)
            return st;
    }
    return QUIRE_OK;
}

/* Nothing of the group runs; peers are told, call by call, in order. */
static void refuse_all(struct group *g, quire_status_t st)
{
    for (int i = 0; i < g->count; i++) {
        struct group_call *c = &g->calls[i];
        if (!is_entered(g, c->comm))
            continue;
        if (c->operation != NULL)
            comm_refuse_prepared(c->operation, st);
        else
            comm_refuse(c->comm, &c->call, st);
        comm_note_error(c->comm, st);
    }
}

static quire_status_t wait_here(struct group *g)
{
    for (int i = 0; i < g->comm_count; i++)
        exec_queue_wait(&g->comms[i]->exec);
    for (int i = 0; i < g->count; i++)
        g->runs[i] = &g->calls[i].operation->run;
    quire_status_t st = exec_wait(g->runs, g->count);
    for (int i = g->count - 1; i >= 0; i--) {
        struct group_call *c = &g->calls[i];
        if (c->operation->run.status != QUIRE_OK)
            comm_note_error(c->comm, quire_fail(c->operation->run.status, "%s", c->operation->run.error));
        comm_give_back(c->operation);
    }
    return st;
}

/*
 * Calls without a stream in a group that has streams join the first stream's place and the end waits for them; the
 * stream's error, if any, is theirs.
 */
static quire_status_t queue_all(struct group *g, quire_stream *first, bool wait)
{
    struct stream_work *work = stream_work_create();
    if (work == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory to queue a group");
    quire_status_t st = QUIRE_OK;
    for (int i = 0; st == QUIRE_OK && i < g->count; i++)
        st =
            stream_work_add(work, &g->calls[i].operation->run, g->calls[i].stream == NULL ? first : g->calls[i].stream);
    if (st == QUIRE_OK)
        st = stream_submit(work);
    if (st != QUIRE_OK) {
        stream_work_discard(work);
        return st;
    }
    for (int i = 0; wait && i < g->comm_count; i++)
        exec_queue_wait(&g->comms[i]->exec);
    return QUIRE_OK;
}

static quire_status_t submit(struct group *g)
{
    quire_stream *first = NULL;
    bool wait = false;
    for (int i = 0; i < g->count; i++) {
        if (g->calls[i].stream == NULL)
            wait = true;
        else if (first == NULL)
            first = g->calls[i].stream;
    }
    while (g->run_room < g->count)
        if (!grow((void **)&g->runs, g->run_room, &g->run_room, sizeof(*g->runs)))
            return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a group of %d calls", g->count);
    quire_status_t st = prepare_all(g);
    if (st == QUIRE_OK && first != NULL)
        st = queue_all(g, first, wait);
    if (st != QUIRE_OK)
        refuse_all(g, st);
    else if (first == NULL)
        st = wait_here(g);
    return st;
}

quire_status_t quire_group_end(void)
{
    struct group *g = this_group;
    if (g == NULL || g->depth == 0)
        return quire_fail(QUIRE_ERR_INVALID_USAGE, "quire_group_end without quire_group_start");
    if (--g->depth > 0)
        return QUIRE_OK;
    quire_status_t st = enter_all(g);
    if (st == QUIRE_OK && g->poison != QUIRE_OK)
        st = quire_fail(g->poison, "%s", g->poison_text);
    if (st == QUIRE_OK)
        st = check_self(g);
    if (st != QUIRE_OK)
        refuse_all(g, st);
    else if (g->count > 0)
        st = submit(g);
    for (int i = 0; i < g->entered; i++) {
        comm_group_over(g->comms[i]);
        comm_leave(g->comms[i]);
    }
    return st;
}
