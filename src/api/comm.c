/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.c - entry points that make, query and end communicators: arguments checked, then src/comm. */
#include <stdio.h>
#include <stdlib.h>

#include "base/atomics.h"
#include "base/status.h"
#include "boot/launch.h"
#include "comm/comm.h"

static quire_status_t check_place(const void *out, int size, int rank)
{
    if (out == NULL)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "comm is NULL: nowhere to write the communicator");
    if (size < 1 || rank < 0 || rank >= size)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "rank %d of %d: a communicator has ranks 0 to size-1", rank,
                          size);
    return QUIRE_OK;
}

quire_status_t quire_get_unique_id(quire_unique_id *id)
{
    if (id == NULL)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "id is NULL");
    return boot_make_id(id);
}

quire_status_t quire_comm_init_rank(quire_comm **comm, int size, const quire_unique_id *id, int rank,
                                    const quire_config *config)
{
    quire_status_t st = check_place(comm, size, rank);
    if (st == QUIRE_OK && id == NULL)
        st = quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "id is NULL");
    if (st == QUIRE_OK)
        st = boot_check_id(id);
    if (st != QUIRE_OK)
        return st;
    struct comm_options options = {rank, size, BOOT_MEET_ID, id, NULL, 0, config};
    return comm_create(comm, &options);
}

quire_status_t quire_comm_init_env(quire_comm **comm, const quire_config *config)
{
    static uint64_t made_here;
    struct launch launch;
    quire_status_t st = check_place(comm, 1, 0);
    if (st == QUIRE_OK)
        st = launch_read(&launch);
    if (st != QUIRE_OK)
        return st;
    if (launch.info.rank < 0) {
        quire_unique_id id;
        st = boot_make_id(&id);
        return st != QUIRE_OK ? st : quire_comm_init_rank(comm, 1, &id, 0, config);
    }
    struct comm_options options = {
        launch.info.rank, launch.info.size, launch.meeting, NULL, launch.where, atom_add(&made_here, 1) - 1, config};
    return comm_create(comm, &options);
}

/* ---- all ranks in one process ------------------------------------------------------------------------------------ */

struct maker {
    pthread_t thread;
    struct quire_comm *comm;
    struct comm_options options;
    quire_status_t status;
    char text[STATUS_TEXT_BYTES];
};

static void *maker_main(void *arg)
{
    struct maker *maker = arg;
    maker->status = comm_create(&maker->comm, &maker->options);
    if (maker->status != QUIRE_OK && maker->status != QUIRE_IN_PROGRESS)
        snprintf(maker->text, sizeof(maker->text), "%s", status_text_last());
    return NULL;
}

/* Every rank's thread is started before any is joined; one that can't start is the failure of all, by timeout at most.
 */
static quire_status_t make_all(struct maker *makers, int size)
{
    quire_status_t st = QUIRE_OK;
    int started = 0;
    for (; started < size; started++) {
        int error = pthread_create(&makers[started].thread, NULL, maker_main, &makers[started]);
        if (error != 0) {
            st = quire_fail(QUIRE_ERR_RESOURCE, "can't start a thread for rank %d: error %d", started, error);
            break;
        }
    }
    for (int r = 0; r < started; r++)
        pthread_join(makers[r].thread, NULL);
    for (int r = 0; st == QUIRE_OK && r < size; r++)
        if (makers[r].status != QUIRE_OK && makers[r].status != QUIRE_IN_PROGRESS)
            st = quire_fail(makers[r].status, "%s", makers[r].text);
    return st;
}

quire_status_t quire_comm_init_all(quire_comm **comms, int size, const quire_config *config)
{
    quire_unique_id id;
    quire_status_t st = check_place(comms, size, 0);
    if (st == QUIRE_OK)
        st = comm_check_config(config);
    if (st == QUIRE_OK)
        st = boot_make_id(&id);
    if (st != QUIRE_OK)
        return st;
    struct maker *makers = calloc((size_t)size, sizeof(*makers));
    if (makers == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for %d ranks", size);
    for (int r = 0; r < size; r++)
        makers[r].options = (struct comm_options){r, size, BOOT_MEET_ID, &id, NULL, 0, config};
    st = make_all(makers, size);
    char text[STATUS_TEXT_BYTES];
    snprintf(text, sizeof(text), "%s", status_text_last());
    for (int r = 0; r < size; r++) {
        if (st == QUIRE_OK)
            comms[r] = makers[r].comm;
        else if (makers[r].comm != NULL) {
            (void)comm_abort(makers[r].comm);
            (void)comm_destroy(makers[r].comm);
        }
    }
    if (st == QUIRE_OK && config != NULL && config->blocking == 0)
        st = QUIRE_IN_PROGRESS;
    free(makers);
    return st == QUIRE_OK || st == QUIRE_IN_PROGRESS ? st : quire_fail(st, "%s", text);
}

/* ---- queries and ends -------------------------------------------------------------------------------------------- */

quire_status_t quire_comm_finalize(quire_comm *comm)
{
    return comm_finalize(comm);
}

quire_status_t quire_comm_destroy(quire_comm *comm)
{
    return comm_destroy(comm);
}

quire_status_t quire_comm_abort(quire_comm *comm)
{
    return comm_abort(comm);
}

quire_status_t quire_comm_async_error(quire_comm *comm, quire_status_t *status)
{
    quire_status_t st = comm_usable(comm);
    if (st != QUIRE_OK)
        return st;
    if (status == NULL)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "status is NULL");
    if (atom_load_acquire(&comm->state) == COMM_STARTING)
        *status = QUIRE_IN_PROGRESS;
    else
        *status = stop_cause(&comm->stop) == NULL ? QUIRE_OK : stop_status(&comm->stop);
    return QUIRE_OK;
}

const char *quire_last_error(quire_comm *comm)
{
    static __thread char text[STATUS_TEXT_BYTES];
    if (comm == NULL || comm_usable(comm) != QUIRE_OK)
        return status_text_last();
    const struct cause *cause = stop_cause(&comm->stop);
    pthread_mutex_lock(&comm->error_lock);
    snprintf(text, sizeof(text), "%s", cause != NULL ? cause->text : comm->error);
    pthread_mutex_unlock(&comm->error_lock);
    return text;
}

static quire_status_t query(const quire_comm *comm, int *out, int value)
{
    if (out == NULL)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "the place for the answer is NULL");
    *out = value;
    return QUIRE_OK;
}

quire_status_t quire_comm_rank(const quire_comm *comm, int *rank)
{
    quire_status_t st = comm_usable(comm);
    return st != QUIRE_OK ? st : query(comm, rank, comm->rank);
}

quire_status_t quire_comm_size(const quire_comm *comm, int *size)
{
    quire_status_t st = comm_usable(comm);
    return st != QUIRE_OK ? st : query(comm, size, comm->size);
}

quire_status_t quire_comm_device(const quire_comm *comm, int *device)
{
    quire_status_t st = comm_usable(comm);
    return st != QUIRE_OK ? st : query(comm, device, -1);
}
