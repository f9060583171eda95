/* SPDX-License-Identifier: BSD-3-Clause */
/* board_test.c - ranks ask each other what they are doing. */
#include <check.h>

#include "crew.h"

static struct op_name name_of(int rank, uint64_t sequence)
{
    return (struct op_name){.sequence = sequence,
                            .count = 1000 + sequence + (uint64_t)rank,
                            .epoch = 3,
                            .root = 1,
                            .plan_id = 0xabcdef01,
                            .collective = 2,
                            .type = 7,
                            .op = 1,
                            .flags = OP_NAME_REFUSED};
}

static void rank_with_a_board(const struct crew *crew, int rank)
{
    static struct board_page page;
    struct crew_end end;
    uint64_t deadline = deadline_in(20 * CLOCK_S), posted = 0;
    enum board_answer answer;
    struct op_name name;
    crew_must_join(&end, crew, rank, crew->arg);
    for (uint64_t i = 1; i <= 100 + (uint64_t)rank; i++) {
        struct op_name mine = name_of(rank, i);
        board_post(&page, &mine);
    }
    if (rank != 2) /* rank 2 has none */
        boot_set_board(end.boot, &page);
    CREW_MUST(boot_barrier(end.boot, deadline) == QUIRE_OK, "barrier");
    for (int of = 0; of < crew->size; of++) {
        uint64_t last = 100 + (uint64_t)of;
        memset(&name, 0xee, sizeof(name));
        quire_status_t st = boot_ask_board(end.boot, of, last, &answer, &name, &posted, deadline);
        CREW_MUST(st == QUIRE_OK, "ask rank %d: %d", of, (int)st);
        if (of == 2) {
            CREW_MUST(answer == BOARD_BEHIND && posted == 0, "no board: answer %d", (int)answer);
            continue;
        }
        struct op_name expect = name_of(of, last);
        CREW_MUST(answer == BOARD_FOUND && posted == last && op_name_equal(&name, &expect), "answer %d", (int)answer);
        st = boot_ask_board(end.boot, of, last + 1, &answer, &name, &posted, deadline);
        CREW_MUST(st == QUIRE_OK && answer == BOARD_BEHIND && posted == last, "behind: %d", (int)answer);
        st = boot_ask_board(end.boot, of, 5, &answer, &name, &posted, deadline);
        CREW_MUST(st == QUIRE_OK && answer == BOARD_GONE, "gone: %d", (int)answer);
    }
    CREW_MUST(boot_barrier(end.boot, deadline) == QUIRE_OK, "barrier");
    boot_set_board(end.boot, NULL);
    crew_leave(&end);
}

START_TEST(a_rank_says_what_it_posted_and_when_it_is_behind_or_past)
{
    struct crew crew = {.size = 5, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_with_a_board, 0), 0);
}
END_TEST

static void rank_that_sleeps(const struct crew *crew, int rank)
{
    struct crew_end end;
    enum board_answer answer = (enum board_answer)99;
    struct op_name name;
    uint64_t posted;
    crew_must_join(&end, crew, rank, crew->arg);
    int pids[2] = {(int)getpid(), 0}, all[4];
    CREW_MUST(boot_all_gather(end.boot, pids, sizeof(pids), all, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "gather");
    if (rank == 1) {
        crew_sleep_ms(400);
        crew_leave(&end);
        return;
    }
    kill(all[2], SIGSTOP);
    crew_sleep_ms(20);
    quire_status_t st = boot_ask_board(end.boot, 1, 1, &answer, &name, &posted, deadline_in(100 * CLOCK_MS));
    kill(all[2], SIGCONT);
    CREW_MUST(st == QUIRE_ERR_TIMEOUT && answer == (enum board_answer)99, "got %d", (int)st);
    st = boot_ask_board(end.boot, 1, 1, &answer, &name, &posted, deadline_in(20 * CLOCK_S));
    CREW_MUST(st == QUIRE_OK && answer == BOARD_BEHIND, "after it went on: %d", (int)st);
    while (!boot_departed(end.boot, 1))
        crew_sleep_ms(1);
    st = boot_ask_board(end.boot, 1, 1, &answer, &name, &posted, deadline_in(20 * CLOCK_S));
    CREW_MUST(st == QUIRE_ERR_LINK, "after it left: %d", (int)st);
    crew_leave(&end);
}

START_TEST(a_frozen_rank_is_a_timeout_and_one_that_left_a_link_error)
{
    struct crew crew = {.size = 2, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_that_sleeps, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/board");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_rank_says_what_it_posted_and_when_it_is_behind_or_past);
    tcase_add_test(tc, a_frozen_rank_is_a_timeout_and_one_that_left_a_link_error);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
