/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * churn_test.c - making and ending communicators again and again leaves nothing behind; strangers don't disturb;
 * several communicators, threads and streams work side by side; what fork leaves in the child is dead.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/knobs.h"
#include "scenario.h"

enum { MIB = 1 << 20 };

static int rounds_wanted(void)
{
    return harness_tsan() ? 50 : getenv("TESTS_LONG") != NULL ? 5000 : 1000;
}

struct churn {
    struct scenario s;
    quire_unique_id *ids; /* shared: one per round, made by rank 0 */
    uint32_t *ready;      /* shared: ids made so far */
    int rounds;
};

static int churn_rank(int rank, int size, void *arg)
{
    struct churn *c = arg;
    int descriptors = 0, threads = 0, shm = 0;
    size_t resident = 0;
    for (int i = 0; i < c->rounds; i++) {
        quire_comm *comm;
        int32_t in = rank + i, out = 0;
        if (rank == 0) {
            RANK_OK(quire_get_unique_id(&c->ids[i]));
            __atomic_store_n(c->ready, (uint32_t)i + 1, __ATOMIC_RELEASE);
        }
        while (__atomic_load_n(c->ready, __ATOMIC_ACQUIRE) <= (uint32_t)i)
            usleep(50);
        RANK_OK(quire_comm_init_rank(&comm, size, &c->ids[i], rank, NULL));
        RANK_OK(quire_all_reduce(&in, &out, 1, QUIRE_INT32, QUIRE_SUM, comm, NULL));
        RANK_TRUE(out == size * (size - 1) / 2 + size * i);
        RANK_OK(quire_comm_destroy(comm));
        if (i == c->rounds / 10) {
            descriptors = harness_descriptors();
            threads = harness_thread_count();
            shm = harness_shm_entries();
            resident = harness_resident_bytes();
        }
    }
    /* What the last round closes may still be on its way out in the service thread. */
    for (int wait = 0; wait < 200 && harness_descriptors() > descriptors; wait++)
        usleep(10000);
    if (harness_descriptors() > descriptors + 2 || harness_thread_count() > threads)
        fprintf(stderr, "rank %d: descriptors %d -> %d, threads %d -> %d\n", rank, descriptors, harness_descriptors(),
                threads, harness_thread_count());
    RANK_TRUE(harness_descriptors() <= descriptors + 2);
    RANK_TRUE(harness_thread_count() <= threads);
    RANK_TRUE(harness_shm_entries() <= shm);
    if (!harness_sanitized() && harness_resident_bytes() > resident + 4 * MIB)
        fprintf(stderr, "rank %d: resident %zu -> %zu\n", rank, resident, harness_resident_bytes());
    RANK_TRUE(harness_sanitized() || harness_resident_bytes() <= resident + 4 * MIB);
    return 0;
}

START_TEST(rounds_of_init_use_destroy_leave_nothing)
{
    struct churn c = {.rounds = rounds_wanted()};
    c.ids = mmap_shared((size_t)c.rounds * sizeof(*c.ids));
    c.ready = mmap_shared(4096);
    ck_assert_int_eq(harness_fork(4, churn_rank, &c, 240, -1), 0);
}
END_TEST

/* ---- strangers --------------------------------------------------------------------------------------------------- */

struct address {
    char where[64];
    int port;
};

/* Talks nonsense, or nothing, to the meeting place, while the ranks come. */
static void *stranger_main(void *arg)
{
    const struct address *a = arg;
    int open[32];
    for (int i = 0; i < 32; i++) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)a->port)};
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        open[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(open[i], (struct sockaddr *)&to, sizeof(to)) == 0 && i % 2 == 0)
            (void)!send(open[i], "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 26, MSG_NOSIGNAL);
        usleep(2000);
    }
    usleep(200000);
    for (int i = 0; i < 32; i++)
        close(open[i]);
    return NULL;
}

