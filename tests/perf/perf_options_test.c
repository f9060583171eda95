/* SPDX-License-Identifier: BSD-3-Clause */
/* perf_options_test.c - nccl-tests' command line: sizes, flags by both names, what is refused, and the sweep's sizes.
 */
#include <unistd.h>

#include "../base/base_test.h"

#include "../../perf/perf_options.c"

static const struct perf_test test = {.name = "Test", .binary = "test_perf"};

/* Splits at spaces; returns perf_parse's status. Usage texts go to /dev/null. */
static int parse(struct perf_options *o, const char *line)
{
    static char copy[512];
    static char *argv[64];
    int argc = 0;
    snprintf(copy, sizeof(copy), "test_perf %s", line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    ck_assert(freopen("/dev/null", "w", stderr) != NULL);
    return perf_parse(o, &test, argc, argv);
}

START_TEST(defaults_are_those_of_nccl_tests)
{
    struct perf_options o;
    ck_assert_int_eq(parse(&o, ""), 0);
    ck_assert(o.min_bytes == 32 << 20 && o.max_bytes == 32 << 20 && o.step_bytes == 1 << 20 && o.step_factor == 0);
    ck_assert(o.iterations == 20 && o.warmups == 1 && o.aggregate == 1 && o.check == 1 && o.threads == 1);
    ck_assert(o.type == QUIRE_FLOAT32 && o.op == QUIRE_SUM && o.root == 0 && o.average == 1 && o.blocking == 0);
    ck_assert(o.cycles == 1 && o.parallel_init == 0 && o.registered == 0 && !o.latency && o.json == NULL);
}
END_TEST

START_TEST(sizes_have_binary_suffixes)
{
    static const struct {
        const char *text;
        size_t bytes;
    } sizes[] = {{"0", 0},         {"8", 8},         {"1K", 1024},   {"3k", 3072},        {"64M", 64u << 20},
                 {"2m", 2u << 20}, {"1G", 1u << 30}, {"1.5K", 1536}, {"5g", 5368709120u}, {"4294967297", 4294967297u}};
    struct perf_options o;
    char line[128];
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        snprintf(line, sizeof(line), "-b %s -e %s", sizes[i].text, sizes[i].text);
        ck_assert_msg(parse(&o, line) == 0 && o.min_bytes == sizes[i].bytes && o.max_bytes == sizes[i].bytes, "%s",
                      line);
    }
}
END_TEST

START_TEST(long_and_short_names_mean_the_same)
{
    struct perf_options a, b;
    ck_assert_int_eq(parse(&a,
                           "-t 2 -b 8 -e 1M -i 4K -f 2 -n 7 -w 3 -m 4 -c 0 -o all -d bfloat16 -r all -z 2 -a 3 -R 1 "
                           "-y 0 -u 5 -p 1 -N 0 -T 9 -S 1 -g 1 -G 0 -C 0 -x 2 -J out.json"),
                     0);
    ck_assert_int_eq(parse(&b, "--nthreads 2 --minbytes 8 --maxbytes=1M --stepbytes 4K --stepfactor 2 --iters 7 "
                               "--warmup_iters 3 --agg_iters 4 --check 0 --op all --datatype bfloat16 --root all "
                               "--blocking 2 --average 3 --local_register 1 --stream_null 0 --unalign 5 "
                               "--parallel_init 1 --run_cycles 0 --timeout 9 --report_timestamps 1 --ngpus 1 "
                               "--cudagraph 0 --report_cputime 0 --cta_policy 2 --output_file out.json"),
                     0);
    ck_assert(a.threads == 2 && a.min_bytes == 8 && a.max_bytes == 1 << 20 && a.step_bytes == 4096 &&
              a.step_factor == 2);
    ck_assert(a.iterations == 7 && a.warmups == 3 && a.aggregate == 4 && a.check == 0 && a.op == PERF_ALL);
    ck_assert(a.type == QUIRE_BFLOAT16 && a.root == PERF_ALL && a.blocking == 2 && a.average == 3 && a.registered == 1);
    ck_assert(a.stream_null == 0 && a.unalign == 5 && a.parallel_init == 1 && a.cycles == 0 && a.timeout_s == 9);
    ck_assert(a.timestamps == 1 && strcmp(b.json, "out.json") == 0);
    ck_assert(a.threads == b.threads && a.min_bytes == b.min_bytes && a.max_bytes == b.max_bytes &&
              a.step_bytes == b.step_bytes && a.step_factor == b.step_factor && a.iterations == b.iterations &&
              a.warmups == b.warmups && a.aggregate == b.aggregate && a.check == b.check && a.op == b.op &&
              a.type == b.type && a.root == b.root && a.blocking == b.blocking && a.average == b.average &&
              a.registered == b.registered && a.stream_null == b.stream_null && a.unalign == b.unalign &&
              a.parallel_init == b.parallel_init && a.cycles == b.cycles && a.timeout_s == b.timeout_s &&
              a.timestamps == b.timestamps);
    ck_assert(parse(&b, "--latency --json x") == 0 && b.latency && strcmp(b.json, "x") == 0);
}
END_TEST

