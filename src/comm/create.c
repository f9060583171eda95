/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * create.c - making a communicator. The phases, each ended by all ranks together so that a failure of one is the
 * failure of all, with that rank's text:
 *   1 boot_create   everybody has joined
 *   2 facts         lanes made, transports opened; knobs and configuration agree
 *   3 reach         who shares memory with whom, proved on both sides
 *   4 attach        incoming lanes filled in
 *   5 ready
 * Invariant: comm_release undoes any prefix of them.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/knobs.h"
#include "base/log.h"
#include "comm.h"
#include "comm_internal.h"
#include "segment.h"
#include "topology.h"
#include "wrap_fault.h"

quire_status_t comm_check_config(const quire_config *config)
{
    if (config == NULL)
        return QUIRE_OK;
    if (config->size != sizeof(*config))
        return quire_fail(
            QUIRE_ERR_INVALID_ARGUMENT,
            "config.size is %zu, expected %zu: start from QUIRE_CONFIG_INITIALIZER, and compile against the "
            "header of the library that is loaded",
            config->size, sizeof(*config));
    if (config->timeout_ms < QUIRE_TIMEOUT_DEFAULT || config->init_timeout_ms < QUIRE_TIMEOUT_DEFAULT)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "config: a timeout is negative (%d, %d ms); 0 means none",
                          config->timeout_ms, config->init_timeout_ms);
    if (config->transport != NULL && strcmp(config->transport, "auto") != 0 &&
        (transport_by_name(config->transport) == NULL || strcmp(config->transport, "self") == 0))
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "config.transport is \"%s\"; it can be auto, shm or tcp",
                          config->transport);
    return QUIRE_OK;
}

static const char *transport_word(const char *word)
{
    const struct transport *t = word == NULL ? NULL : transport_by_name(word);
    return t == NULL ? "auto" : t->name;
}

static void configure(struct quire_comm *comm, const quire_config *config)
{
    static const quire_config defaults = QUIRE_CONFIG_INITIALIZER;
    const quire_config *c = config == NULL ? &defaults : config;
    snprintf(comm->name, sizeof(comm->name), "%s", c->name == NULL ? "" : c->name);
    comm->timeout_ns = knob_time_ns(KNOB_TIMEOUT);
    if (c->timeout_ms >= 0 && !knob_is_set(KNOB_TIMEOUT))
        comm->timeout_ns = (uint64_t)c->timeout_ms * CLOCK_MS;
    comm->init_timeout_ns = knob_time_ns(KNOB_INIT_TIMEOUT);
    if (c->init_timeout_ms >= 0 && !knob_is_set(KNOB_INIT_TIMEOUT))
        comm->init_timeout_ns = (uint64_t)c->init_timeout_ms * CLOCK_MS;
    comm->deterministic = c->deterministic != 0 || knob_bool(KNOB_DETERMINISTIC);
    comm->forced_transport = transport_word(knob_is_set(KNOB_TRANSPORT) ? knob_text(KNOB_TRANSPORT) : c->transport);
}

/* ---- lanes and transports ---------------------------------------------------------------------------------------- */

static quire_status_t env_dial(void *ctx, int rank, uint32_t purpose, uint64_t deadline, int *fd)
{
    return boot_dial(ctx, rank, purpose, deadline, fd);
}

static quire_status_t env_accept(void *ctx, int rank, uint32_t purpose, uint64_t deadline, int *fd)
{
    return boot_accept(ctx, rank, purpose, deadline, fd);
}

static quire_status_t env_offer(void *ctx, uint64_t tag, int fd)
{
    return boot_offer_fd(ctx, tag, fd);
}

static quire_status_t env_fetch(void *ctx, int rank, uint64_t tag, uint64_t deadline, int *fd)
{
    return boot_fetch_fd(ctx, rank, tag, deadline, fd);
}

/* A transport is opened when it may be used: self always, the others unless another one is forced. */
static bool transport_wanted(const struct quire_comm *comm, const struct transport *t)
{
    if (t == &transport_self)
        return true;
    return comm->size > 1 &&
           (strcmp(comm->forced_transport, "auto") == 0 || strcmp(comm->forced_transport, t->name) == 0);
}

