/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.c - memfd segments and the registry that maps each of them once per process.
 *
 * Locking: `lock` guards the registry's list and the reference counts. It is held from the look-up until a new mapping
 * is in the list, or two threads that meet the same descriptor would both map it. A segment's memory needs no lock
 * here.
 */
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/status.h"
#include "memory_left.h"

enum { SEGMENT_VERSION = 1 };

struct entry {
    struct entry *next;
    dev_t device;
    ino_t inode;
    struct lane_segment segment;
};

static struct entry *registry;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry *entry_of(struct lane_segment *segment)
{
    return (struct entry *)((uint8_t *)segment - offsetof(struct entry, segment));
}

static quire_status_t no_memory(size_t wanted, const char *what, const char *why)
{
    char want[16], have[16];
    return quire_fail(QUIRE_ERR_RESOURCE, "shared memory: %s of %s failed (%s); about %s of memory are free", what,
                      bytes_size_text(wanted, want), why, bytes_size_text(memory_left(""), have));
}

/*
 * fallocate fails only when nothing at all is left, and by then the kernel may have killed a process to make room. So
 * what can be known is asked first; the race that is left is the one every allocation has.
 */
quire_status_t segment_back(struct lane_segment *segment, size_t offset, size_t bytes)
{
    if (offset > segment->bytes || bytes > segment->bytes - offset)
        return QUIRE_BUG("backing [%zu, +%zu) of a segment of %zu bytes", offset, bytes, segment->bytes);
    if (bytes > memory_left(""))
        return no_memory(bytes, "reserving pages", "more than there is");
    int error;
    do
        error = fallocate(segment->fd, 0, (off_t)offset, (off_t)bytes) == 0 ? 0 : errno;
    while (error == EINTR);
    return error == 0 ? QUIRE_OK : no_memory(bytes, "reserving pages", strerror(error));
}

/* A file size over this limit would raise SIGXFSZ. */
static quire_status_t check_file_limit(size_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur) {
        char want[16], have[16];
        return quire_fail(QUIRE_ERR_RESOURCE, "shared memory: %s wanted, but the file size limit (ulimit -f) is %s",
                          bytes_size_text(bytes, want), bytes_size_text(limit.rlim_cur, have));
    }
    return QUIRE_OK;
}

/* Under `lock`. */
static void registry_add(struct entry *entry, const struct stat *st)
{
    entry->device = st->st_dev;
    entry->inode = st->st_ino;
    entry->segment.references = 1;
    entry->next = registry;
    registry = entry;
}

static quire_status_t write_control(struct lane_segment *segment)
{
    struct segment_control *control = (struct segment_control *)segment->base;
    if (!bytes_random(segment->nonce, sizeof(segment->nonce)))
        return quire_fail(QUIRE_ERR_RESOURCE, "getrandom: %m");
    control->version = SEGMENT_VERSION;
    memcpy(control->nonce, segment->nonce, sizeof(control->nonce));
    control->bytes = segment->bytes;
    control->pid = (int32_t)getpid();
    control->magic = SEGMENT_MAGIC;
    segment->control = control;
    return QUIRE_OK;
}

