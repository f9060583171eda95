/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wrap_fault_test.c - specs that parse and that don't; and, with real ranks over tcp, that every disturbance is noticed
 * and named by somebody, or (delay) only costs time. Between bare ends: that frames are what is counted, not system
 * calls.
 */
#include "../scenario/scenario.h"
#include "base/clock.h"
#include "base/knobs.h"
#include "base/status.h"
#include "harness/conformance.h"
#include "wrap_fault.h"

START_TEST(bad_specs_are_told_with_the_bad_part)
{
    static const char *const bad[] = {"udp:drop=1",   "tcp:drop=2", "tcp:drop",
                                      "tcp:hop=1",    "tcp:kill=1", "tcp:delay=x",
                                      "tcp:kill=1@0", "",           "tcp:corrupt=0.1,drop=-1"};
    struct transport_end end = {&transport_shm};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(wrap_fault(&end, bad[i]) == QUIRE_ERR_INVALID_ARGUMENT, "%s", bad[i]);
    ck_assert(strstr(status_text_last(), "drop=-1") != NULL);
    ck_assert_int_eq(wrap_fault(&end, "tcp:drop=0.5,delay=1ms,kill=3@10,seed=4,corrupt=0,corrupt_bytes=1"), QUIRE_OK);
}
END_TEST

struct disturbance {
    const char *spec;
    const char *says; /* NULL: all goes well */
};

static int disturbed_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    const struct disturbance *d = s->arg;
    quire_comm *comm;
    float in[5000] = {0}, out[5000];
    setenv("QUIRE_TRANSPORT", "tcp", 1);
    if (rank == 0)
        setenv("QUIRE_FAULT", d->spec, 1);
    knobs_reload();
    RANK_OK(scenario_join(s, rank, size, &comm));
    quire_status_t st = QUIRE_OK;
    for (int i = 0; st == QUIRE_OK && i < (d->says == NULL ? 20 : 20000); i++) {
        in[7] = (float)i;
        st = quire_all_reduce(in, out, 5000, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL);
        RANK_TRUE(st != QUIRE_OK || out[7] == (float)(i * size));
    }
    if (d->says == NULL) {
        RANK_TRUE(st == QUIRE_OK);
    } else {
        RANK_TRUE(st == QUIRE_ERR_PEER_FAILED);
        if (strstr(quire_last_error(comm), d->says) == NULL)
            fprintf(stderr, "%s\n", quire_last_error(comm));
        RANK_TRUE(strstr(quire_last_error(comm), d->says) != NULL);
    }
    (void)quire_comm_destroy(comm);
    return 0;
}

START_TEST(every_disturbance_is_noticed)
{
    static const struct disturbance all[] = {{"tcp:delay=2ms", NULL},
                                             {"tcp:drop=0.05,seed=7", "a frame was lost"},
                                             {"tcp:corrupt=0.05,seed=7", "header was damaged"},
                                             {"tcp:corrupt_bytes=0.05,seed=7", "payload's checksum differs"},
                                             {"tcp:kill=1@50", "rank 1"}};
    struct scenario s = {.arg = &all[_i]};
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(2, disturbed_rank, &s, 50, -1), 0);
}
END_TEST

/* ---- between bare ends ------------------------------------------------------------------------------------------- */

static void publish(struct lane *lane, uint64_t n)
{
    struct op_name name = {.sequence = n, .epoch = CONF_EPOCH};
    memset(lane_fill(lane, 8), (int)n, 8);
    lane_publish(lane, &name, 8);
}

/* How many slots arrive from rank 0 until the connection ends; -1 when it doesn't. */
static int count_arrivals(struct conf_place *p)
{
    quire_status_t st = QUIRE_OK;
    int count = 0, gone = -1;
    for (uint64_t deadline = deadline_in(10 * CLOCK_S); st == QUIRE_OK && !deadline_passed(deadline);) {
        bool moved = false;
        st = conf_progress(p, &moved, &gone);
        for (int channel = 0; channel < TRANSPORT_CHANNELS; channel++)
            for (struct lane *in = &p->set->in_pair[channel][0]; lane_peek(in) != NULL; count++)
                lane_release(in);
    }
    return st == QUIRE_ERR_PEER_FAILED && gone == 0 ? count : -1;
}

