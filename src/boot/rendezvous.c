/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rendezvous.c - one rank's way into a communicator and out of it: find the root, join, get the table, make the links
 * of the tree, READY, GO; and boot_destroy. All four kinds of meeting come down to a root with a key.
 *
 * boot->state: JOINING (no table) -> LINKING (table, links being made) -> LIVE (after GO) -> LEAVING, or FAILED from
 * the first two. Only the service thread changes it before LIVE; boot_create waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/knobs.h"
#include "base/log.h"
#include "boot_internal.h"
#include "unique_id.h"

/* A root that must exist (ids) and refuses this long is gone. */
#define REFUSED_TIME (500 * CLOCK_MS)
/* How long a rank waits for the root's word after its own deadline: the root knows who is missing. */
#define ROOT_GRACE (300 * CLOCK_MS)
/* How long boot_destroy may take to get its last bytes out. */
#define LEAVE_TIME (500 * CLOCK_MS)
/* The same for messages whose link is still being made: others wait for them. */
#define PENDING_TIME (2 * CLOCK_S)
/* And how long for those who lost their neighbour and look for us. */
#define ORPHAN_TIME (50 * CLOCK_MS)

/* ---- small things ------------------------------------------------------------------------------------------------ */

struct boot *boot_find(struct service *service, const uint8_t key[WIRE_KEY_BYTES], int rank)
{
    for (struct boot *boot = service->boots; boot; boot = boot->next)
        if (boot->rank == rank && (boot->state == BOOT_LINKING || boot->state == BOOT_LIVE) &&
            memcmp(boot->key, key, WIRE_KEY_BYTES) == 0)
            return boot;
    return NULL;
}

void boot_changed(struct boot *boot)
{
    pthread_cond_broadcast(&boot->changed);
}

void boot_sleep(struct boot *boot, uint64_t deadline)
{
    uint64_t at = clock_ns() + BOOT_STOP_LOOK;
    if (deadline < at)
        at = deadline;
    struct timespec until = {(time_t)(at / CLOCK_S), (long)(at % CLOCK_S)};
    pthread_cond_timedwait(&boot->changed, &boot->service->lock, &until);
}

quire_status_t boot_usable(const struct boot *boot)
{
    if (!boot)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "no communicator was given");
    if (!service_alive(boot->service))
        return quire_fail(QUIRE_ERR_INVALID_USAGE,
                          "this communicator was made before fork: only the parent process can use it");
    return QUIRE_OK;
}

char *boot_rank_list(char *text, size_t bytes, int size, bool (*is_in)(const void *arg, int rank), const void *arg)
{
    size_t used = 0;
    text[0] = 0;
    for (int rank = 0; rank < size; rank++) {
        if (!is_in(arg, rank))
            continue;
        int last = rank;
        while (last + 1 < size && is_in(arg, last + 1))
            last++;
        if (bytes - used < 32) {
            snprintf(text + used, bytes - used, "%s...", used ? ", " : "");
            return text;
        }
        int wrote = last == rank ? snprintf(text + used, bytes - used, "%s%d", used ? ", " : "", rank)
                                 : snprintf(text + used, bytes - used, "%s%d-%d", used ? ", " : "", rank, last);
        used += (size_t)wrote;
        rank = last;
    }
    return text;
}

char *boot_peer_text(const struct boot *boot, int rank, char *text, size_t bytes)
{
    const struct boot_peer *info = &boot->peers[rank].info;
    snprintf(text, bytes, "rank %d (pid %d on host %s)", rank, (int)info->pid, info->host);
    return text;
}

const struct boot_peer *boot_peer(const struct boot *boot, int rank)
{
    return &boot->peers[rank].info;
}

bool boot_departed(const struct boot *boot, int rank)
{
    return atom_load_relaxed(&boot->peers[rank].departed);
}

