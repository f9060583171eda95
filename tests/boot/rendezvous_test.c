/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous_test.c - ranks find each other by every kind of meeting, and those who can't are told why. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "crew.h"

static void everyone_knows_everyone(struct crew_end *end, int rank, int size)
{
    int mine[2] = {rank, (int)getpid()}, all[2 * CREW_MAX];
    memset(all, 0xa5, sizeof(all));
    quire_status_t st = boot_all_gather(end->boot, mine, sizeof(mine), all, deadline_in(20 * CLOCK_S));
    CREW_MUST(st == QUIRE_OK, "all-gather: %d", (int)st);
    for (int i = 0; i < size; i++) {
        CREW_MUST(all[2 * i] == i, "slot %d holds rank %d", i, all[2 * i]);
        CREW_MUST(all[2 * i + 1] == boot_peer(end->boot, i)->pid, "pid of rank %d", i);
    }
    CREW_MUST(boot_peer(end->boot, rank)->pid == getpid(), "own pid");
}

static void rank_by_id(const struct crew *crew, int rank)
{
    struct crew_end end;
    quire_status_t st = crew_join(&end, rank, crew->size, BOOT_MEET_ID, crew_id(crew, rank), NULL, 20 * CLOCK_S);
    CREW_MUST(st == QUIRE_OK, "rank %d joins", rank);
    everyone_knows_everyone(&end, rank, crew->size);
    crew_leave(&end);
}

START_TEST(an_id_brings_any_number_of_processes_together)
{
    struct crew crew = {.size = _i};
    ck_assert_int_eq(crew_run(&crew, rank_by_id, 0), 0);
}
END_TEST

struct thread_rank {
    const quire_unique_id *id;
    int rank, size;
    quire_status_t st;
};

static void *thread_by_id(void *arg)
{
    struct thread_rank *t = arg;
    struct crew_end end;
    int mine = t->rank, all[CREW_MAX];
    t->st = crew_join(&end, t->rank, t->size, BOOT_MEET_ID, t->id, NULL, 20 * CLOCK_S);
    if (t->st != QUIRE_OK)
        goto out;
    t->st = boot_all_gather(end.boot, &mine, sizeof(mine), all, deadline_in(20 * CLOCK_S));
    for (int i = 0; t->st == QUIRE_OK && i < t->size; i++)
        if (all[i] != i)
            t->st = QUIRE_ERR_INTERNAL;
    crew_leave(&end);
out:
    if (t->st != QUIRE_OK)
        fprintf(stderr, "rank %d: %s\n", t->rank, status_text_last());
    return NULL;
}

START_TEST(ranks_may_be_threads_of_one_process)
{
    quire_unique_id id;
    struct thread_rank ranks[CREW_MAX];
    pthread_t threads[CREW_MAX];
    ck_assert_int_eq(boot_make_id(&id), QUIRE_OK);
    for (int i = 0; i < _i; i++) {
        ranks[i] = (struct thread_rank){&id, i, _i, QUIRE_ERR_INTERNAL};
        pthread_create(&threads[i], NULL, thread_by_id, &ranks[i]);
    }
    for (int i = 0; i < _i; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < _i; i++)
        ck_assert_int_eq(ranks[i].st, QUIRE_OK);
}
END_TEST

static int free_port(int family)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *address = family == AF_INET6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t length = family == AF_INET6 ? sizeof(v6) : sizeof(v4);
    int fd = socket(family, SOCK_STREAM, 0), port = -1;
    if (fd >= 0 && bind(fd, address, length) == 0 && getsockname(fd, address, &length) == 0)
        port = ntohs(family == AF_INET6 ? v6.sin6_port : v4.sin_port);
    if (fd >= 0)
        close(fd);
    return port;
}

