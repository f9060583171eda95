/* SPDX-License-Identifier: BSD-3-Clause */
/* conformance.c - see conformance.h. */
#include "conformance.h"

#include <check.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "harness/harness.h"
#include "segment.h"

enum { LAPS = 60, SLEEP_S = 20 };

static struct conformance under_test;

/* Ranks as threads for even numbers of a loop, as processes for odd ones. */
static int run_ranks(struct conf_world *world, int number, harness_rank part, int killed)
{
    world->processes = number % 2 != 0;
    return world->processes ? harness_fork(world->size, part, world, 50, killed)
                            : harness_threads(world->size, part, world, 50);
}

static struct conf_world *make_world(int size)
{
    return conf_world_make(size, under_test.transport, under_test.connect);
}

static int progress(struct conf_place *p)
{
    bool moved = false;
    int rank = -1;
    RANK_OK(conf_progress(p, &moved, &rank));
    return 0;
}

static bool pending(const struct conf_place *p)
{
    return p->other != NULL && p->other->transport->pending != NULL && p->other->transport->pending(p->other);
}

/* ---- traffic ----------------------------------------------------------------------------------------------------- */

static uint32_t size_of(uint64_t n)
{
    static const uint32_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 1000, CONF_SLOT - 1, CONF_SLOT};
    return sizes[n % (sizeof(sizes) / sizeof(sizes[0]))];
}

static uint8_t byte_of(int producer, int lane, uint64_t n, uint32_t i)
{
    return (uint8_t)harness_value(producer * 16 + lane, n * 8192 + i);
}

static int put(struct lane *lane, int producer, int number, uint64_t n)
{
    uint32_t bytes = size_of(n + (uint64_t)number);
    struct op_name name = {.sequence = n, .count = (uint64_t)producer, .epoch = CONF_EPOCH};
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
    RANK_TRUE(slot->name.sequence == n && slot->name.count == (uint64_t)producer && slot->name.epoch == CONF_EPOCH);
    RANK_TRUE(slot->bytes == bytes);
    for (uint32_t i = 0; i < bytes; i++)
        RANK_TRUE(at[i] == byte_of(producer, number, n, i));
    lane_release(lane);
    return 0;
}

/* Lanes by number, as a pair of ranks has them: two wide, three pair. */
static struct lane *out_lane(struct conf_place *p, int number, int to)
{
    return number < 2 ? &p->set->out_wide[number] : &p->set->out_pair[number - 2][to];
}

static struct lane *in_lane(struct conf_place *p, int number, int from)
{
    return number < 2 ? &p->set->in_wide[number][from] : &p->set->in_pair[number - 2][from];
}

struct traffic {
    uint64_t sent[2 + 3 * CONF_ENDS], got[5 * CONF_ENDS];
};

static int send_all(struct conf_place *p, struct traffic *t, uint64_t until, bool *done)
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

static int take_all(struct conf_place *p, struct traffic *t, uint64_t until, bool *done)
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
    struct conf_place p;
    struct traffic t = {{0}, {0}};
    uint64_t until = CONF_DEPTH * LAPS, deadline = deadline_in(40 * CLOCK_S);
    if (conf_join(&p, arg, rank))
        return 1;
    for (bool done = false; !done;) {
        done = true;
        if (send_all(&p, &t, until, &done) || take_all(&p, &t, until, &done) || progress(&p))
            return 1;
        done = done && !pending(&p);
        RANK_TRUE(!deadline_passed(deadline));
        if (!done)
            sched_yield();
    }
    for (int number = 0; number < 5; number++)
        for (int r = 0; r < size; r++)
            if (r != rank)
                RANK_OK(lane_check(in_lane(&p, number, r)));
    pthread_barrier_wait(&p.world->barrier);
    conf_leave(&p);
    return 0;
}

START_TEST(all_lanes_carry_all_sizes_in_order)
{
    static const int sizes[] = {2, 3, 5};
    struct conf_world *w = make_world(sizes[_i / 2]);
    ck_assert_int_eq(run_ranks(w, _i, all_lanes_rank, -1), 0);
    conf_world_free(w);
}
END_TEST

/* Ranks 0 and 1 share memory, rank 2 is reached by the transport under test: each wide lane has consumers of both. */
START_TEST(a_wide_lane_serves_peers_of_two_transports)
{
    struct conf_world *w = make_world(3);
    w->via[0][1] = w->via[1][0] = &transport_shm;
    ck_assert_int_eq(run_ranks(w, _i, all_lanes_rank, -1), 0);
    conf_world_free(w);
}
END_TEST

