/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failure_test.c - what happens when ranks break or disagree: killed, stopped for good, departed, mismatched, refused,
 * aborted, too late. Every rank must return, say the same first cause, and end by itself.
 */
#include <signal.h>

#include "scenario.h"

enum { MS = 1000000 };

/* ---- death ------------------------------------------------------------------------------------------------------- */

struct death {
    struct scenario s;
    int victim;
    uint64_t *died_at; /* shared */
    pid_t *pid;        /* shared: of the victim */
};

static int death_rank(int rank, int size, void *arg)
{
    struct death *d = arg;
    quire_comm *comm;
    float in[1000] = {0}, out[1000];
    char want[64];
    RANK_OK(scenario_join(&d->s, rank, size, &comm));
    if (rank == d->victim)
        *d->pid = getpid();
    quire_status_t st = QUIRE_OK;
    for (int i = 0; st == QUIRE_OK && i < 10000000; i++) {
        if (rank == d->victim && i == 2000) {
            *d->died_at = harness_now_ns();
            kill(getpid(), SIGKILL);
        }
        st = quire_all_reduce(in, out, 1000, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL);
    }
    uint64_t after = harness_now_ns() - *d->died_at;
    RANK_TRUE(st == QUIRE_ERR_PEER_FAILED);
    if (after >= 1000 * (uint64_t)MS)
        fprintf(stderr, "rank %d heard of it after %llu ms\n", rank, (unsigned long long)after / MS);
    RANK_TRUE(after < 1000 * (uint64_t)MS);
    const char *text = quire_last_error(comm);
    snprintf(want, sizeof(want), "rank %d", d->victim);
    if (strstr(text, want) == NULL)
        fprintf(stderr, "%s\n", text);
    RANK_TRUE(strstr(text, want) != NULL);
    snprintf(want, sizeof(want), "%d", (int)*d->pid);
    RANK_TRUE(strstr(text, want) != NULL);
    if (strstr(text, "signal 9") == NULL)
        fprintf(stderr, "%s\n", text);
    RANK_TRUE(strstr(text, "signal 9") != NULL);
    /* It stays failed, and can be destroyed. */
    RANK_TRUE(quire_barrier(comm, NULL) == QUIRE_ERR_PEER_FAILED);
    RANK_TRUE(quire_comm_async_error(comm, &st) == QUIRE_OK && st == QUIRE_ERR_PEER_FAILED);
    (void)quire_comm_destroy(comm);
    return 0;
}

START_TEST(killing_a_rank_is_told_to_all_with_pid_and_signal)
{
    struct death d = {.victim = _i};
    void *shared = mmap_shared(4096);
    d.died_at = shared;
    d.pid = (pid_t *)((uint64_t *)shared + 1);
    scenario_begin(&d.s);
    ck_assert_int_eq(harness_fork(4, death_rank, &d, 60, d.victim), 0);
}
END_TEST

/* ---- disagreement ------------------------------------------------------------------------------------------------ */

static int expect_text(quire_comm *comm, quire_status_t got, quire_status_t want, const char *a, const char *b)
{
    const char *text = quire_last_error(comm);
    if (got != want || strstr(text, a) == NULL || strstr(text, b) == NULL) {
        fprintf(stderr, "got %s: \"%s\"; wanted %s with \"%s\" and \"%s\"\n", quire_status_name(got), text,
                quire_status_name(want), a, b);
        return 1;
    }
    return 0;
}

/* A rank whose call has returned already hears of it from its next call. */
static quire_status_t until_failed(quire_comm *comm, quire_status_t st, uint64_t *ns)
{
    uint64_t start = harness_now_ns();
    while (st == QUIRE_OK && harness_now_ns() - start < 5000 * (uint64_t)MS) {
        (void)quire_comm_async_error(comm, &st);
        usleep(1000);
    }
    *ns = harness_now_ns() - start;
    return st;
}

static int mismatch_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    float in[64] = {0}, out[64];
    uint64_t ns;
    RANK_OK(scenario_join(s, rank, size, &comm));
    RANK_OK(quire_barrier(comm, NULL));
    quire_status_t st = rank == 1 ? quire_broadcast(in, out, 10, QUIRE_FLOAT32, 0, comm, NULL)
                                  : quire_all_reduce(in, out, 10, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL);
    st = until_failed(comm, st, &ns);
    RANK_TRUE(ns < 1000 * (uint64_t)MS);
    if (expect_text(comm, st, QUIRE_ERR_MISMATCH, "all_reduce", "broadcast"))
        return 1;
    (void)quire_comm_destroy(comm);
    return 0;
}

START_TEST(all_reduce_against_broadcast_is_a_mismatch_with_both_sides)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(4, mismatch_rank, &s, 30, -1), 0);
    scenario_begin(&s);
    ck_assert_int_eq(harness_threads(3, mismatch_rank, &s, 30), 0);
}
END_TEST