static void rank_by_address(const struct crew *crew, int rank)
{
    struct crew_end end;
    if (rank == 0)
        crew_sleep_ms(30); /* the others find nobody at first */
    quire_status_t st = crew_join(&end, rank, crew->size, BOOT_MEET_ADDRESS, NULL, crew->arg, 20 * CLOCK_S);
    CREW_MUST(st == QUIRE_OK, "rank %d joins at %s", rank, (const char *)crew->arg);
    everyone_knows_everyone(&end, rank, crew->size);
    crew_leave(&end);
}

START_TEST(ranks_meet_at_an_ipv4_address)
{
    char where[64];
    snprintf(where, sizeof(where), "127.0.0.1:%d", free_port(AF_INET));
    struct crew crew = {.size = 3, .arg = where};
    ck_assert_int_eq(crew_run(&crew, rank_by_address, 0), 0);
}
END_TEST

START_TEST(ranks_meet_at_an_ipv6_address)
{
    char where[64];
    int port = free_port(AF_INET6);
    if (port < 0) {
        fprintf(stderr, "note: no IPv6 loopback here, not tested\n");
        return;
    }
    snprintf(where, sizeof(where), "[::1]:%d", port);
    struct crew crew = {.size = 3, .arg = where};
    ck_assert_int_eq(crew_run(&crew, rank_by_address, 0), 0);
}
END_TEST

static void rank_by_file(const struct crew *crew, int rank)
{
    struct crew_end end;
    if (rank == 0)
        crew_sleep_ms(20);
    quire_status_t st = crew_join(&end, rank, crew->size, BOOT_MEET_FILE, NULL, crew->arg, 20 * CLOCK_S);
    CREW_MUST(st == QUIRE_OK, "rank %d joins by file", rank);
    everyone_knows_everyone(&end, rank, crew->size);
    if (rank == 0)
        CREW_MUST(access(crew->arg, F_OK) != 0, "the file is still there");
    crew_leave(&end);
}

START_TEST(ranks_meet_by_a_file_even_over_a_stale_one)
{
    char path[] = "/tmp/quire-meet-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "quire-id 00", 11), 11);
    close(fd);
    struct crew crew = {.size = 4, .arg = path};
    ck_assert_int_eq(crew_run(&crew, rank_by_file, 0), 0);
    unlink(path);
}
END_TEST

static void rank_by_job(const struct crew *crew, int rank)
{
    struct crew_end first, second;
    crew_must_join(&first, crew, rank, crew->arg);
    everyone_knows_everyone(&first, rank, crew->size);
    struct boot_options options = {.rank = rank,
                                   .size = crew->size,
                                   .meeting = BOOT_MEET_JOB,
                                   .where = crew->arg,
                                   .key_salt = 1,
                                   .timeout_ns = 20 * CLOCK_S,
                                   .stop = &second.stop};
    stop_init(&second.stop);
    CREW_MUST(boot_create(&second.boot, &options) == QUIRE_OK, "a second communicator of the job");
    everyone_knows_everyone(&second, rank, crew->size);
    crew_leave(&first);
    everyone_knows_everyone(&second, rank, crew->size);
    crew_leave(&second);
}

START_TEST(ranks_of_one_job_meet_again_and_again)
{
    struct crew crew = {.size = 4, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_by_job, 0), 0);
    ck_assert_int_eq(crew_run(&crew, rank_by_job, 0), 0);
}
END_TEST

static void rank_of_a_late_crew(const struct crew *crew, int rank)
{
    struct crew_end end;
    if (rank == 2 || rank >= 4)
        return; /* never comes */
    uint64_t start = clock_ns();
    quire_status_t st = crew_join(&end, rank, crew->size, BOOT_MEET_ID, crew_id(crew, rank), NULL, 600 * CLOCK_MS);
    CREW_MUST(st == QUIRE_ERR_TIMEOUT, "rank %d got %d", rank, (int)st);
    CREW_MUST(strstr(status_text_last(), "missing: 2, 4-6"), "list");
    CREW_MUST(clock_ns() - start < 5 * CLOCK_S, "it took too long");
    CREW_MUST(end.boot == NULL, "boot was written");
}

