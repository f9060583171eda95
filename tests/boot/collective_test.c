/* SPDX-License-Identifier: BSD-3-Clause */
/* collective_test.c - the control plane's all-gather, barrier and broadcast, and what happens when ranks disagree. */
#include <check.h>

#include "crew.h"

static unsigned char value(int rank, size_t at, int round)
{
    return (unsigned char)(rank * 37 + at * 11 + (size_t)round * 5 + 1);
}

static void gather_of(struct crew_end *end, int rank, int size, size_t bytes, int round)
{
    unsigned char *in = malloc(bytes + 1), *out = malloc(bytes * (size_t)size + 16);
    for (size_t i = 0; i < bytes; i++)
        in[i] = value(rank, i, round);
    memset(out, 0xee, bytes * (size_t)size + 16);
    quire_status_t st = boot_all_gather(end->boot, in, bytes, out, deadline_in(20 * CLOCK_S));
    CREW_MUST(st == QUIRE_OK, "all-gather of %zu bytes: %d", bytes, (int)st);
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < bytes; i++)
            CREW_MUST(out[(size_t)r * bytes + i] == value(r, i, round), "rank %d byte %zu of %zu", r, i, bytes);
    for (int i = 0; i < 16; i++)
        CREW_MUST(out[bytes * (size_t)size + (size_t)i] == 0xee, "wrote over the end");
    free(in);
    free(out);
}

static void rank_of_all_kinds(const struct crew *crew, int rank)
{
    static const size_t sizes[] = {0, 1, 7, 8, 1000, 70000, 1 << 20};
    struct crew_end end;
    crew_must_join(&end, crew, rank, crew->arg);
    for (int i = 0; i < 7; i++)
        gather_of(&end, rank, crew->size, sizes[i], i);
    for (int i = 0; i < 20; i++) {
        uint64_t data[100];
        memset(data, rank == 0 ? i + 1 : 0xcc, sizeof(data));
        CREW_MUST(boot_broadcast(end.boot, data, sizeof(data), deadline_in(20 * CLOCK_S)) == QUIRE_OK, "broadcast");
        for (int k = 0; k < 100; k++)
            CREW_MUST(data[k] == (uint64_t)(i + 1) * UINT64_C(0x0101010101010101), "broadcast %d word %d", i, k);
        if (i % 5 == 0)
            CREW_MUST(boot_barrier(end.boot, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "barrier");
        gather_of(&end, rank, crew->size, 24, i);
    }
    crew_leave(&end);
}

START_TEST(gathers_barriers_and_broadcasts_are_right_at_any_size)
{
    struct crew crew = {.size = _i, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_of_all_kinds, 0), 0);
}
END_TEST

struct shared_count {
    int entered;
};

static void rank_at_a_barrier(const struct crew *crew, int rank)
{
    struct crew_end end;
    struct shared_count *count = *(struct shared_count *const *)crew->arg;
    crew_must_join(&end, crew, rank, (const char *)crew->arg + sizeof(void *));
    for (int round = 1; round <= 50; round++) {
        if (round % crew->size == rank)
            crew_sleep_ms(1);
        __atomic_add_fetch(&count->entered, 1, __ATOMIC_SEQ_CST);
        CREW_MUST(boot_barrier(end.boot, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "barrier %d", round);
        int seen = __atomic_load_n(&count->entered, __ATOMIC_SEQ_CST);
        CREW_MUST(seen >= round * crew->size, "left barrier %d when %d had entered", round, seen);
    }
    crew_leave(&end);
}

START_TEST(nobody_leaves_a_barrier_before_everybody_entered)
{
    char arg[128];
    struct shared_count *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(count, MAP_FAILED);
    memcpy(arg, &count, sizeof(count));
    snprintf(arg + sizeof(void *), sizeof(arg) - sizeof(void *), "%s", crew_job());
    struct crew crew = {.size = 5, .arg = arg};
    ck_assert_int_eq(crew_run(&crew, rank_at_a_barrier, 0), 0);
    munmap(count, 4096);
}
END_TEST

static void rank_with_another_size(const struct crew *crew, int rank)
{
    struct crew_end end;
    char in[16] = {0}, out[16 * CREW_MAX];
    crew_must_join(&end, crew, rank, crew->arg);
    quire_status_t st = boot_all_gather(end.boot, in, rank == 2 ? 16 : 8, out, deadline_in(20 * CLOCK_S));
    CREW_MUST(st == QUIRE_ERR_MISMATCH, "rank %d got %d", rank, (int)st);
    CREW_MUST(strstr(status_text_last(), "16 bytes") && strstr(status_text_last(), "8 bytes") &&
                  strstr(status_text_last(), "rank 2"),
              "text");
    crew_leave(&end);
}

START_TEST(different_sizes_are_a_mismatch_on_every_rank)
{
    struct crew crew = {.size = 5, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_with_another_size, 0), 0);
}
END_TEST