bool boot_check(const struct boot *boot)
{
    bool ok = flood_log_check(&boot->floods) && boot->uplink < boot->rank;
    for (int i = 0; i < boot->size; i++) {
        const struct peer *peer = &boot->peers[i];
        ok &= !peer->link || (!peer->link->dead && peer->link->role == CONN_LINK && peer->link->peer == i);
        ok &= !peer->extra || (peer->link && peer->extra != peer->link);
        ok &= !peer->pending || peer->dial || peer->retry.at;
        ok &= i != boot->rank || (!peer->link && !peer->dial);
    }
    return ok;
}

/* ---- the service's side of joining ------------------------------------------------------------------------------- */

static void boot_fail(struct boot *boot, const struct cause *cause)
{
    if (boot->state != BOOT_JOINING && boot->state != BOOT_LINKING)
        return;
    boot->failure = *cause;
    boot->state = BOOT_FAILED;
    boot_changed(boot);
}

void boot_maybe_ready(struct boot *boot)
{
    if (boot->state != BOOT_LINKING || boot->told_ready || !boot->joined || !link_tree_stands(boot))
        return;
    boot->told_ready = true;
    conn_say(boot->service, boot->joined, WIRE_READY, 0, NULL);
}

static bool table_arrived(struct service *service, struct boot *boot, struct conn *conn)
{
    struct wire_member *members = calloc((size_t)boot->size, sizeof(*members));
    bool ok = members && wire_table_parse(conn->body, conn->header.length, boot->key, members, boot->size);
    if (ok) {
        struct wire_in in = {boot->key, boot->key + 8, true};
        boot->generation = wire_get_uint(&in, 8);
    }
    for (int i = 0; ok && i < boot->size; i++) {
        struct peer *peer = &boot->peers[i];
        peer->member = members[i];
        memcpy(peer->info.host, members[i].host, BOOT_HOST_BYTES);
        peer->info.host_key = members[i].host_key;
        peer->info.pid = (pid_t)members[i].pid;
    }
    free(members);
    if (!ok)
        return false;
    boot->state = BOOT_LINKING;
    link_start_tree(boot);
    service_greet_parked(service);
    boot_maybe_ready(boot);
    return true;
}

void join_message(struct service *service, struct conn *conn)
{
    struct boot *boot = conn->boot;
    struct cause cause;
    switch (conn->header.type) {
    case WIRE_TABLE:
        if (boot->state == BOOT_JOINING && table_arrived(service, boot, conn))
            return;
        break;
    case WIRE_GO:
        if (boot->state != BOOT_LINKING || !boot->told_ready)
            break;
        boot->state = BOOT_LIVE;
        boot->joined = NULL;
        conn_close(service, conn);
        liveness_go(boot);
        boot_changed(boot);
        return;
    case WIRE_FAIL:
        if (!wire_cause_parse(conn->body, conn->header.length, &cause))
            break;
        boot_fail(boot, &cause);
        return;
    default:
        break;
    }
    join_lost(service, conn, "sent a message that does not belong here");
    conn_close(service, conn);
}

void join_lost(struct service *service, struct conn *conn, const char *why)
{
    struct boot *boot = conn->boot;
    struct cause cause =
        cause_make(QUIRE_ERR_PEER_FAILED, -1, "the process where the ranks meet %s before all ranks had come", why);
    boot->joined = NULL;
    boot_fail(boot, &cause);
}

static void join_dialled(struct service *service, struct dial *dial, struct conn *winner)
{
    struct boot *boot = dial->boot;
    boot->join_dial = NULL;
    boot->last_join = *dial;
    if (!winner) {
        boot->join_tried = true;
        boot_changed(boot);
        return;
    }
    winner->role = CONN_JOINED;
    winner->boot = boot;
    boot->joined = winner;
    struct wire_join join = {.rank = boot->rank, .size = boot->size, .member = service->self};
    uint64_t now = clock_ns(), deadline = *(const uint64_t *)dial->user;
    if (deadline != DEADLINE_NEVER)
        join.timeout_ns = deadline > now ? deadline - now : 1;
    struct wire_out out = {NULL, 0, 0, false};
    wire_join_write(&out, &join);
    if (!conn_say(service, winner, WIRE_JOIN, 0, &out)) {
        struct cause cause = cause_make(QUIRE_ERR_RESOURCE, boot->rank, "rank %d has no memory to join", boot->rank);
        boot_fail(boot, &cause);
    }
    boot_changed(boot);
}