static int counts_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    size_t large = *(const size_t *)s->arg, count = rank == 2 ? large + 1 : large;
    quire_comm *comm;
    uint64_t ns;
    float *in = calloc(count, sizeof(*in)), *out = calloc(count, sizeof(*out));
    char a[32], b[32];
    RANK_OK(scenario_join(s, rank, size, &comm));
    quire_status_t st = quire_all_reduce(in, out, count, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL);
    st = until_failed(comm, st, &ns);
    snprintf(a, sizeof(a), "count %zu", large);
    snprintf(b, sizeof(b), "count %zu", large + 1);
    if (expect_text(comm, st, QUIRE_ERR_MISMATCH, a, b))
        return 1;
    (void)quire_comm_destroy(comm);
    free(out);
    free(in);
    return 0;
}

START_TEST(different_counts_are_a_mismatch_on_all_ranks)
{
    static const size_t counts[] = {1, 8, 1000, 1000000};
    struct scenario s = {.arg = &counts[_i]};
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(3, counts_rank, &s, 30, -1), 0);
}
END_TEST

static int message_size_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    uint64_t ns;
    char data[200] = {0};
    RANK_OK(scenario_join(s, rank, size, &comm));
    quire_status_t st =
        rank == 0 ? quire_send(data, 100, QUIRE_INT8, 1, comm, NULL) : quire_recv(data, 200, QUIRE_INT8, 0, comm, NULL);
    st = until_failed(comm, st, &ns);
    if (expect_text(comm, st, QUIRE_ERR_MISMATCH, "100 bytes", "200"))
        return 1;
    (void)quire_comm_destroy(comm);
    return 0;
}

START_TEST(a_message_of_another_size_is_a_mismatch_with_both_sizes)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(2, message_size_rank, &s, 30, -1), 0);
}
END_TEST

/* ---- refusal ----------------------------------------------------------------------------------------------------- */

static int refusal_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    float in[16], out[16], sum = 0;
    RANK_OK(scenario_join(s, rank, size, &comm));
    for (int round = 0; round < 20; round++) {
        int culprit = round % size;
        quire_status_t st =
            quire_all_reduce(rank == culprit ? NULL : in, out, 16, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL);
        if (expect_text(comm, st, QUIRE_ERR_INVALID_ARGUMENT, "NULL", "send buffer"))
            return 1;
        for (int i = 0; i < 16; i++)
            in[i] = (float)(rank + i);
        /* The next call matches again. */
        RANK_OK(quire_all_reduce(in, out, 16, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL));
        sum = (float)(size * (size - 1) / 2);
        for (int i = 0; i < 16; i++)
            RANK_TRUE(out[i] == sum + (float)(size * i));
    }
    RANK_OK(quire_comm_destroy(comm));
    return 0;
}

START_TEST(a_refused_call_fails_on_all_and_the_next_one_matches)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(3, refusal_rank, &s, 60, -1), 0);
    scenario_begin(&s);
    ck_assert_int_eq(harness_threads(3, refusal_rank, &s, 60), 0);
}
END_TEST

static int message_refusal_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    int value = 7, got = 0;
    RANK_OK(scenario_join(s, rank, size, &comm));
    quire_status_t st =
        rank == 0 ? quire_send(NULL, 1, QUIRE_INT32, 1, comm, NULL) : quire_recv(&got, 1, QUIRE_INT32, 0, comm, NULL);
    if (expect_text(comm, st, QUIRE_ERR_INVALID_ARGUMENT, "send", "NULL"))
        return 1;
    if (rank == 0)
        RANK_OK(quire_send(&value, 1, QUIRE_INT32, 1, comm, NULL));
    else
        RANK_OK(quire_recv(&got, 1, QUIRE_INT32, 0, comm, NULL));
    RANK_TRUE(rank == 0 || got == 7);
    RANK_OK(quire_comm_destroy(comm));
    return 0;
}

START_TEST(a_refused_send_fails_its_receive_and_the_next_one_matches)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(2, message_refusal_rank, &s, 30, -1), 0);
}
END_TEST

static int poisoned_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    float in[4] = {1, 2, 3, 4}, out[4] = {0}, other[4] = {0};
    RANK_OK(scenario_join(s, rank, size, &comm));
    RANK_OK(quire_group_start());
    RANK_OK(quire_all_reduce(in, out, 4, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL));
    quire_status_t st = quire_all_reduce(rank == 0 ? NULL : in, other, 4, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL);
    RANK_TRUE((st != QUIRE_OK) == (rank == 0));
    st = quire_group_end();
    RANK_TRUE(st == QUIRE_ERR_INVALID_ARGUMENT);
    RANK_TRUE(rank != 0 || (out[0] == 0 && other[0] == 0));
    RANK_OK(quire_all_reduce(in, out, 4, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL));
    RANK_TRUE(out[3] == 4.0f * (float)size);
    RANK_OK(quire_comm_destroy(comm));
    return 0;
}

START_TEST(a_bad_call_poisons_its_group)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(2, poisoned_rank, &s, 30, -1), 0);
}
END_TEST

/* ---- time, leaving, abort ---------------------------------------------------------------------------------------- */