static quire_status_t make_lanes(struct quire_comm *comm)
{
    struct lane_geometry geometry = {(uint32_t)knob_int(KNOB_LANE_DEPTH), knob_size(KNOB_SLOT_BYTES),
                                     (uint16_t)comm->epoch};
    quire_status_t st = lane_set_create(&comm->lanes, comm->rank, comm->size, &geometry);
    if (st != QUIRE_OK)
        return st;
    if (comm->lanes->segment == NULL) {
        comm->own_board = aligned_alloc(64, sizeof(*comm->own_board));
        if (comm->own_board == NULL)
            return quire_fail(QUIRE_ERR_RESOURCE, "no memory for the board");
        memset(comm->own_board, 0, sizeof(*comm->own_board));
        comm->board = comm->own_board;
        return QUIRE_OK;
    }
    struct segment_control *control = comm->lanes->segment->control;
    _Static_assert(sizeof(struct board_page) <= SEGMENT_BOARD_BYTES, "the board fits its place in the control page");
    comm->board = (struct board_page *)control->board;
    stop_place(&comm->stop, &control->stop);
    return QUIRE_OK;
}

static quire_status_t open_transports(struct quire_comm *comm, uint8_t (*blobs)[TRANSPORT_BLOB_BYTES])
{
    comm->env =
        (struct transport_env){comm->lanes, &comm->stop, comm->boot, env_dial, env_accept, env_offer, env_fetch};
    for (int i = 0; i < COMM_TRANSPORTS && transport_all[i] != NULL; i++) {
        if (!transport_wanted(comm, transport_all[i]))
            continue;
        quire_status_t st = transport_all[i]->open(&comm->ends[i], &comm->env, blobs[i]);
        if (st == QUIRE_OK && knob_is_set(KNOB_FAULT))
            st = wrap_fault(comm->ends[i], knob_text(KNOB_FAULT));
        if (st != QUIRE_OK)
            return st;
    }
    return QUIRE_OK;
}

/* Which transports reach `rank`, as bits in the order of preference. */
static quire_status_t reach_peer(struct quire_comm *comm, int rank, const uint8_t (*blobs)[TRANSPORT_BLOB_BYTES],
                                 uint64_t deadline, uint8_t *bits)
{
    for (int i = 0; i < COMM_TRANSPORTS && transport_all[i] != NULL; i++) {
        if (comm->ends[i] == NULL || (transport_all[i] == &transport_self) != (rank == comm->rank))
            continue;
        quire_status_t st = transport_all[i]->reach(comm->ends[i], rank, blobs[i], deadline);
        if (st == QUIRE_OK)
            *bits |= (uint8_t)(1u << i);
        else if (st != QUIRE_ERR_LINK)
            return st;
        else
            log_debug("%s does not reach rank %d: %s", transport_all[i]->name, rank, status_text_last());
    }
    return QUIRE_OK;
}

/* The first transport that both sides have proved. Every rank computes the whole matrix alike. */
static quire_status_t choose_via(struct quire_comm *comm, const uint8_t *matrix)
{
    size_t n = (size_t)comm->size;
    bool shared = true;
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++) {
            uint8_t both = matrix[a * n + b] & matrix[b * n + a];
            if (both == 0)
                return quire_fail(QUIRE_ERR_LINK, "no transport connects rank %zu with rank %zu (asked for: %s)", a, b,
                                  comm->forced_transport);
            int via = __builtin_ctz(both);
            shared = shared && transport_all[via]->progress == NULL;
            if (a == (size_t)comm->rank)
                comm->via[b] = (uint8_t)via;
        }
    comm->planner_facts.shared = shared;
    return QUIRE_OK;
}