/* ---- the caller's side ------------------------------------------------------------------------------------------- */

/* What a joining caller carries along; lives on boot_create's stack. */
struct meeting {
    const struct boot_options *options;
    struct boot *boot;
    struct service *service;
    uint64_t deadline;
    struct dial target; /* model for dialling the root */
    bool wrote_file;    /* FILE: rank 0 has to remove it */
    quire_unique_id id; /* FILE, rank 0: what it wrote */
    bool opened_root;   /* ours to fail while it is open, by its key */
};

/* OK to go on; TIMEOUT or the stop word's cause. Lock held. */
static quire_status_t meeting_may_wait(struct meeting *m, uint64_t grace)
{
    if (stop_seen(m->boot->stop) == STOP_FATAL)
        return stop_status(m->boot->stop);
    if (m->deadline == DEADLINE_NEVER || clock_ns() < m->deadline + grace)
        return QUIRE_OK;
    return QUIRE_ERR_TIMEOUT;
}

static void meeting_key(uint8_t key[WIRE_KEY_BYTES], const char *kind, const char *text, uint64_t salt)
{
    for (uint64_t half = 0; half < 2; half++) {
        uint64_t hash = bytes_hash(BYTES_HASH_START ^ half, kind, strlen(kind) + 1);
        hash = bytes_hash(hash, text, strlen(text) + 1);
        hash = bytes_hash(hash, &salt, sizeof(salt));
        memcpy(key + 8 * half, &hash, 8);
    }
}

/* Binds the meeting's listener, trying again while its address is busy: an earlier job may just be ending. */
static quire_status_t meeting_listen(struct meeting *m, const struct sockaddr_storage *address, socklen_t length,
                                     const char *where)
{
    uint64_t pause = CLOCK_MS;
    for (;;) {
        struct listener *listener = service_listen(m->service, (const struct sockaddr *)address, length, where);
        if (listener) {
            bool twice = root_find(m->service, m->target.hello.key) != NULL;
            struct root *root = twice ? NULL : root_open(m->service, m->target.hello.key, false);
            if (root) {
                m->opened_root = true;
                root->listener = listener;
                return QUIRE_OK;
            }
            service_unlisten(m->service, listener);
            return twice ? quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                                      "rank 0 meets at %s twice in this process: count up key_salt", where)
                         : quire_fail(QUIRE_ERR_RESOURCE, "no memory for the meeting at %s", where);
        }
        int error = errno;
        if (error != EADDRINUSE)
            return quire_fail(error == EADDRNOTAVAIL ? QUIRE_ERR_INVALID_ARGUMENT : QUIRE_ERR_RESOURCE,
                              "rank 0 can't listen at %s: %s", where, strerrordesc_np(error));
        quire_status_t st = meeting_may_wait(m, 0);
        if (st == QUIRE_ERR_TIMEOUT)
            return quire_fail(st, "rank 0 can't listen at %s: another process holds it and did not let go in time",
                              where);
        if (st != QUIRE_OK)
            return st;
        boot_sleep(m->boot, clock_ns() + pause);
        pause = pause < 25 * CLOCK_MS ? 2 * pause : 50 * CLOCK_MS;
    }
}

static quire_status_t meet_address(struct meeting *m)
{
    const char *where = m->options->where;
    struct wire_member *to = &m->target.target;
    int count = 0;
    meeting_key(m->target.hello.key, "address", where, m->options->key_salt);
    pthread_mutex_unlock(&m->service->lock); /* name service may take its time */
    quire_status_t st = address_resolve(where, to->address, WIRE_MAX_ADDRESSES, &count, &to->port);
    pthread_mutex_lock(&m->service->lock);
    if (st != QUIRE_OK)
        return st;
    to->address_count = (uint8_t)count;
    if (m->options->rank != 0)
        return QUIRE_OK;
    struct sockaddr_storage address;
    socklen_t length;
    for (int i = 0; i < count; i++) {
        address_to_sockaddr(&to->address[i], to->port, &address, &length);
        st = meeting_listen(m, &address, length, where);
        if (st != QUIRE_ERR_INVALID_ARGUMENT || i + 1 == count)
            break;
    }
    if (st == QUIRE_OK)
        *to = m->service->self; /* rank 0 meets itself by its own door */
    return st;
}

