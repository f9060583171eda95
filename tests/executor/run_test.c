/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_test.c - runs over the lane to oneself, with hooks of the test's own: passes and slices, order by `after`, the
 * stop word, refusals, the deadline, stale and foreign slots. No communicator, no boot.
 */
#include "../base/base_test.h"
#include "algorithms.h"
#include "base/clock.h"
#include "base/status.h"
#include "executor/executor.h"

enum { SLOT = 4096, ELEMS = 5000 };

static struct lane_set *set;
static struct transport_env env;
static struct transport_end *end;
static struct stop stop;
static struct exec_comm comm;
static struct exec_binding send_binding, recv_binding;
static struct plan *plans[2];
static int slow_calls, mismatches;

static quire_status_t on_slow(void *ctx, struct exec_run *run)
{
    slow_calls++;
    return QUIRE_OK;
}

static quire_status_t on_timeout(void *ctx, struct exec_run *run, uint64_t waited_ns)
{
    uint64_t mask[1] = {0};
    ck_assert_int_eq(exec_missing(run, mask), 1);
    ck_assert_uint_eq(mask[0], 1);
    return quire_fail(QUIRE_ERR_TIMEOUT, "waited %llu ms", (unsigned long long)(waited_ns / CLOCK_MS));
}

static quire_status_t on_mismatch(void *ctx, struct exec_run *run, int peer, const struct op_name *theirs)
{
    mismatches++;
    return quire_fail(QUIRE_ERR_MISMATCH, "theirs has %llu", (unsigned long long)theirs->count);
}

static void bind_plan(int which, uint8_t collective, size_t count, struct exec_binding *binding)
{
    struct plan_shape shape = {collective, ALGORITHM_PAIR, 1, 0};
    ck_assert_int_eq(algorithm_emit(&shape, 0, &plans[which]), QUIRE_OK);
    struct plan_layout layout = plan_layout_even(count, 4, 1);
    exec_binding_make(binding, plans[which], &layout, QUIRE_INT32, QUIRE_SUM, &set->geometry);
}

static void start(size_t count)
{
    struct lane_geometry g = {2, SLOT, 1};
    uint8_t blob[TRANSPORT_BLOB_BYTES] = {0};
    stop_init(&stop);
    ck_assert_int_eq(lane_set_create(&set, 0, 1, &g), QUIRE_OK);
    env = (struct transport_env){.lanes = set, .stop = &stop};
    ck_assert_int_eq(transport_self.open(&end, &env, blob), QUIRE_OK);
    ck_assert_int_eq(transport_self.attach(end, 0, DEADLINE_NEVER), QUIRE_OK);
    comm = (struct exec_comm){.lanes = set,
                              .stop = &stop,
                              .spin = 10,
                              .sleep_after_ns = CLOCK_MS,
                              .slow_after_ns = CLOCK_MS,
                              .on_slow = on_slow,
                              .on_timeout = on_timeout,
                              .on_mismatch = on_mismatch};
    slow_calls = mismatches = 0;
    bind_plan(0, QUIRE_SEND, count, &send_binding);
    bind_plan(1, QUIRE_RECV, count, &recv_binding);
}

static void finish(void)
{
    plan_free(plans[0]);
    plan_free(plans[1]);
    transport_self.close(end);
    lane_set_destroy(set);
    stop_destroy(&stop);
}

static struct op_name message(uint64_t sequence, uint64_t count)
{
    return (struct op_name){.sequence = sequence, .count = count, .collective = QUIRE_SEND};
}

START_TEST(a_long_message_goes_in_slices_whoever_is_listed_first)
{
    for (int order = 0; order < 2; order++) {
        static int32_t in[ELEMS], out[ELEMS];
        struct exec_run a, b, *runs[2] = {order ? &a : &b, order ? &b : &a};
        struct op_name name = message(1, ELEMS);
        start(ELEMS);
        ck_assert_uint_eq(send_binding.passes, (ELEMS * 4 + SLOT - 1) / SLOT);
        for (int i = 0; i < ELEMS; i++)
            in[i] = i * 3 + order, out[i] = -1;
        exec_bind(&a, &comm, &send_binding, &name, in, NULL, NULL);
        exec_bind(&b, &comm, &recv_binding, &name, NULL, out, NULL);
        ck_assert_int_eq(exec_wait(runs, 2), QUIRE_OK);
        ck_assert(memcmp(in, out, sizeof(in)) == 0);
        finish();
    }
}
END_TEST

