/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf.h - the shared body of the perf binaries: nccl-tests' flags, sweep, columns, checks and exit codes. Each binary
 * gives a struct perf_test and nothing else. Uses the public API only.
 *
 * Every rank runs the same loop (perf_run.c) in a process or thread of its own; figures and verdicts are brought
 * together with the library's own collectives, and rank 0 prints.
 */
#ifndef QUIRE_PERF_PERF_H
#define QUIRE_PERF_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "quire.h"

enum { PERF_EXIT_OK = 0, PERF_EXIT_INTERNAL = 1, PERF_EXIT_LIBRARY = 3, PERF_EXIT_WRONG = 7, PERF_EXIT_USAGE = 255 };
enum { PERF_ALL = -1 };

/* One call, as the test makes it. */
struct perf_call {
    const void *send;
    void *recv;
    size_t count; /* elements */
    quire_type_t type;
    quire_op_t op;
    int root;
    int rank, size;
    quire_comm *comm;
    quire_stream *stream; /* NULL: blocking calls */
};

struct perf_test {
    const char *name;   /* "AllReduce" */
    const char *binary; /* "all_reduce_perf" */
    quire_collective_t collective;
    bool has_op, has_root, checks_in_place;
    double (*factor)(int ranks); /* busbw / algbw */
    quire_status_t (*call)(const struct perf_call *call);
};

struct perf_options {
    size_t min_bytes, max_bytes, step_bytes;
    double step_factor; /* 0: step_bytes is used */
    int iterations, warmups, aggregate, check, threads, cycles;
    int type, op, root; /* PERF_ALL or a value */
    int blocking, average, registered, parallel_init, stream_null, unalign, timestamps, timeout_s;
    bool latency;
    const char *json;
    int argc;
    char **argv;
};

/* perf_options.c: 0 to go on, else the status to exit with, -1 for help shown. */
int perf_parse(struct perf_options *options, const struct perf_test *test, int argc, char **argv);

/* The size after `bytes` in the sweep: always at least one element more. */
size_t perf_next_size(const struct perf_options *options, size_t bytes, size_t elem);

/* ---- values: perf_values.c --------------------------------------------------------------------------------------- */

/* One period of this rank's input and of its result; longer buffers repeat it. */
struct perf_values {
    size_t elem, period; /* bytes, elements */
    uint8_t *input, *expected;
};
/* False: no memory. Reads the call's count, type, op, root, rank and size. */
bool perf_values_make(struct perf_values *values, const struct perf_test *test, const struct perf_call *call);
void perf_values_free(struct perf_values *values);
void perf_values_fill(const struct perf_values *values, void *buffer, size_t count);
/* Number of elements that are not the result, or that are not the input any more. */
uint64_t perf_values_wrong(const struct perf_values *values, const void *buffer, size_t count);
uint64_t perf_values_changed(const struct perf_values *values, const void *buffer, size_t count);

/* ---- a barrier of our own: perf_barrier.c ------------------------------------------------------------------------ */

struct perf_barrier;
/* Collective. *barrier is NULL where ranks share no memory; waiting is then done by the library. */
quire_status_t perf_barrier_open(struct perf_barrier **barrier, quire_comm *comm, int rank);
quire_status_t perf_barrier_wait(struct perf_barrier *barrier, quire_comm *comm, int size);
void perf_barrier_close(struct perf_barrier *barrier);

/* ---- running: perf_run.c ----------------------------------------------------------------------------------------- */

int perf_main(const struct perf_test *test, int argc, char **argv);
/* Of n > 0 sorted values, the smallest that `percent` of them don't exceed. */
double perf_percentile(const double *sorted, int n, int percent);

/* ---- printing: perf_table.c -------------------------------------------------------------------------------------- */

struct perf_half {
    double time_us, algbw, busbw;
    int64_t wrong;         /* -1: not checked */
    double p50_us, p99_us; /* with --latency */
};
struct perf_row {
    size_t bytes, count;
    const char *type, *op;
    int root;
    struct perf_half out, in;
};
struct perf_place {
    char host[64];
    int pid, rank;
};
struct perf_report {
    const struct perf_test *test;
    const struct perf_options *options;
    FILE *json;
    size_t max_bytes; /* after the cut to what memory allows */
    int rows;
    uint64_t wrong;
    double busbw_sum;
    int busbw_count;
};
void perf_print_start(struct perf_report *report, const struct perf_place *places, int ranks);
void perf_print_row(struct perf_report *report, const struct perf_row *row);
void perf_print_end(struct perf_report *report);

#endif
