/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.c - driving runs to their end, and waiting well: spin while cores are free, then yield, then sleep on this
 * rank's bell. Every turn looks at the stop word; every few hundred turns at the clock, the deadline and the hooks.
 *
 * Why these stages: a cache line from a running peer takes 50 to 300 ns, a yield with nobody else runnable 0.4 us, a
 * hand-over by yield on a shared core about 1 us, but waking a halted core 20 us and more; and a bare spin against the
 * peer on the same core costs a whole scheduler tick.
 */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "executor_internal.h"
#include "segment.h"

/* Looks at stop word, deadline and hooks of one idle run. */
void exec_idle_check(struct exec_run *run, uint64_t now)
{
    struct exec_comm *comm = run->comm;
    if (run->status != QUIRE_IN_PROGRESS)
        return;
    uint32_t stop = stop_seen(comm->stop);
    if (stop == STOP_FATAL) {
        exec_run_fail(run, stop_status(comm->stop));
        return;
    }
    struct cause refusal;
    if (stop == STOP_NOTICE && stop_refused(comm->stop, run->refusal, &refusal)) {
        exec_run_fail(run, quire_fail((quire_status_t)refusal.status, "%s", refusal.text));
        return;
    }
    if (run->waited_from == 0) {
        run->waited_from = now;
        run->next_slow = now + comm->slow_after_ns;
        return;
    }
    if (comm->timeout_ns != 0 && now - run->waited_from >= comm->timeout_ns) {
        exec_run_fail(run, comm->on_timeout(comm->ctx, run, now - run->waited_from));
        return;
    }
    if (now >= run->next_slow) {
        /* Ever more seldom: 1, 2, 4 ... ms, at most every 100 ms. */
        uint64_t gap = now - run->waited_from;
        run->next_slow = now + (gap < 100 * CLOCK_MS ? gap + CLOCK_MS : 100 * CLOCK_MS);
        quire_status_t st = comm->on_slow(comm->ctx, run);
        if (st != QUIRE_OK)
            exec_run_fail(run, st);
    }
}

static void announce(struct exec_run *const *runs, int count, int add)
{
    for (int i = 0; i < count; i++)
        if (runs[i]->status == QUIRE_IN_PROGRESS && runs[i]->started)
            for (uint32_t left = runs[i]->active; left != 0; left &= left - 1) {
                struct exec_cursor *c = &runs[i]->cursor[__builtin_ctz(left)];
                step_announce(runs[i], &runs[i]->binding->plan->steps[c->step], c, add);
            }
}

static int progress_all(struct exec_run *const *runs, int count, bool *moved)
{
    int open = 0;
    for (int i = 0; i < count; i++)
        open += exec_progress(runs[i], moved) == QUIRE_IN_PROGRESS;
    return open;
}

/* Sleeps until a bell rings or a socket is ready, at most a millisecond. Nothing is announced for tcp: poll sees it. */
static void sleep_once(struct exec_run *const *runs, int count)
{
    struct exec_comm *comm = NULL;
    for (int i = 0; i < count && comm == NULL; i++)
        if (runs[i]->status == QUIRE_IN_PROGRESS)
            comm = runs[i]->comm;
    if (comm == NULL)
        return;
    for (int i = 0; i < comm->end_count; i++)
        if (comm->ends[i]->transport->sleep != NULL) {
            comm->ends[i]->transport->sleep(comm->ends[i], 1);
            return;
        }
    struct lane_segment *segment = comm->lanes->segment;
    if (segment == NULL) {
        sched_yield();
        return;
    }
    uint32_t *bell = &segment->control->bell;
    uint32_t before = atom_load_acquire(bell);
    bool moved = false;
    announce(runs, count, 1);
    /* Look once more behind the announcement: what was published before it will ring no bell. The cursors may move
       here, so the announcement is taken back for the lanes it was made on only if nothing moved. */
    struct timespec ms = {0, 1000000};
    for (int i = 0; i < count && !moved; i++)
        if (runs[i]->status == QUIRE_IN_PROGRESS && runs[i]->started) {
            uint64_t mask[(4096 + 63) / 64] = {0};
            if (comm->lanes->size <= 4096)
                moved |= exec_missing(runs[i], mask) == 0 && runs[i]->active != 0;
        }
    if (!moved)
        syscall(SYS_futex, bell, FUTEX_WAIT, before, &ms, NULL, 0);
    announce(runs, count, -1);
}

/* One turn without progress: look around now and then, and give the core away in stages. */
static void idle_turn(struct exec_run *const *runs, int count, uint64_t idle)
{
    const struct exec_comm *comm = runs[0]->comm;
    if (idle < comm->spin) {
        atom_pause();
        if (idle % 64 != 63)
            return;
    } else if (idle % 8 != 7) {
        sched_yield();
        return;
    }
    uint64_t now = clock_ns(), since = now;
    for (int i = 0; i < count; i++) {
        exec_idle_check(runs[i], now);
        if (runs[i]->waited_from != 0 && runs[i]->waited_from < since)
            since = runs[i]->waited_from;
    }
    if (idle >= comm->spin) {
        if (now - since >= comm->sleep_after_ns)
            sleep_once(runs, count);
        else
            sched_yield();
    }
}

int exec_turn(struct exec_run *const *runs, int count, uint64_t *idle)
{
    bool moved = false;
    int open = progress_all(runs, count, &moved);
    if (moved) {
        if (*idle != 0)
            for (int i = 0; i < count; i++)
                runs[i]->waited_from = 0;
        *idle = 0;
    } else if (open != 0) {
        idle_turn(runs, count, (*idle)++);
    }
    return open;
}

quire_status_t exec_wait(struct exec_run *const *runs, int count)
{
    uint64_t idle = 0;
    while (exec_turn(runs, count, &idle) != 0)
        ;
    for (int i = 0; i < count; i++)
        if (runs[i]->status != QUIRE_OK)
            return quire_fail(runs[i]->status, "%s", runs[i]->error);
    return QUIRE_OK;
}