/* Two slots on each of three lanes are published at once, so that they would leave in one system call. */
static int killed_rank(int rank, int size, void *arg)
{
    struct conf_place p;
    if (conf_join(&p, arg, rank))
        return 1;
    int arrived = 0;
    if (rank == 0) {
        bool moved = false;
        int gone;
        RANK_OK(wrap_fault(p.other, "tcp:kill=1@5"));
        for (int i = 0; i < 6; i++)
            publish(&p.set->out_pair[i % 3][1], (uint64_t)i);
        (void)conf_progress(&p, &moved, &gone);
    } else {
        arrived = count_arrivals(&p);
    }
    pthread_barrier_wait(&p.world->barrier);
    conf_leave(&p);
    if (rank == 1 && arrived != 4)
        fprintf(stderr, "%d slots arrived\n", arrived);
    RANK_TRUE(rank == 0 || arrived == 4);
    return 0;
}

START_TEST(the_connection_breaks_at_the_very_frame_named)
{
    struct conf_world *w = conf_world_make(2, &transport_tcp, NULL);
    ck_assert_int_eq(harness_threads(2, killed_rank, w, 50), 0);
    conf_world_free(w);
}
END_TEST

static int delayed_rank(int rank, int size, void *arg)
{
    struct conf_place p;
    if (conf_join(&p, arg, rank))
        return 1;
    if (rank == 0) {
        const struct lane *first = &p.set->out_pair[0][1], *second = &p.set->out_pair[0][2];
        RANK_OK(wrap_fault(p.other, "tcp:delay=5ms"));
        for (uint64_t n = 0; n < CONF_DEPTH; n++) {
            publish(&p.set->out_pair[0][1], n);
            publish(&p.set->out_pair[0][2], n);
        }
        for (uint64_t deadline = deadline_in(10 * CLOCK_S); !lane_all_released(first, CONF_DEPTH);) {
            bool moved = false;
            int gone;
            RANK_OK(conf_progress(&p, &moved, &gone));
            RANK_TRUE(!deadline_passed(deadline));
        }
        /* Both wait alike: the second is at most one frame behind, not still at its start. */
        RANK_TRUE(lane_all_released(second, CONF_DEPTH - 1));
    }
    pthread_barrier_wait(&p.world->barrier);
    conf_leave(&p);
    return 0;
}

START_TEST(delays_of_two_connections_do_not_queue_behind_each_other)
{
    struct conf_world *w = conf_world_make(3, &transport_tcp, NULL);
    ck_assert_int_eq(harness_threads(3, delayed_rank, w, 50), 0);
    conf_world_free(w);
}
END_TEST

static int dropped_rank(int rank, int size, void *arg)
{
    struct conf_place p;
    bool moved = false;
    int gone;
    if (conf_join(&p, arg, rank))
        return 1;
    if (rank == 0) {
        RANK_OK(wrap_fault(p.other, "tcp:drop=1"));
        for (uint64_t n = 0; n < CONF_DEPTH; n++)
            publish(&p.set->out_pair[0][1], n);
        for (int i = 0; i < 20; i++)
            RANK_OK(conf_progress(&p, &moved, &gone));
        /* Lost on the way is gone all the same: the sender believes that they left. */
        RANK_TRUE(lane_all_released(&p.set->out_pair[0][1], CONF_DEPTH));
        RANK_TRUE(!p.other->transport->pending(p.other));
    }
    pthread_barrier_wait(&p.world->barrier);
    if (rank == 1) {
        RANK_OK(conf_progress(&p, &moved, &gone));
        RANK_TRUE(lane_peek(&p.set->in_pair[0][0]) == NULL);
    }
    pthread_barrier_wait(&p.world->barrier);
    conf_leave(&p);
    return 0;
}

START_TEST(what_is_dropped_leaves_the_sender_and_never_arrives)
{
    struct conf_world *w = conf_world_make(2, &transport_tcp, NULL);
    ck_assert_int_eq(harness_threads(2, dropped_rank, w, 50), 0);
    conf_world_free(w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wrap_fault");
    TCase *tcase = tcase_create("wrap_fault");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, bad_specs_are_told_with_the_bad_part);
    tcase_add_loop_test(tcase, every_disturbance_is_noticed, 0, 5);
    tcase_add_test(tcase, the_connection_breaks_at_the_very_frame_named);
    tcase_add_test(tcase, delays_of_two_connections_do_not_queue_behind_each_other);
    tcase_add_test(tcase, what_is_dropped_leaves_the_sender_and_never_arrives);
    suite_add_tcase(suite, tcase);
    return scenario_main(suite);
}
