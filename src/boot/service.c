/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.c - the process's one service thread: its life, epoll loop, timers, listeners, and the first words with a
 * stranger. See service.h, and boot_internal.h for the locking.
 *
 * Fork: the handlers below hold both locks over fork(), so that the child's copy is whole; the child closes its copies
 * of every descriptor (they belong to the parent, and a copy would keep the parent's connections open after its
 * death) and forgets the service. Nothing is taken out of the shared epoll instance by that.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/knobs.h"
#include "base/log.h"
#include "boot_internal.h"

enum { SERVICE_BACKLOG = 4096, SERVICE_BATCH = 64 };

static pthread_mutex_t global_lock = PTHREAD_MUTEX_INITIALIZER;
static struct service *current; /* global_lock */
static uint64_t fork_generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* ---- sources and timers ------------------------------------------------------------------------------------------ */

bool source_add(struct service *service, struct source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    return epoll_ctl(service->epoll, EPOLL_CTL_ADD, source->fd, &event) == 0;
}

void source_watch(struct service *service, struct source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    epoll_ctl(service->epoll, EPOLL_CTL_MOD, source->fd, &event);
}

/* Not left to close(): a forked child may hold a copy, and the registration would live as long as that. */
void source_remove(struct service *service, struct source *source)
{
    if (source->fd >= 0)
        epoll_ctl(service->epoll, EPOLL_CTL_DEL, source->fd, NULL);
}

void service_wake(struct service *service)
{
    uint64_t one = 1;
    ssize_t rc = write(service->wake.fd, &one, sizeof(one));
    (void)rc; /* a full counter wakes as well */
}

void timer_set(struct service *service, struct timer *timer, uint64_t at)
{
    timer_clear(service, timer);
    timer->at = at ? at : 1;
    timer->prev = NULL;
    timer->next = service->timers;
    if (timer->next)
        timer->next->prev = timer;
    service->timers = timer;
    if (timer->at < service->sleep_until) { /* 0 while the service thread is awake */
        service->sleep_until = timer->at;
        service_wake(service);
    }
}

void timer_clear(struct service *service, struct timer *timer)
{
    if (!timer->at)
        return;
    if (timer->prev)
        timer->prev->next = timer->next;
    else
        service->timers = timer->next;
    if (timer->next)
        timer->next->prev = timer->prev;
    timer->at = 0;
    timer->next = timer->prev = NULL;
}

/* Fires what is due and returns when the next one is. A fired timer may set or clear any other. */
static uint64_t timers_run(struct service *service)
{
    for (;;) {
        uint64_t now = clock_ns(), next = DEADLINE_NEVER;
        struct timer *due = NULL;
        for (struct timer *t = service->timers; t; t = t->next) {
            if (t->at <= now && !due)
                due = t;
            if (t->at < next)
                next = t->at;
        }
        if (!due)
            return next;
        timer_clear(service, due);
        due->fire(service, due);
    }
}

/* ---- listeners and strangers ------------------------------------------------------------------------------------- */

static bool greet(struct service *service, struct conn *conn)
{
    const struct wire_hello *hello = &conn->hello;
    struct cause no;
    if (hello->purpose == WIRE_FOR_JOIN) {
        struct root *root = root_find(service, hello->key);
        if (!root) {
            no = cause_make(QUIRE_ERR_INVALID_ARGUMENT, -1,
                            "the meeting is not known here: its id was used already, or its maker has ended");
            for (unsigned i = 0; i < SERVICE_USED_KEYS; i++)
                if (service->used[i].cause.status != 0 && memcmp(service->used[i].key, hello->key, WIRE_KEY_BYTES) == 0)
                    no = service->used[i].cause;
            goto refuse;
        }
        conn->root = root;
    } else {
        struct boot *boot = boot_find(service, hello->key, hello->to);
        if (!boot) {
            if (hello->purpose == WIRE_FOR_LINK && conn->role == CONN_STRANGER) {
                conn->role = CONN_PARKED; /* the table may be on its way to us */
                return true;
            }
            no = cause_make(QUIRE_ERR_LINK, hello->to, "rank %d has no such communicator (any more)", hello->to);
            goto refuse;
        }
        if (hello->from >= boot->size || (hello->from == boot->rank && hello->purpose == WIRE_FOR_LINK))
            return false;
        conn->boot = boot;
        conn->peer = hello->from;
    }
    /* It knows the key, so it is no stranger: if it was stopped half way, dropping it would look like our death. */
    timer_set(service, &conn->timer, clock_ns() + BOOT_MEMBER_TIME);
    conn->role = CONN_GREETED;
    return conn_say(service, conn, WIRE_ACK, 0, NULL);
refuse:
    conn_say_cause(service, conn, WIRE_NACK, &no);
    conn_close_softly(service, conn);
    return true;
}