static quire_status_t meet_job(struct meeting *m)
{
    char text[128];
    snprintf(text, sizeof(text), "%u-%s", (unsigned)geteuid(), m->options->where);
    meeting_key(m->target.hello.key, "job", text, m->options->key_salt);
    uint64_t hash;
    memcpy(&hash, m->target.hello.key, 8);
    snprintf(m->target.unix_name, sizeof(m->target.unix_name), "job-%016llx", (unsigned long long)hash);
    m->target.unix_only = true;
    if (m->options->rank != 0)
        return QUIRE_OK;
    struct sockaddr_storage address;
    socklen_t length = service_unix_name(m->target.unix_name, &address);
    return meeting_listen(m, &address, length, m->target.unix_name);
}

static void meet_by_id(struct meeting *m, const struct id_fields *fields)
{
    m->target.target = fields->root;
    memcpy(m->target.hello.key, fields->key, WIRE_KEY_BYTES);
}

static struct id_fields id_for(struct service *service, const uint8_t key[WIRE_KEY_BYTES])
{
    struct id_fields fields = {.root = service->self};
    memcpy(fields.key, key, WIRE_KEY_BYTES);
    return fields;
}

/* Rank 0: an id in a file, there as a whole or not at all. */
static quire_status_t meet_write_file(struct meeting *m)
{
    struct id_fields fields;
    uint8_t key[WIRE_KEY_BYTES];
    char name[4096 + 32], text[ID_TEXT_BYTES];
    if (!bytes_random(key, sizeof(key)))
        return quire_fail(QUIRE_ERR_RESOURCE, "the kernel gave no random bytes for a key");
    if (!root_open(m->service, key, false))
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for the meeting");
    m->opened_root = true;
    memcpy(m->target.hello.key, key, sizeof(key));
    fields = id_for(m->service, key);
    id_encode(&m->id, &fields);
    id_to_text(&m->id, text);
    snprintf(name, sizeof(name), "%.4000s.%d.tmp", m->options->where, (int)getpid());
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "rank 0 can't write the meeting file %.200s: %m", name);
    bool ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int error = errno;
    ok &= close(fd) == 0;
    if (!ok || rename(name, m->options->where) != 0) {
        if (ok)
            error = errno;
        unlink(name);
        return quire_fail(QUIRE_ERR_RESOURCE, "rank 0 can't write the meeting file %.200s: %s", m->options->where,
                          strerrordesc_np(error));
    }
    m->wrote_file = true;
    meet_by_id(m, &fields);
    return QUIRE_OK;
}

/* False while the file is not there or not whole. An old file is harmless: nobody answers, and it is read again. */
static bool meet_read_file(struct meeting *m)
{
    char text[ID_TEXT_BYTES + 1];
    quire_unique_id id;
    struct id_fields fields;
    int fd = open(m->options->where, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof(text));
    close(fd);
    if (got <= 0 || !id_from_text(text, (size_t)got, &id) || id_decode(&id, &fields) != QUIRE_OK)
        return false;
    meet_by_id(m, &fields);
    return true;
}

/* Our rank 0 wrote the file; remove it unless another job has put its own there since. */
static void meet_remove_file(struct meeting *m)
{
    char text[ID_TEXT_BYTES + 1];
    quire_unique_id id;
    if (!m->wrote_file)
        return;
    int fd = open(m->options->where, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    ssize_t got = read(fd, text, sizeof(text));
    close(fd);
    if (got > 0 && id_from_text(text, (size_t)got, &id) && memcmp(&id, &m->id, sizeof(id)) == 0)
        unlink(m->options->where);
}

static quire_status_t meeting_prepare(struct meeting *m)
{
    struct id_fields fields;
    quire_status_t st;
    switch (m->options->meeting) {
    case BOOT_MEET_ID:
        st = id_decode(m->options->id, &fields);
        if (st == QUIRE_OK)
            meet_by_id(m, &fields);
        return st;
    case BOOT_MEET_ADDRESS:
        return meet_address(m);
    case BOOT_MEET_FILE:
        return m->options->rank == 0 ? meet_write_file(m) : QUIRE_OK;
    case BOOT_MEET_JOB:
        return meet_job(m);
    }
    return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "unknown kind of meeting %d", (int)m->options->meeting);
}

