/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.c - what a waiting run asks of its communicator. After about a millisecond without progress it compares its
 * operation's name with the boards of the ranks it waits for; a difference is the first cause, told to all. It also
 * notices ranks that left in peace and will never answer, and makes the report when time is up.
 *
 * All of it happens in a thread that is waiting anyway; nothing here is on the hot path.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "comm.h"
#include "comm_internal.h"
#include "shm.h"

enum {
    ASK_AT_ONCE = 8,      /* boards looked at in one go */
    REPORT_RANKS = 8,     /* ranks whose last operation a timeout report tells */
    BROKEN_WAIT_MS = 500, /* how long a broken path waits for its better explanation */
};
static const uint64_t ASK_NS = 50 * CLOCK_MS, DEPARTED_NS = 250 * CLOCK_MS;

static bool is_message(const struct op_name *name)
{
    return name->collective == QUIRE_SEND;
}

quire_status_t comm_fail_all(struct quire_comm *comm, const struct cause *cause)
{
    stop_fail(&comm->stop, cause);
    pthread_mutex_lock(&comm->error_lock);
    if (comm->boot != NULL)
        boot_flood_cause(comm->boot, stop_cause(&comm->stop));
    pthread_mutex_unlock(&comm->error_lock);
    return stop_status(&comm->stop);
}

/* "3, 7-9" of a set of ranks. */
static void ranks_text(const uint64_t *mask, int size, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int r = 0; r < size && used + 32 < bytes; r++) {
        int last = r;
        if (!(mask[r / 64] >> r % 64 & 1))
            continue;
        while (last + 1 < size && mask[(last + 1) / 64] >> (last + 1) % 64 & 1)
            last++;
        int n = last == r ? snprintf(text + used, bytes - used, "%s%d", used == 0 ? "" : ", ", r)
                          : snprintf(text + used, bytes - used, "%s%d-%d", used == 0 ? "" : ", ", r, last);
        used += (size_t)n;
        r = last;
    }
}

static uint64_t *missing_of(struct exec_run *run, int size)
{
    uint64_t *mask = calloc((size_t)(size + 63) / 64, sizeof(*mask));
    if (mask != NULL)
        (void)exec_missing(run, mask);
    return mask;
}

/* A local peer's board is a page that this process maps; a remote one is asked for. */
static quire_status_t board_of(struct quire_comm *comm, int rank, uint64_t sequence, enum board_answer *answer,
                               struct op_name *name, uint64_t *posted)
{
    const struct transport_end *end = comm->ends[comm->via[rank]];
    const struct board_page *page = end->transport == &transport_shm ? shm_board(end, rank) : NULL;
    if (page == NULL)
        return boot_ask_board(comm->boot, rank, sequence, answer, name, posted, deadline_in(ASK_NS));
    *answer = board_read(page, sequence, name);
    *posted = atom_load_acquire(&page->posted);
    return QUIRE_OK;
}

/* ---- mismatch ---------------------------------------------------------------------------------------------------- */

quire_status_t comm_on_mismatch(void *ctx, struct exec_run *run, int peer, const struct op_name *theirs)
{
    struct quire_comm *comm = ctx;
    struct cause cause;
    if (is_message(&run->name)) {
        cause = cause_make(QUIRE_ERR_MISMATCH, peer,
                           "message #%llu from rank %d to rank %d: rank %d sends %llu bytes, rank %d expects %llu",
                           (unsigned long long)run->name.sequence, peer, comm->rank, peer,
                           (unsigned long long)theirs->count, comm->rank, (unsigned long long)run->name.count);
    } else {
        char own[128], other[128];
        cause =
            cause_make(QUIRE_ERR_MISMATCH, peer, "ranks disagree: rank %d calls %s, rank %d calls %s", comm->rank,
                       op_name_text(&run->name, own, sizeof(own)), peer, op_name_text(theirs, other, sizeof(other)));
    }
    return comm_fail_all(comm, &cause);
}

/* Compares boards with some of the ranks that are missing; goes round them over several calls. */
static quire_status_t compare_boards(struct quire_comm *comm, struct exec_run *run, const uint64_t *mask)
{
    int asked = 0;
    for (int i = 0; i < comm->size && asked < ASK_AT_ONCE; i++) {
        int r = (comm->ask_next + i) % comm->size;
        if (r == comm->rank || !(mask[r / 64] >> r % 64 & 1))
            continue;
        enum board_answer answer;
        struct op_name theirs;
        uint64_t posted;
        asked++;
        if (asked == ASK_AT_ONCE)
            comm->ask_next = r + 1;
        if (board_of(comm, r, run->name.sequence, &answer, &theirs, &posted) != QUIRE_OK || answer != BOARD_FOUND)
            continue;
        if (!op_name_equal(&theirs, &run->name) && !(theirs.flags & OP_NAME_REFUSED))
            return comm_on_mismatch(comm, run, r, &theirs);
    }
    return QUIRE_OK;
}

/* ---- departed peers ---------------------------------------------------------------------------------------------- */

/*
 * A rank that said goodbye won't send any more; but what it sent before may still be on its way on another connection,
 * so only a quarter of a second of silence after it makes the wait hopeless.
 */