static void confirmed(struct service *service, struct conn *conn)
{
    timer_clear(service, &conn->timer);
    switch (conn->hello.purpose) {
    case WIRE_FOR_JOIN:
        conn->role = CONN_JOINING;
        timer_set(service, &conn->timer, clock_ns() + BOOT_MEMBER_TIME);
        return;
    case WIRE_FOR_LINK:
        link_attach(conn->boot, conn->peer, conn);
        return;
    case WIRE_FOR_DIAL:
        handoff_accepted(service, conn->boot, conn);
        return;
    default:
        handoff_fetch(service, conn->boot, conn);
        return;
    }
}

void service_stranger_message(struct service *service, struct conn *conn)
{
    if (conn->role == CONN_STRANGER && conn->header.type == WIRE_HELLO &&
        wire_hello_parse(conn->body, conn->header.length, &conn->hello)) {
        if (!greet(service, conn))
            conn_close(service, conn);
        return;
    }
    if (conn->role == CONN_GREETED && conn->header.type == WIRE_CONFIRM) {
        confirmed(service, conn);
        return;
    }
    log_debug("dropped a connection that sent %s out of turn", wire_type_name(conn->header.type));
    conn_close(service, conn);
}

void service_greet_parked(struct service *service)
{
    for (struct conn *conn = service->conns, *next; conn; conn = next) {
        next = conn->next;
        if (conn->role == CONN_PARKED && boot_find(service, conn->hello.key, conn->hello.to) && !greet(service, conn))
            conn_close(service, conn);
    }
}

static void stranger_late(struct service *service, struct timer *timer)
{
    struct conn *conn = (struct conn *)((char *)timer - offsetof(struct conn, timer));
    if (conn->role == CONN_PARKED) {
        greet(service, conn); /* not a stranger any more, so this refuses */
        return;
    }
    enum conn_role was = conn->role;
    conn_drain(service, conn); /* was it slow, or were we? */
    if (conn->dead)
        return;
    if (conn->role != was) {
        if (conn->role == CONN_PARKED)
            timer_set(service, timer, clock_ns() + BOOT_STRANGER_TIME);
        return;
    }
    log_debug("dropped a connection that did not introduce itself in time");
    conn_close(service, conn);
}

static void listener_resume(struct service *service, struct timer *timer)
{
    struct listener *listener = (struct listener *)((char *)timer - offsetof(struct listener, pause));
    source_watch(service, &listener->source, EPOLLIN);
}

bool service_may_trust(int fd)
{
    struct ucred cred;
    socklen_t length = sizeof(cred);
    int domain = 0;
    socklen_t domain_length = sizeof(domain);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_length) != 0 || domain != AF_UNIX)
        return true;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) == 0 && (cred.uid == geteuid() || cred.uid == 0);
}

static void listener_ready(struct service *service, struct source *source, uint32_t events)
{
    struct listener *listener = (struct listener *)source;
    for (int i = 0; i < SERVICE_BATCH; i++) {
        int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
                log_warn("can't accept a connection now: %s; trying again", strerror(errno));
                source_watch(service, source, 0);
                timer_set(service, &listener->pause, clock_ns() + 50 * CLOCK_MS);
            }
            return;
        }
        if (!service_may_trust(fd)) {
            log_debug("dropped a connection from another user's process");
            close(fd);
            continue;
        }
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* fails for Unix sockets, rightly */
        struct conn *conn = conn_new(service, fd, CONN_STRANGER, EPOLLIN);
        if (!conn)
            continue;
        conn->timer.fire = stranger_late;
        timer_set(service, &conn->timer, clock_ns() + BOOT_STRANGER_TIME);
    }
}

struct listener *service_listen(struct service *service, const struct sockaddr *address, socklen_t length,
                                const char *where)
{
    for (struct listener *l = service->listeners; l; l = l->next)
        if (where[0] && strcmp(l->where, where) == 0) {
            l->refs++;
            return l;
        }
    struct listener *listener = calloc(1, sizeof(*listener));
    if (!listener)
        return NULL;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), zero = 0, one = 1;
    if (fd < 0)
        goto fail;
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    if (address->sa_family != AF_UNIX) /* the last job's connections may linger in TIME_WAIT on this port */
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, address, length) != 0 || listen(fd, SERVICE_BACKLOG) != 0)
        goto fail;
    listener->source = (struct source){fd, listener_ready};
    listener->pause.fire = listener_resume;
    listener->refs = 1;
    snprintf(listener->where, sizeof(listener->where), "%s", where);
    if (!source_add(service, &listener->source, EPOLLIN))
        goto fail;
    listener->next = service->listeners;
    if (listener->next)
        listener->next->prev = listener;
    service->listeners = listener;
    return listener;
