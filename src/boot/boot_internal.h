/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_internal.h - the structures of the boot room and what its files ask of each other.
 *
 * Locking: one lock per service, `service->lock`, guards everything below: connections, dials, roots, boots. The
 * service thread holds it while it handles a batch of events and never while it sleeps; a caller of boot_* takes it,
 * works on the structures directly (sockets are non-blocking, so it may send and start dials itself) and waits on its
 * boot's condition. Nothing under the lock blocks. stop->lock nests inside it. The global lock of service.c guards the
 * service's existence only and is never taken under service->lock.
 *
 * Lifetime: only the service thread frees connections, at the end of a batch, so that a pointer in a fetched batch of
 * events stays readable; everyone else marks them dead (conn_close).
 *
 * Flow: conn.c moves messages; service.c accepts and checks hellos; dial.c makes outgoing ones; root.c is the meeting
 * place; rendezvous.c is one rank's way through it; link.c is the control plane between ranks; flood.c, liveness.c,
 * collective.c, board.c and handoff.c stand on the links.
 */
#ifndef QUIRE_BOOT_INTERNAL_H
#define QUIRE_BOOT_INTERNAL_H

#include <pthread.h>
#include <sys/epoll.h>

#include "address.h"
#include "base/clock.h"
#include "base/status.h"
#include "boot.h"
#include "boot_wire.h"
#include "service.h"

/* The longest a wait sleeps before it looks at the stop word again. */
#define BOOT_STOP_LOOK (20 * CLOCK_MS)
/* How long a stranger may take over its handshake. */
#define BOOT_STRANGER_TIME (900 * CLOCK_MS)
/* And one that has shown the key, to go on. */
#define BOOT_MEMBER_TIME (30 * CLOCK_S)

struct service;
struct conn;
struct dial;
struct root;

/* ---- service ----------------------------------------------------------------------------------------------------- */

/* Something epoll watches. The first member of whatever owns it. */
struct source {
    int fd;
    void (*ready)(struct service *service, struct source *source, uint32_t events);
};

struct timer {
    uint64_t at; /* 0: not armed */
    void (*fire)(struct service *service, struct timer *timer);
    struct timer *next, *prev;
};

struct listener {
    struct source source;
    struct listener *next, *prev;
    struct timer pause; /* after EMFILE: do not spin on a listener that can't accept */
    int refs;
    char where[128]; /* meeting listeners: to share one between communicators of this process */
};

struct used_key { /* a meeting that is over: what to tell those who come late */
    uint8_t key[WIRE_KEY_BYTES];
    struct cause cause;
};
enum { SERVICE_USED_KEYS = 32 };

struct service {
    pthread_mutex_t lock;
    pthread_t thread;
    uint64_t generation; /* of forks, at creation */
    int refs;            /* global lock */
    int epoll;
    struct source wake; /* eventfd */
    bool quit;
    uint64_t sleep_until; /* what epoll_wait was told; an earlier timer must wake it */
    int drop_refs;        /* references to give back once the lock is released */
    struct timer linger;  /* of failed meetings: late comers should hear what happened */
    int lingering;        /* references held for that */
    struct timer *timers;
    struct conn *conns, *graveyard;
    struct listener *listeners, *dead_listeners;
    struct root *roots;
    struct boot *boots, *dead_boots;
    struct wire_member self; /* how this process is reached */
    uint64_t next_id;
    struct used_key used[SERVICE_USED_KEYS];
    unsigned used_count; /* ever */
};

void service_wake(struct service *service);
bool source_add(struct service *service, struct source *source, uint32_t events);
void source_watch(struct service *service, struct source *source, uint32_t events);
void source_remove(struct service *service, struct source *source);
void timer_set(struct service *service, struct timer *timer, uint64_t at);
void timer_clear(struct service *service, struct timer *timer);
/* A listener at a TCP address or an abstract Unix name (SERVICE_NAME), shared by `where`. NULL with errno set. */
struct listener *service_listen(struct service *service, const struct sockaddr *address, socklen_t length,
                                const char *where);
void service_unlisten(struct service *service, struct listener *listener);
/* False for a Unix socket to another user's process: abstract names can be taken by anyone. True for TCP. */
bool service_may_trust(int fd);
/* The abstract address "quire-<name>". */
socklen_t service_unix_name(const char *name, struct sockaddr_storage *out);
socklen_t service_door_name(uint64_t door, struct sockaddr_storage *out);
/* Greets those who waited for a communicator that is known only now. */
void service_greet_parked(struct service *service);

/* ---- connections ------------------------------------------------------------------------------------------------- */