START_TEST(missing_ranks_are_listed_to_everyone_when_time_runs_out)
{
    struct crew crew = {.size = 7};
    ck_assert_int_eq(crew_run(&crew, rank_of_a_late_crew, 0), 0);
}
END_TEST

static void rank_without_root(const struct crew *crew, int rank)
{
    struct crew_end end;
    if (rank == 0)
        return;
    quire_status_t st = crew_join(&end, rank, crew->size, BOOT_MEET_JOB, NULL, crew->arg, 300 * CLOCK_MS);
    CREW_MUST(st == QUIRE_ERR_TIMEOUT && strstr(status_text_last(), "missing: 0"), "rank %d got %d", rank, (int)st);
}

START_TEST(a_rank_zero_that_never_comes_is_named)
{
    struct crew crew = {.size = 3, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_without_root, 0), 0);
}
END_TEST

static void rank_given_twice(const struct crew *crew, int index)
{
    struct crew_end end;
    int rank = index == 2 ? 1 : index; /* 0, 1, 1 of three */
    quire_status_t st = crew_join(&end, rank, 3, BOOT_MEET_ID, crew_id(crew, index), NULL, 10 * CLOCK_S);
    CREW_MUST(st == QUIRE_ERR_INVALID_ARGUMENT, "rank %d got %d", rank, (int)st);
    CREW_MUST(strstr(status_text_last(), "rank 1 was given out twice"), "text");
}

START_TEST(a_rank_given_out_twice_is_told_to_all)
{
    struct crew crew = {.size = 3};
    ck_assert_int_eq(crew_run(&crew, rank_given_twice, 0), 0);
}
END_TEST

static void rank_of_two_minds(const struct crew *crew, int rank)
{
    struct crew_end end;
    quire_status_t st = crew_join(&end, rank, rank == 1 ? 4 : 3, BOOT_MEET_ID, crew_id(crew, rank), NULL, 10 * CLOCK_S);
    CREW_MUST(st == QUIRE_ERR_INVALID_ARGUMENT, "rank %d got %d", rank, (int)st);
    CREW_MUST(strstr(status_text_last(), "4") && strstr(status_text_last(), "3") &&
                  strstr(status_text_last(), "rank 1"),
              "text");
    if (rank == 0)
        crew_sleep_ms(300);
}

START_TEST(ranks_that_disagree_about_the_size_are_named)
{
    struct crew crew = {.size = 3};
    ck_assert_int_eq(crew_run(&crew, rank_of_two_minds, 0), 0);
}
END_TEST

static void rank_that_tries_twice(const struct crew *crew, int rank)
{
    rank_by_id(crew, rank);
    struct crew_end end;
    uint64_t start = clock_ns();
    quire_status_t st = crew_join(&end, rank, crew->size, BOOT_MEET_ID, &crew->shared->id, NULL, 20 * CLOCK_S);
    CREW_MUST(st == QUIRE_ERR_INVALID_ARGUMENT && strstr(status_text_last(), "used already"), "got %d", (int)st);
    CREW_MUST(clock_ns() - start < 5 * CLOCK_S, "it took too long");
}

START_TEST(an_id_is_good_for_one_communicator)
{
    struct crew crew = {.size = 2};
    ck_assert_int_eq(crew_run(&crew, rank_that_tries_twice, 0), 0);
}
END_TEST

