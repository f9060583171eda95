/* SPDX-License-Identifier: BSD-3-Clause */
/* handoff_test.c - sockets and descriptors that leave the control plane: dial, accept, offer, fetch. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "crew.h"

static void say(int fd, int mine)
{
    CREW_MUST(fcntl(fd, F_GETFL) & O_NONBLOCK, "blocking");
    CREW_MUST(fcntl(fd, F_GETFD) & FD_CLOEXEC, "not close on exec");
    CREW_MUST(send(fd, &mine, sizeof(mine), MSG_NOSIGNAL) == sizeof(mine), "send");
}

static void hear(int fd, int expect)
{
    struct pollfd p = {fd, POLLIN, 0};
    int got = -1;
    CREW_MUST(poll(&p, 1, 10000) == 1 && recv(fd, &got, sizeof(got), 0) == sizeof(got), "recv");
    CREW_MUST(got == expect, "got %d, not %d", got, expect);
    close(fd);
}

static void talk(int fd, int mine, int expect)
{
    say(fd, mine);
    hear(fd, expect);
}

static void rank_that_dials_all(const struct crew *crew, int rank)
{
    struct crew_end end;
    uint64_t deadline = deadline_in(20 * CLOCK_S);
    int fd[4][CREW_MAX];
    crew_must_join(&end, crew, rank, crew->arg);
    for (int to = crew->size - 1; to > rank; to--) /* nobody needs to accept for a dial to end */
        for (uint32_t purpose = 3; purpose >= 1; purpose--) {
            quire_status_t st = boot_dial(end.boot, to, purpose, deadline, &fd[purpose][to]);
            CREW_MUST(st == QUIRE_OK, "dial %d", (int)st);
        }
    for (uint32_t purpose = 1; purpose <= 3; purpose++) /* in another order than they were dialled */
        for (int from = 0; from < rank; from++) {
            quire_status_t st = boot_accept(end.boot, from, purpose, deadline, &fd[purpose][from]);
            CREW_MUST(st == QUIRE_OK, "accept %d", (int)st);
        }
    for (int purpose = 1; purpose <= 3; purpose++)
        for (int with = 0; with < crew->size; with++)
            if (with != rank)
                say(fd[purpose][with], rank * 100 + purpose);
    for (int purpose = 1; purpose <= 3; purpose++)
        for (int with = 0; with < crew->size; with++)
            if (with != rank)
                hear(fd[purpose][with], with * 100 + purpose);
    CREW_MUST(boot_barrier(end.boot, deadline) == QUIRE_OK, "barrier");
    crew_leave(&end);
}

START_TEST(any_rank_dials_any_other_for_any_purpose)
{
    struct crew crew = {.size = 4, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_that_dials_all, 0), 0);
}
END_TEST

static void rank_that_polls(const struct crew *crew, int rank)
{
    struct crew_end end;
    uint64_t deadline = deadline_in(20 * CLOCK_S);
    int fd = -7;
    crew_must_join(&end, crew, rank, crew->arg);
    if (rank == 0) {
        CREW_MUST(boot_accept_poll(end.boot, 1, 9, &fd) == QUIRE_IN_PROGRESS && fd == -7, "nobody has dialled yet");
        CREW_MUST(boot_accept(end.boot, 1, 9, deadline_in(20 * CLOCK_MS), &fd) == QUIRE_ERR_TIMEOUT && fd == -7,
                  "nobody has dialled yet");
    }
    CREW_MUST(boot_barrier(end.boot, deadline) == QUIRE_OK, "barrier");
    if (rank == 1) {
        CREW_MUST(boot_dial(end.boot, 0, 9, deadline, &fd) == QUIRE_OK, "dial");
        talk(fd, 5, 6);
    } else {
        quire_status_t st;
        while ((st = boot_accept_poll(end.boot, 1, 9, &fd)) == QUIRE_IN_PROGRESS)
            crew_sleep_ms(1);
        CREW_MUST(st == QUIRE_OK, "poll: %d", (int)st);
        CREW_MUST(boot_accept_poll(end.boot, 1, 8, &(int){0}) == QUIRE_IN_PROGRESS, "another purpose");
        talk(fd, 6, 5);
    }
    CREW_MUST(boot_barrier(end.boot, deadline) == QUIRE_OK, "barrier");
    crew_leave(&end);
}

