/* SPDX-License-Identifier: BSD-3-Clause */
/* clock_test.c - deadlines: never, past, far; what poll(2) is given. No test waits for, or judges, a duration. */
#include "base/clock.h"
#include "base_test.h"

START_TEST(the_clock_does_not_go_back)
{
    uint64_t last = clock_ns();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = clock_ns();
        ck_assert_uint_ge(now, last);
        last = now;
    }
}
END_TEST

START_TEST(no_timeout_and_one_beyond_the_clock_never_pass)
{
    ck_assert_uint_eq(deadline_in(0), DEADLINE_NEVER);
    ck_assert_uint_eq(deadline_in(UINT64_MAX), DEADLINE_NEVER);
    ck_assert_uint_eq(deadline_in(UINT64_MAX - 1), DEADLINE_NEVER);
    ck_assert(!deadline_passed(DEADLINE_NEVER));
}
END_TEST

START_TEST(a_deadline_is_now_and_its_timeout)
{
    uint64_t before = clock_ns(), deadline = deadline_in(3600 * CLOCK_S), after = clock_ns();
    ck_assert_uint_ge(deadline, before + 3600 * CLOCK_S);
    ck_assert_uint_le(deadline, after + 3600 * CLOCK_S);
    ck_assert(!deadline_passed(deadline));
    ck_assert(deadline_passed(clock_ns()));
    ck_assert(deadline_passed(1));
}
END_TEST

START_TEST(poll_waits_at_most_its_cap_and_never_spins_before_the_deadline)
{
    ck_assert_int_eq(deadline_poll_ms(DEADLINE_NEVER, 250), 250);
    ck_assert_int_eq(deadline_poll_ms(clock_ns() + 3600 * CLOCK_S, 250), 250);
    ck_assert_int_eq(deadline_poll_ms(clock_ns() + 3600 * CLOCK_S, INT32_MAX), 3600 * 1000);
    ck_assert_int_eq(deadline_poll_ms(1, 250), 0);
    /* Less than a millisecond left must not become 0, which would not wait at all; unless it has passed meanwhile. */
    for (int i = 0; i < 1000; i++) {
        uint64_t deadline = clock_ns() + CLOCK_MS / 2;
        int ms = deadline_poll_ms(deadline, 250);
        ck_assert(ms == 1 || (ms == 0 && deadline_passed(deadline)));
    }
}
END_TEST

BASE_TEST_MAIN("clock", the_clock_does_not_go_back, no_timeout_and_one_beyond_the_clock_never_pass,
               a_deadline_is_now_and_its_timeout, poll_waits_at_most_its_cap_and_never_spins_before_the_deadline)
