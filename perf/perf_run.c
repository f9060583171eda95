/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_run.c - the sweep, once per rank. An error of the library ends the process at once with its text, so that the
 * other ranks see a failed peer and a script sees a status.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

enum { ALIGNMENT = 4096 };

struct rank_run {
    const struct perf_test *test;
    const struct perf_options *options;
    const quire_unique_id *id; /* NULL: from the launch environment */
    int rank, size;
    pthread_t thread;
    /* of the running rank */
    quire_comm *comm;
    uint8_t *send, *recv;
    void *handles[2];
    struct perf_report report; /* rank 0 */
    uint64_t wrong;
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void need(const struct rank_run *run, quire_status_t st, const char *what)
{
    if (st == QUIRE_OK)
        return;
    fflush(stdout);
    fprintf(stderr, "%s: rank %d: %s: %s: %s\n", run->test->binary, run->rank, what, quire_status_name(st),
            quire_last_error(run->comm));
    exit(PERF_EXIT_LIBRARY);
}

static void *need_memory(const struct rank_run *run, void *memory, size_t bytes)
{
    if (memory == NULL) {
        fprintf(stderr, "%s: rank %d: no memory for %zu bytes\n", run->test->binary, run->rank, bytes);
        exit(PERF_EXIT_INTERNAL);
    }
    return memory;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static void run_calls(struct rank_run *run, const struct perf_call *call, int iterations)
{
    int aggregate = run->options->aggregate;
    for (int i = 0; i < iterations; i++) {
        if (aggregate > 1)
            need(run, quire_group_start(), "group");
        for (int m = 0; m < aggregate; m++)
            need(run, run->test->call(call), run->test->name);
        if (aggregate > 1)
            need(run, quire_group_end(), "group");
        if (run->options->blocking == 1)
            need(run, quire_barrier(run->comm, NULL), "barrier");
    }
}

/* The time of one operation over ranks, by -a. */
static double combined(struct rank_run *run, double own)
{
    static const quire_op_t ops[] = {QUIRE_SUM, QUIRE_AVG, QUIRE_MIN, QUIRE_MAX};
    double value = run->options->average == 0 && run->rank != 0 ? 0 : own;
    need(run, quire_all_reduce(&value, &value, 1, QUIRE_FLOAT64, ops[run->options->average], run->comm, NULL),
         "combining times");
    return value;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Operations one by one, each behind a barrier: the slowest rank of each counts. */
static void measure_latency(struct rank_run *run, const struct perf_call *call, struct perf_half *half)
{
    int n = run->options->iterations;
    double *times = need_memory(run, malloc((size_t)n * sizeof(*times)), (size_t)n * sizeof(*times));
    for (int i = 0; i < n; i++) {
        need(run, quire_barrier(run->comm, NULL), "barrier");
        double start = now_us();
        need(run, run->test->call(call), run->test->name);
        times[i] = now_us() - start;
    }
    need(run, quire_all_reduce(times, times, (size_t)n, QUIRE_FLOAT64, QUIRE_MAX, run->comm, NULL), "combining times");
    qsort(times, (size_t)n, sizeof(*times), compare_doubles);
    half->p50_us = times[n / 2];
    half->p99_us = times[(int)((double)n * 0.99)];
    free(times);
}

static int64_t check(struct rank_run *run, const struct perf_values *values, struct perf_call *call, bool in_place)
{
    int64_t wrong = 0;
    size_t bytes = call->count * values->elem;
    bool reads = call->count > 0;
    for (int i = 0; i < run->options->check && wrong == 0; i++) {
        perf_values_fill(values, run->send, call->count);
        memset(run->recv, 0xee, bytes);
        if (in_place)
            perf_values_fill(values, run->recv, call->count);
        need(run, run->test->call(call), run->test->name);
        if (reads)
            wrong = (int64_t)perf_values_wrong(values, call->recv, call->count);
        need(run, quire_all_reduce(&wrong, &wrong, 1, QUIRE_INT64, QUIRE_SUM, run->comm, NULL), "combining verdicts");
    }
    return wrong;
}

static void measure(struct rank_run *run, const struct perf_values *values, struct perf_call *call, bool in_place,
                    struct perf_half *half)
{
    const struct perf_options *o = run->options;
    size_t bytes = call->count * values->elem;
    memset(half, 0, sizeof(*half));
    call->send = in_place ? run->recv : run->send;
    call->recv = run->recv;
    perf_values_fill(values, run->send, call->count);
    perf_values_fill(values, run->recv, call->count);
    run_calls(run, call, o->warmups);
    need(run, quire_barrier(run->comm, NULL), "barrier");
    double start = now_us();
    run_calls(run, call, o->iterations);
    half->time_us = combined(run, (now_us() - start) / ((double)o->iterations * o->aggregate));
    half->algbw = half->time_us > 0 ? (double)bytes / half->time_us / 1e3 : 0;
    half->busbw = half->algbw * run->test->factor(run->size);
    if (o->latency)
        measure_latency(run, call, half);
    bool checked = o->check > 0 && (!in_place || run->test->checks_in_place);
    half->wrong = checked ? check(run, values, call, in_place) : -1;
    if (half->wrong > 0)
        run->wrong += (uint64_t)half->wrong;
}

/* ---- the sweep --------------------------------------------------------------------------------------------------- */

static void one_size(struct rank_run *run, size_t bytes, quire_type_t type, quire_op_t op, int root)
{
    struct perf_call call = {NULL,      NULL,     bytes / quire_type_size(type), type, op, root, run->rank,
                             run->size, run->comm};
    struct perf_values values = {0};
    if (!perf_values_make(&values, run->test, &call))
        need_memory(run, NULL, bytes);
    struct perf_row row = {.bytes = call.count * values.elem,
                           .count = call.count,
                           .type = quire_type_name(type),
                           .op = run->test->has_op ? quire_op_name(op) : "none",
                           .root = run->test->has_root ? root : -1};
    measure(run, &values, &call, false, &row.out);
    measure(run, &values, &call, true, &row.in);
    if (run->rank == 0)
        perf_print_row(&run->report, &row);
    perf_values_free(&values);
}

static size_t next_size(const struct perf_options *o, size_t bytes)
{
    if (o->step_factor <= 0)
        return bytes + o->step_bytes;
    size_t next = (size_t)((double)bytes * o->step_factor);
    return next > bytes ? next : bytes + 1;
}

static void sweep(struct rank_run *run)
{
    const struct perf_options *o = run->options;
    int types[2] = {o->type == PERF_ALL ? 0 : o->type, o->type == PERF_ALL ? QUIRE_TYPE_COUNT - 1 : o->type};
    int ops[2] = {o->op == PERF_ALL ? 0 : o->op, o->op == PERF_ALL ? QUIRE_OP_COUNT - 1 : o->op};
    int roots[2] = {o->root == PERF_ALL ? 0 : o->root, o->root == PERF_ALL ? run->size - 1 : o->root};
    if (!run->test->has_op)
        ops[0] = ops[1] = QUIRE_SUM;
    if (!run->test->has_root)
        roots[0] = roots[1] = 0;
    for (int type = types[0]; type <= types[1]; type++)
        for (int op = ops[0]; op <= ops[1]; op++)
            for (int root = roots[0]; root <= roots[1]; root++)
                for (size_t bytes = o->min_bytes; bytes <= o->max_bytes; bytes = next_size(o, bytes))
                    one_size(run, bytes, (quire_type_t)type, (quire_op_t)op, root);
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

static void make_buffers(struct rank_run *run)
{
    size_t bytes = run->options->max_bytes + ALIGNMENT;
    uint8_t **buffers[2] = {&run->send, &run->recv};
    for (int i = 0; i < 2; i++) {
        void *memory = NULL;
        if (run->options->registered) {
            need(run, quire_mem_alloc(&memory, bytes), "quire_mem_alloc");
            need(run, quire_comm_register(run->comm, memory, bytes, &run->handles[i]), "register");
        } else if (posix_memalign(&memory, ALIGNMENT, bytes) != 0) {
            memory = NULL;
        }
        *buffers[i] = need_memory(run, memory, bytes);
        memset(*buffers[i], 0, bytes);
    }
}

static void free_buffers(struct rank_run *run)
{
    uint8_t *buffers[2] = {run->send, run->recv};
    for (int i = 0; i < 2; i++) {
        if (run->options->registered) {
            need(run, quire_comm_deregister(run->comm, run->handles[i]), "deregister");
            need(run, quire_mem_free(buffers[i]), "quire_mem_free");
        } else {
            free(buffers[i]);
        }
    }
}

static void introduce(struct rank_run *run)
{
    struct perf_place *places = need_memory(run, calloc((size_t)run->size, sizeof(*places)), sizeof(*places));
    places[run->rank].rank = run->rank;
    places[run->rank].pid = (int)getpid();
    if (gethostname(places[run->rank].host, sizeof(places[0].host) - 1) != 0)
        places[run->rank].host[0] = '?';
    for (int r = 0; r < run->size; r++)
        need(run, quire_broadcast(&places[r], &places[r], sizeof(*places), QUIRE_UINT8, r, run->comm, NULL),
             "introductions");
    if (run->rank == 0)
        perf_print_start(&run->report, places, run->size);
    free(places);
}

static void *rank_main(void *arg)
{
    struct rank_run *run = arg;
    const struct perf_options *o = run->options;
    if (run->id == NULL)
        need(run, quire_comm_init_env(&run->comm, NULL), "init");
    else
        need(run, quire_comm_init_rank(&run->comm, run->size, run->id, run->rank, NULL), "init");
    need(run, quire_comm_rank(run->comm, &run->rank), "rank");
    need(run, quire_comm_size(run->comm, &run->size), "size");
    run->report = (struct perf_report){.test = run->test, .options = o};
    if (run->rank == 0 && o->json != NULL && (run->report.json = fopen(o->json, "w")) == NULL) {
        perror(o->json);
        exit(PERF_EXIT_INTERNAL);
    }
    if (run->test->has_root && o->root >= run->size) {
        fprintf(stderr, "%s: root %d, but there are %d ranks\n", run->test->binary, o->root, run->size);
        exit(PERF_EXIT_USAGE);
    }
    make_buffers(run);
    introduce(run);
    sweep(run);
    if (run->rank == 0)
        perf_print_end(&run->report);
    if (run->report.json != NULL)
        fclose(run->report.json);
    free_buffers(run);
    need(run, quire_barrier(run->comm, NULL), "barrier");
    need(run, quire_comm_destroy(run->comm), "destroy");
    return NULL;
}

/* Threads under a launcher: the processes first meet in a communicator of their own, which carries the id for all. */
static void share_id(struct rank_run *first, quire_unique_id *id, const quire_launch *launch)
{
    if (launch->rank <= 0)
        need(first, quire_get_unique_id(id), "id");
    if (launch->rank < 0)
        return;
    need(first, quire_comm_init_env(&first->comm, NULL), "init");
    need(first, quire_broadcast(id, id, sizeof(*id), QUIRE_UINT8, 0, first->comm, NULL), "id");
    need(first, quire_comm_destroy(first->comm), "destroy");
    first->comm = NULL;
}

int perf_main(const struct perf_test *test, int argc, char **argv)
{
    struct perf_options options;
    quire_launch launch;
    quire_unique_id id;
    int status = perf_parse(&options, test, argc, argv);
    if (status != 0)
        return status < 0 ? 0 : status;
    struct rank_run *runs = calloc((size_t)options.threads, sizeof(*runs));
    if (runs == NULL)
        return PERF_EXIT_INTERNAL;
    for (int t = 0; t < options.threads; t++) {
        runs[t].test = test;
        runs[t].options = &options;
    }
    need(&runs[0], quire_launch_info(&launch), "launcher");
    if (options.threads == 1) {
        rank_main(&runs[0]);
    } else {
        int processes = launch.rank < 0 ? 1 : launch.size, first = launch.rank < 0 ? 0 : launch.rank * options.threads;
        share_id(&runs[0], &id, &launch);
        for (int t = 0; t < options.threads; t++) {
            runs[t].id = &id;
            runs[t].rank = first + t;
            runs[t].size = processes * options.threads;
            if (pthread_create(&runs[t].thread, NULL, rank_main, &runs[t]) != 0) {
                fprintf(stderr, "%s: can't start thread %d\n", test->binary, t);
                exit(PERF_EXIT_INTERNAL);
            }
        }
        for (int t = 0; t < options.threads; t++)
            pthread_join(runs[t].thread, NULL);
    }
    bool wrong = runs[0].wrong != 0;
    free(runs);
    return wrong ? PERF_EXIT_WRONG : PERF_EXIT_OK;
}
