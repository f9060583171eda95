/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_run.c - the sweep, once per rank. An error of the library ends the process at once with its text (other threads
 * may be inside a call, so nothing is cleaned up), the other ranks see a failed peer, and a script sees a status.
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
    const quire_unique_id *id; /* NULL: from the launch environment, or comm is made already */
    int rank, size;
    pthread_t thread;
    /* of the running rank */
    quire_comm *comm;
    quire_stream *stream;
    struct perf_barrier *barrier;
    uint8_t *memory[2], *send, *recv;
    void *handles[2];
    size_t max_bytes;          /* after the cut to what memory allows */
    struct perf_report report; /* rank 0 */
    uint64_t wrong;            /* over all ranks, as the library brought it together */
    uint64_t own_wrong;        /* this rank's, whatever the library says */
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Ends the process: exit() would run what other threads still use. */
static void leave(int status) __attribute__((noreturn));
static void leave(int status)
{
    fflush(stdout);
    fflush(stderr);
    _exit(status);
}

static void need(const struct rank_run *run, quire_status_t st, const char *what)
{
    if (st == QUIRE_OK)
        return;
    fprintf(stderr, "%s: rank %d: %s: %s: %s\n", run->test->binary, run->rank, what, quire_status_name(st),
            quire_last_error(run->comm));
    leave(PERF_EXIT_LIBRARY);
}

