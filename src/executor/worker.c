/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.c - the worker thread: starts work that heads its streams, advances what is started, retires what is done.
 *
 * Started with the first stream, ended with the last. The lock is held while lists change and never while runs
 * advance; `kick` tells the worker, between two turns, that the lists have changed.
 *
 * Invariants: stream->head is NULL exactly when queued == done; a work is in the started list exactly from its start
 * to its retirement; tickets of a communicator are done in the order they were given.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/forked.h"
#include "stream_internal.h"

static struct worker {
    pthread_mutex_t lock;
    pthread_cond_t more; /* the worker waits here */
    pthread_cond_t less; /* everybody else */
    pthread_t thread;
    bool running;
    bool ending;   /* the last stream is gone; nobody starts a thread before this one is joined */
    uint32_t kick; /* atomic */
    uint32_t generation;
    struct quire_stream *streams;
    struct stream_work *started;
    struct exec_run **runs; /* scratch of the worker's thread */
    int run_room;
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER, .less = PTHREAD_COND_INITIALIZER};

void worker_lock(void)
{
    pthread_mutex_lock(&worker.lock);
}

void worker_unlock(void)
{
    pthread_mutex_unlock(&worker.lock);
}

void worker_wait(void)
{
    pthread_cond_wait(&worker.less, &worker.lock);
}

void worker_kick(void)
{
    atom_store_release(&worker.kick, 1u);
    pthread_cond_signal(&worker.more);
}

static void stream_pop(struct quire_stream *stream)
{
    struct stream_item *item = stream->head;
    stream->head = item->next;
    if (stream->head == NULL)
        stream->tail = &stream->head;
    stream->done++;
    if (item->event != NULL)
        event_put(item->event);
    free(item);
}

/* True when every earlier ticket of the work's communicators is done. */
static bool work_in_turn(const struct stream_work *work)
{
    for (const struct exec_run *run = work->runs; run != NULL; run = run->next)
        if (atom_load_acquire(&run->comm->tickets_done) != run->ticket - 1)
            return false;
    return true;
}

/* Moves one stream's head as far as it goes without running anything. True when something changed. */
static bool stream_advance(struct quire_stream *stream)
{
    bool changed = false;
    while (stream->head != NULL) {
        struct stream_item *item = stream->head;
        if (item->kind == STREAM_WORK) {
            struct stream_work *work = item->work;
            if (!item->arrived) {
                item->arrived = true;
                work->arrived++;
                changed = true;
            }
            if (!work->started && work->arrived == work->stream_count && work_in_turn(work)) {
                work->started = true;
                work->next = worker.started;
                worker.started = work;
                changed = true;
            }
            return changed;
        }
        if (item->kind == STREAM_WAIT && item->event->reached < item->value)
            return changed;
        if (item->kind == STREAM_RECORD && item->event->reached < item->value)
            item->event->reached = item->value;
        stream_pop(stream);
        changed = true;
    }
    return changed;
}

static bool work_final(const struct stream_work *work)
{
    for (const struct exec_run *run = work->runs; run != NULL; run = run->next)
        if (run->status == QUIRE_IN_PROGRESS)
            return false;
    return true;
}

static void work_retire(struct stream_work *work)
{
    const struct exec_run *bad = work->runs;
    while (bad != NULL && bad->status == QUIRE_OK)
        bad = bad->next;
    for (int i = 0; i < work->stream_count; i++) {
        struct quire_stream *stream = work->streams[i];
        if (bad != NULL && stream->error == QUIRE_OK) {
            stream->error = bad->status;
            snprintf(stream->error_text, sizeof(stream->error_text), "%s", bad->error);
        }
        stream_pop(stream);
    }
    for (struct exec_run *run = work->runs, *next; run != NULL; run = next) {
        /* The owner may free the communicator as soon as its last ticket is done: nothing of it is touched after. */
        struct exec_comm *comm = run->comm;
        uint64_t ticket = run->ticket;
        bool last = run->ticket_last;
        next = run->next;
        run->release(run);
        if (last)
            atom_store_release(&comm->tickets_done, ticket);
    }
    free(work);
}

