/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * operation.c - one call on its way in: take the communicator, find the plan and its binding, give the operation its
 * name, and run it here or hand it to a group or a stream. Also the way out for a call that is refused.
 *
 * The hot path is comm_enter, a look into the binding cache, the name, the board, the run; it allocates nothing and
 * takes no lock after the first call of a kind.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/forked.h"
#include "comm.h"
#include "comm_internal.h"
#include "executor/stream.h"

/* ---- in and out -------------------------------------------------------------------------------------------------- */

quire_status_t comm_usable(const struct quire_comm *comm)
{
    if (comm == NULL || comm->magic != COMM_MAGIC)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "the communicator is NULL, or was destroyed");
    if (comm->generation != fork_generation())
        return quire_fail(QUIRE_ERR_INVALID_USAGE,
                          "this communicator was made before fork(): it belongs to the parent process; make one here");
    return QUIRE_OK;
}

static quire_status_t not_ready(struct quire_comm *comm, uint32_t state)
{
    if (stop_seen(&comm->stop) == STOP_FATAL)
        return stop_status(&comm->stop);
    return quire_fail(QUIRE_ERR_INVALID_USAGE, "the communicator %s",
                      state == COMM_STARTING
                          ? "is still being made: poll quire_comm_async_error until it isn't IN_PROGRESS"
                      : state == COMM_FINALIZED ? "was finalized: only queries and quire_comm_destroy are legal"
                                                : "was closed: only queries and quire_comm_destroy are legal");
}

quire_status_t comm_enter(struct quire_comm *comm)
{
    quire_status_t st = comm_usable(comm);
    if (st != QUIRE_OK)
        return st;
    uint32_t state = atom_load_acquire(&comm->state);
    if (state == COMM_STARTING)
        return not_ready(comm, state);
    if (atom_swap(&comm->busy, 1u) != 0)
        return quire_fail(QUIRE_ERR_INVALID_USAGE, "another thread is inside this communicator; one at a time");
    state = atom_load_acquire(&comm->state);
    if (state != COMM_READY || stop_seen(&comm->stop) == STOP_FATAL) {
        st = not_ready(comm, state);
        comm_leave(comm);
        return comm_note_error(comm, st);
    }
    return QUIRE_OK;
}

void comm_leave(struct quire_comm *comm)
{
    atom_store_release(&comm->busy, 0u);
}

quire_status_t comm_note_error(struct quire_comm *comm, quire_status_t st)
{
    if (st == QUIRE_OK || st == QUIRE_IN_PROGRESS)
        return st;
    pthread_mutex_lock(&comm->error_lock);
    snprintf(comm->error, sizeof(comm->error), "%s", status_text_last());
    pthread_mutex_unlock(&comm->error_lock);
    return st;
}

/* ---- plan and binding -------------------------------------------------------------------------------------------- */

static bool is_pair(const struct comm_call *call)
{
    return call->collective == QUIRE_SEND || call->collective == QUIRE_RECV;
}

static struct comm_key key_of(const struct comm_call *call)
{
    return (struct comm_key){call->count,         (uint32_t)call->root, (uint8_t)call->collective,
                             (uint8_t)call->type, (uint8_t)call->op,    1};
}

static quire_status_t bind_call(struct quire_comm *comm, const struct comm_call *call, struct exec_binding *binding)
{
    size_t elem = call->collective == QUIRE_BARRIER ? 1 : quire_type_size(call->type), bytes;
    if (!bytes_mul(call->count, elem, &bytes))
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "count %zu of %zu bytes each overflows", call->count, elem);
    struct planner_request request = {call->collective, bytes, call->type, call->op, (uint32_t)call->root};
    const struct plan *plan;
    quire_status_t st = planner_plan(comm->planner, &request, &plan);
    if (st != QUIRE_OK)
        return st;
    if (plan->scratch_blocks != 0)
        return QUIRE_BUG("a plan wants scratch memory, which calls are not given yet");
    struct plan_layout layout = plan_layout_even(call->count, elem, plan->blocks);
    exec_binding_make(binding, plan, &layout, call->type, call->op, &comm->lanes->geometry);
    return QUIRE_OK;
}

