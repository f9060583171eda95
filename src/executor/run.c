/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - a plan bound to buffers: strands as resumable cursors. Each turn gives every unfinished strand one step, so
 * that strands overlap; a turn in which nothing moved ends exec_progress.
 *
 * Invariant: bit i of run->active is set exactly while strand i has steps left; status is IN_PROGRESS exactly while
 * active != 0 or slots of this run have not left the process.
 */
#include <stdio.h>

#include "executor_internal.h"

void exec_binding_make(struct exec_binding *binding, const struct plan *plan, const struct plan_layout *layout,
                       quire_type_t type, quire_op_t op, const struct lane_geometry *geometry)
{
    size_t room = geometry->slot_bytes / plan->slot_blocks / LANE_LINE * LANE_LINE;
    if (room < LANE_LINE)
        room = LANE_LINE;
    binding->plan = plan;
    binding->layout = *layout;
    binding->slice_elems = room / layout->elem;
    binding->slice_bytes = binding->slice_elems * layout->elem;
    binding->passes = (layout->block_elems + binding->slice_elems - 1) / binding->slice_elems;
    if (binding->passes == 0)
        binding->passes = 1;
    binding->type = type;
    binding->op = op;
}

void exec_bind(struct exec_run *run, struct exec_comm *comm, const struct exec_binding *binding,
               const struct op_name *name, const void *in, void *out, void *scratch)
{
    const struct plan *plan = binding->plan;
    run->comm = comm;
    run->binding = binding;
    run->name = *name;
    run->refusal = name->sequence;
    run->in = in;
    run->out = out;
    run->scratch = scratch;
    run->after = NULL;
    run->status = QUIRE_IN_PROGRESS;
    run->active = (1u << plan->strand_count) - 1;
    for (uint32_t i = 0; i < plan->strand_count; i++) {
        run->cursor[i] = (struct exec_cursor){0, plan->strands[i].first, 0, 0};
        if (plan->strands[i].count == 0)
            run->active &= ~(1u << i);
    }
    for (uint32_t i = 0; i < plan->event_count; i++)
        run->event[i] = 0;
    run->on_start = NULL;
    run->started = false;
    run->waited_from = 0;
    run->next_slow = 0;
    run->next = NULL;
    run->release = NULL;
}

/* Moves the cursor behind a finished iteration; false when the strand is finished. */
static inline bool cursor_next(const struct exec_binding *b, const struct plan_strand *strand, struct exec_cursor *c)
{
    if (++c->repeat < b->plan->steps[c->step].repeat)
        return true;
    c->repeat = 0;
    if (++c->step < strand->first + strand->count)
        return true;
    c->step = strand->first;
    return ++c->pass < b->passes;
}

/* Published slots and credits must have left the process before an operation counts as done. */
static bool ends_pending(const struct exec_comm *comm)
{
    for (int i = 0; i < comm->end_count; i++) {
        const struct transport *t = comm->ends[i]->transport;
        if (t->pending != NULL && t->pending(comm->ends[i]))
            return true;
    }
    return false;
}

static quire_status_t ends_progress(struct exec_comm *comm, bool *moved)
{
    for (int i = 0; i < comm->end_count; i++) {
        int rank = -1;
        quire_status_t st = comm->ends[i]->transport->progress(comm->ends[i], moved, &rank);
        if (st != QUIRE_OK && (st = comm->on_broken(comm->ctx, rank, st)) != QUIRE_OK)
            return st;
    }
    return QUIRE_OK;
}

void exec_run_fail(struct exec_run *run, quire_status_t status)
{
    if (run->status != QUIRE_IN_PROGRESS)
        return;
    run->status = status;
    snprintf(run->error, sizeof(run->error), "%s", status_text_last());
}

static void drain_lane(struct lane *lane, uint64_t sequence, uint32_t epoch)
{
    const struct lane_slot *slot;
    if (lane->slots == NULL)
        return;
    while ((slot = lane_peek(lane)) != NULL && slot->name.epoch == epoch && slot->name.sequence < sequence)
        lane_release(lane);
}

void exec_drain_stale(struct exec_comm *comm, uint64_t sequence, uint32_t epoch)
{
    struct lane_set *set = comm->lanes;
    for (int r = 0; r < set->size; r++)
        for (int channel = 0; channel < PLAN_CHANNELS && r != set->rank; channel++) {
            drain_lane(&set->in_wide[channel][r], sequence, epoch);
            drain_lane(&set->in_pair[channel][r], sequence, epoch);
        }
}

static bool run_may_start(struct exec_run *run, bool *moved)
{
    if (run->after != NULL) {
        if (run->after->status == QUIRE_IN_PROGRESS)
            return false;
        run->after = NULL;
    }
    run->started = true;
    *moved = true;
    if (run->on_start != NULL)
        run->on_start(run);
    return true;
}

quire_status_t exec_progress(struct exec_run *run, bool *moved)
{
    const struct exec_binding *b = run->binding;
    if (run->status != QUIRE_IN_PROGRESS || (!run->started && !run_may_start(run, moved)))
        return run->status;
    if (run->comm->end_count != 0) {
        quire_status_t st = ends_progress(run->comm, moved);
        if (st != QUIRE_OK) {
            exec_run_fail(run, st);
            return run->status;
        }
    }
    for (bool turn_moved = true; run->active != 0 && turn_moved;) {
        turn_moved = false;
        for (uint32_t left = run->active; left != 0; left &= left - 1) {
            uint32_t i = (uint32_t)__builtin_ctz(left);
            struct exec_cursor *c = &run->cursor[i];
            enum step_result result = step_run(run, &b->plan->steps[c->step], c);
            if (result == STEP_ERROR)
                return run->status;
            if (result == STEP_BLOCKED)
                continue;
            turn_moved = true;
            if (!cursor_next(b, &b->plan->strands[i], c))
                run->active &= ~(1u << i);
        }
        *moved |= turn_moved;
    }
    if (run->active == 0) {
        if (run->comm->end_count != 0) {
            quire_status_t st = ends_progress(run->comm, moved);
            if (st != QUIRE_OK)
                exec_run_fail(run, st);
            else if (ends_pending(run->comm))
                return QUIRE_IN_PROGRESS;
        }
        if (run->status == QUIRE_IN_PROGRESS)
            run->status = QUIRE_OK;
        *moved = true;
    }
    return run->status;
}

int exec_missing(struct exec_run *run, uint64_t *mask)
{
    int count = 0;
    if (run->status == QUIRE_IN_PROGRESS && run->started)
        for (uint32_t left = run->active; left != 0; left &= left - 1) {
            const struct exec_cursor *c = &run->cursor[__builtin_ctz(left)];
            step_missing(run, &run->binding->plan->steps[c->step], c, mask);
        }
    for (int i = 0; i < (run->comm->lanes->size + 63) / 64; i++)
        count += __builtin_popcountll(mask[i]);
    return count;
}
