/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - quire_mem_alloc and its kin: library-owned segments that peers may map, and registrations.
 *
 * Locking: one lock guards the table of live allocations. Segments themselves are counted in transport/segment.c.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/status.h"
#include "comm/comm.h"
#include "segment.h"

struct allocation {
    struct allocation *next;
    struct lane_segment *segment;
};

static struct allocation *allocations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

quire_status_t quire_mem_alloc(void **memory, size_t bytes)
{
    if (memory == NULL || bytes == 0)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "quire_mem_alloc: %s",
                          memory == NULL ? "memory is NULL" : "0 bytes asked for");
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (bytes > SIZE_MAX - page)
        return quire_fail(QUIRE_ERR_RESOURCE, "quire_mem_alloc: %zu bytes are more than there can be", bytes);
    struct allocation *made = calloc(1, sizeof(*made));
    if (made == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "quire_mem_alloc: no memory for the bookkeeping");
    size_t whole = bytes_round_up(bytes, page);
    quire_status_t st = segment_create(&made->segment, whole, whole, false);
    if (st != QUIRE_OK) {
        free(made);
        return st;
    }
    pthread_mutex_lock(&lock);
    made->next = allocations;
    allocations = made;
    pthread_mutex_unlock(&lock);
    *memory = made->segment->base;
    return QUIRE_OK;
}

quire_status_t quire_mem_free(void *memory)
{
    if (memory == NULL)
        return QUIRE_OK;
    struct allocation *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct allocation **link = &allocations; *link != NULL && found == NULL; link = &(*link)->next)
        if ((*link)->segment->base == memory) {
            found = *link;
            *link = found->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (found == NULL)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "quire_mem_free: %p was not made by quire_mem_alloc, or is freed",
                          memory);
    segment_put(found->segment);
    free(found);
    return QUIRE_OK;
}

struct registration {
    struct quire_comm *comm;
};

quire_status_t quire_comm_register(quire_comm *comm, void *buffer, size_t bytes, void **handle)
{
    quire_status_t st = comm_usable(comm);
    if (st != QUIRE_OK)
        return st;
    if (buffer == NULL || bytes == 0 || handle == NULL)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "quire_comm_register: %s",
                          handle == NULL ? "handle is NULL" : "the buffer is NULL or empty");
    struct registration *made = malloc(sizeof(*made));
    if (made == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "quire_comm_register: no memory");
    made->comm = comm;
    *handle = made;
    return QUIRE_OK;
}

quire_status_t quire_comm_deregister(quire_comm *comm, void *handle)
{
    quire_status_t st = comm_usable(comm);
    struct registration *made = handle;
    if (st != QUIRE_OK || made == NULL)
        return st;
    if (made->comm != comm)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "quire_comm_deregister: the handle is of another communicator");
    free(made);
    return QUIRE_OK;
}