START_TEST(what_it_can_not_do_is_refused)
{
    static const char *const bad[] = {
        "-b",      "-b x",  "-b 1T",  "-b -1", "-b 8x",  "-b 1e30", "-b nan",      "-i 0",           "-f 1",
        "-f 0.5",  "-f x",  "-f inf", "-n 0",  "-n 2x",  "-w -1",   "-m 0",        "-c -1",          "-o xor",
        "-d int4", "-r -1", "-r x",   "-z 4",  "-a 4",   "-R 2",    "-t 0",        "-t 99999",       "-g 2",
        "-G 1",    "-C 1",  "-y 2",   "-q",    "--frob", "extra",   "-b 1M -e 1K", "-n 99999999999", "-u -1"};
    struct perf_options o;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(parse(&o, bad[i]) == PERF_EXIT_USAGE, "%s", bad[i]);
    /* Only a smallest size: the largest follows. */
    ck_assert(parse(&o, "-b 64M") == 0 && o.max_bytes == 64 << 20);
}
END_TEST

START_TEST(every_type_and_operator_has_its_name)
{
    static const char *const types[] = {"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                        "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
    static const char *const ops[] = {"sum", "prod", "max", "min", "avg"};
    struct perf_options o;
    char line[64];
    for (int t = 0; t < QUIRE_TYPE_COUNT; t++) {
        snprintf(line, sizeof(line), "-d %s", types[t]);
        ck_assert_msg(parse(&o, line) == 0 && o.type == t, "%s", line);
    }
    for (int p = 0; p < QUIRE_OP_COUNT; p++) {
        snprintf(line, sizeof(line), "-o %s", ops[p]);
        ck_assert_msg(parse(&o, line) == 0 && o.op == p, "%s", line);
    }
    ck_assert(parse(&o, "-d all -o all") == 0 && o.type == PERF_ALL && o.op == PERF_ALL);
}
END_TEST

START_TEST(the_sweep_always_goes_on)
{
    struct perf_options o;
    ck_assert_int_eq(parse(&o, "-b 8 -e 1M -f 2"), 0);
    ck_assert_uint_eq(perf_next_size(&o, 8, 4), 16);
    ck_assert_uint_eq(perf_next_size(&o, 0, 4), 4); /* no factor leads out of zero */
    ck_assert_int_eq(parse(&o, "-b 8 -e 1M -f 1.1"), 0);
    ck_assert_uint_eq(perf_next_size(&o, 8, 8), 16); /* at least an element more */
    ck_assert_uint_eq(perf_next_size(&o, 1000, 4), 1100);
    ck_assert_int_eq(parse(&o, "-b 8 -e 1M -i 3"), 0);
    ck_assert_uint_eq(perf_next_size(&o, 8, 8), 16);
    ck_assert_uint_eq(perf_next_size(&o, 8, 1), 11);
}
END_TEST

BASE_TEST_MAIN("perf_options", defaults_are_those_of_nccl_tests, sizes_have_binary_suffixes,
               long_and_short_names_mean_the_same, what_it_can_not_do_is_refused, every_type_and_operator_has_its_name,
               the_sweep_always_goes_on)
