/* SPDX-License-Identifier: BSD-3-Clause */
/* conformance.c - see conformance.h. */
#include "conformance.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "harness/harness.h"

enum { MAX_ENDS = 5, DEPTH = 4, SLOT = 4096, TAGS = 4, LAPS = 60 };

static const struct transport *under_test;
static bool notices_death;

/* ---- the environment that transports are lent -------------------------------------------------------------------- */

struct world {
    pthread_mutex_t lock;
    int dialled[MAX_ENDS][MAX_ENDS]; /* the accepting side's descriptor, -1 */
    int offered[MAX_ENDS];
    uint8_t blobs[MAX_ENDS][TRANSPORT_BLOB_BYTES];
    pthread_barrier_t barrier;
    int size;
};

struct place {
    struct world *world;
    int rank;
    struct lane_set *set;
    struct stop stop;
    struct transport_env env;
    struct transport_end *end, *self;
};

static quire_status_t dial(void *ctx, int rank, uint32_t purpose, uint64_t deadline, int *fd)
{
    struct place *p = ctx;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return QUIRE_ERR_RESOURCE;
    pthread_mutex_lock(&p->world->lock);
    p->world->dialled[rank][p->rank] = pair[1];
    pthread_mutex_unlock(&p->world->lock);
    *fd = pair[0];
    return QUIRE_OK;
}

static quire_status_t accept_fd(void *ctx, int rank, uint32_t purpose, uint64_t deadline, int *fd)
{
    struct place *p = ctx;
    for (*fd = -1; *fd < 0 && !deadline_passed(deadline); usleep(100)) {
        pthread_mutex_lock(&p->world->lock);
        *fd = p->world->dialled[p->rank][rank];
        pthread_mutex_unlock(&p->world->lock);
    }
    return *fd < 0 ? QUIRE_ERR_TIMEOUT : QUIRE_OK;
}

static quire_status_t offer(void *ctx, uint64_t tag, int fd)
{
    struct place *p = ctx;
    pthread_mutex_lock(&p->world->lock);
    p->world->offered[p->rank] = fd;
    pthread_mutex_unlock(&p->world->lock);
    return QUIRE_OK;
}

static quire_status_t fetch(void *ctx, int rank, uint64_t tag, uint64_t deadline, int *fd)
{
    struct place *p = ctx;
    pthread_mutex_lock(&p->world->lock);
    *fd = p->world->offered[rank] < 0 ? -1 : fcntl(p->world->offered[rank], F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&p->world->lock);
    return *fd < 0 ? quire_fail(QUIRE_ERR_LINK, "nothing offered") : QUIRE_OK;
}

static struct world *world_make(int size)
{
    struct world *w = calloc(1, sizeof(*w));
    pthread_mutex_init(&w->lock, NULL);
    pthread_barrier_init(&w->barrier, NULL, (unsigned)size);
    w->size = size;
    for (int a = 0; a < MAX_ENDS; a++) {
        w->offered[a] = -1;
        for (int b = 0; b < MAX_ENDS; b++)
            w->dialled[a][b] = -1;
    }
    return w;
}

static int place_make(struct place *p, struct world *w, int rank)
{
    struct lane_geometry g = {DEPTH, SLOT, 3};
    memset(p, 0, sizeof(*p));
    p->world = w;
    p->rank = rank;
    stop_init(&p->stop);
    RANK_OK(lane_set_create(&p->set, rank, w->size, &g));
    p->env = (struct transport_env){p->set, &p->stop, p, dial, accept_fd, offer, fetch};
    RANK_OK(transport_self.open(&p->self, &p->env, w->blobs[rank]));
    RANK_OK(transport_self.attach(p->self, rank, DEADLINE_NEVER));
    memset(w->blobs[rank], 0, TRANSPORT_BLOB_BYTES);
    if (under_test == &transport_self || w->size == 1)
        return 0;
    RANK_OK(under_test->open(&p->end, &p->env, w->blobs[rank]));
    pthread_barrier_wait(&w->barrier);
    for (int r = 0; r < w->size; r++)
        if (r != rank)
            RANK_OK(under_test->reach(p->end, r, w->blobs[r], deadline_in(5 * CLOCK_S)));
    pthread_barrier_wait(&w->barrier);
    for (int r = 0; r < w->size; r++)
        if (r != rank)
            RANK_OK(under_test->attach(p->end, r, deadline_in(5 * CLOCK_S)));
    pthread_barrier_wait(&w->barrier);
    return 0;
}

static void place_drop(struct place *p)
{
    if (p->end != NULL)
        p->end->transport->close(p->end);
    p->self->transport->close(p->self);
    lane_set_destroy(p->set);
    stop_destroy(&p->stop);
}

static int progress(struct place *p)
{
    bool moved = false;
    int rank = -1;
    if (p->end == NULL || p->end->transport->progress == NULL)
        return 0;
    RANK_OK(p->end->transport->progress(p->end, &moved, &rank));
    return 0;
}

/* ---- traffic ----------------------------------------------------------------------------------------------------- */