fail:;
    int error = errno;
    if (fd >= 0)
        close(fd);
    free(listener);
    errno = error;
    return NULL;
}

void service_unlisten(struct service *service, struct listener *listener)
{
    if (!listener || --listener->refs > 0)
        return;
    timer_clear(service, &listener->pause);
    source_remove(service, &listener->source);
    close(listener->source.fd);
    if (listener->prev)
        listener->prev->next = listener->next;
    else
        service->listeners = listener->next;
    if (listener->next)
        listener->next->prev = listener->prev;
    listener->source.fd = -1;
    listener->next = service->dead_listeners; /* a fetched batch may still name it */
    service->dead_listeners = listener;
}

/* Frees what was closed, once no fetched event can name it. */
static void bury(struct service *service)
{
    conn_free_all(service);
    while (service->dead_listeners) {
        struct listener *listener = service->dead_listeners;
        service->dead_listeners = listener->next;
        free(listener);
    }
    while (service->dead_boots) {
        struct boot *boot = service->dead_boots;
        service->dead_boots = boot->next;
        free(boot->peers);
        free(boot);
    }
}

socklen_t service_unix_name(const char *name, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof(*out));
    struct sockaddr_un *un = (struct sockaddr_un *)out;
    un->sun_family = AF_UNIX;
    int length = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "quire-%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

