/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_test.c - the harness itself: that a rank which fails, dies, hangs or was never started is told, and that the
   guards see a byte too far. A harness that calls everything fine would make every other test worthless. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base_test.h"
#include "harness/harness.h"

/* What the harness prints of failures that are meant is not for the reader of this test's output. */
static void hush(void)
{
    ck_assert_ptr_ne(freopen("/dev/null", "w", stderr), NULL);
}

static int fine(int rank, int size, void *arg)
{
    return 0;
}

static int odd_ranks_fail(int rank, int size, void *arg)
{
    return rank % 2;
}

static int last_rank_dies(int rank, int size, void *arg)
{
    if (rank == size - 1)
        raise(SIGKILL);
    return 0;
}

static int first_rank_hangs(int rank, int size, void *arg)
{
    while (rank == 0)
        pause();
    return 0;
}

START_TEST(every_rank_is_judged)
{
    hush();
    ck_assert_int_eq(harness_fork(5, fine, NULL, 30, -1), 0);
    ck_assert_int_eq(harness_fork(5, odd_ranks_fail, NULL, 30, -1), 2);
    ck_assert_int_eq(harness_threads(5, fine, NULL, 30), 0);
    ck_assert_int_eq(harness_threads(5, odd_ranks_fail, NULL, 30), 2);
}
END_TEST

START_TEST(a_death_fails_unless_it_was_to_be)
{
    hush();
    ck_assert_int_eq(harness_fork(3, last_rank_dies, NULL, 30, -1), 1);
    ck_assert_int_eq(harness_fork(3, last_rank_dies, NULL, 30, 2), 0);
    ck_assert_int_eq(harness_fork(3, fine, NULL, 30, 2), 1);
}
END_TEST

START_TEST(a_straggler_is_ended_and_counted)
{
    hush();
    ck_assert_int_eq(harness_fork(3, first_rank_hangs, NULL, 1, -1), 1);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, ended or not */
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(ranks_that_could_not_be_started_count_as_failed)
{
    struct rlimit none = {0, 0};
    int status;
    hush();
    ck_assert_int_eq(harness_fork(100000, fine, NULL, 30, -1), 100000);
    /* In a process that ends by _exit: a leak checker would need a thread at exit, which the limit forbids too. The
       limit holds for ordinary users only. */
    pid_t pid = fork();
    if (pid == 0) {
        if ((geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) || setrlimit(RLIMIT_NPROC, &none) != 0)
            _exit(100);
        _exit(harness_fork(3, fine, NULL, 30, -1));
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 3);
}
END_TEST

/* The byte before (-1) or behind (bytes) the buffer that touches the guard is out of reach: SIGSEGV. */
static bool faults(const struct guarded *g, ptrdiff_t at)
{
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* not a sanitizer's report */
        ((volatile uint8_t *)g->at)[at] = 1;
        _exit(0);
    }
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

START_TEST(guards_see_one_byte_too_far_on_both_sides)
{
    static const size_t sizes[] = {0, 1, 63, 4095, 4096, 4097, 100000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t bytes = sizes[i];
        struct guarded end = guarded_make(bytes, true, 0), start = guarded_make(bytes, false, 0);
        ck_assert(faults(&end, (ptrdiff_t)bytes));
        ck_assert(faults(&start, -1));
        memset(end.at, 1, bytes);
        memset(start.at, 1, bytes);
        ck_assert(guarded_intact(&end) && guarded_intact(&start));
        if (bytes % 4096 != 0) { /* the other side has room that is watched by a pattern */
            end.at[-1] ^= 1;
            start.at[bytes] ^= 1;
            ck_assert(!guarded_intact(&end) && !guarded_intact(&start));
        }
        guarded_free(&end);
        guarded_free(&start);
    }
}
END_TEST

START_TEST(skewed_buffers_are_watched_between_buffer_and_guard)
{
    struct guarded end = guarded_make(100, true, 3), start = guarded_make(100, false, 3);
    ck_assert(guarded_intact(&end) && guarded_intact(&start));
    end.at[102] ^= 1;
    start.at[-3] ^= 1;
    ck_assert(!guarded_intact(&end) && !guarded_intact(&start));
    ck_assert(faults(&end, 103) && faults(&start, -4));
    guarded_free(&end);
    guarded_free(&start);
}
END_TEST

START_TEST(values_differ_between_neighbours_and_ranks)
{
    for (int rank = 0; rank < 16; rank++)
        for (size_t i = 0; i < 1000; i++) {
            ck_assert_uint_ne(harness_value(rank, i), harness_value(rank, i + 1));
            ck_assert_uint_ne(harness_value(rank, i), harness_value(rank + 1, i));
        }
}
END_TEST

START_TEST(descriptors_are_counted)
{
    int before = harness_descriptors(), fd = dup(0);
    ck_assert_int_ge(before, 3);
    ck_assert_int_eq(harness_descriptors(), before + 1);
    close(fd);
    ck_assert_int_eq(harness_descriptors(), before);
    ck_assert_uint_gt(harness_resident_bytes(), 4096);
}
END_TEST

BASE_TEST_MAIN("harness", every_rank_is_judged, a_death_fails_unless_it_was_to_be, a_straggler_is_ended_and_counted,
               ranks_that_could_not_be_started_count_as_failed, guards_see_one_byte_too_far_on_both_sides,
               skewed_buffers_are_watched_between_buffer_and_guard, values_differ_between_neighbours_and_ranks,
               descriptors_are_counted)