static uint32_t size_of(uint64_t n)
{
    static const uint32_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 1000, SLOT - 1, SLOT};
    return sizes[n % (sizeof(sizes) / sizeof(sizes[0]))];
}

static uint8_t byte_of(int producer, int lane, uint64_t n, uint32_t i)
{
    return (uint8_t)harness_value(producer * 16 + lane, n * 8192 + i);
}

static int put(struct lane *lane, int producer, int number, uint64_t n)
{
    uint32_t bytes = size_of(n + (uint64_t)number);
    struct op_name name = {.sequence = n, .count = (uint64_t)producer, .epoch = 3};
    if (bytes > LANE_INLINE_BYTES)
        RANK_OK(lane_reserve(lane));
    uint8_t *at = lane_fill(lane, bytes);
    for (uint32_t i = 0; i < bytes; i++)
        at[i] = byte_of(producer, number, n, i);
    lane_publish(lane, &name, bytes);
    return 0;
}

static int check_slot(struct lane *lane, const struct lane_slot *slot, int producer, int number, uint64_t n)
{
    uint32_t bytes = size_of(n + (uint64_t)number);
    const uint8_t *at = lane_data(lane, slot);
    RANK_TRUE(slot->name.sequence == n && slot->name.count == (uint64_t)producer && slot->name.epoch == 3);
    RANK_TRUE(slot->bytes == bytes);
    for (uint32_t i = 0; i < bytes; i++)
        RANK_TRUE(at[i] == byte_of(producer, number, n, i));
    lane_release(lane);
    return 0;
}

/* Lanes by number, as a pair of ranks has them: two wide, three pair. */
static struct lane *out_lane(struct place *p, int number, int to)
{
    return number < 2 ? &p->set->out_wide[number] : &p->set->out_pair[number - 2][to];
}

static struct lane *in_lane(struct place *p, int number, int from)
{
    return number < 2 ? &p->set->in_wide[number][from] : &p->set->in_pair[number - 2][from];
}

struct traffic {
    uint64_t sent[2 + 3 * MAX_ENDS], got[5 * MAX_ENDS];
};

static int send_all(struct place *p, struct traffic *t, uint64_t until, bool *done)
{
    for (int number = 0; number < 5; number++)
        for (int to = 0; to < (number < 2 ? 1 : p->world->size); to++) {
            uint64_t *n = &t->sent[number < 2 ? number : 2 + (number - 2) * p->world->size + to];
            if (number >= 2 && to == p->rank)
                continue;
            struct lane *lane = out_lane(p, number, to);
            while (*n < until && lane_can_send(lane))
                if (put(lane, p->rank, number, (*n)++))
                    return 1;
            *done = *done && *n == until;
        }
    return 0;
}

static int take_all(struct place *p, struct traffic *t, uint64_t until, bool *done)
{
    for (int number = 0; number < 5; number++)
        for (int from = 0; from < p->world->size; from++) {
            uint64_t *n = &t->got[number * p->world->size + from];
            const struct lane_slot *slot;
            if (from == p->rank)
                continue;
            struct lane *lane = in_lane(p, number, from);
            if (*n < until && (slot = lane_peek(lane)) != NULL && check_slot(lane, slot, from, number, (*n)++))
                return 1;
            *done = *done && *n == until;
        }
    return 0;
}

/* All lanes between all ranks at once, many laps, every size. */
static int all_lanes_rank(int rank, int size, void *arg)
{
    struct place p;
    struct traffic t = {{0}, {0}};
    uint64_t until = DEPTH * LAPS, deadline = deadline_in(40 * CLOCK_S);
    if (place_make(&p, arg, rank))
        return 1;
    for (bool done = false; !done;) {
        done = true;
        if (send_all(&p, &t, until, &done) || take_all(&p, &t, until, &done) || progress(&p))
            return 1;
        done = done && (p.end->transport->pending == NULL || !p.end->transport->pending(p.end));
        RANK_TRUE(!deadline_passed(deadline));
        if (!done)
            sched_yield();
    }
    for (int number = 0; number < 5; number++)
        for (int r = 0; r < size; r++)
            if (r != rank)
                RANK_OK(lane_check(in_lane(&p, number, r)));
    pthread_barrier_wait(&p.world->barrier);
    place_drop(&p);
    return 0;
}

START_TEST(all_lanes_carry_all_sizes_in_order)
{
    static const int sizes[] = {2, 3, 5};
    struct world *w = world_make(sizes[_i]);
    ck_assert_int_eq(harness_threads(sizes[_i], all_lanes_rank, w, 50), 0);
    free(w);
}
END_TEST