enum conn_role {
    CONN_STRANGER, /* accepted, nothing proved yet */
    CONN_PARKED,   /* said hello to a communicator that does not exist here yet */
    CONN_GREETED,  /* hello was right; waits for the confirmation */
    CONN_JOINING,  /* at the root: confirmed, waits for JOIN */
    CONN_MEMBER,   /* at the root: a rank */
    CONN_DIALLING, /* one attempt of a dial */
    CONN_JOINED,   /* a rank's connection to the root */
    CONN_LINK,     /* between two ranks */
    CONN_FETCHING, /* waits for a descriptor */
    CONN_CLOSING   /* flushes, then closes */
};

/* Message bytes, shared by the queues of several connections. */
struct blob {
    int refs;
    size_t bytes;
    uint8_t data[];
};

struct out {
    struct out *next;
    struct blob *blob;
    size_t sent;
    int fd; /* rides on the first byte; -1 none */
};

struct conn {
    struct source source;
    struct timer timer;
    struct conn *next, *prev; /* service->conns, or graveyard */
    enum conn_role role;
    bool dead, local, connecting, broken; /* broken: a send failed; reading will find the end */
    struct boot *boot;
    int peer; /* rank, where known */
    struct dial *dial;
    struct root *root;
    struct wire_hello hello; /* accepted ones */
    uint8_t head[WIRE_HEADER_BYTES];
    size_t head_got;
    struct wire_header header;
    uint8_t *body;
    size_t body_got, body_cap;
    int got_fd; /* FETCHING */
    void *user; /* FETCHING: the waiting request */
    struct out *out_first, **out_last;
};

struct conn *conn_new(struct service *service, int fd, enum conn_role role, uint32_t events);
/* Any thread; the struct lives until the end of the service's batch. NULL is fine. */
void conn_close(struct service *service, struct conn *conn);
/* Takes the descriptor out; -1 when bytes are still queued. The connection is closed in any case. */
int conn_take_fd(struct service *service, struct conn *conn);
void conn_free_all(struct service *service);
struct blob *blob_make(enum wire_type type, uint64_t generation, const void *body, size_t bytes);
/* From a writer's bytes, which it frees; NULL when memory ran out. */
struct blob *blob_from(enum wire_type type, uint64_t generation, struct wire_out *body);
void blob_drop(struct blob *blob);
/* Queues a reference of the blob (NULL: nothing) and sends what the socket takes. False without memory. */
bool conn_send(struct service *service, struct conn *conn, struct blob *blob);
bool conn_send_fd(struct service *service, struct conn *conn, struct blob *blob, int fd);
/* Makes, sends and drops a message; body may be NULL. */
bool conn_say(struct service *service, struct conn *conn, enum wire_type type, uint64_t generation,
              struct wire_out *body);
bool conn_say_cause(struct service *service, struct conn *conn, enum wire_type type, const struct cause *cause);
/* Flush what is queued, for up to a second, then close. */
void conn_close_softly(struct service *service, struct conn *conn);
/* Reads all that is there and handles it, as the service would. */
void conn_drain(struct service *service, struct conn *conn);

/* What the owner of a role does; called by conn.c with conn->header and conn->body set. */
void service_stranger_message(struct service *service, struct conn *conn);
void dial_message(struct service *service, struct conn *conn);
void root_message(struct service *service, struct conn *conn);
void join_message(struct service *service, struct conn *conn);
void link_message(struct service *service, struct conn *conn);
void fetch_message(struct service *service, struct conn *conn);
/* The connection ended (error: errno, 0 for end of file) or broke the rules; it is closed after the call. */
void dial_lost(struct service *service, struct conn *conn, const char *why);
void root_member_lost(struct service *service, struct conn *conn, const char *why);
void join_lost(struct service *service, struct conn *conn, const char *why);
void link_lost(struct service *service, struct conn *conn, const char *why);
void fetch_lost(struct service *service, struct conn *conn, const char *why);
/* Connected (or not) with SO_ERROR. */
void dial_connected(struct service *service, struct conn *conn, int error);

/* ---- dialling ---------------------------------------------------------------------------------------------------- */

/*
 * One round over all paths to a process: first its Unix socket when the host keys agree, then all TCP addresses at
 * once. The first that acknowledges the hello wins and is confirmed; the others are closed. `done` is called once, in
 * the service thread, with the winner or NULL, and the dial is freed after it.
 */
