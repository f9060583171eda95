/* SPDX-License-Identifier: BSD-3-Clause */
/* perf_options.c - nccl-tests' command line. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

static void usage(const struct perf_test *test, FILE *to)
{
    fprintf(to,
            "usage: %s [options]; ranks = processes of the launcher (quire-run, torchrun, mpirun, srun) x threads\n"
            "  -t, --nthreads N        ranks as threads of each process (1)\n"
            "  -b, --minbytes SIZE     smallest size, K M G are binary (32M)\n"
            "  -e, --maxbytes SIZE     largest size (32M)\n"
            "  -i, --stepbytes SIZE    step between sizes (1M)\n"
            "  -f, --stepfactor F      factor between sizes, instead of a step\n"
            "  -n, --iters N           timed iterations (20)\n"
            "  -w, --warmup_iters N    iterations before them (1)\n"
            "  -m, --agg_iters N       operations in one group (1)\n"
            "  -c, --check N           checking iterations, 0 none (1)\n"
            "  -o, --op OP             sum prod min max avg all (sum)\n"
            "  -d, --datatype TYPE     int8 ... f8e5m2, all (float)\n"
            "  -r, --root N            root, or all (0)\n"
            "  -z, --blocking N        after each iteration 1: complete, barrier; 2: complete (0: at the end)\n"
            "  -a, --average N         time of 0 rank 0, 1 average, 2 fastest, 3 slowest rank (1)\n"
            "  -y, --stream_null N     1: blocking calls, 0: calls queued in a stream (1)\n"
            "  -R, --local_register N  1: buffers from quire_mem_alloc, registered (0)\n"
            "  -u, --unalign N         buffers start N elements after an aligned address (0)\n"
            "  -p, --parallel_init N   1: threads make their ranks themselves (0)\n"
            "  -N, --run_cycles N      repeat everything, 0: for ever (1)\n"
            "  -T, --timeout N         give up after waiting N seconds for other ranks (the library's default)\n"
            "  -S, --report_timestamps N  1: date and time behind each row (0)\n"
            "  -g, --ngpus N, -G, --cudagraph N, -C, --report_cputime N, -x, --cta_policy N\n"
            "                          accepted where they change nothing: 1, 0, 0, any; memory is the host's\n"
            "  -J, --json FILE         everything, as JSON\n"
            "      --latency           also time operations one by one: p50 and p99 of the slowest rank\n"
            "  -h, --help\n",
            test->binary);
}

static bool parse_size(const char *text, size_t *size)
{
    char *end;
    double value = strtod(text, &end), unit = 1;
    switch (*end) {
    case 'k':
    case 'K':
        unit = 1024.0, end++;
        break;
    case 'm':
    case 'M':
        unit = 1048576.0, end++;
        break;
    case 'g':
    case 'G':
        unit = 1073741824.0, end++;
        break;
    default:
        break;
    }
    if (end == text || *end != '\0' || !(value >= 0) || value * unit > 1e15)
        return false;
    *size = (size_t)(value * unit);
    return true;
}

static bool parse_int(const char *text, int lo, int hi, int *value)
{
    char *end;
    long v = strtol(text, &end, 10);
    if (end == text || *end != '\0' || v < lo || v > hi)
        return false;
    *value = (int)v;
    return true;
}

static bool parse_type(const char *text, int *type)
{
    *type = PERF_ALL;
    if (strcmp(text, "all") == 0)
        return true;
    for (int t = 0; t < QUIRE_TYPE_COUNT; t++)
        if (strcmp(text, quire_type_name((quire_type_t)t)) == 0) {
            *type = t;
            return true;
        }
    return false;
}

static bool parse_op(const char *text, int *op)
{
    *op = PERF_ALL;
    if (strcmp(text, "all") == 0)
        return true;
    for (int o = 0; o < QUIRE_OP_COUNT; o++)
        if (strcmp(text, quire_op_name((quire_op_t)o)) == 0) {
            *op = o;
            return true;
        }
    return false;
}

static bool take(struct perf_options *o, int option, const char *value)
{
    char *end;
    int ignored;
    switch (option) {
    case 't':
        return parse_int(value, 1, 128, &o->threads);
    case 'b':
        return parse_size(value, &o->min_bytes);
    case 'e':
        return parse_size(value, &o->max_bytes);
    case 'i':
        return parse_size(value, &o->step_bytes) && o->step_bytes > 0;
    case 'f':
        o->step_factor = strtod(value, &end);
        return *value != '\0' && *end == '\0' && o->step_factor > 1 && o->step_factor < 1e9;
    case 'n':
        return parse_int(value, 1, 100000000, &o->iterations);
    case 'w':
        return parse_int(value, 0, 100000000, &o->warmups);
    case 'm':
        return parse_int(value, 1, 1000, &o->aggregate);
    case 'c':
        return parse_int(value, 0, 1000000, &o->check);
    case 'o':
        return parse_op(value, &o->op);
    case 'd':
        return parse_type(value, &o->type);
    case 'r':
        o->root = PERF_ALL;
        return strcmp(value, "all") == 0 || parse_int(value, 0, 1 << 20, &o->root);
    case 'z':
        return parse_int(value, 0, 3, &o->blocking);
    case 'a':
        return parse_int(value, 0, 3, &o->average);
    case 'R':
        return parse_int(value, 0, 1, &o->registered);
    case 'y':
        return parse_int(value, 0, 1, &o->stream_null);
    case 'u':
        return parse_int(value, 0, 4096, &o->unalign);
    case 'p':
        return parse_int(value, 0, 1, &o->parallel_init);
    case 'N':
        return parse_int(value, 0, 1000000000, &o->cycles);
    case 'T':
        return parse_int(value, 0, 2000000, &o->timeout_s);
    case 'S':
        return parse_int(value, 0, 1, &o->timestamps);
    case 'g':
        return parse_int(value, 1, 1, &ignored);
    case 'G':
    case 'C':
        return parse_int(value, 0, 0, &ignored);
    case 'x':
        return parse_int(value, 0, 2, &ignored);
    case 'J':
        o->json = value;
        return true;
    default:
        return false;
    }
}

int perf_parse(struct perf_options *o, const struct perf_test *test, int argc, char **argv)
{
    enum { LATENCY = 1000 };
    bool max_given = false;
    static const struct option longs[] = {
        {"nthreads", 1, NULL, 't'},     {"minbytes", 1, NULL, 'b'},   {"maxbytes", 1, NULL, 'e'},
        {"stepbytes", 1, NULL, 'i'},    {"stepfactor", 1, NULL, 'f'}, {"iters", 1, NULL, 'n'},
        {"warmup_iters", 1, NULL, 'w'}, {"agg_iters", 1, NULL, 'm'},  {"check", 1, NULL, 'c'},
        {"op", 1, NULL, 'o'},           {"datatype", 1, NULL, 'd'},   {"root", 1, NULL, 'r'},
        {"blocking", 1, NULL, 'z'},     {"average", 1, NULL, 'a'},    {"local_register", 1, NULL, 'R'},
        {"ngpus", 1, NULL, 'g'},        {"json", 1, NULL, 'J'},       {"output_file", 1, NULL, 'J'},
        {"stream_null", 1, NULL, 'y'},  {"unalign", 1, NULL, 'u'},    {"parallel_init", 1, NULL, 'p'},
        {"run_cycles", 1, NULL, 'N'},   {"timeout", 1, NULL, 'T'},    {"report_timestamps", 1, NULL, 'S'},
        {"cudagraph", 1, NULL, 'G'},    {"cta_policy", 1, NULL, 'x'}, {"report_cputime", 1, NULL, 'C'},
        {"latency", 0, NULL, LATENCY},  {"help", 0, NULL, 'h'},       {NULL, 0, NULL, 0}};
    *o = (struct perf_options){.min_bytes = 32 << 20,
                               .max_bytes = 32 << 20,
                               .step_bytes = 1 << 20,
                               .iterations = 20,
                               .warmups = 1,
                               .aggregate = 1,
                               .check = 1,
                               .threads = 1,
                               .type = QUIRE_FLOAT32,
                               .op = QUIRE_SUM,
                               .average = 1,
                               .cycles = 1,
                               .stream_null = 1,
                               .timeout_s = -1,
                               .argc = argc,
                               .argv = argv};
    optind = 1;
    for (int c;
         (c = getopt_long(argc, argv, "t:b:e:i:f:n:w:m:c:o:d:r:z:a:R:y:u:p:N:T:S:g:G:C:x:J:h", longs, NULL)) != -1;) {
        if (c == 'h') {
            usage(test, stdout);
            return -1;
        }
        if (c == LATENCY) {
            o->latency = true;
        } else if (c == '?' || !take(o, c, optarg)) {
            if (c != '?')
                fprintf(stderr, "%s: -%c %s: not a value it can take\n", test->binary, c, optarg);
            usage(test, stderr);
            return PERF_EXIT_USAGE;
        }
        max_given = max_given || c == 'e';
    }
    if (optind < argc) {
        fprintf(stderr, "%s: unexpected argument %s\n", test->binary, argv[optind]);
        usage(test, stderr);
        return PERF_EXIT_USAGE;
    }
    if (!max_given && o->max_bytes < o->min_bytes)
        o->max_bytes = o->min_bytes;
    if (o->max_bytes < o->min_bytes) {
        fprintf(stderr, "%s: -b %zu is more than -e %zu\n", test->binary, o->min_bytes, o->max_bytes);
        return PERF_EXIT_USAGE;
    }
    return 0;
}

size_t perf_next_size(const struct perf_options *o, size_t bytes, size_t elem)
{
    size_t next = o->step_factor > 0 ? (size_t)((double)bytes * o->step_factor) : bytes + o->step_bytes;
    return next / elem > bytes / elem ? next : (bytes / elem + 1) * elem;
}