static const char *meeting_place(const struct meeting *m)
{
    return m->options->meeting == BOOT_MEET_ID ? "the id's addresses" : m->options->where;
}

/* What a failed round of dialling means: OK to try again. */
static quire_status_t meeting_refused(struct meeting *m, uint64_t since)
{
    const struct dial *last = &m->boot->last_join;
    bool must_exist = m->options->meeting == BOOT_MEET_ID;
    if (must_exist && last->refused)
        return quire_fail((quire_status_t)last->answer.status, "%s", last->answer.text);
    if (must_exist && clock_ns() - since >= REFUSED_TIME)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                          "nobody answers at the id's addresses (%s): its maker has ended, or the id was used already",
                          last->answer.text);
    return QUIRE_OK;
}

/* Dials the root until it has us. */
static quire_status_t meeting_reach_root(struct meeting *m)
{
    struct boot *boot = m->boot;
    uint64_t pause = CLOCK_MS, since = clock_ns();
    bool read_file = m->options->meeting == BOOT_MEET_FILE && m->options->rank != 0;
    for (;;) {
        boot->join_tried = false;
        if (!read_file || meet_read_file(m)) {
            boot->join_dial = dial_start(m->service, &m->target);
            if (!boot->join_dial)
                return quire_fail(QUIRE_ERR_RESOURCE, "no memory to dial the meeting place");
            while (boot->join_dial && meeting_may_wait(m, 0) == QUIRE_OK)
                boot_sleep(boot, m->deadline);
            if (boot->joined || boot->state != BOOT_JOINING)
                return QUIRE_OK;
            quire_status_t st = boot->join_tried ? meeting_refused(m, since) : QUIRE_OK;
            if (st != QUIRE_OK)
                return st;
        }
        quire_status_t st = meeting_may_wait(m, 0);
        if (st == QUIRE_ERR_TIMEOUT)
            return quire_fail(st, "rank %d could not reach rank 0 at %s in %.3g s: %s; missing: %s", boot->rank,
                              meeting_place(m), (double)m->options->timeout_ns / 1e9,
                              boot->last_join.answer.status ? boot->last_join.answer.text : "nothing there yet",
                              m->options->meeting == BOOT_MEET_ID ? "the id's maker" : "0");
        if (st != QUIRE_OK)
            return st;
        boot_sleep(boot, clock_ns() + pause);
        pause = pause < 25 * CLOCK_MS ? 2 * pause : 50 * CLOCK_MS;
    }
}

static quire_status_t meeting_wait_go(struct meeting *m)
{
    struct boot *boot = m->boot;
    for (;;) {
        if (boot->state == BOOT_LIVE)
            return QUIRE_OK;
        if (boot->state == BOOT_FAILED)
            return quire_fail((quire_status_t)boot->failure.status, "%s", boot->failure.text);
        quire_status_t st = meeting_may_wait(m, ROOT_GRACE);
        if (st == QUIRE_ERR_TIMEOUT)
            return quire_fail(st, "rank %d joined, but the process where the ranks meet fell silent", boot->rank);
        if (st != QUIRE_OK)
            return st;
        boot_sleep(boot, m->deadline == DEADLINE_NEVER ? m->deadline : m->deadline + ROOT_GRACE);
    }
}

