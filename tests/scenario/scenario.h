/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario.h - what the scenario suites share: a communicator per rank over one id, forked or threaded, and timers. */
#ifndef QUIRE_TESTS_SCENARIO_H
#define QUIRE_TESTS_SCENARIO_H

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/harness.h"
#include "quire.h"

/* Zeroed memory that forked ranks share with the test. */
static inline void *mmap_shared(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(at, MAP_FAILED);
    return at;
}

/*
 * Every rank of a scenario gets this. Rank 0 makes the id, in its own process: the test itself has no thread of the
 * library when it forks, as a launcher wouldn't have.
 */
struct scenario_meeting {
    quire_unique_id id;
    uint32_t ready; /* atomic */
};

struct scenario {
    struct scenario_meeting *meeting;
    const void *arg;
};

static inline void scenario_begin(struct scenario *s)
{
    s->meeting = mmap_shared(sizeof(*s->meeting));
}

/* The id, made by rank 0; the others wait for it. */
static inline const quire_unique_id *scenario_id(const struct scenario *s, int rank)
{
    if (rank == 0 && quire_get_unique_id(&s->meeting->id) == QUIRE_OK)
        __atomic_store_n(&s->meeting->ready, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&s->meeting->ready, __ATOMIC_ACQUIRE) == 0)
        usleep(100);
    return &s->meeting->id;
}

/* Joins with a timeout for operations that is short enough for a test. */
static inline quire_status_t scenario_join(const struct scenario *s, int rank, int size, quire_comm **comm)
{
    quire_config config = QUIRE_CONFIG_INITIALIZER;
    config.timeout_ms = 25000;
    config.init_timeout_ms = 25000;
    return quire_comm_init_rank(comm, size, scenario_id(s, rank), rank, &config);
}

static inline int scenario_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

static inline void scenario_add(Suite *suite, const char *name, const TTest *test, int seconds)
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, seconds);
    tcase_add_test(tcase, test);
    suite_add_tcase(suite, tcase);
}

#endif