static bool retire_finished(void)
{
    bool changed = false;
    for (struct stream_work **link = &worker.started; *link != NULL;) {
        struct stream_work *work = *link;
        if (!work_final(work)) {
            link = &work->next;
            continue;
        }
        *link = work->next;
        work_retire(work);
        changed = true;
    }
    return changed;
}

/* All unfinished runs of started work into worker.runs; -1 when there is no memory for the list. */
static int collect_runs(void)
{
    int count = 0;
    for (const struct stream_work *work = worker.started; work != NULL; work = work->next)
        count += work->run_count;
    if (count > worker.run_room) {
        struct exec_run **grown = realloc(worker.runs, sizeof(*grown) * (size_t)count * 2);
        if (grown == NULL)
            return -1;
        worker.runs = grown;
        worker.run_room = count * 2;
    }
    count = 0;
    for (const struct stream_work *work = worker.started; work != NULL; work = work->next)
        for (struct exec_run *run = work->runs; run != NULL; run = run->next)
            if (run->status == QUIRE_IN_PROGRESS)
                worker.runs[count++] = run;
    return count;
}

/* Runs without the lock until a run ends or somebody kicks. */
static void turn(int count)
{
    uint64_t idle = 0;
    while (exec_turn(worker.runs, count, &idle) == count && atom_load_acquire(&worker.kick) == 0)
        ;
}

static void *worker_main(void *arg)
{
    worker_lock();
    for (;;) {
        atom_store_release(&worker.kick, 0u);
        bool changed = retire_finished();
        for (bool more = true; more;) {
            more = false;
            for (struct quire_stream *s = worker.streams; s != NULL; s = s->next)
                more |= stream_advance(s);
            changed |= more;
        }
        if (changed)
            pthread_cond_broadcast(&worker.less);
        if (worker.started == NULL) {
            if (worker.ending)
                break;
            if (atom_load_acquire(&worker.kick) == 0)
                pthread_cond_wait(&worker.more, &worker.lock);
            continue;
        }
        int count = collect_runs();
        worker_unlock();
        if (count > 0)
            turn(count);
        else if (count < 0)
            sched_yield();
        worker_lock();
    }
    free(worker.runs);
    worker.runs = NULL;
    worker.run_room = 0;
    worker_unlock();
    return arg;
}

/* With all signals blocked, so that the caller's handlers run on the caller's threads. */
static quire_status_t start_thread(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&worker.thread, NULL, worker_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return quire_fail(QUIRE_ERR_RESOURCE, "can't start the worker thread: error %d", error);
    worker.running = true;
    return QUIRE_OK;
}

quire_status_t worker_add_stream(struct quire_stream *stream)
{
    uint32_t generation = fork_generation();
    if (worker.generation != generation) {
        /* A forked child: the parent's worker and its lists don't exist here. */
        pthread_mutex_init(&worker.lock, NULL);
        pthread_cond_init(&worker.more, NULL);
        pthread_cond_init(&worker.less, NULL);
        worker.running = worker.ending = false;
        worker.streams = NULL;
        worker.started = NULL;
        worker.generation = generation;
    }
    worker_lock();
    while (worker.ending)
        worker_wait();
    quire_status_t st = worker.running ? QUIRE_OK : start_thread();
    if (st == QUIRE_OK) {
        stream->next = worker.streams;
        worker.streams = stream;
    }
    worker_unlock();
    return st;
}

void worker_remove_stream(struct quire_stream *stream)
{
    worker_lock();
    while (stream->head != NULL)
        worker_wait();
    struct quire_stream **link = &worker.streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    bool last = worker.streams == NULL;
    pthread_t thread = worker.thread;
    if (last) {
        worker.ending = true;
        worker_kick();
    }
    worker_unlock();
    if (!last)
        return;
    pthread_join(thread, NULL);
    worker_lock();
    worker.running = worker.ending = false;
    pthread_cond_broadcast(&worker.less);
    worker_unlock();
}

void exec_queue_wait(struct exec_comm *comm)
{
    if (exec_queue_idle(comm))
        return;
    worker_lock();
    while (!exec_queue_idle(comm))
        worker_wait();
    worker_unlock();
}