static void rank_with_another_call(const struct crew *crew, int rank)
{
    struct crew_end end;
    char in[8] = {0}, out[8 * CREW_MAX];
    crew_must_join(&end, crew, rank, crew->arg);
    quire_status_t st = rank == 1 ? boot_barrier(end.boot, deadline_in(20 * CLOCK_S))
                                  : boot_all_gather(end.boot, in, 8, out, deadline_in(20 * CLOCK_S));
    CREW_MUST(st == QUIRE_ERR_MISMATCH, "rank %d got %d", rank, (int)st);
    CREW_MUST(strstr(status_text_last(), "a barrier") && strstr(status_text_last(), "an all-gather"), "text");
    crew_leave(&end);
}

START_TEST(different_calls_are_a_mismatch_on_every_rank)
{
    struct crew crew = {.size = 4, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_with_another_call, 0), 0);
}
END_TEST

static void rank_that_waits_in_vain(const struct crew *crew, int rank)
{
    struct crew_end end;
    char byte = 1, out[CREW_MAX];
    crew_must_join(&end, crew, rank, crew->arg);
    if (rank == 3 || rank == 6) {
        crew_sleep_ms(1500); /* alive, elsewhere */
        crew_leave(&end);
        return;
    }
    quire_status_t st = boot_all_gather(end.boot, &byte, 1, out, deadline_in(500 * CLOCK_MS));
    CREW_MUST(st == QUIRE_ERR_TIMEOUT, "rank %d got %d", rank, (int)st);
    CREW_MUST(strstr(status_text_last(), "missing: 3, 6"), "list");
    crew_sleep_ms(300);
    crew_leave(&end);
}

START_TEST(those_who_did_not_come_are_listed_on_every_rank)
{
    struct crew crew = {.size = 8, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_that_waits_in_vain, 0), 0);
}
END_TEST

static void rank_that_left_too_soon(const struct crew *crew, int rank)
{
    struct crew_end end;
    crew_must_join(&end, crew, rank, crew->arg);
    if (rank != 1) {
        quire_status_t st = boot_barrier(end.boot, deadline_in(20 * CLOCK_S));
        CREW_MUST(st == QUIRE_ERR_PEER_FAILED && strstr(status_text_last(), "rank 1"), "rank %d got %d", rank, (int)st);
    }
    crew_leave(&end);
}

START_TEST(waiting_for_a_rank_that_has_left_ends_at_once)
{
    struct crew crew = {.size = 4, .arg = crew_job()};
    uint64_t start = clock_ns();
    ck_assert_int_eq(crew_run(&crew, rank_that_left_too_soon, 0), 0);
    ck_assert_uint_lt(clock_ns() - start, 5 * CLOCK_S);
}
END_TEST

static void *stop_soon(void *arg)
{
    crew_sleep_ms(100);
    struct cause cause = cause_make(QUIRE_ERR_ABORTED, 0, "enough");
    stop_fail(arg, &cause);
    return NULL;
}

static void rank_that_is_stopped(const struct crew *crew, int rank)
{
    struct crew_end end;
    pthread_t thread;
    crew_must_join(&end, crew, rank, crew->arg);
    if (rank == 0) {
        pthread_create(&thread, NULL, stop_soon, &end.stop);
        uint64_t start = clock_ns();
        CREW_MUST(boot_barrier(end.boot, DEADLINE_NEVER) == QUIRE_ERR_ABORTED, "barrier");
        CREW_MUST(clock_ns() - start < CLOCK_S, "late");
        pthread_join(thread, NULL);
    } else {
        int ms = crew_wait_fatal(&end.stop, 5000); /* told by rank 0's leaving */
        CREW_MUST(ms >= 0, "rank %d was not told", rank);
        CREW_MUST(end.stop.cause.status == QUIRE_ERR_PEER_FAILED && end.stop.cause.rank == 0 &&
                      strstr(end.stop.cause.text, "enough"),
                  "cause: %s", end.stop.cause.text);
    }
    crew_leave(&end);
}

START_TEST(a_local_abort_ends_the_wait_and_is_told_to_peers)
{
    struct crew crew = {.size = 3, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_that_is_stopped, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/collective");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, gathers_barriers_and_broadcasts_are_right_at_any_size, 1, 10);
    tcase_add_test(tc, nobody_leaves_a_barrier_before_everybody_entered);
    tcase_add_test(tc, different_sizes_are_a_mismatch_on_every_rank);
    tcase_add_test(tc, different_calls_are_a_mismatch_on_every_rank);
    tcase_add_test(tc, those_who_did_not_come_are_listed_on_every_rank);
    tcase_add_test(tc, waiting_for_a_rank_that_has_left_ends_at_once);
    tcase_add_test(tc, a_local_abort_ends_the_wait_and_is_told_to_peers);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