static quire_status_t connect_peers(struct quire_comm *comm, const uint8_t *blobs, uint64_t deadline)
{
    size_t n = (size_t)comm->size, row = (size_t)COMM_TRANSPORTS * TRANSPORT_BLOB_BYTES;
    uint8_t *matrix = calloc(n + 1, n); /* one row more: this rank's own */
    quire_status_t st = QUIRE_OK, all;
    if (matrix == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for %d ranks", comm->size);
    for (int r = 0; st == QUIRE_OK && r < comm->size; r++)
        st = reach_peer(comm, r, (const uint8_t(*)[TRANSPORT_BLOB_BYTES])(blobs + row * (size_t)r), deadline,
                        &matrix[n * n + (size_t)r]);
    all = comm_agree(comm, st, deadline);
    if (all == QUIRE_OK)
        all = boot_all_gather(comm->boot, matrix + n * n, n, matrix, deadline);
    if (all == QUIRE_OK)
        all = choose_via(comm, matrix);
    free(matrix);
    if (all != QUIRE_OK)
        return all;
    for (int r = 0; st == QUIRE_OK && r < comm->size; r++)
        st = transport_all[comm->via[r]]->attach(comm->ends[comm->via[r]], r, deadline);
    return comm_agree(comm, st, deadline);
}

/* ---- planner and executor ---------------------------------------------------------------------------------------- */

/*
 * Polls before a waiting thread yields. A yield with nobody else runnable costs 0.4 us, so some microseconds of
 * spinning are all that a free core is good for; when ranks share cores the peer we wait for may need this very core,
 * and a few looks must do. Ranks in other containers of this machine can't be seen from here: another reason not to
 * spin long.
 */
enum { SPIN_ALONE = 256, SPIN_SHARED = 16 };

static uint32_t spin_policy(const struct quire_comm *comm)
{
    int64_t knob = knob_int(KNOB_SPIN);
    if (knob >= 0)
        return (uint32_t)knob;
    int local = 0;
    uint64_t key = boot_peer(comm->boot, comm->rank)->host_key;
    for (int r = 0; r < comm->size; r++)
        local += boot_peer(comm->boot, r)->host_key == key;
    return local <= topology_get()->allowed_cores ? SPIN_ALONE : SPIN_SHARED;
}

static quire_status_t make_planner(struct quire_comm *comm)
{
    struct planner_facts *facts = &comm->planner_facts;
    facts->ranks = (uint32_t)comm->size;
    facts->deterministic = comm->deterministic;
    facts->forced = algorithm_by_name(knob_text(KNOB_ALGORITHM)); /* "auto" is no algorithm's name */
    facts->one_shot_max = knob_size(KNOB_ONE_SHOT_MAX);
    facts->lane_depth = comm->lanes->geometry.depth;
    facts->prove = knob_bool(KNOB_CHECK_PLANS);
    return planner_create(&comm->planner, facts, (uint32_t)comm->rank);
}

static void make_exec(struct quire_comm *comm)
{
    struct exec_comm *exec = &comm->exec;
    exec->lanes = comm->lanes;
    exec->stop = &comm->stop;
    exec->end_count = 0;
    for (int i = 0; i < COMM_TRANSPORTS; i++) {
        bool used = false;
        for (int r = 0; r < comm->size; r++)
            used |= comm->via[r] == i;
        if (used && comm->ends[i] != NULL && comm->ends[i]->transport->progress != NULL)
            exec->ends[exec->end_count++] = comm->ends[i];
    }
    exec->spin = spin_policy(comm);
    exec->sleep_after_ns = knob_time_ns(KNOB_SLEEP_AFTER);
    exec->timeout_ns = comm->timeout_ns;
    exec->slow_after_ns = CLOCK_MS;
    exec->ctx = comm;
    exec->on_slow = comm_on_slow;
    exec->on_timeout = comm_on_timeout;
    exec->on_mismatch = comm_on_mismatch;
    exec->on_broken = comm_on_broken;
}

/* ---- the phases -------------------------------------------------------------------------------------------------- */

static quire_status_t start(struct quire_comm *comm, const struct boot_options *options)
{
    uint64_t deadline = deadline_in(comm->init_timeout_ns);
    size_t row = (size_t)COMM_TRANSPORTS * TRANSPORT_BLOB_BYTES;
    uint8_t(*own)[TRANSPORT_BLOB_BYTES] = calloc(1, row);
    uint8_t *blobs = calloc((size_t)comm->size, row);
    quire_status_t st;
    if (own == NULL || blobs == NULL) {
        st = quire_fail(QUIRE_ERR_RESOURCE, "no memory for %d ranks", comm->size);
        goto out;
    }
    st = boot_create(&comm->boot, options);
    if (st != QUIRE_OK)
        goto out;
    st = make_lanes(comm);
    if (st == QUIRE_OK)
        st = open_transports(comm, own);
    st = comm_exchange_facts(comm, st, own, row, blobs, deadline);
    if (st != QUIRE_OK)
        goto out;
    boot_set_board(comm->boot, comm->board);
    st = connect_peers(comm, blobs, deadline);
    if (st == QUIRE_OK)
        st = make_planner(comm);
    if (st == QUIRE_OK)
        make_exec(comm);
out:
    free(blobs);
    free(own);
    return st;
}

/* Failed: the cause stays readable in the shell, everything else is given back. */
static quire_status_t start_failed(struct quire_comm *comm, quire_status_t st)
{
    comm_note_error(comm, st);
    struct cause cause = cause_make(st, -1, "%s", status_text_last());
    stop_fail(&comm->stop, &cause);
    comm_release(comm);
    atom_store_release(&comm->state, (uint32_t)COMM_CLOSED);
    return st;
}

static quire_status_t run_start(struct quire_comm *comm, const struct boot_options *options)
{
    quire_status_t st = start(comm, options);
    if (st != QUIRE_OK)
        return start_failed(comm, st);
    atom_store_release(&comm->state, (uint32_t)COMM_READY);
    log_info("communicator \"%s\" ready: rank %d of %d", comm->name, comm->rank, comm->size);
    return QUIRE_OK;
}

struct later {
    struct quire_comm *comm;
    struct boot_options options;
    quire_unique_id id;
    char where[256];
};

static void *starter_main(void *arg)
{
    struct later *later = arg;
    (void)run_start(later->comm, &later->options);
    free(later);
    return NULL;
}

static quire_status_t start_later(struct quire_comm *comm, const struct boot_options *options)
{
    struct later *later = calloc(1, sizeof(*later));
    if (later == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory to start a communicator");
    later->comm = comm;
    later->options = *options;
    if (options->id != NULL) {
        later->id = *options->id;
        later->options.id = &later->id;
    }
    if (options->where != NULL) {
        snprintf(later->where, sizeof(later->where), "%s", options->where);
        later->options.where = later->where;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&comm->starter, NULL, starter_main, later);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        free(later);
        return quire_fail(QUIRE_ERR_RESOURCE, "can't start a thread for the communicator: error %d", error);
    }
    comm->starter_running = true;
    return QUIRE_IN_PROGRESS;
}

quire_status_t comm_create(struct quire_comm **out, const struct comm_options *options)
{
    quire_status_t st = comm_check_config(options->config);
    if (st == QUIRE_OK)
        st = knobs_check();
    if (st != QUIRE_OK)
        return st;
    struct quire_comm *comm = comm_shell(options->rank, options->size);
    if (comm == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a communicator");
    configure(comm, options->config);
    struct boot_options boot = {options->rank,  options->size,     options->meeting,      options->id,
                                options->where, options->key_salt, comm->init_timeout_ns, &comm->stop};
    if (options->config != NULL && options->config->blocking == 0)
        st = start_later(comm, &boot);
    else
        st = run_start(comm, &boot);
    if (st != QUIRE_OK && st != QUIRE_IN_PROGRESS) {
        char text[STATUS_TEXT_BYTES];
        snprintf(text, sizeof(text), "%s", status_text_last());
        comm_shell_free(comm);
        return quire_fail(st, "%s", text);
    }
    *out = comm;
    return st;
}
