/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_run_test.c - the body of the perf binaries around a call that misbehaves: each fault is found, said and
 * returned, on several ranks as threads. And the barrier of --latency, the percentiles, the busbw formula.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/base_test.h"
#include "harness/harness.h"

#include "../../perf/perf_barrier.c"
#include "../../perf/perf_options.c"
#include "../../perf/perf_run.c"
#include "../../perf/perf_table.c"
#include "../../perf/perf_values.c"

static char out[1 << 18];

static quire_status_t good(const struct perf_call *c)
{
    return quire_all_reduce(c->send, c->recv, c->count, c->type, c->op, c->comm, c->stream);
}

static quire_status_t one_bit(const struct perf_call *c)
{
    quire_status_t st = good(c);
    if (c->rank == 1 && c->count > 100)
        ((uint8_t *)c->recv)[c->count * quire_type_size(c->type) - 1] ^= 1;
    return st;
}

static quire_status_t own_verdict_lost(const struct perf_call *c)
{
    /* Wrong on every rank but the one that prints. */
    quire_status_t st = good(c);
    if (c->rank != 0)
        memset(c->recv, 0, c->count * quire_type_size(c->type));
    return st;
}

static quire_status_t last_rank_left_out(const struct perf_call *c)
{
    static const uint8_t zeros[4096];
    return quire_all_reduce(c->rank == c->size - 1 && c->send != c->recv ? zeros : c->send, c->recv, c->count, c->type,
                            c->op, c->comm, c->stream);
}

static quire_status_t writes_its_input(const struct perf_call *c)
{
    quire_status_t st = good(c);
    if (c->send != c->recv)
        ((uint8_t *)c->send)[0] ^= 1;
    return st;
}

static quire_status_t does_nothing(const struct perf_call *c)
{
    return QUIRE_OK;
}

static quire_status_t fails(const struct perf_call *c)
{
    return c->rank == 1 ? quire_all_reduce(c->send, c->recv, c->count, (quire_type_t)77, c->op, c->comm, NULL)
                        : good(c);
}

static double twice(int ranks)
{
    return 2.0 * (ranks - 1) / ranks;
}

