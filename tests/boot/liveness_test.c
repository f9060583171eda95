/* SPDX-License-Identifier: BSD-3-Clause */
/* liveness_test.c - dead ranks are noticed, named with how they died, and told to everyone; a goodbye is no death. */
#include <check.h>

#include "boot/boot_internal.h"
#include "crew.h"

static bool is_sound(struct boot *boot)
{
    pthread_mutex_lock(&boot->service->lock);
    bool ok = boot_check(boot);
    pthread_mutex_unlock(&boot->service->lock);
    return ok;
}

struct plan {
    const char *job;
    unsigned long long doomed; /* bits */
    int how;                   /* signal, or -1: exit(3) */
};

static void rank_among_the_doomed(const struct crew *crew, int rank)
{
    const struct plan *plan = crew->arg;
    struct crew_end end;
    char expect[128];
    crew_must_join(&end, crew, rank, plan->job);
    CREW_MUST(boot_barrier(end.boot, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "barrier");
    if (plan->doomed >> rank & 1) {
        crew_sleep_ms(30);
        if (plan->how < 0)
            _exit(3);
        raise(plan->how);
    }
    int ms = crew_wait_fatal(&end.stop, 5000);
    CREW_MUST(ms >= 0, "rank %d was not told", rank);
    CREW_MUST(ms < 1000, "rank %d was told after %d ms", rank, ms);
    const struct cause *cause = stop_cause(&end.stop);
    CREW_MUST(cause->status == QUIRE_ERR_PEER_FAILED, "status %u: %s", cause->status, cause->text);
    CREW_MUST(cause->rank >= 0 && (plan->doomed >> cause->rank & 1), "rank %d: %s", cause->rank, cause->text);
    snprintf(expect, sizeof(expect), "rank %d (pid %d on host ", cause->rank,
             (int)boot_peer(end.boot, cause->rank)->pid);
    CREW_MUST(strstr(cause->text, expect), "no '%s' in: %s", expect, cause->text);
    if (plan->how < 0)
        snprintf(expect, sizeof(expect), "exited with status 3");
    else
        snprintf(expect, sizeof(expect), "was killed by signal %d", plan->how);
    CREW_MUST(strstr(cause->text, expect), "no '%s' in: %s", expect, cause->text);
    CREW_MUST(boot_barrier(end.boot, DEADLINE_NEVER) == QUIRE_ERR_PEER_FAILED, "later calls");
    CREW_MUST(is_sound(end.boot), "invariants after a death");
    crew_leave(&end);
}

static int doom(int size, unsigned long long doomed, int how)
{
    struct plan plan = {crew_job(), doomed, how};
    struct crew crew = {.size = size, .arg = &plan};
    return crew_run(&crew, rank_among_the_doomed, doomed);
}

START_TEST(a_killed_rank_is_named_with_its_signal_on_every_other_of_four)
{
    ck_assert_int_eq(doom(4, 1ull << _i, SIGKILL), 0);
}
END_TEST

START_TEST(a_killed_rank_is_named_with_its_signal_on_every_other_of_seven)
{
    ck_assert_int_eq(doom(7, 1ull << _i, _i % 2 ? SIGKILL : SIGUSR1), 0);
}
END_TEST

START_TEST(two_deaths_at_once_do_not_hide_from_anyone)
{
    ck_assert_int_eq(doom(7, 1ull << 0 | 1ull << 1, SIGKILL), 0);
    ck_assert_int_eq(doom(7, 1ull << 1 | 1ull << 2, SIGKILL), 0);
    ck_assert_int_eq(doom(9, 1ull << 1 | 1ull << 3, SIGKILL), 0);
    ck_assert_int_eq(doom(9, 1ull << 0 | 1ull << 2, SIGKILL), 0);
}
END_TEST

START_TEST(half_of_the_ranks_may_die_and_the_other_half_knows)
{
    ck_assert_int_eq(doom(12, 0x555, SIGKILL), 0);
    ck_assert_int_eq(doom(12, 0x03f, SIGKILL), 0);
}
END_TEST

START_TEST(an_exit_without_goodbye_is_a_failure_with_its_status)
{
    ck_assert_int_eq(doom(3, 1ull << 1, -1), 0);
}
END_TEST

static void rank_that_leaves_in_good_order(const struct crew *crew, int rank)
{
    struct crew_end end;
    crew_must_join(&end, crew, rank, crew->arg);
    /* Inner nodes first, so that the others lose their way up again and again. */
    for (int i = 0; i < rank; i++) {
        uint64_t start = clock_ns();
        while (!boot_departed(end.boot, i)) {
            CREW_MUST(stop_seen(&end.stop) == STOP_NONE, "rank %d: %s", rank, end.stop.cause.text);
            CREW_MUST(clock_ns() - start < 10 * CLOCK_S, "rank %d never heard that %d left", rank, i);
            crew_sleep_ms(1);
        }
    }
    for (int i = rank; i < crew->size; i++)
        CREW_MUST(!boot_departed(end.boot, i), "rank %d has not left yet", i);
    crew_sleep_ms(10);
    CREW_MUST(stop_seen(&end.stop) == STOP_NONE, "rank %d: %s", rank, end.stop.cause.text);
    CREW_MUST(is_sound(end.boot), "invariants after goodbyes");
    crew_leave(&end);
}

START_TEST(a_goodbye_reaches_everyone_and_is_no_failure)
{
    struct crew crew = {.size = 9, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_that_leaves_in_good_order, 0), 0);
}
END_TEST

