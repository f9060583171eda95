/* SPDX-License-Identifier: BSD-3-Clause */
/* flood_test.c - causes and refusals reach every rank once, whatever way they take. */
#include <check.h>

#include "boot/boot_internal.h"
#include "crew.h"

START_TEST(an_id_is_new_once_and_stays_known)
{
    struct flood_log log;
    memset(&log, 0, sizeof(log));
    ck_assert(flood_log_check(&log));
    ck_assert(!flood_log_add(&log, 0));
    for (uint64_t id = 1; id <= 100000; id++) {
        ck_assert(flood_log_add(&log, id));
        ck_assert(!flood_log_add(&log, id));
        if (id > 2000)
            ck_assert(!flood_log_add(&log, id - 2000));
        if (id % 1000 == 0)
            ck_assert(flood_log_check(&log));
    }
    flood_log_free(&log);
}
END_TEST

static void rank_that_refuses(const struct crew *crew, int rank)
{
    struct crew_end end;
    struct cause got;
    crew_must_join(&end, crew, rank, crew->arg);
    CREW_MUST(boot_barrier(end.boot, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "barrier");
    if (rank == 3) {
        struct cause refusal = cause_make(QUIRE_ERR_INVALID_ARGUMENT, 3, "rank 3 was given a NULL buffer");
        refusal.sequence = 42;
        boot_flood_refusal(end.boot, &refusal);
        crew_sleep_ms(100);
        CREW_MUST(stop_seen(&end.stop) == STOP_NONE, "its own refusal came back");
    } else {
        uint64_t start = clock_ns();
        while (stop_seen(&end.stop) == STOP_NONE)
            CREW_MUST(clock_ns() - start < 5 * CLOCK_S, "rank %d was not told", rank);
        CREW_MUST(stop_seen(&end.stop) == STOP_NOTICE, "a refusal is not fatal");
        crew_sleep_ms(100); /* time for a second copy, were there one */
        pthread_mutex_lock(&end.stop.lock);
        unsigned times = end.stop.refusal_count;
        pthread_mutex_unlock(&end.stop.lock);
        CREW_MUST(times == 1, "it came %u times", times);
        CREW_MUST(stop_refused(&end.stop, 42, &got) && strstr(got.text, "NULL buffer") && got.rank == 3, "text");
    }
    CREW_MUST(boot_barrier(end.boot, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "the communicator stays good");
    crew_leave(&end);
}

START_TEST(a_refusal_reaches_every_peer_once_and_harms_nothing)
{
    struct crew crew = {.size = 8, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_that_refuses, 0), 0);
}
END_TEST

static void rank_with_a_cause(const struct crew *crew, int rank)
{
    struct crew_end end;
    crew_must_join(&end, crew, rank, crew->arg);
    quire_status_t st = boot_barrier(end.boot, deadline_in(20 * CLOCK_S));
    CREW_MUST(st == QUIRE_OK || st == QUIRE_ERR_MISMATCH, "barrier: %d", (int)st); /* the cause may overtake it */
    if (rank == 5) {
        struct cause cause = cause_make(QUIRE_ERR_MISMATCH, 5, "rank 5 counts 7, rank 6 counts 8");
        boot_flood_cause(end.boot, &cause);
    }
    CREW_MUST(crew_wait_fatal(&end.stop, 5000) >= 0, "rank %d was not told", rank);
    CREW_MUST(end.stop.cause.status == QUIRE_ERR_MISMATCH && end.stop.cause.rank == 5 &&
                  strcmp(end.stop.cause.text, "rank 5 counts 7, rank 6 counts 8") == 0,
              "cause: %s", end.stop.cause.text);
    crew_leave(&end); /* at once: the leaving of others must not come before the cause */
}

START_TEST(a_cause_reaches_everyone_unchanged)
{
    struct crew crew = {.size = 9, .arg = crew_job()};
    for (int i = 0; i < 5; i++) {
        crew.arg = crew_job();
        ck_assert_int_eq(crew_run(&crew, rank_with_a_cause, 0), 0);
    }
}
END_TEST

struct end_thread {
    pthread_t thread;
    struct crew_end end;
    int rank, size;
    const char *job;
    quire_status_t st;
};

static void *join_end(void *arg)
{
    struct end_thread *t = arg;
    t->st = crew_join(&t->end, t->rank, t->size, BOOT_MEET_JOB, NULL, t->job, 20 * CLOCK_S);
    return NULL;
}

START_TEST(a_cause_reaches_the_ranks_of_the_same_process_too)
{
    static struct end_thread t[4];
    const char *job = crew_job();
    for (int i = 0; i < 4; i++) {
        t[i].rank = i;
        t[i].size = 4;
        t[i].job = job;
        pthread_create(&t[i].thread, NULL, join_end, &t[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(t[i].thread, NULL);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(t[i].st, QUIRE_OK);
    struct cause cause = cause_make(QUIRE_ERR_REVOKED, 2, "rank 2 revoked it");
    boot_flood_cause(t[2].end.boot, &cause);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_ge(crew_wait_fatal(&t[i].end.stop, 5000), 0);
        ck_assert_int_eq(t[i].end.stop.cause.status, QUIRE_ERR_REVOKED);
    }
    for (int i = 0; i < 4; i++)
        crew_leave(&t[i].end);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/flood");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, an_id_is_new_once_and_stays_known);
    tcase_add_test(tc, a_refusal_reaches_every_peer_once_and_harms_nothing);
    tcase_add_test(tc, a_cause_reaches_everyone_unchanged);
    tcase_add_test(tc, a_cause_reaches_the_ranks_of_the_same_process_too);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