static int stranger_rank(int rank, int size, void *arg)
{
    const struct address *a = ((const struct scenario *)arg)->arg;
    quire_comm *comm;
    pthread_t stranger;
    char text[16];
    float in = 1, out = 0;
    if (rank == 0)
        RANK_TRUE(pthread_create(&stranger, NULL, stranger_main, (void *)(uintptr_t)a) == 0);
    usleep((useconds_t)rank * 30000);
    snprintf(text, sizeof(text), "%d", rank);
    setenv("QUIRE_RANK", text, 1);
    snprintf(text, sizeof(text), "%d", size);
    setenv("QUIRE_SIZE", text, 1);
    setenv("QUIRE_ROOT", a->where, 1);
    uint64_t start = harness_now_ns();
    RANK_OK(quire_comm_init_env(&comm, NULL));
    RANK_TRUE(harness_now_ns() - start < UINT64_C(5000000000));
    RANK_OK(quire_all_reduce(&in, &out, 1, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL));
    RANK_TRUE(out == (float)size);
    if (rank == 0)
        pthread_join(stranger, NULL);
    RANK_OK(quire_comm_destroy(comm));
    return 0;
}

START_TEST(strangers_at_the_meeting_place_change_nothing)
{
    struct address a;
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t length = sizeof(at);
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert(bind(probe, (struct sockaddr *)&at, sizeof(at)) == 0);
    ck_assert(getsockname(probe, (struct sockaddr *)&at, &length) == 0);
    close(probe);
    a.port = ntohs(at.sin_port);
    snprintf(a.where, sizeof(a.where), "127.0.0.1:%d", a.port);
    struct scenario s = {.arg = &a};
    ck_assert_int_eq(harness_fork(4, stranger_rank, &s, 30, -1), 0);
}
END_TEST

/* ---- one process ------------------------------------------------------------------------------------------------- */

START_TEST(one_thread_drives_all_ranks_through_a_group)
{
    enum { N = 5 };
    quire_comm *comms[N];
    int32_t in[N][3], out[N][3];
    ck_assert_int_eq(quire_comm_init_all(comms, N, NULL), QUIRE_OK);
    for (int round = 0; round < 20; round++) {
        ck_assert_int_eq(quire_group_start(), QUIRE_OK);
        for (int r = N - 1; r >= 0; r--) {
            for (int i = 0; i < 3; i++)
                in[r][i] = r * 10 + i + round;
            ck_assert_int_eq(quire_all_reduce(in[r], out[r], 3, QUIRE_INT32, QUIRE_MAX, comms[r], NULL), QUIRE_OK);
            ck_assert_int_eq(quire_barrier(comms[r], NULL), QUIRE_OK);
        }
        ck_assert_int_eq(quire_group_end(), QUIRE_OK);
        for (int r = 0; r < N; r++)
            ck_assert_int_eq(out[r][2], (N - 1) * 10 + 2 + round);
    }
    for (int r = 0; r < N; r++)
        ck_assert_int_eq(quire_comm_destroy(comms[r]), QUIRE_OK);
}
END_TEST