/* The binding for a call, from the cache. NULL with `st` set on error. Valid until the next call. */
static const struct exec_binding *find_binding(struct quire_comm *comm, const struct comm_call *call,
                                               quire_status_t *st)
{
    struct comm_key key = key_of(call);
    uint64_t mix = (key.count ^ (uint64_t)key.collective << 56 ^ (uint64_t)key.type << 48 ^ (uint64_t)key.op << 40 ^
                    (uint64_t)key.root << 32) *
                   UINT64_C(0x9e3779b97f4a7c15);
    struct comm_cached *cached = &comm->cache[mix >> 58];
    _Static_assert(COMM_CACHE == 64, "the top six bits choose the entry");
    if (__builtin_expect(memcmp(&cached->key, &key, sizeof(key)) == 0, 1))
        return &cached->binding;
    cached->key.used = 0;
    *st = bind_call(comm, call, &cached->binding);
    if (*st != QUIRE_OK)
        return NULL;
    cached->key = key;
    return &cached->binding;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* A message is known by its pair and number: the same on both sides, and never a collective's number. */
static uint64_t pair_refusal(int sender, int receiver, uint64_t sequence)
{
    uint64_t words[3] = {(uint64_t)sender, (uint64_t)receiver, sequence};
    return STOP_PAIR_BIT | bytes_hash(BYTES_HASH_START, words, sizeof(words));
}

static uint64_t pair_name(struct quire_comm *comm, const struct comm_call *call, struct op_name *name)
{
    bool sends = call->collective == QUIRE_SEND;
    struct lane *lane = sends ? &comm->lanes->out_pair[PLAN_CHANNEL_P2P][call->root]
                              : &comm->lanes->in_pair[PLAN_CHANNEL_P2P][call->root];
    memset(name, 0, sizeof(*name));
    name->sequence = ++lane->sent_sequence;
    name->count = call->count * quire_type_size(call->type);
    name->epoch = comm->epoch;
    name->collective = QUIRE_SEND;
    name->type = OP_NAME_NONE;
    name->op = OP_NAME_NONE;
    return sends ? pair_refusal(comm->rank, call->root, name->sequence)
                 : pair_refusal(call->root, comm->rank, name->sequence);
}

static void collective_name(struct quire_comm *comm, const struct comm_call *call, uint64_t plan_hash,
                            struct op_name *name)
{
    name->sequence = ++comm->sequence;
    name->count = call->count;
    name->epoch = comm->epoch;
    name->root = call->collective == QUIRE_BROADCAST ? (uint32_t)call->root : 0;
    name->plan_id = (uint32_t)plan_hash;
    name->collective = (uint8_t)call->collective;
    name->type = call->collective == QUIRE_BARRIER ? OP_NAME_NONE : (uint8_t)call->type;
    name->op = call->collective == QUIRE_ALL_REDUCE ? (uint8_t)call->op : OP_NAME_NONE;
    name->flags = 0;
}

/* Runs when a run begins: tells everybody who looks what this rank is doing. */
static void post_on_board(struct exec_run *run)
{
    struct quire_comm *comm = run->comm->ctx;
    board_post(comm->board, &run->name);
}

static void bind_run(struct quire_comm *comm, struct exec_run *run, const struct exec_binding *binding,
                     const struct comm_call *call)
{
    struct op_name name;
    if (is_pair(call)) {
        uint64_t refusal = pair_name(comm, call, &name);
        exec_bind(run, &comm->exec, binding, &name, call->send, call->recv, NULL);
        run->refusal = refusal;
        return;
    }
    collective_name(comm, call, binding->plan->hash, &name);
    exec_bind(run, &comm->exec, binding, &name, call->send, call->recv, NULL);
    run->on_start = post_on_board;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

quire_status_t comm_run(struct quire_comm *comm, const struct comm_call *call)
{
    quire_status_t st = QUIRE_OK;
    if (!exec_queue_idle(&comm->exec))
        exec_queue_wait(&comm->exec);
    const struct exec_binding *binding = find_binding(comm, call, &st);
    if (binding == NULL) {
        comm_refuse(comm, call, st);
        return comm_note_error(comm, st);
    }
    struct exec_run run, *runs[1] = {&run};
    bind_run(comm, &run, binding, call);
    st = exec_wait(runs, 1);
    if (__builtin_expect(st != QUIRE_OK, 0))
        return comm_note_error(comm, st);
    if (!is_pair(call))
        atom_store_relaxed(&comm->board->done, run.name.sequence);
    return QUIRE_OK;
}

static struct comm_operation *operation_get(struct quire_comm *comm)
{
    if (comm->pool == NULL)
        comm->pool = atom_swap(&comm->returned, (struct comm_operation *)NULL);
    struct comm_operation *operation = comm->pool;
    if (operation == NULL)
        return calloc(1, sizeof(*operation));
    comm->pool = operation->next;
    return operation;
}

void comm_give_back(struct comm_operation *operation)
{
    struct quire_comm *comm = operation->comm;
    struct comm_operation *head;
    do {
        head = atom_load_relaxed(&comm->returned);
        operation->next = head;
    } while (!atom_cas(&comm->returned, head, operation));
}

static void run_release(struct exec_run *run)
{
    comm_give_back((struct comm_operation *)run);
}

/* Where the last run of the present group on the same lanes is remembered; NULL when out of memory. */
static struct exec_run **order_of(struct quire_comm *comm, const struct comm_call *call)
{
    if (!is_pair(call))
        return &comm->last_run;
    struct exec_run ***table = &comm->last_pair[call->collective == QUIRE_RECV];
    if (*table == NULL)
        *table = calloc((size_t)comm->size, sizeof(**table));
    return *table == NULL ? NULL : &(*table)[call->root];
}

quire_status_t comm_prepare(struct quire_comm *comm, const struct comm_call *call, struct comm_operation **out)
{
    quire_status_t st = QUIRE_OK;
    const struct exec_binding *binding = find_binding(comm, call, &st);
    if (binding == NULL)
        return st;
    struct exec_run **last = order_of(comm, call);
    struct comm_operation *operation = last == NULL ? NULL : operation_get(comm);
    if (operation == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for an operation");
    operation->comm = comm;
    operation->binding = *binding;
    bind_run(comm, &operation->run, &operation->binding, call);
    operation->run.release = run_release;
    operation->run.after = *last;
    *last = &operation->run;
    *out = operation;
    return QUIRE_OK;
}

void comm_group_over(struct quire_comm *comm)
{
    comm->last_run = NULL;
    for (int i = 0; i < 2; i++)
        if (comm->last_pair[i] != NULL)
            memset(comm->last_pair[i], 0, (size_t)comm->size * sizeof(*comm->last_pair[i]));
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void tell_refusal(struct quire_comm *comm, const struct op_name *name, uint64_t number, int peer,
                         quire_status_t st)
{
    char why[CAUSE_TEXT_BYTES / 2], what[128];
    snprintf(why, sizeof(why), "%s", status_text_last());
    if (peer >= 0)
        snprintf(what, sizeof(what), "message #%llu %s rank %d", (unsigned long long)name->sequence,
                 name->flags & OP_NAME_REFUSED ? "to" : "from", peer);
    else
        op_name_text(name, what, sizeof(what));
    if (comm->size > 1) {
        struct cause cause = cause_make(st, comm->rank, "rank %d refused %s: %s", comm->rank, what, why);
        cause.sequence = number;
        boot_flood_refusal(comm->boot, &cause);
    }
    (void)quire_fail(st, "%s", why);
}

void comm_refuse(struct quire_comm *comm, const struct comm_call *call, quire_status_t st)
{
    struct op_name name;
    if (is_pair(call)) {
        if (call->root < 0 || call->root >= comm->size || call->root == comm->rank)
            return; /* no peer waits for it; to oneself both halves are refused with their group */
        uint64_t number = pair_name(comm, call, &name);
        name.flags = call->collective == QUIRE_SEND ? OP_NAME_REFUSED : 0;
        tell_refusal(comm, &name, number, call->root, st);
        return;
    }
    collective_name(comm, call, 0, &name);
    name.flags = OP_NAME_REFUSED;
    board_post(comm->board, &name);
    tell_refusal(comm, &name, name.sequence, -1, st);
}

void comm_refuse_prepared(struct comm_operation *operation, quire_status_t st)
{
    struct op_name name = operation->run.name;
    struct quire_comm *comm = operation->comm;
    const struct plan *plan = operation->binding.plan;
    bool pair = name.collective == QUIRE_SEND;
    if (pair && (int)plan->shape.root == comm->rank) {
        /* Both halves of a message to oneself go with their group: their numbers are free again. */
        struct lane *lane = plan->shape.collective == QUIRE_SEND ? &comm->lanes->out_pair[PLAN_CHANNEL_P2P][comm->rank]
                                                                 : &comm->lanes->in_pair[PLAN_CHANNEL_P2P][comm->rank];
        lane->sent_sequence--;
        comm_give_back(operation);
        return;
    }
    name.flags = !pair || plan->shape.collective == QUIRE_SEND ? OP_NAME_REFUSED : 0;
    if (!pair)
        board_post(comm->board, &name);
    tell_refusal(comm, &name, operation->run.refusal, pair ? (int)plan->shape.root : -1, st);
    comm_give_back(operation);
}