socklen_t service_door_name(uint64_t door, struct sockaddr_storage *out)
{
    char name[32];
    snprintf(name, sizeof(name), "%016" PRIx64, door);
    return service_unix_name(name, out);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void wake_ready(struct service *service, struct source *source, uint32_t events)
{
    uint64_t count;
    ssize_t rc = read(source->fd, &count, sizeof(count));
    (void)rc;
}

static void service_free(struct service *service)
{
    pthread_mutex_lock(&service->lock);
    while (service->roots)
        root_close(service, service->roots);
    while (service->listeners) {
        service->listeners->refs = 1;
        service_unlisten(service, service->listeners);
    }
    while (service->conns)
        conn_close(service, service->conns);
    bury(service);
    pthread_mutex_unlock(&service->lock);
    if (service->wake.fd >= 0)
        close(service->wake.fd);
    if (service->epoll >= 0)
        close(service->epoll);
    pthread_mutex_destroy(&service->lock);
    free(service);
}

/* Gives back references that roots held. True when that was the last one, and this thread has to clean up itself. */
static bool give_back(struct service *service, int count)
{
    pthread_mutex_lock(&global_lock);
    service->refs -= count;
    bool last = service->refs == 0;
    if (last)
        current = NULL;
    pthread_mutex_unlock(&global_lock);
    return last;
}

static void *service_main(void *arg)
{
    struct service *service = arg;
    struct epoll_event events[SERVICE_BATCH];
    pthread_mutex_lock(&service->lock);
    while (!service->quit) {
        uint64_t next = timers_run(service);
        bury(service);
        int drop = service->drop_refs;
        service->drop_refs = 0;
        service->sleep_until = next;
        pthread_mutex_unlock(&service->lock);
        if (drop && give_back(service, drop)) {
            pthread_detach(pthread_self());
            service_free(service);
            return NULL;
        }
        struct timespec wait, *limit = NULL;
        if (next != DEADLINE_NEVER) {
            uint64_t now = clock_ns(), ns = next > now ? next - now : 0;
            wait = (struct timespec){(time_t)(ns / CLOCK_S), (long)(ns % CLOCK_S)};
            limit = &wait;
        }
        int got = epoll_pwait2(service->epoll, events, SERVICE_BATCH, limit, NULL);
        if (got < 0 && errno == ENOSYS) /* before Linux 5.11 */
            got = epoll_wait(service->epoll, events, SERVICE_BATCH,
                             next == DEADLINE_NEVER ? -1 : deadline_poll_ms(next, 1000));
        pthread_mutex_lock(&service->lock);
        service->sleep_until = 0; /* awake: nobody needs to wake us */
        for (int i = 0; i < got; i++) {
            struct source *source = events[i].data.ptr;
            if (source->fd >= 0)
                source->ready(service, source, events[i].events);
        }
    }
    pthread_mutex_unlock(&service->lock);
    return NULL;
}

static void fork_prepare(void)
{
    pthread_mutex_lock(&global_lock);
    if (current)
        pthread_mutex_lock(&current->lock);
}

static void fork_parent(void)
{
    if (current)
        pthread_mutex_unlock(&current->lock);
    pthread_mutex_unlock(&global_lock);
}

static void fork_child(void)
{
    struct service *service = current;
    if (service) {
        for (struct conn *conn = service->conns; conn; conn = conn->next)
            close(conn->source.fd);
        for (struct listener *l = service->listeners; l; l = l->next)
            close(l->source.fd);
        for (struct boot *boot = service->boots; boot; boot = boot->next) {
            for (int i = 0; boot->peers && i < boot->size; i++)
                if (boot->peers[i].pidfd.fd >= 0)
                    close(boot->peers[i].pidfd.fd);
            for (struct parked_fd *p = boot->accepted; p; p = p->next)
                close(p->fd);
            for (struct offer *o = boot->offers; o; o = o->next)
                close(o->fd);
        }
        close(service->wake.fd);
        close(service->epoll);
        pthread_mutex_unlock(&service->lock);
    }
    current = NULL;
    fork_generation++;
    pthread_mutex_unlock(&global_lock);
}

static void fork_install(void)
{
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* TCP on every address of both families; a host without any still has its Unix socket. */
static quire_status_t open_doors(struct service *service)
{
    struct wire_member *self = &service->self;
    int count = 0;
    quire_status_t st = address_list(knob_text(KNOB_INTERFACE), self->address, WIRE_MAX_ADDRESSES, &count);
    if (st != QUIRE_OK)
        return st;
    self->address_count = (uint8_t)count;
    address_host_name(self->host);
    self->host_key = address_host_key();
    self->pid = (int32_t)getpid();
    struct sockaddr_storage name;
    socklen_t length;
    if (!bytes_random(&self->door, sizeof(self->door)))
        return quire_fail(QUIRE_ERR_RESOURCE, "the kernel gave no random bytes for a socket's name");
    length = service_door_name(self->door, &name);
    if (!service_listen(service, (struct sockaddr *)&name, length, ""))
        return quire_fail(QUIRE_ERR_RESOURCE, "can't listen on an abstract Unix socket: %m");
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in any4 = {.sin_family = AF_INET};
    struct listener *tcp = service_listen(service, (struct sockaddr *)&any6, sizeof(any6), "");
    if (!tcp)
        tcp = service_listen(service, (struct sockaddr *)&any4, sizeof(any4), "");
    if (!tcp) {
        log_info("no TCP listener (%s): only ranks of this host can join", strerror(errno));
        return QUIRE_OK;
    }
    length = sizeof(name);
    if (getsockname(tcp->source.fd, (struct sockaddr *)&name, &length) == 0)
        self->port = ntohs(name.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&name)->sin6_port
                                                      : ((struct sockaddr_in *)&name)->sin_port);
    return QUIRE_OK;
}

static void linger_over(struct service *service, struct timer *timer)
{
    service->drop_refs += service->lingering;
    service->lingering = 0;
}

static quire_status_t service_start(struct service **out)
{
    struct service *service = calloc(1, sizeof(*service));
    if (!service)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for the service thread");
    pthread_mutex_init(&service->lock, NULL);
    service->wake.fd = -1;
    service->generation = fork_generation;
    service->refs = 1;
    service->next_id = 1;
    service->linger.fire = linger_over;
    service->epoll = epoll_create1(EPOLL_CLOEXEC);
    quire_status_t st = QUIRE_OK;
    if (service->epoll < 0 || (service->wake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0) {
        st = quire_fail(QUIRE_ERR_RESOURCE, "no descriptors for the service thread: %m");
        goto fail;
    }
    service->wake.ready = wake_ready;
    if (!source_add(service, &service->wake, EPOLLIN)) {
        st = quire_fail(QUIRE_ERR_RESOURCE, "epoll takes no descriptor: %m");
        goto fail;
    }
    if ((st = open_doors(service)) != QUIRE_OK)
        goto fail;
    int rc = pthread_create(&service->thread, NULL, service_main, service);
    if (rc != 0) {
        errno = rc;
        st = quire_fail(QUIRE_ERR_RESOURCE, "can't start the service thread: %m");
        goto fail;
    }
    *out = service;
    return QUIRE_OK;
fail:
    service_free(service);
    return st;
}

quire_status_t service_get(struct service **service)
{
    pthread_once(&fork_once, fork_install);
    pthread_mutex_lock(&global_lock);
    quire_status_t st = QUIRE_OK;
    if (current) {
        current->refs++;
    } else {
        struct service *fresh = NULL;
        st = service_start(&fresh);
        if (st == QUIRE_OK)
            current = fresh;
    }
    if (st == QUIRE_OK)
        *service = current;
    pthread_mutex_unlock(&global_lock);
    return st;
}

void service_put(struct service *service)
{
    if (!service || !service_alive(service))
        return;
    if (!give_back(service, 1))
        return;
    pthread_mutex_lock(&service->lock);
    service->quit = true;
    service_wake(service);
    pthread_mutex_unlock(&service->lock);
    pthread_join(service->thread, NULL);
    service_free(service);
}

bool service_alive(const struct service *service)
{
    return service && service->generation == atom_load_relaxed(&fork_generation);
}