/* A consumer that doesn't read stops the producer after `depth` slots, and no later than after twice that. */
static int pressure_rank(int rank, int size, void *arg)
{
    struct conf_place p;
    if (conf_join(&p, arg, rank))
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
        RANK_TRUE(n >= CONF_DEPTH && n <= 2 * CONF_DEPTH);
        __atomic_store_n(&p.world->said, n, __ATOMIC_RELAXED); /* the barrier orders it */
    }
    if (rank == 1)
        for (int i = 0; i < 100; i++) {
            if (progress(&p))
                return 1;
            usleep(500);
        }
    pthread_barrier_wait(&p.world->barrier);
    uint64_t all = __atomic_load_n(&p.world->said, __ATOMIC_RELAXED), deadline = deadline_in(10 * CLOCK_S);
    for (uint64_t got = 0; rank == 1 && got < all;) {
        const struct lane_slot *slot = lane_peek(lane);
        if ((slot != NULL && check_slot(lane, slot, 0, 2, got++)) || progress(&p))
            return 1;
        RANK_TRUE(!deadline_passed(deadline));
    }
    while (rank == 0 && (!lane_can_send(lane) || pending(&p))) {
        if (progress(&p))
            return 1;
        RANK_TRUE(!deadline_passed(deadline));
    }
    pthread_barrier_wait(&p.world->barrier);
    conf_leave(&p);
    return 0;
}

START_TEST(a_consumer_that_does_not_read_holds_the_producer)
{
    struct conf_world *w = make_world(2);
    ck_assert_int_eq(run_ranks(w, _i, pressure_rank, -1), 0);
    conf_world_free(w);
}
END_TEST

/* An end that goes away is told with its rank; the others' lanes go on. */
static int death_rank(int rank, int size, void *arg)
{
    struct conf_place p;
    if (conf_join(&p, arg, rank))
        return 1;
    if (rank == 2) {
        if (p.world->processes)
            raise(SIGKILL);
        conf_leave(&p);
        return 0;
    }
    quire_status_t st = QUIRE_OK;
    int gone = -1;
    for (uint64_t deadline = deadline_in(10 * CLOCK_S); st == QUIRE_OK && !deadline_passed(deadline); usleep(200)) {
        bool moved = false;
        st = conf_progress(&p, &moved, &gone);
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
        (void)conf_progress(&p, &moved, &gone);
    }
    conf_leave(&p);
    return bad;
}

START_TEST(a_peer_that_went_is_told_once_and_the_rest_goes_on)
{
    struct conf_world *w = make_world(3);
    ck_assert_int_eq(run_ranks(w, _i, death_rank, _i % 2 != 0 ? 2 : -1), 0);
    conf_world_free(w);
}
END_TEST

/*
 * Sleeps as long as `slot` of the lane isn't there (a consumer) or room isn't (a producer). Shared memory: announced,
 * on the bell. The sleep is far longer than the test is meant to take, so only a wake can end it in time.
 */
static int sleep_for(struct conf_place *p, struct lane *lane, bool producer)
{
    uint32_t *word = producer ? &lane->control->producer_asleep : &lane->control->consumers_asleep;
    uint32_t *bell = &p->set->segment->control->bell, before = atom_load_acquire(bell);
    struct timespec limit = {SLEEP_S, 0};
    bool socket = p->other != NULL && p->other->transport->sleep != NULL;
    if (!socket)
        (void)atom_add(word, 1u);
    __atomic_store_n(&p->world->said, 1, __ATOMIC_RELEASE);
    if (producer ? lane_can_send(lane) : lane_peek(lane) != NULL)
        return harness_untrue(__FILE__, __LINE__, "the peer waited to be told before it acted");
    uint64_t start = clock_ns();
    if (socket) {
        for (bool there = false; !there && clock_ns() - start < SLEEP_S * CLOCK_S;) {
            p->other->transport->sleep(p->other, SLEEP_S * 1000);
            if (progress(p))
                return 1;
            there = producer ? lane_can_send(lane) : lane_peek(lane) != NULL;
        }
    } else {
        (void)syscall(SYS_futex, bell, FUTEX_WAIT, before, &limit, NULL, 0);
        RANK_TRUE(atom_load_acquire(bell) != before);
        (void)atom_add(word, UINT32_MAX);
    }
    RANK_TRUE(clock_ns() - start < SLEEP_S * CLOCK_S);
    RANK_TRUE(producer ? lane_can_send(lane) : lane_peek(lane) != NULL);
    return 0;
}

