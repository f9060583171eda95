/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * create_test.c - the phases of creation end together: what fails on one rank fails on all with that rank's text, and
 * transports are chosen by proof: forced ones, and shared memory that can't be had.
 */
#include <sys/resource.h>

#include "../scenario/scenario.h"

/* Rank 1 may make no segment: its error, with what was wanted, is everybody's. */
static int failing_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    struct rlimit limit = {1 << 16, 1 << 16};
    quire_comm *comm = NULL;
    if (rank == 1)
        RANK_TRUE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    quire_status_t st = scenario_join(s, rank, size, &comm);
    RANK_TRUE(st == QUIRE_ERR_RESOURCE && comm == NULL);
    if (strstr(quire_last_error(NULL), "rank 1: shared memory") == NULL)
        fprintf(stderr, "%s\n", quire_last_error(NULL));
    RANK_TRUE(strstr(quire_last_error(NULL), "rank 1: shared memory") != NULL);
    RANK_TRUE(strstr(quire_last_error(NULL), "64K") != NULL);
    return 0;
}

START_TEST(a_local_failure_is_told_to_all)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(3, failing_rank, &s, 40, -1), 0);
}
END_TEST

static int forced_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    const char *transport = s->arg;
    quire_config config = QUIRE_CONFIG_INITIALIZER;
    quire_comm *comm;
    char text[4096];
    float in = (float)rank, out = 0;
    config.transport = transport;
    RANK_OK(quire_comm_init_rank(&comm, size, scenario_id(s, rank), rank, &config));
    RANK_OK(quire_explain(comm, QUIRE_ALL_REDUCE, 1 << 20, QUIRE_FLOAT32, QUIRE_SUM, text, sizeof(text)));
    RANK_TRUE(strstr(text, strcmp(transport, "tcp") == 0 ? "sockets between some" : "shared memory between all") !=
              NULL);
    RANK_OK(quire_all_reduce(&in, &out, 1, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL));
    RANK_TRUE(out == (float)(size * (size - 1) / 2));
    RANK_OK(quire_comm_destroy(comm));
    return 0;
}

START_TEST(a_transport_can_be_forced)
{
    static const char *const all[] = {"auto", "shm", "tcp"};
    struct scenario s = {.arg = all[_i]};
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(3, forced_rank, &s, 40, -1), 0);
}
END_TEST

static int differing_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_config config = QUIRE_CONFIG_INITIALIZER;
    quire_comm *comm = NULL;
    config.deterministic = rank == 2;
    RANK_TRUE(quire_comm_init_rank(&comm, size, scenario_id(s, rank), rank, &config) == QUIRE_ERR_MISMATCH);
    RANK_TRUE(strstr(quire_last_error(NULL), "config.deterministic") != NULL);
    RANK_TRUE(strstr(quire_last_error(NULL), "at rank 2") != NULL);
    return 0;
}

START_TEST(a_configuration_that_differs_is_named)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(4, differing_rank, &s, 40, -1), 0);
}
END_TEST

/* The timeout of init is this rank's own answer, too, when the others came but one stays away from a phase. */
static int stopping_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_config config = QUIRE_CONFIG_INITIALIZER;
    quire_comm *comm = NULL;
    config.init_timeout_ms = 500;
    const quire_unique_id *id = scenario_id(s, rank);
    if (rank == 2)
        return 0; /* never comes */
    uint64_t start = harness_now_ns();
    RANK_TRUE(quire_comm_init_rank(&comm, size, id, rank, &config) == QUIRE_ERR_TIMEOUT);
    RANK_TRUE(harness_now_ns() - start < UINT64_C(5000000000));
    RANK_TRUE(strstr(quire_last_error(NULL), "missing: 2") != NULL);
    return 0;
}

START_TEST(a_rank_that_never_comes_is_listed)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(3, stopping_rank, &s, 40, -1), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("create");
    TCase *tcase = tcase_create("create");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_local_failure_is_told_to_all);
    tcase_add_loop_test(tcase, a_transport_can_be_forced, 0, 3);
    tcase_add_test(tcase, a_configuration_that_differs_is_named);
    tcase_add_test(tcase, a_rank_that_never_comes_is_listed);
    suite_add_tcase(suite, tcase);
    return scenario_main(suite);
}