/* Two communicators used in opposite order by queued work on two streams can't deadlock. */
static int streams_rank(int rank, int size, void *arg)
{
    const struct scenario *both = arg;
    quire_comm *a, *b;
    quire_stream *one, *two;
    quire_event *event;
    static __thread float in[3000], sum[3000], max[3000], again[3000];
    RANK_OK(scenario_join(&both[0], rank, size, &a));
    RANK_OK(scenario_join(&both[1], rank, size, &b));
    RANK_OK(quire_stream_create(&one));
    RANK_OK(quire_stream_create(&two));
    RANK_OK(quire_event_create(&event));
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < 3000; i++)
            in[i] = (float)(rank + i + round);
        if (rank % 2 == 0) {
            RANK_OK(quire_all_reduce(in, sum, 3000, QUIRE_FLOAT32, QUIRE_SUM, a, one));
            RANK_OK(quire_all_reduce(in, max, 3000, QUIRE_FLOAT32, QUIRE_MAX, b, two));
        } else {
            RANK_OK(quire_all_reduce(in, max, 3000, QUIRE_FLOAT32, QUIRE_MAX, b, two));
            RANK_OK(quire_all_reduce(in, sum, 3000, QUIRE_FLOAT32, QUIRE_SUM, a, one));
        }
        /* `two` goes on from what `one` has made. */
        RANK_OK(quire_event_record(event, one));
        RANK_OK(quire_stream_wait_event(two, event));
        RANK_OK(quire_all_reduce(sum, again, 3000, QUIRE_FLOAT32, QUIRE_SUM, b, two));
        RANK_OK(quire_stream_synchronize(two));
        RANK_OK(quire_event_synchronize(event));
        for (int i = 0; i < 3000; i++) {
            float expect = (float)(size * (size - 1) / 2 + size * (i + round));
            RANK_TRUE(sum[i] == expect && again[i] == expect * (float)size && max[i] == (float)(size - 1 + i + round));
        }
        /* A blocking call behind queued work keeps the order. */
        RANK_OK(quire_all_reduce(in, sum, 3000, QUIRE_FLOAT32, QUIRE_MIN, a, one));
        RANK_OK(quire_all_reduce(sum, max, 3000, QUIRE_FLOAT32, QUIRE_SUM, a, NULL));
        RANK_TRUE(max[7] == (float)(size * (7 + round)));
    }
    RANK_OK(quire_event_destroy(event));
    RANK_OK(quire_stream_destroy(one));
    RANK_OK(quire_stream_destroy(two));
    RANK_OK(quire_comm_destroy(b));
    RANK_OK(quire_comm_destroy(a));
    return 0;
}

START_TEST(streams_of_two_communicators_run_in_any_order)
{
    struct scenario both[2];
    for (int i = 0; i < 2; i++)
        scenario_begin(&both[i]);
    ck_assert_int_eq(harness_threads(3, streams_rank, both, 60), 0);
    for (int i = 0; i < 2; i++)
        scenario_begin(&both[i]);
    ck_assert_int_eq(harness_fork(2, streams_rank, both, 60, -1), 0);
}
END_TEST

/* ---- handles ----------------------------------------------------------------------------------------------------- */

START_TEST(non_blocking_init_is_polled)
{
    quire_config config = QUIRE_CONFIG_INITIALIZER;
    quire_comm *comms[2];
    quire_unique_id id;
    quire_status_t st = QUIRE_IN_PROGRESS;
    float in = 2, out[2];
    config.blocking = 0;
    ck_assert_int_eq(quire_get_unique_id(&id), QUIRE_OK);
    for (int r = 0; r < 2; r++)
        ck_assert_int_eq(quire_comm_init_rank(&comms[r], 2, &id, r, &config), QUIRE_IN_PROGRESS);
    for (int r = 0; r < 2; r++)
        for (st = QUIRE_IN_PROGRESS; st == QUIRE_IN_PROGRESS; usleep(500))
            ck_assert_int_eq(quire_comm_async_error(comms[r], &st), QUIRE_OK);
    ck_assert_int_eq(st, QUIRE_OK);
    ck_assert_int_eq(quire_group_start(), QUIRE_OK);
    for (int r = 0; r < 2; r++)
        ck_assert_int_eq(quire_all_reduce(&in, &out[r], 1, QUIRE_FLOAT32, QUIRE_PROD, comms[r], NULL), QUIRE_OK);
    ck_assert_int_eq(quire_group_end(), QUIRE_OK);
    ck_assert(out[0] == 4 && out[1] == 4);
    for (int r = 0; r < 2; r++)
        ck_assert_int_eq(quire_comm_destroy(comms[r]), QUIRE_OK);
}
END_TEST

START_TEST(destroying_a_communicator_that_is_still_being_made_ends_at_once)
{
    quire_config config = QUIRE_CONFIG_INITIALIZER;
    quire_comm *comm;
    quire_unique_id id;
    config.blocking = 0;
    ck_assert_int_eq(quire_get_unique_id(&id), QUIRE_OK);
    ck_assert_int_eq(quire_comm_init_rank(&comm, 2, &id, 0, &config), QUIRE_IN_PROGRESS);
    ck_assert_int_eq(quire_barrier(comm, NULL), QUIRE_ERR_INVALID_USAGE);
    uint64_t start = harness_now_ns();
    (void)quire_comm_destroy(comm);
    ck_assert(harness_now_ns() - start < UINT64_C(2000000000));
}
END_TEST