static void rank_that_dies_early(const struct crew *crew, int rank)
{
    struct crew_end end;
    if (rank == 1) { /* says who it is, and is killed before all have come */
        struct thread_rank self = {crew_id(crew, rank), 1, crew->size, QUIRE_OK};
        pthread_t thread;
        pthread_create(&thread, NULL, thread_by_id, &self);
        crew_sleep_ms(200);
        raise(SIGKILL);
    }
    if (rank == 2)
        crew_sleep_ms(800);
    quire_status_t st = crew_join(&end, rank, crew->size, BOOT_MEET_ID, crew_id(crew, rank), NULL, 10 * CLOCK_S);
    CREW_MUST(st == QUIRE_ERR_PEER_FAILED, "rank %d got %d", rank, (int)st);
    CREW_MUST(strstr(status_text_last(), "rank 1"), "text");
    if (rank == 0)
        crew_sleep_ms(1500); /* the meeting was here: those who come late ask it */
}

START_TEST(a_death_during_init_is_told_to_those_there_and_those_who_come_late)
{
    struct crew crew = {.size = 3};
    ck_assert_int_eq(crew_run(&crew, rank_that_dies_early, 1 << 1), 0);
}
END_TEST

START_TEST(wrong_arguments_are_refused_before_anything_starts)
{
    struct crew_end end;
    quire_unique_id id;
    crew_warm_up();
    int threads = crew_count_threads();
    memset(&id, 7, sizeof(id));
    ck_assert_int_eq(crew_join(&end, 0, 0, BOOT_MEET_JOB, NULL, "x", CLOCK_S), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(crew_join(&end, 2, 2, BOOT_MEET_JOB, NULL, "x", CLOCK_S), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(crew_join(&end, -1, 2, BOOT_MEET_JOB, NULL, "x", CLOCK_S), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(crew_join(&end, 0, 1, BOOT_MEET_JOB, NULL, "", CLOCK_S), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(crew_join(&end, 0, 1, BOOT_MEET_ID, &id, NULL, CLOCK_S), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(crew_join(&end, 0, 1, BOOT_MEET_ID, NULL, NULL, CLOCK_S), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(crew_join(&end, 1, 2, BOOT_MEET_ADDRESS, NULL, "nowhere", CLOCK_S), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(crew_join(&end, 0, 2, BOOT_MEET_FILE, NULL, "/nonexistent/dir/file", CLOCK_S),
                     QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(crew_count_threads(), threads);
}
END_TEST

START_TEST(a_stop_word_ends_the_wait_for_others)
{
    struct crew_end end;
    struct boot_options options = {
        .rank = 0, .size = 2, .meeting = BOOT_MEET_JOB, .where = crew_job(), .stop = &end.stop};
    stop_init(&end.stop);
    struct cause cause = cause_make(QUIRE_ERR_ABORTED, 0, "the user pressed a button");
    stop_fail(&end.stop, &cause);
    ck_assert_int_eq(boot_create(&end.boot, &options), QUIRE_ERR_ABORTED);
    stop_destroy(&end.stop);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/rendezvous");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, an_id_brings_any_number_of_processes_together, 1, 10);
    tcase_add_loop_test(tc, ranks_may_be_threads_of_one_process, 1, 10);
    tcase_add_test(tc, ranks_meet_at_an_ipv4_address);
    tcase_add_test(tc, ranks_meet_at_an_ipv6_address);
    tcase_add_test(tc, ranks_meet_by_a_file_even_over_a_stale_one);
    tcase_add_test(tc, ranks_of_one_job_meet_again_and_again);
    tcase_add_test(tc, missing_ranks_are_listed_to_everyone_when_time_runs_out);
    tcase_add_test(tc, a_rank_zero_that_never_comes_is_named);
    tcase_add_test(tc, a_rank_given_out_twice_is_told_to_all);
    tcase_add_test(tc, ranks_that_disagree_about_the_size_are_named);
    tcase_add_test(tc, an_id_is_good_for_one_communicator);
    tcase_add_test(tc, a_death_during_init_is_told_to_those_there_and_those_who_come_late);
    tcase_add_test(tc, wrong_arguments_are_refused_before_anything_starts);
    tcase_add_test(tc, a_stop_word_ends_the_wait_for_others);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