static void rank_after_goodbyes(const struct crew *crew, int rank)
{
    struct crew_end end;
    crew_must_join(&end, crew, rank, crew->arg);
    if (rank < 3) { /* the top of the tree leaves */
        crew_leave(&end);
        return;
    }
    for (int i = 0; i < 3; i++)
        while (!boot_departed(end.boot, i))
            crew_sleep_ms(1);
    crew_sleep_ms(100);
    if (rank == 6)
        raise(SIGKILL);
    CREW_MUST(crew_wait_fatal(&end.stop, 3000) >= 0, "rank %d was not told", rank);
    CREW_MUST(end.stop.cause.rank == 6 && strstr(end.stop.cause.text, "signal 9"), "cause: %s", end.stop.cause.text);
    crew_leave(&end);
}

START_TEST(those_left_over_without_the_top_of_the_tree_still_hear_of_a_death)
{
    struct crew crew = {.size = 7, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_after_goodbyes, 1ull << 6), 0);
}
END_TEST

static void rank_with_a_child(const struct crew *crew, int rank)
{
    struct crew_end end;
    crew_must_join(&end, crew, rank, crew->arg);
    CREW_MUST(boot_barrier(end.boot, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "barrier");
    if (rank == 1) {
        crew_sleep_ms(30); /* let the others out of the barrier */
        if (fork() == 0) {

            crew_sleep_ms(1500);
            _exit(0);
        }
        raise(SIGKILL);
    }
    int ms = crew_wait_fatal(&end.stop, 5000);
    CREW_MUST(ms >= 0 && ms < 1000, "rank %d was told after %d ms", rank, ms);
    CREW_MUST(strstr(end.stop.cause.text, "rank 1") && strstr(end.stop.cause.text, "signal 9"), "cause: %s",
              end.stop.cause.text);
    crew_leave(&end);
}

START_TEST(a_forked_child_that_lives_on_does_not_hide_the_death)
{
    struct crew crew = {.size = 3, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_with_a_child, 1ull << 1), 0);
}
END_TEST

static void rank_that_is_frozen(const struct crew *crew, int rank)
{
    struct crew_end end;
    int pid = (int)getpid(), all[CREW_MAX];
    crew_must_join(&end, crew, rank, crew->arg);
    CREW_MUST(boot_all_gather(end.boot, &pid, sizeof(pid), all, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "gather");
    if (rank == 0) {
        kill(all[1], SIGSTOP);
        crew_sleep_ms(400);
        CREW_MUST(stop_seen(&end.stop) == STOP_NONE, "cause: %s", end.stop.cause.text);
        kill(all[1], SIGCONT);
    }
    CREW_MUST(boot_barrier(end.boot, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "barrier");
    crew_leave(&end);
}

START_TEST(a_frozen_rank_is_not_a_dead_one)
{
    struct crew crew = {.size = 3, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_that_is_frozen, 0), 0);
}
END_TEST

static void rank_leaving_past_a_frozen_one(const struct crew *crew, int rank)
{
    struct crew_end end;
    int pid = (int)getpid(), all[CREW_MAX];
    crew_must_join(&end, crew, rank, crew->arg);
    CREW_MUST(boot_all_gather(end.boot, &pid, sizeof(pid), all, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "gather");
    if (rank == 1) {
        raise(SIGSTOP);
        crew_leave(&end);
        return;
    }
    crew_sleep_ms(50);
    uint64_t start = clock_ns();
    crew_leave(&end);
    uint64_t took = clock_ns() - start;
    CREW_MUST(took < CLOCK_S, "leaving took %d ms", (int)(took / CLOCK_MS));
    if (rank == 0) {
        crew_sleep_ms(100);
        kill(all[1], SIGCONT);
    }
}

START_TEST(leaving_does_not_wait_for_a_frozen_rank)
{
    struct crew crew = {.size = 3, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_leaving_past_a_frozen_one, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/liveness");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_killed_rank_is_named_with_its_signal_on_every_other_of_four, 0, 4);
    tcase_add_loop_test(tc, a_killed_rank_is_named_with_its_signal_on_every_other_of_seven, 0, 7);
    tcase_add_test(tc, two_deaths_at_once_do_not_hide_from_anyone);
    tcase_add_test(tc, half_of_the_ranks_may_die_and_the_other_half_knows);
    tcase_add_test(tc, an_exit_without_goodbye_is_a_failure_with_its_status);
    tcase_add_test(tc, a_goodbye_reaches_everyone_and_is_no_failure);
    tcase_add_test(tc, those_left_over_without_the_top_of_the_tree_still_hear_of_a_death);
    tcase_add_test(tc, a_forked_child_that_lives_on_does_not_hide_the_death);
    tcase_add_test(tc, a_frozen_rank_is_not_a_dead_one);
    tcase_add_test(tc, leaving_does_not_wait_for_a_frozen_rank);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