struct dial {
    struct service *service;
    struct timer timer;
    struct wire_hello hello;
    struct wire_member target;
    char unix_name[64]; /* JOB meetings: only this */
    struct conn *attempts[WIRE_MAX_ADDRESSES];
    int stage; /* 0 Unix, 1 TCP, 2 over */
    uint64_t limit;
    bool unix_only;
    bool refused;        /* somebody answered, and said no */
    bool nobody;         /* the last attempt: no such socket there */
    bool slow;           /* no answer at all: frozen, or far away */
    struct cause answer; /* why not: of the refusal, or of the last attempt */
    void (*done)(struct service *service, struct dial *dial, struct conn *winner);
    struct boot *boot;
    int peer;
    void *user;
};

/* Copies the template. NULL without memory. `done` is never called from inside. */
struct dial *dial_start(struct service *service, const struct dial *model);
void dial_cancel(struct service *service, struct dial *dial);

/* ---- root -------------------------------------------------------------------------------------------------------- */

struct root_seat {
    struct conn *conn;
    bool ready;
    struct wire_join join;
};

struct root {
    struct root *next, *prev;
    struct service *service;
    struct timer deadline;
    uint8_t meeting[WIRE_KEY_BYTES], key[WIRE_KEY_BYTES];
    int size; /* -1 until the first join */
    int joined, ready;
    bool table_sent, keep_service;
    uint64_t opened, first_timeout_ns;
    struct root_seat *seats;
    struct listener *listener; /* ADDRESS and JOB */
};

/* keep_service: this root holds a reference to the service (ids); the caller has taken it. */
struct root *root_open(struct service *service, const uint8_t meeting[WIRE_KEY_BYTES], bool keep_service);
void root_fail(struct service *service, struct root *root, const struct cause *cause);
void root_close(struct service *service, struct root *root);
struct root *root_find(struct service *service, const uint8_t meeting[WIRE_KEY_BYTES]);

/* ---- one rank's end ---------------------------------------------------------------------------------------------- */

enum boot_state { BOOT_JOINING, BOOT_LINKING, BOOT_LIVE, BOOT_FAILED, BOOT_LEAVING };

struct pending {
    struct pending *next;
    struct blob *blob;
};

struct peer {
    struct boot_peer info;
    struct wire_member member;
    struct conn *link;  /* what we send on */
    struct conn *extra; /* the other one, when both sides dialled at once */
    struct dial *dial;
    struct pending *pending, **pending_last; /* while dialling */
    struct timer retry;                      /* of the dial */
    int tries;
    bool departed, gone, reported; /* gone: no link will come; reported: its failure was told */
    bool lost_early;               /* before this rank was live */
    bool presumed;                 /* nobody is there, and we never had a link: taken for departed if no cause comes */
    bool had_link;
    uint64_t note;        /* last collective it was seen waiting in */
    struct source pidfd;  /* local peers; fd -1 none */
    pid_t local_pid;      /* the same process, by our own pid namespace */
    struct timer verdict; /* waits for the exit status */
    uint64_t lost_at;
    char why[128];
    struct boot *boot;
    int rank;
};

struct parcel { /* a DATA message that nobody has asked for yet */
    struct parcel *next;
    int from;
    struct wire_data data; /* payload points into bytes */
    uint8_t *bytes;
};

struct parked_fd {
    struct parked_fd *next;
    int from;
    uint32_t number;
    int fd;
};

struct offer {
    struct offer *next;
    uint64_t tag;
    int fd;
};

struct ask {
    struct ask *next;
    uint64_t request;
    int rank;
    bool answered, lost;
    struct wire_answer answer;
};

enum { FLOOD_KEPT = 16 };
enum { FLOOD_SLOTS = 4096 };
/* Ids of floods seen: two open-addressed tables; when the young one is half full it becomes the old one. */
struct flood_log {
    uint64_t *young, *old; /* FLOOD_SLOTS entries, 0 is empty; made at first use */
    size_t count;          /* in the young one */
    struct kept {
        enum wire_type type;
        struct wire_flood flood;
    } kept[FLOOD_KEPT];  /* the last ones, for links that come up later */
    unsigned kept_count; /* ever */
};

struct boot {
    struct boot *next, *prev;
    struct service *service;
    pthread_cond_t changed;
    struct stop *stop, own_stop;
    int rank, size;
    enum boot_state state;
    struct cause failure; /* FAILED: why */
    uint8_t key[WIRE_KEY_BYTES];
    uint64_t generation; /* low half of key */
    struct peer *peers;
    struct conn *joined; /* to the root */
    struct dial *join_dial;
    bool join_tried, told_ready; /* join_tried: the last join dial has failed */
    struct dial last_join;       /* its answer */
    int uplink;                  /* -1: none needed */
    struct timer reparent;
    uint64_t sequence; /* of collectives */
    struct parcel *parcels;
    struct flood_log floods;
    uint32_t flood_next;
    struct parked_fd *accepted;
    struct offer *offers;
    struct ask *asks;
    const struct board_page *board;
};