/* A consumer that doesn't read stops the producer after `depth` slots, and no later than after twice that. */
static int pressure_rank(int rank, int size, void *arg)
{
    struct place p;
    if (place_make(&p, arg, rank))
        return 1;
    uint64_t n = 0;
    struct lane *lane = rank == 0 ? out_lane(&p, 2, 1) : in_lane(&p, 2, 0);
    if (rank == 0) {
        for (int idle = 0; idle < 200; idle++) {
            while (lane_can_send(lane)) {
                if (put(lane, 0, 2, n++))
                    return 1;
                idle = 0;
            }
            if (progress(&p))
                return 1;
            usleep(200);
        }
        RANK_TRUE(n >= DEPTH && n <= 2 * DEPTH);
        *(volatile uint64_t *)p.world->blobs[0] = n;
    }
    if (rank == 1)
        for (int i = 0; i < 100; i++) {
            if (progress(&p))
                return 1;
            usleep(500);
        }
    pthread_barrier_wait(&p.world->barrier);
    uint64_t all = *(volatile uint64_t *)p.world->blobs[0], deadline = deadline_in(10 * CLOCK_S);
    for (uint64_t got = 0; rank == 1 && got < all;) {
        const struct lane_slot *slot = lane_peek(lane);
        if ((slot != NULL && check_slot(lane, slot, 0, 2, got++)) || progress(&p))
            return 1;
        RANK_TRUE(!deadline_passed(deadline));
    }
    for (uint64_t until = deadline_in(CLOCK_S); rank == 0 && !lane_can_send(lane) && !deadline_passed(until);)
        if (progress(&p))
            return 1;
    RANK_TRUE(rank != 0 || lane_can_send(lane));
    pthread_barrier_wait(&p.world->barrier);
    place_drop(&p);
    return 0;
}

START_TEST(a_consumer_that_does_not_read_holds_the_producer)
{
    struct world *w = world_make(2);
    ck_assert_int_eq(harness_threads(2, pressure_rank, w, 50), 0);
    free(w);
}
END_TEST

/* An end that goes away is told with its rank; the others' lanes go on. */
static int death_rank(int rank, int size, void *arg)
{
    struct place p;
    if (place_make(&p, arg, rank))
        return 1;
    if (rank == 2) {
        place_drop(&p);
        return 0;
    }
    quire_status_t st = QUIRE_OK;
    int gone = -1;
    for (uint64_t deadline = deadline_in(10 * CLOCK_S); st == QUIRE_OK && !deadline_passed(deadline); usleep(200)) {
        bool moved = false;
        st = p.end->transport->progress(p.end, &moved, &gone);
    }
    RANK_TRUE(st == QUIRE_ERR_PEER_FAILED && gone == 2);
    RANK_TRUE(strstr(status_text_last(), "rank 2") != NULL);
    struct lane *out = out_lane(&p, 3, 1 - rank), *in = in_lane(&p, 3, 1 - rank);
    if (put(out, rank, 3, 0))
        return 1;
    const struct lane_slot *slot = NULL;
    for (uint64_t deadline = deadline_in(5 * CLOCK_S); slot == NULL && !deadline_passed(deadline);) {
        if (progress(&p))
            return 1;
        slot = lane_peek(in);
    }
    RANK_TRUE(slot != NULL);
    int bad = check_slot(in, slot, 1 - rank, 3, 0);
    /* The other one may be done and gone by now; ours must still have gone out to it. */
    for (int i = 0; i < 50; i++, usleep(200)) {
        bool moved = false;
        (void)p.end->transport->progress(p.end, &moved, &gone);
    }
    place_drop(&p);
    return bad;
}

START_TEST(a_peer_that_went_is_told_once_and_the_rest_goes_on)
{
    struct world *w = world_make(3);
    ck_assert_int_eq(harness_threads(3, death_rank, w, 50), 0);
    free(w);
}
END_TEST

/* The lane to oneself, which every rank has. */
static int self_rank(int rank, int size, void *arg)
{
    struct place p;
    if (place_make(&p, arg, rank))
        return 1;
    struct lane *out = &p.set->out_pair[2][rank], *in = &p.set->in_pair[2][rank];
    for (uint64_t n = 0; n < DEPTH * LAPS; n++) {
        RANK_TRUE(lane_can_send(out));
        RANK_TRUE(lane_peek(in) == NULL);
        if (put(out, rank, 4, n))
            return 1;
        const struct lane_slot *slot = lane_peek(in);
        RANK_TRUE(slot != NULL);
        if (check_slot(in, slot, rank, 4, n))
            return 1;
    }
    char text[64];
    p.self->transport->describe(p.self, text, sizeof(text));
    RANK_TRUE(strstr(text, "self") != NULL);
    place_drop(&p);
    return 0;
}

START_TEST(the_lane_to_oneself_works)
{
    struct world *w = world_make(1);
    ck_assert_int_eq(harness_threads(1, self_rank, w, 20), 0);
    free(w);
}
END_TEST

int conformance_main(const struct transport *transport, bool dead_peer)
{
    Suite *suite = suite_create(transport->name);
    TCase *tcase = tcase_create(transport->name);
    under_test = transport;
    notices_death = dead_peer;
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, the_lane_to_oneself_works);
    if (transport != &transport_self) {
        tcase_add_loop_test(tcase, all_lanes_carry_all_sizes_in_order, 0, 3);
        tcase_add_test(tcase, a_consumer_that_does_not_read_holds_the_producer);
    }
    if (notices_death)
        tcase_add_test(tcase, a_peer_that_went_is_told_once_and_the_rest_goes_on);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