/* Tells the root, and by it everyone, that this rank gives up; drops what is half made. Lock held. */
static void meeting_give_up(struct meeting *m, quire_status_t st)
{
    struct boot *boot = m->boot;
    struct root *root = m->opened_root ? root_find(m->service, m->target.hello.key) : NULL;
    struct cause cause =
        cause_make(QUIRE_ERR_PEER_FAILED, boot->rank, "rank %d (pid %d on host %s) gave up init: %.300s", boot->rank,
                   (int)getpid(), m->service->self.host, status_text_last());
    if (st == QUIRE_ERR_TIMEOUT)
        cause.status = QUIRE_ERR_TIMEOUT;
    if (root)
        root_fail(m->service, root, &cause);
    else if (boot->joined && boot->state != BOOT_FAILED)
        conn_say_cause(m->service, boot->joined, WIRE_FAIL, &cause);
    if (boot->joined)
        conn_close_softly(m->service, boot->joined);
    boot->joined = NULL;
}

/* ---- boot -------------------------------------------------------------------------------------------------------- */

static struct boot *boot_new(struct service *service, const struct boot_options *options)
{
    struct boot *boot = calloc(1, sizeof(*boot));
    struct peer *peers = calloc((size_t)options->size, sizeof(*peers));
    if (!boot || !peers) {
        free(boot);
        free(peers);
        return NULL;
    }
    boot->service = service;
    boot->rank = options->rank;
    boot->size = options->size;
    boot->peers = peers;
    boot->uplink = -1;
    boot->reparent.fire = link_reparent_fire;
    stop_init(&boot->own_stop);
    boot->stop = options->stop ? options->stop : &boot->own_stop;
    for (int i = 0; i < boot->size; i++) {
        peers[i].rank = i;
        peers[i].boot = boot;
        peers[i].pidfd.fd = -1;
        peers[i].pending_last = &peers[i].pending;
    }
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&boot->changed, &attr);
    pthread_condattr_destroy(&attr);
    return boot;
}

static void boot_enlist(struct boot *boot)
{
    struct service *service = boot->service;
    boot->next = service->boots;
    if (boot->next)
        boot->next->prev = boot;
    service->boots = boot;
}

/* Takes it out of the service and frees it. Lock held. */
void boot_free(struct boot *boot)
{
    struct service *service = boot->service;
    dial_cancel(service, boot->join_dial);
    conn_close(service, boot->joined);
    link_close_all(boot);
    timer_clear(service, &boot->reparent);
    for (struct conn *conn = service->conns, *next; conn; conn = next) { /* greeted, not confirmed */
        next = conn->next;
        if (conn->boot == boot)
            conn_close(service, conn);
    }
    handoff_free(boot);
    while (boot->parcels) {
        struct parcel *parcel = boot->parcels;
        boot->parcels = parcel->next;
        free(parcel->bytes);
        free(parcel);
    }
    flood_log_free(&boot->floods);
    if (boot->prev)
        boot->prev->next = boot->next;
    else
        service->boots = boot->next;
    if (boot->next)
        boot->next->prev = boot->prev;
    pthread_cond_destroy(&boot->changed);
    stop_destroy(&boot->own_stop);
    boot->next = service->dead_boots; /* a fetched batch may name a process handle of its peers */
    service->dead_boots = boot;
    service_wake(service);
}

static quire_status_t options_check(const struct boot_options *options)
{
    if (options->size < 1 || options->size > WIRE_MAX_SIZE)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%d ranks are not in 1..%d", options->size, WIRE_MAX_SIZE);
    if (options->rank < 0 || options->rank >= options->size)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "rank %d is not in 0..%d", options->rank, options->size - 1);
    if (options->meeting == BOOT_MEET_ID)
        return boot_check_id(options->id);
    if (!options->where || !options->where[0])
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "no meeting place was given");
    return QUIRE_OK;
}