/* rendezvous.c */
struct boot *boot_find(struct service *service, const uint8_t key[WIRE_KEY_BYTES], int rank);
void boot_changed(struct boot *boot);
/* Tells the root when all links of this rank's place in the tree stand. */
void boot_maybe_ready(struct boot *boot);
void boot_free(struct boot *boot);
/* The invariants of a boot with a table. Lock held. For tests. */
bool boot_check(const struct boot *boot);
/* Sleeps until something changes, at most until `deadline` or BOOT_STOP_LOOK. Lock held. */
void boot_sleep(struct boot *boot, uint64_t deadline);
/* INVALID_USAGE in a forked child or for NULL. */
quire_status_t boot_usable(const struct boot *boot);
/* "0, 3-5, 9": ranks r of size with missing(arg, r). */
char *boot_rank_list(char *text, size_t bytes, int size, bool (*is_in)(const void *arg, int rank), const void *arg);
/* "rank 2 (pid 17 on host a)" */
char *boot_peer_text(const struct boot *boot, int rank, char *text, size_t bytes);

/* link.c */
enum { LINK_TREE_WIDTH = 2 };
static inline int link_tree_parent(int rank)
{
    return rank == 0 ? -1 : (rank - 1) / LINK_TREE_WIDTH;
}
/* Sends over the link, making it if there is none. Drops silently when the peer is gone. False without memory. */
bool link_send(struct boot *boot, int rank, struct blob *blob);
bool link_want(struct boot *boot, int rank);
/* Sends to every link that stands, and to those being made, but not to `except` (or -1). */
void link_send_all(struct boot *boot, struct blob *blob, int except);
void link_attach(struct boot *boot, int rank, struct conn *conn);
void link_start_tree(struct boot *boot);
bool link_tree_stands(const struct boot *boot);
void link_close_all(struct boot *boot);
/* The neighbour towards lower ranks is gone: find another. */
void link_reparent(struct boot *boot);
void link_reparent_fire(struct service *service, struct timer *timer);
/* True while a living rank should have its uplink here but has not come yet. */
bool link_has_orphans(const struct boot *boot);
void link_peer_gone(struct boot *boot, int rank);
/* A peer said goodbye: no new link to it. What it sent before is still read, until its connections end. */
void link_peer_departed(struct boot *boot, int rank);
/* True when nothing more can come from that rank. */
bool link_silent(const struct boot *boot, int rank);
/* The last word of this rank, on every connection a peer may be listening to. */
void link_last_word(struct boot *boot, struct blob *blob);
/* Drops the dial and what waits for it. */
void link_forget_dial(struct boot *boot, int rank);

/* flood.c */
void flood_start(struct boot *boot, enum wire_type type, const struct cause *cause);
void flood_arrived(struct boot *boot, int from, enum wire_type type, const uint8_t *body, size_t bytes);
void flood_goodbye(struct boot *boot, int from, int rank);
void flood_note(struct boot *boot, int from, const struct wire_note *note);
/* Tells a fresh link all it may have missed. */
void flood_sync(struct boot *boot, int rank);
/* True when the id is new; false when it was seen, or memory ran out. */
bool flood_log_add(struct flood_log *log, uint64_t id);
void flood_log_free(struct flood_log *log);
bool flood_log_check(const struct flood_log *log);

/* liveness.c */
void liveness_watch(struct boot *boot, int rank, struct conn *conn);
/* A link ended without goodbye, or the peer can't be reached: find out why, then tell. */
void liveness_lost(struct boot *boot, int rank, const char *why);
void liveness_left(struct boot *boot, int rank, const struct cause *cause);
/* Nobody answers for a peer that we had no link to and nothing to say to. */
void liveness_absent(struct boot *boot, int rank);
void liveness_go(struct boot *boot);
void liveness_forget(struct boot *boot, int rank);

/* collective.c */
void collective_arrived(struct boot *boot, int from, const uint8_t *body, size_t bytes);

/* board.c */
void board_asked(struct boot *boot, int from, const uint8_t *body, size_t bytes);
void board_answered(struct boot *boot, const uint8_t *body, size_t bytes);
void board_peer_gone(struct boot *boot, int rank);

/* handoff.c */
void handoff_accepted(struct service *service, struct boot *boot, struct conn *conn);
void handoff_fetch(struct service *service, struct boot *boot, struct conn *conn);
void handoff_free(struct boot *boot);

#endif
