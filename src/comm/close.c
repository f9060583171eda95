/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * close.c - the ways out: finalize (in peace), abort (now), destroy (either, then free). None waits for a peer: what
 * this rank has published stays readable for local peers that map it, and transports flush before they close.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"
#include "comm.h"
#include "comm_internal.h"
#include "executor/stream.h"

enum { LEAVE_WAIT_MS = 5000 }; /* how long destroy waits for a thread that is inside, after the stop word is up */

struct quire_comm *comm_shell(int rank, int size)
{
    struct quire_comm *comm = calloc(1, sizeof(*comm));
    if (comm == NULL)
        return NULL;
    comm->via = calloc((size_t)size, sizeof(*comm->via));
    if (comm->via == NULL) {
        free(comm);
        return NULL;
    }
    comm->magic = COMM_MAGIC;
    comm->generation = fork_generation();
    comm->rank = rank;
    comm->size = size;
    stop_init(&comm->stop);
    pthread_mutex_init(&comm->error_lock, NULL);
    return comm;
}

void comm_shell_free(struct quire_comm *comm)
{
    comm->magic = 0;
    pthread_mutex_destroy(&comm->error_lock);
    stop_destroy(&comm->stop);
    free(comm->via);
    free(comm);
}

static void free_operations(struct comm_operation *list)
{
    while (list != NULL) {
        struct comm_operation *next = list->next;
        free(list);
        list = next;
    }
}

void comm_release(struct quire_comm *comm)
{
    struct boot *boot;
    pthread_mutex_lock(&comm->error_lock);
    boot = comm->boot;
    comm->boot = NULL;
    pthread_mutex_unlock(&comm->error_lock);
    if (boot != NULL)
        boot_set_board(boot, NULL);
    for (int i = COMM_TRANSPORTS - 1; i >= 0; i--) {
        if (comm->ends[i] != NULL)
            comm->ends[i]->transport->close(comm->ends[i]);
        comm->ends[i] = NULL;
    }
    boot_destroy(boot);
    planner_destroy(comm->planner);
    comm->planner = NULL;
    stop_place(&comm->stop, &comm->stop.own_word);
    lane_set_destroy(comm->lanes);
    comm->lanes = NULL;
    free(comm->own_board);
    comm->own_board = comm->board = NULL;
    for (int i = 0; i < 2; i++) {
        free(comm->last_pair[i]);
        comm->last_pair[i] = NULL;
    }
    free_operations(comm->pool);
    free_operations(atom_swap(&comm->returned, (struct comm_operation *)NULL));
    comm->pool = NULL;
}

quire_status_t comm_finalize(struct quire_comm *comm)
{
    quire_status_t st = comm_enter(comm);
    if (st != QUIRE_OK)
        return st;
    exec_queue_wait(&comm->exec);
    st = stop_seen(&comm->stop) == STOP_FATAL ? stop_status(&comm->stop) : QUIRE_OK;
    atom_store_release(&comm->state, (uint32_t)COMM_FINALIZED);
    comm_release(comm);
    comm_leave(comm);
    return comm_note_error(comm, st);
}

quire_status_t comm_abort(struct quire_comm *comm)
{
    quire_status_t st = comm_usable(comm);
    if (st != QUIRE_OK)
        return st;
    struct cause own = cause_make(QUIRE_ERR_ABORTED, comm->rank, "rank %d aborted this communicator", comm->rank);
    struct cause told = cause_make(QUIRE_ERR_PEER_FAILED, comm->rank, "rank %d aborted its communicator", comm->rank);
    uint32_t state = atom_load_acquire(&comm->state);
    if (state == COMM_FINALIZED || state == COMM_CLOSED)
        return QUIRE_OK;
    bool first = stop_fail(&comm->stop, &own);
    if (state != COMM_READY)
        return QUIRE_OK; /* the starter sees the stop word, and gives everything back itself */
    pthread_mutex_lock(&comm->error_lock);
    if (first && comm->boot != NULL)
        boot_flood_cause(comm->boot, &told);
    pthread_mutex_unlock(&comm->error_lock);
    if (atom_swap(&comm->busy, 1u) != 0)
        return QUIRE_OK; /* the thread inside leaves at once; destroy gives back the rest */
    if (atom_load_acquire(&comm->state) == COMM_READY) {
        exec_queue_wait(&comm->exec);
        atom_store_release(&comm->state, (uint32_t)COMM_CLOSED);
        comm_release(comm);
    }
    comm_leave(comm);
    return QUIRE_OK;
}

/* Waits until no thread is inside; they have seen, or will see, the stop word. */
static bool wait_for_leave(struct quire_comm *comm)
{
    uint64_t deadline = deadline_in(LEAVE_WAIT_MS * CLOCK_MS);
    while (atom_swap(&comm->busy, 1u) != 0) {
        struct timespec nap = {0, (long)CLOCK_MS};
        if (deadline_passed(deadline))
            return false;
        nanosleep(&nap, NULL);
    }
    return true;
}

quire_status_t comm_destroy(struct quire_comm *comm)
{
    if (comm == NULL)
        return QUIRE_OK;
    if (comm->magic != COMM_MAGIC)
        return comm_usable(comm);
    if (comm->generation != fork_generation())
        return QUIRE_OK; /* a forked child's copy: nothing here is ours */
    quire_status_t st = QUIRE_OK;
    uint32_t state = atom_load_acquire(&comm->state);
    if (state == COMM_READY && stop_seen(&comm->stop) != STOP_FATAL && atom_load_acquire(&comm->busy) == 0)
        st = comm_finalize(comm);
    else if (state == COMM_READY || state == COMM_STARTING)
        (void)comm_abort(comm);
    if (comm->starter_running)
        pthread_join(comm->starter, NULL);
    if (!wait_for_leave(comm))
        return quire_fail(QUIRE_ERR_INVALID_USAGE,
                          "a thread is still inside this communicator; it was aborted, not freed");
    if (atom_load_acquire(&comm->state) == COMM_READY)
        exec_queue_wait(&comm->exec);
    comm_release(comm);
    comm_shell_free(comm);
    return st;
}