quire_status_t boot_create(struct boot **out, const struct boot_options *options)
{
    struct meeting m = {.options = options, .deadline = deadline_in(options->timeout_ns)};
    quire_status_t st = options_check(options);
    if (st != QUIRE_OK)
        return st;
    if ((st = service_get(&m.service)) != QUIRE_OK)
        return st;
    pthread_mutex_lock(&m.service->lock);
    m.boot = boot_new(m.service, options);
    if (!m.boot) {
        pthread_mutex_unlock(&m.service->lock);
        service_put(m.service);
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a communicator of %d ranks", options->size);
    }
    boot_enlist(m.boot);
    m.target.hello.from = options->rank;
    m.target.hello.to = -1;
    m.target.hello.purpose = WIRE_FOR_JOIN;
    m.target.limit = 3 * CLOCK_S;
    m.target.boot = m.boot;
    m.target.done = join_dialled;
    m.target.user = &m.deadline;
    st = meeting_prepare(&m);
    if (st == QUIRE_OK)
        st = meeting_reach_root(&m);
    if (st == QUIRE_OK)
        st = meeting_wait_go(&m);
    meet_remove_file(&m);
    if (st != QUIRE_OK) {
        meeting_give_up(&m, st);
        boot_free(m.boot);
        pthread_mutex_unlock(&m.service->lock);
        service_put(m.service);
        return st;
    }
    pthread_mutex_unlock(&m.service->lock);
    *out = m.boot;
    return QUIRE_OK;
}

/* Nothing waits for a link that is being made. */
static bool nothing_pending(const struct boot *boot)
{
    for (int i = 0; i < boot->size; i++)
        if (boot->peers[i].pending)
            return false;
    return true;
}

static bool links_flushed(const struct boot *boot)
{
    for (int i = 0; i < boot->size; i++) {
        const struct peer *peer = &boot->peers[i];
        if ((peer->link && peer->link->out_first) || (peer->extra && peer->extra->out_first))
            return false;
    }
    return true;
}

static void leave_wait(struct boot *boot, bool (*done)(const struct boot *boot), uint64_t limit)
{
    while (!done(boot) && clock_ns() < limit && stop_seen(boot->stop) != STOP_FATAL)
        boot_sleep(boot, clock_ns() + CLOCK_MS); /* a flush changes nothing that would wake us */
}

/*
 * A goodbye says that nothing more will come, so it must not overtake what is still on its way to a new link: others
 * pass it on faster than a connection is made. Both waits are for sockets, not for peers, and are bounded.
 */
static void leave_in_good_order(struct boot *boot)
{
    leave_wait(boot, nothing_pending, clock_ns() + PENDING_TIME);
    flood_goodbye(boot, -1, boot->rank);
    boot->state = BOOT_LEAVING;
    leave_wait(boot, links_flushed, clock_ns() + LEAVE_TIME);
}

/*
 * After a failure the ranks below a dead one are on their way to us, and we may be the only one who can tell them why:
 * give them a moment before we go too.
 */
static void leave_after_failure(struct boot *boot)
{
    uint64_t limit = clock_ns() + ORPHAN_TIME;
    while (boot->state == BOOT_LIVE && link_has_orphans(boot) && clock_ns() < limit)
        boot_sleep(boot, clock_ns() + CLOCK_MS);
    liveness_left(boot, boot->rank, stop_cause(boot->stop));
}

void boot_destroy(struct boot *boot)
{
    if (!boot || !service_alive(boot->service))
        return; /* a forked child's copy: nothing here is its own */
    struct service *service = boot->service;
    pthread_mutex_lock(&service->lock);
    if (stop_seen(boot->stop) != STOP_FATAL)
        leave_in_good_order(boot);
    if (stop_cause(boot->stop))
        leave_after_failure(boot);
    boot_free(boot);
    pthread_mutex_unlock(&service->lock);
    service_put(service);
}

quire_status_t boot_make_id(quire_unique_id *id)
{
    if (!id)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "there is no place for the id: the pointer is NULL");
    struct service *service;
    quire_status_t st = service_get(&service);
    if (st != QUIRE_OK)
        return st;
    uint8_t key[WIRE_KEY_BYTES];
    pthread_mutex_lock(&service->lock);
    struct root *root = bytes_random(key, sizeof(key)) ? root_open(service, key, true) : NULL;
    if (root) {
        struct id_fields fields = id_for(service, key);
        id_encode(id, &fields);
    }
    pthread_mutex_unlock(&service->lock);
    if (root)
        return QUIRE_OK; /* the root keeps the reference */
    service_put(service);
    return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a new id");
}