START_TEST(a_forked_child_can_use_nothing_of_the_parents)
{
    quire_unique_id id;
    quire_comm *comm;
    float in = 1, out;
    int status;
    ck_assert_int_eq(quire_get_unique_id(&id), QUIRE_OK);
    ck_assert_int_eq(quire_comm_init_rank(&comm, 1, &id, 0, NULL), QUIRE_OK);
    pid_t child = fork();
    if (child == 0) {
        int bad = quire_all_reduce(&in, &out, 1, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL) != QUIRE_ERR_INVALID_USAGE;
        bad |= strstr(quire_last_error(NULL), "fork") == NULL;
        bad |= quire_comm_destroy(comm) != QUIRE_OK;
        /* A communicator of its own works. */
        bad |= quire_get_unique_id(&id) != QUIRE_OK || quire_comm_init_rank(&comm, 1, &id, 0, NULL) != QUIRE_OK;
        bad |= quire_all_reduce(&in, &out, 1, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL) != QUIRE_OK || out != 1;
        _exit(bad);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(quire_all_reduce(&in, &out, 1, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL), QUIRE_OK);
    ck_assert_int_eq(quire_comm_destroy(comm), QUIRE_OK);
}
END_TEST

static void *inside_main(void *comm)
{
    return (void *)(intptr_t)quire_barrier(comm, NULL);
}

START_TEST(a_second_thread_in_a_communicator_is_refused)
{
    quire_comm *comms[2];
    pthread_t first;
    void *result;
    ck_assert_int_eq(quire_comm_init_all(comms, 2, NULL), QUIRE_OK);
    ck_assert_int_eq(pthread_create(&first, NULL, inside_main, comms[0]), 0);
    usleep(50000); /* it waits inside for rank 1 */
    ck_assert_int_eq(quire_barrier(comms[0], NULL), QUIRE_ERR_INVALID_USAGE);
    ck_assert_int_eq(quire_barrier(comms[1], NULL), QUIRE_OK);
    pthread_join(first, &result);
    ck_assert_int_eq((int)(intptr_t)result, QUIRE_OK);
    for (int r = 0; r < 2; r++)
        ck_assert_int_eq(quire_comm_destroy(comms[r]), QUIRE_OK);
}
END_TEST

/* A knob that is a fact and differs between ranks is an error that names it and the rank. */
static int knob_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    if (rank == 2)
        setenv("QUIRE_SLOT_BYTES", "128K", 1);
    knobs_reload(); /* the test process has read them before it forked */
    RANK_TRUE(scenario_join(s, rank, size, &comm) == QUIRE_ERR_MISMATCH);
    RANK_TRUE(strstr(quire_last_error(NULL), "QUIRE_SLOT_BYTES") != NULL);
    RANK_TRUE(strstr(quire_last_error(NULL), "rank 2") != NULL);
    return 0;
}

START_TEST(a_knob_that_differs_is_named_on_every_rank)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(3, knob_rank, &s, 30, -1), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("churn");
    TCase *tcase = tcase_create("churn");
    tcase_set_timeout(tcase, 260);
    tcase_add_test(tcase, rounds_of_init_use_destroy_leave_nothing);
    tcase_add_test(tcase, strangers_at_the_meeting_place_change_nothing);
    tcase_add_test(tcase, one_thread_drives_all_ranks_through_a_group);
    tcase_add_test(tcase, streams_of_two_communicators_run_in_any_order);
    tcase_add_test(tcase, non_blocking_init_is_polled);
    tcase_add_test(tcase, destroying_a_communicator_that_is_still_being_made_ends_at_once);
    if (!harness_tsan())
        tcase_add_test(tcase, a_forked_child_can_use_nothing_of_the_parents);
    tcase_add_test(tcase, a_second_thread_in_a_communicator_is_refused);
    tcase_add_test(tcase, a_knob_that_differs_is_named_on_every_rank);
    suite_add_tcase(suite, tcase);
    return scenario_main(suite);
}
