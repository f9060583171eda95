/* SPDX-License-Identifier: BSD-3-Clause */
/* perf_test.c - the perf binaries as programs: columns, footer, exit codes, JSON, threads, all types and operators. */
#include <sys/wait.h>
#include <unistd.h>

#include "../base/base_test.h"

static char build[4096];

static int run(const char *command, char *out, size_t bytes)
{
    char whole[8192];
    snprintf(whole, sizeof(whole), "cd %s && %s 2>&1", build, command);
    FILE *f = popen(whole, "r");
    ck_assert_ptr_ne(f, NULL);
    size_t n = fread(out, 1, bytes - 1, f);
    out[n] = '\0';
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + status;
}

static char out[1 << 20];

START_TEST(columns_and_footer_are_those_of_nccl_tests)
{
    size_t size, count;
    char type[16], op[16], wrong[2][16];
    int root;
    double v[6];
    ck_assert_msg(run("./all_reduce_perf -t 3 -b 64 -e 64K -f 4 -n 2 -w 1 -d double -o max", out, sizeof(out)) == 0,
                  "%s", out);
    ck_assert(strstr(out, "#       size         count      type   redop    root     time   algbw   busbw #wrong") !=
              NULL);
    ck_assert(strstr(out, "# Out of bounds values : 0 OK") != NULL && strstr(out, "# Avg bus bandwidth    : ") != NULL);
    char *row = strstr(out, "\n          64");
    ck_assert_ptr_ne(row, NULL);
    ck_assert_int_eq(sscanf(row, "%zu %zu %15s %15s %d %lf %lf %lf %15s %lf %lf %lf %15s", &size, &count, type, op,
                            &root, &v[0], &v[1], &v[2], wrong[0], &v[3], &v[4], &v[5], wrong[1]),
                     13);
    ck_assert(size == 64 && count == 8 && root == -1 && strcmp(type, "double") == 0 && strcmp(op, "max") == 0);
    ck_assert_str_eq(wrong[0], "0");
    ck_assert_str_eq(wrong[1], "0");
    int rows = 0;
    for (char *p = out; (p = strstr(p, "double     max")) != NULL; p++)
        rows++;
    ck_assert_int_eq(rows, 6); /* 64 256 1K 4K 16K 64K */
}
END_TEST

START_TEST(all_types_and_operators_are_exact)
{
    ck_assert_msg(run("./all_reduce_perf -t 3 -b 4 -e 64K -f 16 -n 1 -w 0 -d all -o all", out, sizeof(out)) == 0, "%s",
                  out);
    ck_assert_msg(
        run("./quire-run -n 3 ./broadcast_perf -b 0 -e 64K -f 16 -n 1 -w 0 -d all -r all", out, sizeof(out)) == 0, "%s",
        out);
    ck_assert_msg(run("./quire-run -n 3 ./sendrecv_perf -b 0 -e 64K -f 16 -n 1 -w 0 -m 3", out, sizeof(out)) == 0, "%s",
                  out);
    ck_assert(strstr(out, "N/A") != NULL);
    ck_assert_msg(run("./quire-run -n 2 ./all_reduce_perf -t 2 -b 8 -e 8 -n 1 --latency -R 1 -z 1", out, sizeof(out)) ==
                      0,
                  "%s", out);
    ck_assert(strstr(out, "p50") != NULL && strstr(out, "Rank  3") != NULL);
}
END_TEST

START_TEST(json_is_written)
{
    char path[] = "/tmp/quire-perf-XXXXXX", command[256];
    int fd = mkstemp(path);
    snprintf(command, sizeof(command), "./all_reduce_perf -t 2 -b 8 -e 32 -f 2 -n 1 --json %s", path);
    ck_assert_int_eq(run(command, out, sizeof(out)), 0);
    ssize_t n = read(fd, out, sizeof(out) - 1);
    ck_assert(n > 0);
    out[n] = '\0';
    close(fd);
    unlink(path);
    ck_assert(strstr(out, "\"results\": [") && strstr(out, "\"out_of_bounds\": {\"count\": 0, \"okay\": true}"));
    int depth = 0;
    for (char *p = out; *p != '\0'; p++)
        depth += *p == '{' || *p == '[' ? 1 : *p == '}' || *p == ']' ? -1 : 0;
    ck_assert_int_eq(depth, 0);
}
END_TEST

START_TEST(bad_usage_and_failures_have_their_status)
{
    ck_assert_int_eq(run("./all_reduce_perf -b pigeon", out, sizeof(out)), 255);
    ck_assert_int_eq(run("./all_reduce_perf -d float128", out, sizeof(out)), 255);
    ck_assert_int_eq(run("./all_reduce_perf --frob", out, sizeof(out)), 255);
    ck_assert_int_eq(run("./all_reduce_perf -f 1", out, sizeof(out)), 255);
    ck_assert_int_eq(run("./broadcast_perf -t 2 -b 8 -e 8 -r 5", out, sizeof(out)), 255);
    ck_assert_int_eq(run("./all_reduce_perf -h", out, sizeof(out)), 0);
    ck_assert_int_eq(run("QUIRE_TRANSPORT=pigeon ./all_reduce_perf -b 8 -e 8", out, sizeof(out)), 3);
    ck_assert(strstr(out, "QUIRE_TRANSPORT=pigeon") != NULL);
    /* A lost frame makes a rank fail, and the launcher returns that. */
    ck_assert_int_eq(run("QUIRE_TIMEOUT=5s QUIRE_TRANSPORT=tcp QUIRE_FAULT=tcp:drop=0.2 ./quire-run -n 2 "
                         "./all_reduce_perf -b 8 -e 8 -n 1000",
                         out, sizeof(out)),
                     3);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {columns_and_footer_are_those_of_nccl_tests, all_types_and_operators_are_exact,
                                  json_is_written, bad_usage_and_failures_have_their_status};
    char *slash;
    snprintf(build, sizeof(build), "%s", argv[0]);
    for (int up = 0; up < 3 && (slash = strrchr(build, '/')) != NULL; up++)
        *slash = '\0';
    return base_test_main("perf", tests, sizeof(tests) / sizeof(tests[0]));
}