START_TEST(a_run_waits_for_the_one_it_comes_after)
{
    int32_t in[2] = {1, 2}, out[2] = {0, 0};
    struct exec_run r[4], *runs[4] = {&r[3], &r[2], &r[1], &r[0]};
    start(1);
    for (int i = 0; i < 2; i++) {
        struct op_name name = message((uint64_t)i + 1, 1);
        exec_bind(&r[i], &comm, &send_binding, &name, &in[i], NULL, NULL);
        exec_bind(&r[2 + i], &comm, &recv_binding, &name, NULL, &out[i], NULL);
    }
    r[1].after = &r[0];
    r[3].after = &r[2];
    ck_assert_int_eq(exec_wait(runs, 4), QUIRE_OK);
    ck_assert(out[0] == 1 && out[1] == 2);
    finish();
}
END_TEST

START_TEST(deadline_stop_word_and_refusal_end_a_wait)
{
    int32_t out;
    struct exec_run run, *runs[1] = {&run};
    struct op_name name = message(1, 1);
    start(1);
    comm.timeout_ns = 30 * CLOCK_MS;
    exec_bind(&run, &comm, &recv_binding, &name, NULL, &out, NULL);
    ck_assert_int_eq(exec_wait(runs, 1), QUIRE_ERR_TIMEOUT);
    ck_assert(strstr(status_text_last(), "waited 3") != NULL);
    ck_assert_int_gt(slow_calls, 1);
    struct cause refusal = cause_make(QUIRE_ERR_INVALID_ARGUMENT, 0, "refused by rank 0");
    refusal.sequence = STOP_PAIR_BIT | 5;
    stop_refuse(&stop, &refusal);
    exec_bind(&run, &comm, &recv_binding, &name, NULL, &out, NULL);
    run.refusal = STOP_PAIR_BIT | 5;
    ck_assert_int_eq(exec_wait(runs, 1), QUIRE_ERR_INVALID_ARGUMENT);
    struct cause cause = cause_make(QUIRE_ERR_PEER_FAILED, 3, "rank 3 is gone");
    stop_fail(&stop, &cause);
    exec_bind(&run, &comm, &recv_binding, &name, NULL, &out, NULL);
    ck_assert_int_eq(exec_wait(runs, 1), QUIRE_ERR_PEER_FAILED);
    ck_assert_str_eq(status_text_last(), "rank 3 is gone");
    ck_assert_str_eq(run.error, "rank 3 is gone");
    finish();
}
END_TEST

START_TEST(stale_slots_are_skipped_and_foreign_ones_are_a_mismatch)
{
    int32_t in = 1, out = 0;
    struct exec_run a, b, *one[1] = {&a}, *two[1] = {&b};
    start(1);
    for (uint64_t n = 1; n <= 2; n++) { /* messages that nobody wants any more */
        struct op_name old = message(n, 1);
        exec_bind(&a, &comm, &send_binding, &old, &in, NULL, NULL);
        ck_assert_int_eq(exec_wait(one, 1), QUIRE_OK);
    }
    struct op_name now = message(3, 1), other = message(4, 7);
    struct exec_run *both[2] = {&a, &b};
    in = 42;
    exec_bind(&a, &comm, &send_binding, &now, &in, NULL, NULL); /* the lane is full of stale slots */
    exec_bind(&b, &comm, &recv_binding, &now, NULL, &out, NULL);
    ck_assert_int_eq(exec_wait(both, 2), QUIRE_OK);
    ck_assert_int_eq(out, 42);
    exec_bind(&a, &comm, &send_binding, &other, &in, NULL, NULL);
    ck_assert_int_eq(exec_wait(one, 1), QUIRE_OK);
    now = message(4, 1);
    exec_bind(&b, &comm, &recv_binding, &now, NULL, &out, NULL);
    ck_assert_int_eq(exec_wait(two, 1), QUIRE_ERR_MISMATCH);
    ck_assert_str_eq(status_text_last(), "theirs has 7");
    ck_assert_int_eq(mismatches, 1);
    finish();
}
END_TEST

BASE_TEST_MAIN("run", a_long_message_goes_in_slices_whoever_is_listed_first, a_run_waits_for_the_one_it_comes_after,
               deadline_stop_word_and_refusal_end_a_wait, stale_slots_are_skipped_and_foreign_ones_are_a_mismatch)