START_TEST(polling_for_a_dial_never_waits)
{
    struct crew crew = {.size = 2, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_that_polls, 0), 0);
}
END_TEST

static void rank_with_descriptors(const struct crew *crew, int rank)
{
    struct crew_end end;
    uint64_t deadline = deadline_in(20 * CLOCK_S);
    crew_must_join(&end, crew, rank, crew->arg);
    int own = memfd_create("offer", MFD_CLOEXEC), fd = -7;
    int number = 1000 + rank;
    CREW_MUST(own >= 0 && write(own, &number, sizeof(number)) == sizeof(number), "memfd");
    CREW_MUST(boot_offer_fd(end.boot, 77, own) == QUIRE_OK, "offer");
    close(own); /* boot keeps its own */
    CREW_MUST(boot_barrier(end.boot, deadline) == QUIRE_OK, "barrier");
    for (int from = 0; from < crew->size; from++) {
        int got = 0;
        quire_status_t st = boot_fetch_fd(end.boot, from, 77, deadline, &fd);
        CREW_MUST(st == QUIRE_OK, "fetch from %d: %d", from, (int)st);
        CREW_MUST(pread(fd, &got, sizeof(got), 0) == sizeof(got) && got == 1000 + from, "content %d", got);
        CREW_MUST(fcntl(fd, F_GETFD) & FD_CLOEXEC, "not close on exec");
        close(fd);
    }
    fd = -7;
    CREW_MUST(boot_fetch_fd(end.boot, 0, 78, deadline, &fd) == QUIRE_ERR_LINK && fd == -7, "a tag nobody offers");
    CREW_MUST(boot_barrier(end.boot, deadline) == QUIRE_OK, "barrier");
    CREW_MUST(boot_offer_fd(end.boot, 77, -1) == QUIRE_OK, "withdraw");
    CREW_MUST(boot_barrier(end.boot, deadline) == QUIRE_OK, "barrier");
    CREW_MUST(boot_fetch_fd(end.boot, (rank + 1) % crew->size, 77, deadline, &fd) == QUIRE_ERR_LINK, "withdrawn");
    CREW_MUST(boot_barrier(end.boot, deadline) == QUIRE_OK, "barrier");
    crew_leave(&end);
}

START_TEST(descriptors_travel_to_any_rank_of_the_host)
{
    struct crew crew = {.size = 3, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_with_descriptors, 0), 0);
}
END_TEST

static void rank_that_dials_one_who_left(const struct crew *crew, int rank)
{
    struct crew_end end;
    int fd = -7;
    crew_must_join(&end, crew, rank, crew->arg);
    if (rank == 0) {
        while (!boot_departed(end.boot, 1))
            crew_sleep_ms(1);
        CREW_MUST(boot_dial(end.boot, 1, 1, deadline_in(20 * CLOCK_S), &fd) == QUIRE_ERR_LINK, "dial");
        CREW_MUST(boot_accept(end.boot, 1, 1, deadline_in(20 * CLOCK_S), &fd) == QUIRE_ERR_LINK, "accept");
        CREW_MUST(boot_fetch_fd(end.boot, 1, 1, deadline_in(20 * CLOCK_S), &fd) == QUIRE_ERR_LINK, "fetch");
        CREW_MUST(boot_dial(end.boot, 7, 1, DEADLINE_NEVER, &fd) == QUIRE_ERR_INVALID_ARGUMENT, "no such rank");
        CREW_MUST(fd == -7 && stop_seen(&end.stop) == STOP_NONE, "written");
    }
    crew_leave(&end);
}

START_TEST(a_rank_that_has_left_is_a_dead_link_and_no_failure)
{
    struct crew crew = {.size = 2, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_that_dials_one_who_left, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/handoff");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, any_rank_dials_any_other_for_any_purpose);
    tcase_add_test(tc, polling_for_a_dial_never_waits);
    tcase_add_test(tc, descriptors_travel_to_any_rank_of_the_host);
    tcase_add_test(tc, a_rank_that_has_left_is_a_dead_link_and_no_failure);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
