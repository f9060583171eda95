/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream_test.c - streams and events: order, events across streams, errors kept until asked for, the worker's coming
 * and going, bad handles. Ranks are two communicators of this process, so that work can be held back at will.
 */
#include <pthread.h>
#include <unistd.h>

#include "../base/base_test.h"
#include "harness/harness.h"
#include "quire.h"

static quire_comm *comms[2];

static void start(void)
{
    ck_assert_int_eq(quire_comm_init_all(comms, 2, NULL), QUIRE_OK);
}

static void finish(void)
{
    for (int r = 0; r < 2; r++)
        ck_assert_int_eq(quire_comm_destroy(comms[r]), QUIRE_OK);
}

START_TEST(queued_work_waits_for_its_partner_and_query_tells)
{
    quire_stream *a, *b;
    int32_t in[2] = {5, 6}, out[2] = {0, 0};
    start();
    ck_assert_int_eq(quire_stream_create(&a), QUIRE_OK);
    ck_assert_int_eq(quire_stream_create(&b), QUIRE_OK);
    ck_assert_int_eq(quire_stream_query(a), QUIRE_OK);
    ck_assert_int_eq(quire_all_reduce(&in[0], &out[0], 1, QUIRE_INT32, QUIRE_SUM, comms[0], a), QUIRE_OK);
    usleep(20000);
    ck_assert_int_eq(quire_stream_query(a), QUIRE_IN_PROGRESS);
    ck_assert_int_eq(out[0], 0);
    ck_assert_int_eq(quire_all_reduce(&in[1], &out[1], 1, QUIRE_INT32, QUIRE_SUM, comms[1], b), QUIRE_OK);
    ck_assert_int_eq(quire_stream_synchronize(a), QUIRE_OK);
    ck_assert_int_eq(quire_stream_synchronize(b), QUIRE_OK);
    ck_assert(out[0] == 11 && out[1] == 11);
    ck_assert_int_eq(quire_stream_destroy(a), QUIRE_OK);
    ck_assert_int_eq(quire_stream_destroy(b), QUIRE_OK);
    finish();
}
END_TEST

START_TEST(events_order_streams_and_an_unrecorded_one_holds_nobody)
{
    quire_stream *a, *b;
    quire_event *event, *never;
    int32_t in[2] = {1, 2}, out[4] = {0};
    start();
    ck_assert_int_eq(quire_stream_create(&a), QUIRE_OK);
    ck_assert_int_eq(quire_stream_create(&b), QUIRE_OK);
    ck_assert_int_eq(quire_event_create(&event), QUIRE_OK);
    ck_assert_int_eq(quire_event_create(&never), QUIRE_OK);
    ck_assert_int_eq(quire_event_query(never), QUIRE_OK);
    ck_assert_int_eq(quire_stream_wait_event(b, never), QUIRE_OK);
    ck_assert_int_eq(quire_stream_synchronize(b), QUIRE_OK);
    ck_assert_int_eq(quire_all_reduce(&in[0], &out[0], 1, QUIRE_INT32, QUIRE_SUM, comms[0], a), QUIRE_OK);
    ck_assert_int_eq(quire_event_record(event, a), QUIRE_OK);
    ck_assert_int_eq(quire_event_query(event), QUIRE_IN_PROGRESS);
    ck_assert_int_eq(quire_stream_wait_event(b, event), QUIRE_OK);
    ck_assert_int_eq(quire_event_destroy(event), QUIRE_OK); /* the queue still holds it */
    usleep(10000);
    ck_assert_int_eq(quire_stream_query(b), QUIRE_IN_PROGRESS);
    ck_assert_int_eq(quire_all_reduce(&in[1], &out[1], 1, QUIRE_INT32, QUIRE_SUM, comms[1], NULL), QUIRE_OK);
    ck_assert_int_eq(quire_stream_synchronize(b), QUIRE_OK);
    ck_assert(out[0] == 3 && out[1] == 3);
    ck_assert_int_eq(quire_event_destroy(never), QUIRE_OK);
    ck_assert_int_eq(quire_stream_destroy(b), QUIRE_OK);
    ck_assert_int_eq(quire_stream_destroy(a), QUIRE_OK);
    finish();
}
END_TEST