/* perf_main in a process of its own; its output into `out`, its status returned. */
static int run(quire_status_t (*call)(const struct perf_call *), const char *line)
{
    struct perf_test test = {.name = "Test",
                             .binary = "test_perf",
                             .collective = QUIRE_ALL_REDUCE,
                             .has_op = true,
                             .checks_in_place = true,
                             .factor = twice,
                             .call = call};
    char copy[512], *argv[64] = {(char *)"test_perf"};
    int argc = 1, pipes[2], status;
    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    ck_assert_int_eq(pipe(pipes), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(pipes[1], 1);
        dup2(pipes[1], 2);
        close(pipes[0]);
        close(pipes[1]);
        status = perf_main(&test, argc, argv);
        fflush(NULL);
        _exit(status);
    }
    close(pipes[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(pipes[0], out + used, sizeof(out) - 1 - used)) > 0;)
        used += (size_t)n;
    out[used] = '\0';
    close(pipes[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + status;
}

START_TEST(a_good_call_passes)
{
    ck_assert_msg(run(good, "-t 3 -b 4 -e 4K -f 2 -n 3 -d all -o all") == 0, "%.1500s", out);
    ck_assert(strstr(out, "# Out of bounds values : 0 OK") != NULL);
    ck_assert_msg(run(good, "-t 10 -b 1K -e 1K -n 1 -d half -p 1 -y 0 -m 2 -u 1") == 0, "%.1500s", out);
    ck_assert_msg(run(good, "-t 1 -b 4 -e 64 -f 2 -n 3 -z 2 --latency") == 0, "%.1500s", out);
}
END_TEST

START_TEST(faults_are_found_and_returned)
{
    ck_assert_int_eq(run(one_bit, "-t 3 -b 8 -e 4K -f 8 -n 2"), PERF_EXIT_WRONG);
    ck_assert_msg(strstr(out, " FAILED") && strstr(out, "rank 1: "), "%.1500s", out);
    ck_assert_int_eq(run(own_verdict_lost, "-t 2 -b 1K -e 1K -n 2"), PERF_EXIT_WRONG);
    ck_assert_msg(strstr(out, " FAILED") && strstr(out, "rank 1: ") && !strstr(out, "rank 0: "), "%.1500s", out);
    ck_assert_int_eq(run(writes_its_input, "-t 2 -b 64 -e 64 -n 1"), PERF_EXIT_WRONG);
    ck_assert_int_eq(run(does_nothing, "-t 2 -b 64 -e 64 -n 1"), PERF_EXIT_WRONG);
    /* A rank left out shows for every type of float, with more ranks than the smallest ones count to. */
    for (int type = QUIRE_FLOAT16; type < QUIRE_TYPE_COUNT; type++) {
        char line[128];
        snprintf(line, sizeof(line), "-t 10 -b 2K -e 2K -n 1 -w 0 -d %s", quire_type_name((quire_type_t)type));
        ck_assert_msg(run(last_rank_left_out, line) == PERF_EXIT_WRONG, "%s: %.1500s", line, out);
    }
    /* Unless nobody looks. */
    ck_assert_int_eq(run(one_bit, "-t 3 -b 4K -e 4K -n 2 -c 0"), 0);
    ck_assert(strstr(out, "N/A") != NULL);
}
END_TEST

START_TEST(an_error_of_the_library_ends_it_at_once)
{
    uint64_t start = harness_now_ns();
    ck_assert_int_eq(run(fails, "-t 3 -b 8 -e 8 -n 2"), PERF_EXIT_LIBRARY);
    /* Rank 1 says so itself, or a rank of the same process that heard of its refusal is quicker. */
    ck_assert_msg((strstr(out, "rank 1: ") || strstr(out, "rank 1 refused")) && strstr(out, "INVALID_ARGUMENT"),
                  "%.1500s", out);
    ck_assert(harness_now_ns() - start < UINT64_C(30000000000));
}
END_TEST

START_TEST(bandwidths_follow_the_formula)
{
    char path[] = "/tmp/quire-perf-XXXXXX", line[256], text[1 << 14];
    int fd = mkstemp(path);
    snprintf(line, sizeof(line), "-t 3 -b 1M -e 1M -n 3 --json %s", path);
    ck_assert_int_eq(run(good, line), 0);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    close(fd);
    unlink(path);
    double time, algbw, busbw;
    const char *half = strstr(text, "\"out_of_place\": ");
    ck_assert_ptr_ne(half, NULL);
    ck_assert_int_eq(
        sscanf(half, "\"out_of_place\": {\"time\": %lf, \"alg_bw\": %lf, \"bus_bw\": %lf", &time, &algbw, &busbw), 3);
    /* Printed with four decimals. */
    ck_assert_double_eq_tol(algbw, 1048572 / time / 1e3, 1e-3 + algbw * 1e-3);
    ck_assert_double_eq_tol(busbw, algbw * 4 / 3, 1e-3 + algbw * 1e-3);
}
END_TEST

START_TEST(percentiles_are_of_the_nearest_rank)
{
    double v[200];
    for (int i = 0; i < 200; i++)
        v[i] = i + 1;
    ck_assert(perf_percentile(v, 1, 50) == 1 && perf_percentile(v, 1, 99) == 1);
    ck_assert(perf_percentile(v, 100, 50) == 50 && perf_percentile(v, 100, 99) == 99);
    ck_assert(perf_percentile(v, 200, 99) == 198 && perf_percentile(v, 3, 50) == 2 && perf_percentile(v, 20, 99) == 20);
}
END_TEST

/* ---- the barrier ------------------------------------------------------------------------------------------------- */

static int enter_and_leave(int rank, int size, void *arg)
{
    int *entered = arg; /* shared; rounds of it */
    quire_comm *comm;
    struct perf_barrier *barrier = NULL;
    quire_config config = QUIRE_CONFIG_INITIALIZER;
    config.timeout_ms = 20000;
    RANK_OK(quire_comm_init_env(&comm, &config));
    RANK_OK(perf_barrier_open(&barrier, comm, rank));
    RANK_TRUE(barrier != NULL);
    for (int i = 0; i < 2000; i++) {
        __atomic_add_fetch(&entered[i], 1, __ATOMIC_RELAXED);
        RANK_OK(perf_barrier_wait(barrier, comm, size));
        RANK_TRUE(__atomic_load_n(&entered[i], __ATOMIC_RELAXED) == size);
    }
    perf_barrier_close(barrier);
    RANK_OK(perf_barrier_wait(NULL, comm, size));
    return quire_comm_destroy(comm) != QUIRE_OK;
}

static int wait_for_the_dead(int rank, int size, void *arg)
{
    quire_comm *comm;
    struct perf_barrier *barrier = NULL;
    RANK_OK(quire_comm_init_env(&comm, NULL));
    RANK_OK(perf_barrier_open(&barrier, comm, rank));
    if (rank == 1)
        kill(getpid(), SIGKILL);
    RANK_TRUE(perf_barrier_wait(barrier, comm, size) == QUIRE_ERR_PEER_FAILED);
    perf_barrier_close(barrier);
    quire_comm_destroy(comm);
    return 0;
}

struct in_environment {
    harness_rank run;
    void *arg;
};

static int with_environment(int rank, int size, void *arg)
{
    const struct in_environment *in = arg;
    char text[16];
    snprintf(text, sizeof(text), "%d", rank);
    setenv("QUIRE_RANK", text, 1);
    setenv("QUIRE_LOCAL_RANK", text, 1);
    snprintf(text, sizeof(text), "%d", size);
    setenv("QUIRE_SIZE", text, 1);
    setenv("QUIRE_LOCAL_SIZE", text, 1);
    return in->run(rank, size, in->arg);
}

static void name_the_job(void)
{
    char job[64];
    snprintf(job, sizeof(job), "perf-test-%d-%llx", (int)getpid(), (unsigned long long)harness_now_ns());
    setenv("QUIRE_JOB", job, 1);
}

START_TEST(nobody_leaves_the_barrier_before_all_are_there)
{
    int *entered = mmap(NULL, 2000 * sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct in_environment in = {enter_and_leave, entered};
    ck_assert(entered != MAP_FAILED);
    name_the_job();
    ck_assert_int_eq(harness_fork(3, with_environment, &in, 40, -1), 0);
    munmap(entered, 2000 * sizeof(int));
}
END_TEST

START_TEST(the_barrier_does_not_wait_for_the_dead)
{
    struct in_environment in = {wait_for_the_dead, NULL};
    name_the_job();
    ck_assert_int_eq(harness_fork(3, with_environment, &in, 40, 1), 0);
}
END_TEST

BASE_TEST_MAIN("perf_run", a_good_call_passes, faults_are_found_and_returned, an_error_of_the_library_ends_it_at_once,
               bandwidths_follow_the_formula, percentiles_are_of_the_nearest_rank,
               nobody_leaves_the_barrier_before_all_are_there, the_barrier_does_not_wait_for_the_dead)