static quire_status_t look_for_departed(struct quire_comm *comm, struct exec_run *run, const uint64_t *mask)
{
    int gone = -1;
    for (int r = 0; r < comm->size && gone < 0; r++)
        if (mask[r / 64] >> r % 64 & 1 && r != comm->rank && boot_departed(comm->boot, r))
            gone = r;
    if (gone < 0) {
        comm->departed_since = 0;
        return QUIRE_OK;
    }
    uint64_t now = clock_ns();
    if (comm->departed_since == 0)
        comm->departed_since = now;
    if (now - comm->departed_since < DEPARTED_NS)
        return QUIRE_OK;
    char what[160];
    comm_run_text(run, what, sizeof(what));
    struct cause cause = cause_make(
        QUIRE_ERR_PEER_FAILED, gone,
        "rank %d has finalized or destroyed its communicator, but rank %d waits for it in %s", gone, comm->rank, what);
    return comm_fail_all(comm, &cause);
}

void comm_run_text(const struct exec_run *run, char *text, size_t bytes)
{
    if (is_message(&run->name))
        snprintf(text, bytes, "message #%llu of %llu bytes", (unsigned long long)run->name.sequence,
                 (unsigned long long)run->name.count);
    else
        op_name_text(&run->name, text, bytes);
}

quire_status_t comm_on_slow(void *ctx, struct exec_run *run)
{
    struct quire_comm *comm = ctx;
    if (!run->started)
        return QUIRE_OK;
    uint64_t *mask = missing_of(run, comm->size);
    if (mask == NULL)
        return QUIRE_OK;
    quire_status_t st = QUIRE_OK;
    if (!is_message(&run->name)) {
        exec_drain_stale(&comm->exec, run->name.sequence, comm->epoch);
        st = compare_boards(comm, run, mask);
    }
    if (st == QUIRE_OK)
        st = look_for_departed(comm, run, mask);
    free(mask);
    return st;
}

/* ---- timeout ----------------------------------------------------------------------------------------------------- */

/* Adds what some of the missing ranks did last. */
static void last_operations(struct quire_comm *comm, const struct exec_run *run, const uint64_t *mask, char *text,
                            size_t bytes)
{
    size_t used = 0;
    int told = 0;
    text[0] = '\0';
    for (int r = 0; r < comm->size && told < REPORT_RANKS && used + 128 < bytes; r++) {
        enum board_answer answer;
        struct op_name theirs;
        uint64_t posted = 0;
        if (r == comm->rank || !(mask[r / 64] >> r % 64 & 1))
            continue;
        told++;
        if (board_of(comm, r, run->name.sequence, &answer, &theirs, &posted) != QUIRE_OK)
            used += (size_t)snprintf(text + used, bytes - used, "; rank %d does not answer", r);
        else if (answer == BOARD_FOUND)
            used += (size_t)snprintf(text + used, bytes - used, "; rank %d is inside the same operation", r);
        else
            used += (size_t)snprintf(text + used, bytes - used, "; rank %d last began #%llu", r,
                                     (unsigned long long)posted);
    }
}

quire_status_t comm_on_timeout(void *ctx, struct exec_run *run, uint64_t waited_ns)
{
    struct quire_comm *comm = ctx;
    char what[160], ranks[128] = "", last[256] = "";
    uint64_t *mask = missing_of(run, comm->size);
    comm_run_text(run, what, sizeof(what));
    if (mask != NULL) {
        ranks_text(mask, comm->size, ranks, sizeof(ranks));
        if (!is_message(&run->name))
            last_operations(comm, run, mask, last, sizeof(last));
    }
    free(mask);
    struct cause cause = cause_make(QUIRE_ERR_TIMEOUT, -1, "rank %d waited %.1f s in %s for rank %s%s", comm->rank,
                                    (double)waited_ns / 1e9, what, ranks[0] == '\0' ? "?" : ranks, last);
    return comm_fail_all(comm, &cause);
}

/* ---- broken paths ------------------------------------------------------------------------------------------------ */

/*
 * The transport often notices a dead peer before the service thread knows pid and signal, or a peer that left before
 * its goodbye arrives. Both come within moments, so give them the chance to be the first cause.
 */
quire_status_t comm_on_broken(void *ctx, int rank, quire_status_t status)
{
    struct quire_comm *comm = ctx;
    char why[256];
    snprintf(why, sizeof(why), "%s", status_text_last());
    for (int ms = 0; ms < BROKEN_WAIT_MS; ms++) {
        if (stop_seen(&comm->stop) == STOP_FATAL)
            return stop_status(&comm->stop);
        if (rank >= 0 && boot_departed(comm->boot, rank))
            return QUIRE_OK;
        struct timespec nap = {0, (long)CLOCK_MS};
        nanosleep(&nap, NULL);
    }
    struct cause cause = cause_make(status == QUIRE_ERR_LINK ? QUIRE_ERR_PEER_FAILED : status, rank,
                                    "the path from rank %d to rank %d broke: %s", comm->rank, rank, why);
    return comm_fail_all(comm, &cause);
}