/* Until the other rank has told that it is going to sleep; and a little more, so that it mostly does. */
static int until_told(struct conf_place *p)
{
    for (uint64_t deadline = deadline_in(10 * CLOCK_S); __atomic_load_n(&p->world->said, __ATOMIC_ACQUIRE) == 0;) {
        RANK_TRUE(!deadline_passed(deadline));
        usleep(100);
    }
    usleep(20000);
    return 0;
}

static int push(struct conf_place *p)
{
    for (int i = 0; i < 100 && (i == 0 || pending(p)); i++)
        if (progress(p))
            return 1;
    return 0;
}

/* Rank 1 sleeps until a slot comes; then rank 0, behind a full ring, until there is room. */
static int sleeping_rank(int rank, int size, void *arg)
{
    struct conf_place p;
    uint64_t sent = 0, got = 0;
    if (conf_join(&p, arg, rank))
        return 1;
    struct lane *lane = rank == 0 ? out_lane(&p, 2, 1) : in_lane(&p, 2, 0);
    if (rank == 0 ? until_told(&p) || put(lane, 0, 2, sent++) || push(&p) : sleep_for(&p, lane, false))
        return 1;
    pthread_barrier_wait(&p.world->barrier);
    __atomic_store_n(&p.world->said, 0, __ATOMIC_RELAXED);
    /* A mover empties the ring into the peer's: both are filled. */
    for (int idle = 0; rank == 0 && idle < 50; idle++) {
        for (; lane_can_send(lane); idle = 0)
            if (put(lane, 0, 2, sent++))
                return 1;
        if (progress(&p))
            return 1;
        usleep(200);
    }
    pthread_barrier_wait(&p.world->barrier);
    if (rank == 0 && sleep_for(&p, lane, true))
        return 1;
    if (rank == 1 && until_told(&p))
        return 1;
    for (uint64_t deadline = deadline_in(5 * CLOCK_S); rank == 1 && got < CONF_DEPTH;) {
        const struct lane_slot *slot = lane_peek(lane);
        if ((slot != NULL && check_slot(lane, slot, 0, 2, got++)) || progress(&p))
            return 1;
        RANK_TRUE(!deadline_passed(deadline));
    }
    if (push(&p))
        return 1;
    pthread_barrier_wait(&p.world->barrier);
    conf_leave(&p);
    return 0;
}

START_TEST(sleepers_are_woken_by_slots_and_by_room)
{
    struct conf_world *w = make_world(2);
    ck_assert_int_eq(run_ranks(w, _i, sleeping_rank, -1), 0);
    conf_world_free(w);
}
END_TEST

/* The lane to oneself, which every rank has. */
static int self_rank(int rank, int size, void *arg)
{
    struct conf_place p;
    if (conf_join(&p, arg, rank))
        return 1;
    struct lane *out = &p.set->out_pair[2][rank], *in = &p.set->in_pair[2][rank];
    for (uint64_t n = 0; n < CONF_DEPTH * LAPS; n++) {
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
    conf_leave(&p);
    return 0;
}

START_TEST(the_lane_to_oneself_works)
{
    struct conf_world *w = make_world(1);
    ck_assert_int_eq(run_ranks(w, _i, self_rank, -1), 0);
    conf_world_free(w);
}
END_TEST

int conformance_main(const struct conformance *what)
{
    Suite *suite = suite_create(what->transport->name);
    TCase *tcase = tcase_create(what->transport->name);
    under_test = *what;
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, the_lane_to_oneself_works, 0, 2);
    if (what->transport != &transport_self) {
        tcase_add_loop_test(tcase, all_lanes_carry_all_sizes_in_order, 0, 6);
        tcase_add_loop_test(tcase, a_consumer_that_does_not_read_holds_the_producer, 0, 2);
        tcase_add_loop_test(tcase, sleepers_are_woken_by_slots_and_by_room, 0, 2);
    }
    if (what->transport != &transport_self && what->transport != &transport_shm)
        tcase_add_loop_test(tcase, a_wide_lane_serves_peers_of_two_transports, 0, 2);
    if (what->dead_peer)
        tcase_add_loop_test(tcase, a_peer_that_went_is_told_once_and_the_rest_goes_on, 0, 2);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