static void *need_memory(const struct rank_run *run, void *memory, size_t bytes)
{
    if (memory == NULL) {
        fprintf(stderr, "%s: rank %d: no memory for %zu bytes\n", run->test->binary, run->rank, bytes);
        leave(PERF_EXIT_INTERNAL);
    }
    return memory;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static void complete(struct rank_run *run)
{
    if (run->stream != NULL)
        need(run, quire_stream_synchronize(run->stream), run->test->name);
}

static void run_calls(struct rank_run *run, const struct perf_call *call, int iterations)
{
    int aggregate = run->options->aggregate, blocking = run->options->blocking;
    for (int i = 0; i < iterations; i++) {
        if (aggregate > 1)
            need(run, quire_group_start(), "group");
        for (int m = 0; m < aggregate; m++)
            need(run, run->test->call(call), run->test->name);
        if (aggregate > 1)
            need(run, quire_group_end(), "group");
        if (blocking == 1 || blocking == 2)
            complete(run);
        if (blocking == 1)
            need(run, quire_barrier(run->comm, NULL), "barrier");
    }
    complete(run);
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

double perf_percentile(const double *sorted, int n, int percent)
{
    int at = (int)(((int64_t)n * percent + 99) / 100) - 1; /* nearest rank */
    return sorted[at < 0 ? 0 : at];
}

/* Operations one by one, each behind a barrier: the slowest rank of each counts. */
static void measure_latency(struct rank_run *run, const struct perf_call *call, struct perf_half *half)
{
    int n = run->options->iterations, warm = n / 5 + 1;
    double *times = need_memory(run, malloc((size_t)n * sizeof(*times)), (size_t)n * sizeof(*times));
    for (int i = -warm; i < n; i++) {
        need(run, perf_barrier_wait(run->barrier, run->comm, run->size), "barrier");
        double start = now_us();
        need(run, run->test->call(call), run->test->name);
        complete(run);
        if (i >= 0)
            times[i] = now_us() - start;
    }
    need(run, quire_all_reduce(times, times, (size_t)n, QUIRE_FLOAT64, QUIRE_MAX, run->comm, NULL), "combining times");
    qsort(times, (size_t)n, sizeof(*times), compare_doubles);
    half->p50_us = perf_percentile(times, n, 50);
    half->p99_us = perf_percentile(times, n, 99);
    free(times);
}

static int64_t check(struct rank_run *run, const struct perf_values *values, struct perf_call *call, bool in_place)
{
    int64_t wrong = 0;
    for (int i = 0; i < run->options->check && wrong == 0; i++) {
        perf_values_fill(values, run->send, call->count);
        memset(run->recv, 0xee, call->count * values->elem);
        if (in_place)
            perf_values_fill(values, run->recv, call->count);
        need(run, run->test->call(call), run->test->name);
        complete(run);
        wrong = (int64_t)(perf_values_wrong(values, run->recv, call->count) +
                          perf_values_changed(values, run->send, call->count));
        run->own_wrong += (uint64_t)wrong;
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
    struct perf_call call = {.count = bytes / quire_type_size(type),
                             .type = type,
                             .op = op,
                             .root = root,
                             .rank = run->rank,
                             .size = run->size,
                             .comm = run->comm,
                             .stream = run->stream};
    struct perf_values values = {0};
    if (!perf_values_make(&values, run->test, &call))
        need_memory(run, NULL, bytes);
    run->send = run->memory[0] + (size_t)run->options->unalign * values.elem;
    run->recv = run->memory[1] + (size_t)run->options->unalign * values.elem;
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
                for (size_t bytes = o->min_bytes; bytes <= run->max_bytes;
                     bytes = perf_next_size(o, bytes, quire_type_size((quire_type_t)type)))
                    one_size(run, bytes, (quire_type_t)type, (quire_op_t)op, root);
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

/* Bytes that this host can still give; SIZE_MAX when it doesn't say. */
static size_t available_memory(void)
{
    char line[256];
    unsigned long long kib;
    size_t bytes = SIZE_MAX;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            bytes = (size_t)kib * 1024;
    if (f != NULL)
        fclose(f);
    return bytes;
}

/* The largest size for which two buffers of each rank of this host fit into four fifths of its memory: the same on all
 * ranks. Better a shorter sweep than a killed one. */
static void cut_to_memory(struct rank_run *run, int local_ranks)
{
    size_t memory = available_memory();
    uint64_t fits = memory == SIZE_MAX ? UINT64_MAX : memory / 5 * 4 / (2 * (size_t)local_ranks);
    need(run, quire_all_reduce(&fits, &fits, 1, QUIRE_UINT64, QUIRE_MIN, run->comm, NULL), "comparing memory");
    run->max_bytes = run->options->max_bytes <= fits ? run->options->max_bytes : (size_t)fits;
    if (run->max_bytes < run->options->min_bytes) {
        if (run->rank == 0)
            fprintf(stderr, "%s: -b %zu is more than fits: with %d ranks on a host, %zu bytes\n", run->test->binary,
                    run->options->min_bytes, local_ranks, run->max_bytes);
        leave(PERF_EXIT_INTERNAL);
    }
}

static void make_buffers(struct rank_run *run)
{
    size_t bytes = run->max_bytes + (size_t)run->options->unalign * 8 + ALIGNMENT;
    for (int i = 0; i < 2; i++) {
        void *memory = NULL;
        if (run->options->registered) {
            need(run, quire_mem_alloc(&memory, bytes), "quire_mem_alloc");
            need(run, quire_comm_register(run->comm, memory, bytes, &run->handles[i]), "register");
        } else if (posix_memalign(&memory, ALIGNMENT, bytes) != 0) {
            memory = NULL;
        }
        run->memory[i] = need_memory(run, memory, bytes);
        memset(run->memory[i], 0, bytes); /* pages come now, not in the timed loop */
    }
}

static void free_buffers(struct rank_run *run)
{
    for (int i = 0; i < 2; i++) {
        if (run->options->registered) {
            need(run, quire_comm_deregister(run->comm, run->handles[i]), "deregister");
            need(run, quire_mem_free(run->memory[i]), "quire_mem_free");
        } else {
            free(run->memory[i]);
        }
    }
}

/* All ranks hear where the others are; rank 0 prints it. */
static void introduce(struct rank_run *run)
{
    size_t bytes = (size_t)run->size * sizeof(struct perf_place);
    struct perf_place *places = need_memory(run, calloc(1, bytes), bytes), *own = &places[run->rank];
    int local_ranks = 0;
    own->rank = run->rank;
    own->pid = (int)getpid();
    if (gethostname(own->host, sizeof(own->host) - 1) != 0)
        own->host[0] = '?';
    for (int r = 0; r < run->size; r++) {
        need(run, quire_broadcast(&places[r], &places[r], sizeof(*places), QUIRE_UINT8, r, run->comm, NULL),
             "introductions");
        local_ranks += strncmp(places[r].host, own->host, sizeof(own->host)) == 0;
    }
    cut_to_memory(run, local_ranks);
    run->report = (struct perf_report){.test = run->test, .options = run->options, .max_bytes = run->max_bytes};
    if (run->rank == 0 && run->options->json != NULL && (run->report.json = fopen(run->options->json, "w")) == NULL) {
        perror(run->options->json);
        leave(PERF_EXIT_INTERNAL);
    }
    if (run->rank == 0)
        perf_print_start(&run->report, places, run->size);
    free(places);
}

static quire_config config_of(const struct perf_options *o)
{
    quire_config config = QUIRE_CONFIG_INITIALIZER;
    if (o->timeout_s >= 0)
        config.timeout_ms = config.init_timeout_ms = o->timeout_s * 1000;
    return config;
}

static void *rank_main(void *arg)
{
    struct rank_run *run = arg;
    const struct perf_options *o = run->options;
    quire_config config = config_of(o);
    if (run->comm == NULL && run->id == NULL)
        need(run, quire_comm_init_env(&run->comm, &config), "init");
    else if (run->comm == NULL)
        need(run, quire_comm_init_rank(&run->comm, run->size, run->id, run->rank, &config), "init");
    need(run, quire_comm_rank(run->comm, &run->rank), "rank");
    need(run, quire_comm_size(run->comm, &run->size), "size");
    if (run->test->has_root && o->root >= run->size) {
        if (run->rank == 0)
            fprintf(stderr, "%s: root %d, but there are %d ranks\n", run->test->binary, o->root, run->size);
        leave(PERF_EXIT_USAGE);
    }
    if (!o->stream_null)
        need(run, quire_stream_create(&run->stream), "stream");
    introduce(run);
    make_buffers(run);
    if (o->latency)
        need(run, perf_barrier_open(&run->barrier, run->comm, run->rank), "barrier");
    for (int cycle = 0; o->cycles == 0 || cycle < o->cycles; cycle++)
        sweep(run);
    if (run->rank == 0)
        perf_print_end(&run->report);
    if (run->own_wrong > 0)
        fprintf(stderr, "%s: rank %d: %llu wrong elements\n", run->test->binary, run->rank,
                (unsigned long long)run->own_wrong);
    if (run->report.json != NULL && fclose(run->report.json) != 0) {
        perror(o->json);
        leave(PERF_EXIT_INTERNAL);
    }
    perf_barrier_close(run->barrier);
    need(run, quire_barrier(run->comm, NULL), "barrier");
    free_buffers(run);
    need(run, quire_stream_destroy(run->stream), "stream");
    need(run, quire_comm_destroy(run->comm), "destroy");
    return NULL;
}

/* Threads under a launcher: the processes first meet in a communicator of their own, which carries the id for all. */
static void share_id(struct rank_run *first, quire_unique_id *id, const quire_launch *launch)
{
    quire_config config = config_of(first->options);
    if (launch->rank <= 0)
        need(first, quire_get_unique_id(id), "id");
    if (launch->rank < 0)
        return;
    need(first, quire_comm_init_env(&first->comm, &config), "init");
    need(first, quire_broadcast(id, id, sizeof(*id), QUIRE_UINT8, 0, first->comm, NULL), "id");
    need(first, quire_comm_destroy(first->comm), "destroy");
    first->comm = NULL;
}

static void make_all(struct rank_run *runs, int threads)
{
    quire_config config = config_of(runs[0].options);
    quire_comm **comms = need_memory(&runs[0], calloc((size_t)threads, sizeof(quire_comm *)), (size_t)threads);
    need(&runs[0], quire_comm_init_all(comms, threads, &config), "init");
    for (int t = 0; t < threads; t++)
        runs[t].comm = comms[t];
    free(comms);
}

static void run_threads(struct rank_run *runs, const quire_launch *launch)
{
    quire_unique_id id;
    const struct perf_options *o = runs[0].options;
    int processes = launch->rank < 0 ? 1 : launch->size, first = launch->rank < 0 ? 0 : launch->rank * o->threads;
    bool all = launch->rank < 0 && !o->parallel_init;
    if (all)
        make_all(runs, o->threads);
    else
        share_id(&runs[0], &id, launch);
    for (int t = 0; t < o->threads; t++) {
        runs[t].id = all ? NULL : &id;
        runs[t].rank = first + t;
        runs[t].size = processes * o->threads;
        if (pthread_create(&runs[t].thread, NULL, rank_main, &runs[t]) != 0) {
            fprintf(stderr, "%s: can't start thread %d\n", runs[t].test->binary, t);
            leave(PERF_EXIT_INTERNAL);
        }
    }
    for (int t = 0; t < o->threads; t++)
        pthread_join(runs[t].thread, NULL);
}

int perf_main(const struct perf_test *test, int argc, char **argv)
{
    struct perf_options options;
    quire_launch launch;
    bool wrong = false;
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
    if (launch.rank >= 0)
        runs[0].rank = launch.rank; /* for what is said before the communicator exists */
    if (options.threads == 1)
        rank_main(&runs[0]);
    else
        run_threads(runs, &launch);
    for (int t = 0; t < options.threads; t++)
        wrong = wrong || runs[t].wrong != 0 || runs[t].own_wrong != 0;
    free(runs);
    return wrong ? PERF_EXIT_WRONG : PERF_EXIT_OK;
}