static int late_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_config config = QUIRE_CONFIG_INITIALIZER;
    quire_comm *comm;
    float in = 1, out;
    config.timeout_ms = 300;
    RANK_OK(quire_comm_init_rank(&comm, size, scenario_id(s, rank), rank, &config));
    RANK_OK(quire_barrier(comm, NULL));
    if (rank == 1) {
        quire_status_t st;
        uint64_t ns;
        st = until_failed(comm, QUIRE_OK, &ns);
        RANK_TRUE(st == QUIRE_ERR_TIMEOUT);
    } else {
        quire_status_t st = quire_all_reduce(&in, &out, 1, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL);
        if (expect_text(comm, st, QUIRE_ERR_TIMEOUT, "for rank 1", "all_reduce"))
            return 1;
    }
    (void)quire_comm_destroy(comm);
    return 0;
}

START_TEST(a_timeout_names_the_missing_rank)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(3, late_rank, &s, 30, -1), 0);
}
END_TEST

static int departed_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    float in = 1, out;
    RANK_OK(scenario_join(s, rank, size, &comm));
    RANK_OK(quire_all_reduce(&in, &out, 1, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL));
    if (rank == 2) {
        RANK_OK(quire_comm_destroy(comm));
        return 0;
    }
    quire_status_t st = quire_all_reduce(&in, &out, 1, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL);
    if (expect_text(comm, st, QUIRE_ERR_PEER_FAILED, "rank 2", "destroyed"))
        return 1;
    (void)quire_comm_destroy(comm);
    return 0;
}

START_TEST(waiting_for_a_rank_that_left_ends_with_its_number)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(3, departed_rank, &s, 30, -1), 0);
}
END_TEST

static void *abort_main(void *arg)
{
    usleep(100000);
    (void)quire_comm_abort(arg);
    return NULL;
}

static int abort_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    pthread_t watchdog;
    float in = 1, out;
    RANK_OK(scenario_join(s, rank, size, &comm));
    if (rank == 1) {
        usleep(200000);
        quire_status_t st = quire_all_reduce(&in, &out, 1, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL);
        if (expect_text(comm, st, QUIRE_ERR_PEER_FAILED, "rank 0", "abort"))
            return 1;
        (void)quire_comm_destroy(comm);
        return 0;
    }
    RANK_TRUE(pthread_create(&watchdog, NULL, abort_main, comm) == 0);
    uint64_t start = harness_now_ns();
    quire_status_t st = quire_all_reduce(&in, &out, 1, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL);
    RANK_TRUE(st == QUIRE_ERR_ABORTED);
    RANK_TRUE(harness_now_ns() - start < 1100 * (uint64_t)MS);
    pthread_join(watchdog, NULL);
    RANK_TRUE(quire_barrier(comm, NULL) == QUIRE_ERR_ABORTED);
    (void)quire_comm_destroy(comm);
    return 0;
}

START_TEST(abort_from_another_thread_wakes_the_waiting_one)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(2, abort_rank, &s, 30, -1), 0);
}
END_TEST

START_TEST(missing_ranks_are_listed_when_init_runs_out_of_time)
{
    quire_unique_id id;
    quire_comm *comm = NULL;
    quire_config config = QUIRE_CONFIG_INITIALIZER;
    config.init_timeout_ms = 300;
    ck_assert_int_eq(quire_get_unique_id(&id), QUIRE_OK);
    ck_assert_int_eq(quire_comm_init_rank(&comm, 3, &id, 1, &config), QUIRE_ERR_TIMEOUT);
    ck_assert_ptr_eq(comm, NULL);
    ck_assert_msg(strstr(quire_last_error(NULL), "0, 2") != NULL, "%s", quire_last_error(NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("failure");
    TCase *tcase = tcase_create("failure");
    tcase_set_timeout(tcase, 90);
    if (!harness_tsan())
        tcase_add_loop_test(tcase, killing_a_rank_is_told_to_all_with_pid_and_signal, 0, 4);
    tcase_add_test(tcase, all_reduce_against_broadcast_is_a_mismatch_with_both_sides);
    tcase_add_loop_test(tcase, different_counts_are_a_mismatch_on_all_ranks, 0, 4);
    tcase_add_test(tcase, a_message_of_another_size_is_a_mismatch_with_both_sizes);
    tcase_add_test(tcase, a_refused_call_fails_on_all_and_the_next_one_matches);
    tcase_add_test(tcase, a_refused_send_fails_its_receive_and_the_next_one_matches);
    tcase_add_test(tcase, a_bad_call_poisons_its_group);
    tcase_add_test(tcase, a_timeout_names_the_missing_rank);
    tcase_add_test(tcase, waiting_for_a_rank_that_left_ends_with_its_number);
    tcase_add_test(tcase, abort_from_another_thread_wakes_the_waiting_one);
    tcase_add_test(tcase, missing_ranks_are_listed_when_init_runs_out_of_time);
    suite_add_tcase(suite, tcase);
    return scenario_main(suite);
}