START_TEST(an_error_is_kept_for_the_next_synchronize)
{
    quire_stream *a;
    int32_t in = 1, out;
    start();
    ck_assert_int_eq(quire_stream_create(&a), QUIRE_OK);
    ck_assert_int_eq(quire_all_reduce(&in, &out, 1, QUIRE_INT32, QUIRE_SUM, comms[0], a), QUIRE_OK);
    ck_assert_int_eq(quire_all_reduce(&in, &out, 1, QUIRE_INT32, QUIRE_SUM, comms[0], a), QUIRE_OK);
    ck_assert_int_eq(quire_comm_abort(comms[0]), QUIRE_OK);
    ck_assert_int_eq(quire_stream_synchronize(a), QUIRE_ERR_ABORTED);
    ck_assert(strstr(quire_last_error(NULL), "aborted") != NULL);
    ck_assert_int_eq(quire_stream_synchronize(a), QUIRE_OK);
    ck_assert_int_eq(quire_stream_destroy(a), QUIRE_OK);
    for (int r = 0; r < 2; r++)
        (void)quire_comm_destroy(comms[r]);
}
END_TEST

START_TEST(groups_on_streams_start_together)
{
    quire_stream *streams[2];
    int32_t in[2][3] = {{1, 2, 3}, {10, 20, 30}}, out[2][3] = {{0}, {0}};
    start();
    for (int r = 0; r < 2; r++)
        ck_assert_int_eq(quire_stream_create(&streams[r]), QUIRE_OK);
    for (int round = 0; round < 50; round++) {
        ck_assert_int_eq(quire_group_start(), QUIRE_OK);
        for (int r = 0; r < 2; r++) {
            ck_assert_int_eq(quire_send(in[r], 3, QUIRE_INT32, 1 - r, comms[r], streams[r]), QUIRE_OK);
            ck_assert_int_eq(quire_recv(out[r], 3, QUIRE_INT32, 1 - r, comms[r], streams[r]), QUIRE_OK);
        }
        ck_assert_int_eq(quire_group_end(), QUIRE_OK);
        for (int r = 0; r < 2; r++)
            ck_assert_int_eq(quire_stream_synchronize(streams[r]), QUIRE_OK);
        ck_assert(memcmp(out[0], in[1], sizeof(in[1])) == 0 && memcmp(out[1], in[0], sizeof(in[0])) == 0);
        memset(out, 0, sizeof(out));
    }
    for (int r = 0; r < 2; r++)
        ck_assert_int_eq(quire_stream_destroy(streams[r]), QUIRE_OK);
    finish();
}
END_TEST

static void *churn(void *arg)
{
    for (int i = 0; i < 200; i++) {
        quire_stream *s;
        if (quire_stream_create(&s) != QUIRE_OK || quire_stream_destroy(s) != QUIRE_OK)
            return (void *)1;
    }
    return NULL;
}

START_TEST(the_worker_comes_and_goes_with_the_streams)
{
    pthread_t threads[4];
    void *bad;
    int before = harness_thread_count();
    for (int t = 0; t < 4; t++)
        pthread_create(&threads[t], NULL, churn, NULL);
    for (int t = 0; t < 4; t++) {
        pthread_join(threads[t], &bad);
        ck_assert_ptr_eq(bad, NULL);
    }
    for (int i = 0; i < 100 && harness_thread_count() > before; i++)
        usleep(1000);
    if (!harness_tsan()) /* which starts a thread of its own with the first of ours */
        ck_assert_int_eq(harness_thread_count(), before);
    ck_assert_int_eq(quire_stream_destroy(NULL), QUIRE_OK);
    ck_assert_int_eq(quire_stream_synchronize(NULL), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(quire_event_record(NULL, NULL), QUIRE_ERR_INVALID_ARGUMENT);
}
END_TEST

BASE_TEST_MAIN("stream", queued_work_waits_for_its_partner_and_query_tells,
               events_order_streams_and_an_unrecorded_one_holds_nobody, an_error_is_kept_for_the_next_synchronize,
               groups_on_streams_start_together, the_worker_comes_and_goes_with_the_streams)
