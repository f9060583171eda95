/* SPDX-License-Identifier: BSD-3-Clause */
/* stop_test.c - exactly one first cause, refusals found once and forgotten later, the word moved into shared memory. */
#include <pthread.h>

#include "base/stop.h"
#include "base_test.h"

enum { THREADS = 8 };

static struct stop stop;
static int firsts; /* atomic */

static void *racer(void *arg)
{
    struct cause cause = cause_make(QUIRE_ERR_PEER_FAILED, (int)(intptr_t)arg, "rank %d", (int)(intptr_t)arg);
    if (stop_fail(&stop, &cause))
        atom_add(&firsts, 1);
    /* Whoever comes now sees a whole cause. */
    const struct cause *seen = stop_cause(&stop);
    char want[16];
    snprintf(want, sizeof(want), "rank %d", seen->rank);
    return strcmp(seen->text, want) == 0 ? NULL : (void *)1;
}

START_TEST(of_racing_causes_one_is_first_and_whole)
{
    for (int round = 0; round < 50; round++) {
        pthread_t threads[THREADS];
        void *bad;
        firsts = 0;
        stop_init(&stop);
        ck_assert_ptr_eq(stop_cause(&stop), NULL);
        ck_assert_int_eq(stop_status(&stop), QUIRE_OK);
        for (intptr_t t = 0; t < THREADS; t++)
            ck_assert_int_eq(pthread_create(&threads[t], NULL, racer, (void *)t), 0);
        for (int t = 0; t < THREADS; t++) {
            pthread_join(threads[t], &bad);
            ck_assert_ptr_eq(bad, NULL);
        }
        ck_assert_int_eq(firsts, 1);
        ck_assert_uint_eq(stop.later_causes, THREADS - 1);
        ck_assert_int_eq(stop_status(&stop), QUIRE_ERR_PEER_FAILED);
        ck_assert_str_eq(status_text_last(), stop_cause(&stop)->text);
        stop_destroy(&stop);
    }
}
END_TEST

static struct cause refusal(uint64_t sequence)
{
    struct cause cause = cause_make(QUIRE_ERR_INVALID_ARGUMENT, 1, "refused %llu", (unsigned long long)sequence);
    cause.sequence = sequence;
    return cause;
}

START_TEST(refusals_are_found_and_earlier_ones_dropped)
{
    struct cause out, five = refusal(5), seven = refusal(7), pair = refusal(STOP_PAIR_BIT | 99);
    stop_init(&stop);
    stop_refuse(&stop, &five);
    stop_refuse(&stop, &seven);
    stop_refuse(&stop, &pair);
    ck_assert_uint_eq(stop_seen(&stop), STOP_NOTICE);
    ck_assert(!stop_refused(&stop, 4, &out));
    ck_assert(stop_refused(&stop, 5, &out) && strcmp(out.text, "refused 5") == 0);
    ck_assert(!stop_refused(&stop, 6, &out)); /* drops 5 */
    ck_assert(!stop_refused(&stop, 5, &out));
    ck_assert(!stop_refused(&stop, STOP_PAIR_BIT | 98, &out)); /* has no order: drops nothing */
    ck_assert(stop_refused(&stop, 7, &out));
    ck_assert(stop_refused(&stop, STOP_PAIR_BIT | 99, &out) && !stop_refused(&stop, STOP_PAIR_BIT | 99, &out));
    ck_assert(!stop_refused(&stop, 8, &out));
    ck_assert_uint_eq(stop_seen(&stop), STOP_NONE);
    stop_destroy(&stop);
}
END_TEST

START_TEST(a_fatal_word_stays_and_moves)
{
    uint32_t place = 0;
    struct cause cause = cause_make(QUIRE_ERR_ABORTED, 0, "aborted"), five = refusal(5);
    stop_init(&stop);
    stop_fail(&stop, &cause);
    stop_place(&stop, &place);
    ck_assert_uint_eq(place, STOP_FATAL);
    stop_refuse(&stop, &five);
    ck_assert_uint_eq(stop_seen(&stop), STOP_FATAL);
    stop_place(&stop, &stop.own_word);
    ck_assert_uint_eq(stop_seen(&stop), STOP_FATAL);
    stop_destroy(&stop);
}
END_TEST

START_TEST(foreign_causes_are_checked)
{
    struct cause cause = cause_make(QUIRE_ERR_TIMEOUT, 1, "late");
    ck_assert(cause_valid(&cause));
    cause.status = 7;
    ck_assert(!cause_valid(&cause));
    cause.status = QUIRE_OK;
    ck_assert(!cause_valid(&cause));
    cause.status = QUIRE_ERR_TIMEOUT;
    memset(cause.text, 'x', sizeof(cause.text));
    ck_assert(!cause_valid(&cause));
}
END_TEST

BASE_TEST_MAIN("stop", of_racing_causes_one_is_first_and_whole, refusals_are_found_and_earlier_ones_dropped,
               a_fatal_word_stays_and_moves, foreign_causes_are_checked)