quire_status_t segment_create(struct lane_segment **out, size_t bytes, size_t backed, bool control)
{
    quire_status_t st = check_file_limit(bytes);
    struct stat stat;
    if (st != QUIRE_OK)
        return st;
    struct entry *entry = calloc(1, sizeof(*entry));
    if (entry == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a segment");
    struct lane_segment *segment = &entry->segment;
    segment->bytes = bytes;
    segment->fd = memfd_create("quire", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (segment->fd < 0) {
        st = quire_fail(QUIRE_ERR_RESOURCE, "memfd_create: %m");
        goto no_fd;
    }
    if (ftruncate(segment->fd, (off_t)bytes) != 0 || fstat(segment->fd, &stat) != 0 ||
        fcntl(segment->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        st = no_memory(bytes, "a segment", strerror(errno));
        goto no_map;
    }
    if (backed != 0 && (st = segment_back(segment, 0, backed)) != QUIRE_OK)
        goto no_map;
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);
    if (base == MAP_FAILED) {
        st = no_memory(bytes, "mapping", strerror(errno));
        goto no_map;
    }
    segment->base = base;
    if (control && (st = write_control(segment)) != QUIRE_OK)
        goto no_control;
    pthread_mutex_lock(&lock);
    registry_add(entry, &stat);
    pthread_mutex_unlock(&lock);
    *out = segment;
    return QUIRE_OK;

no_control:
    munmap(segment->base, bytes);
no_map:
    close(segment->fd);
no_fd:
    free(entry);
    return st;
}

/* Under `lock`; takes no reference. */
static struct lane_segment *registry_find(const struct stat *st)
{
    for (struct entry *e = registry; e != NULL; e = e->next)
        if (e->device == st->st_dev && e->inode == st->st_ino)
            return &e->segment;
    return NULL;
}

/* The nonce is what the maker told us by another way: reading it here proves that we look at the maker's memory. */
static quire_status_t check_control(const struct lane_segment *segment, const uint64_t nonce[2])
{
    const struct segment_control *control = (const struct segment_control *)segment->base;
    if (segment->bytes < sizeof(*control) || control->magic != SEGMENT_MAGIC || control->version != SEGMENT_VERSION ||
        control->bytes != segment->bytes)
        return quire_fail(QUIRE_ERR_LINK, "the segment offered is none of this version of Quire");
    if (memcmp(control->nonce, nonce, sizeof(control->nonce)) != 0)
        return quire_fail(QUIRE_ERR_LINK, "the segment offered is another one: its nonce differs");
    return QUIRE_OK;
}

static quire_status_t map_new(struct entry *entry, int fd, const struct stat *stat, const uint64_t nonce[2],
                              bool control)
{
    struct lane_segment *segment = &entry->segment;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || !S_ISREG(stat->st_mode) || stat->st_size <= 0)
        return quire_fail(QUIRE_ERR_LINK, "the segment offered could shrink under its readers; it must be sealed");
    segment->bytes = (size_t)stat->st_size;
    segment->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (segment->fd < 0)
        return quire_fail(QUIRE_ERR_RESOURCE, "duplicating a segment's descriptor: %m");
    void *base = mmap(NULL, segment->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);
    if (base == MAP_FAILED) {
        quire_status_t st = no_memory(segment->bytes, "mapping a peer's segment", strerror(errno));
        close(segment->fd);
        return st;
    }
    segment->base = base;
    quire_status_t st = control ? check_control(segment, nonce) : QUIRE_OK;
    if (st != QUIRE_OK) {
        munmap(segment->base, segment->bytes);
        close(segment->fd);
        return st;
    }
    segment->control = control ? (struct segment_control *)segment->base : NULL;
    if (control)
        memcpy(segment->nonce, nonce, sizeof(segment->nonce));
    return QUIRE_OK;
}

/* A segment that this process maps already. One that was mapped as plain memory must not be taken for lanes. */
static quire_status_t map_known(struct lane_segment *known, const uint64_t nonce[2], bool control)
{
    if (control && known->control == NULL)
        return quire_fail(QUIRE_ERR_LINK, "the segment offered is plain memory, not a rank's lanes");
    quire_status_t st = control ? check_control(known, nonce) : QUIRE_OK;
    if (st == QUIRE_OK)
        known->references++;
    return st;
}

quire_status_t segment_map(struct lane_segment **out, int fd, const uint64_t nonce[2], bool control)
{
    struct stat stat;
    if (fstat(fd, &stat) != 0)
        return quire_fail(QUIRE_ERR_LINK, "the segment offered: %m");
    struct entry *entry = calloc(1, sizeof(*entry));
    if (entry == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a segment");
    pthread_mutex_lock(&lock);
    struct lane_segment *known = registry_find(&stat);
    quire_status_t st = known != NULL ? map_known(known, nonce, control) : map_new(entry, fd, &stat, nonce, control);
    if (st == QUIRE_OK && known == NULL)
        registry_add(entry, &stat);
    pthread_mutex_unlock(&lock);
    if (st == QUIRE_OK)
        *out = known != NULL ? known : &entry->segment;
    if (st != QUIRE_OK || known != NULL)
        free(entry);
    return st;
}

void segment_put(struct lane_segment *segment)
{
    if (segment == NULL)
        return;
    struct entry *entry = entry_of(segment);
    pthread_mutex_lock(&lock);
    bool last = --segment->references == 0;
    for (struct entry **link = &registry; last && *link != NULL; link = &(*link)->next)
        if (*link == entry) {
            *link = entry->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    munmap(segment->base, segment->bytes);
    close(segment->fd);
    free(entry);
}
