/* SPDX-License-Identifier: BSD-3-Clause */
/* perf_table.c - nccl-tests' lines, which scripts parse, and the same as JSON. */
#include <string.h>
#include <time.h>

#include "perf.h"

static void date(char *text, size_t bytes)
{
    struct tm tm;
    time_t now = time(NULL);
    if (localtime_r(&now, &tm) == NULL || strftime(text, bytes, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        snprintf(text, bytes, "?");
}

static void json_string(FILE *json, const char *text)
{
    fputc('"', json);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if (*c == '"' || *c == '\\')
            fprintf(json, "\\%c", *c);
        else if (*c < 32 || *c > 126) /* keeps the file ASCII; bytes above are taken as Latin-1 */
            fprintf(json, "\\u%04x", *c);
        else
            fputc(*c, json);
    fputc('"', json);
}

static void json_start(struct perf_report *report, const struct perf_place *places, int ranks)
{
    const struct perf_options *o = report->options;
    FILE *json = report->json;
    char now[32];
    date(now, sizeof(now));
    fprintf(json, "{\"version\": 3, \"quire_version\": \"%d.%d.%d\", \"test\": \"%s\", \"start_time\": \"%s\",\n",
            QUIRE_MAJOR, QUIRE_MINOR, QUIRE_PATCH, report->test->binary, now);
    fprintf(json, " \"args\": [");
    for (int i = 0; i < o->argc; i++) {
        fprintf(json, "%s", i == 0 ? "" : ", ");
        json_string(json, o->argv[i]);
    }
    fprintf(json,
            "],\n \"config\": {\"nranks\": %d, \"nthreads\": %d, \"ngpus\": 1, \"minimum_bytes\": %zu, "
            "\"maximum_bytes\": %zu, \"%s\": %g, \"warmup_iters\": %d, \"iterations\": %d, "
            "\"aggregated_iterations\": %d, \"validation\": %d, \"blocking_collectives\": %d, \"stream_null\": %d, "
            "\"average\": %d, \"local_register\": %d, \"unalign\": %d, \"parallel_init\": %d, \"run_cycles\": "
            "%d},\n \"devices\": [",
            ranks, o->threads, o->min_bytes, report->max_bytes, o->step_factor > 0 ? "step_factor" : "step_bytes",
            o->step_factor > 0 ? o->step_factor : (double)o->step_bytes, o->warmups, o->iterations, o->aggregate,
            o->check, o->blocking, o->stream_null, o->average, o->registered, o->unalign, o->parallel_init, o->cycles);
    for (int r = 0; r < ranks; r++) {
        fprintf(json, "%s\n  {\"rank\": %d, \"group\": 0, \"pid\": %d, \"hostname\": ", r == 0 ? "" : ",",
                places[r].rank, places[r].pid);
        json_string(json, places[r].host);
        fprintf(json, ", \"device\": -1, \"device_info\": \"host memory\"}");
    }
    fprintf(json, "],\n \"results\": [");
}

void perf_print_start(struct perf_report *report, const struct perf_place *places, int ranks)
{
    const struct perf_options *o = report->options;
    int library = 0;
    quire_get_version(&library);
    printf("# quire version %d.%d.%d quire-headers=%d quire-library=%d\n", QUIRE_MAJOR, QUIRE_MINOR, QUIRE_PATCH,
           QUIRE_VERSION, library);
    printf("# Collective test starting: %s\n", report->test->binary);
    printf("# nThread %d nGpus 1 minBytes %zu maxBytes %zu step: %g(%s) warmup iters: %d iters: %d agg iters: %d "
           "validation: %d graph: 0\n#\n",
           o->threads, o->min_bytes, report->max_bytes, o->step_factor > 0 ? o->step_factor : (double)o->step_bytes,
           o->step_factor > 0 ? "factor" : "bytes", o->warmups, o->iterations, o->aggregate, o->check);
    printf("# Using devices\n");
    for (int r = 0; r < ranks; r++)
        printf("#  Rank %2d Group  0 Pid %6d on %10s device -1 [host memory]\n", places[r].rank, places[r].pid,
               places[r].host);
    if (report->max_bytes < o->max_bytes)
        printf("#\n# Reducing maxBytes to %zu due to memory limitation\n", report->max_bytes);
    printf("#\n");
    printf("#                                                              out-of-place                       in-place "
           "         \n");
    printf("#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
           "busbw #wrong%s\n",
           o->latency ? "   p50     p99  in:p50     p99" : "");
    printf("#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
           "(GB/s)       %s\n",
           o->latency ? "  (us)    (us)    (us)    (us)" : "");
    fflush(stdout);
    if (report->json != NULL)
        json_start(report, places, ranks);
}

static void print_half(const struct perf_half *half)
{
    char time[16], wrong[24];
    snprintf(time, sizeof(time),
             half->time_us >= 10000 ? "%7.0f"
             : half->time_us >= 100 ? "%7.1f"
                                    : "%7.2f",
             half->time_us);
    if (half->wrong < 0)
        snprintf(wrong, sizeof(wrong), "N/A");
    else
        snprintf(wrong, sizeof(wrong), "%lld", (long long)half->wrong);
    printf("  %7s  %6.2f  %6.2f  %5s", time, half->algbw, half->busbw, wrong);
}

static void json_half(FILE *json, const char *name, const struct perf_half *half, bool latency)
{
    fprintf(json, "\"%s\": {\"time\": %.4f, \"alg_bw\": %.4f, \"bus_bw\": %.4f, \"nwrong\": ", name, half->time_us,
            half->algbw, half->busbw);
    if (half->wrong < 0)
        fprintf(json, "null");
    else
        fprintf(json, "%lld", (long long)half->wrong);
    if (latency)
        fprintf(json, ", \"p50\": %.4f, \"p99\": %.4f", half->p50_us, half->p99_us);
    fprintf(json, "}");
}

void perf_print_row(struct perf_report *report, const struct perf_row *row)
{
    const struct perf_half *halves[2] = {&row->out, &row->in};
    for (int i = 0; i < 2; i++) {
        report->busbw_sum += halves[i]->busbw;
        report->busbw_count++;
        if (halves[i]->wrong > 0)
            report->wrong += (uint64_t)halves[i]->wrong;
    }
    printf("%12zu  %12zu  %8s  %6s  %6d", row->bytes, row->count, row->type, row->op, row->root);
    print_half(&row->out);
    print_half(&row->in);
    if (report->options->latency)
        printf("  %6.2f  %6.2f  %6.2f  %6.2f", row->out.p50_us, row->out.p99_us, row->in.p50_us, row->in.p99_us);
    if (report->options->timestamps) {
        char now[32];
        date(now, sizeof(now));
        printf("  %s", now);
    }
    printf("\n");
    fflush(stdout);
    if (report->json == NULL)
        return;
    fprintf(report->json,
            "%s\n  {\"size\": %zu, \"count\": %zu, \"type\": \"%s\", \"redop\": \"%s\", \"root\": \"%d\", ",
            report->rows == 0 ? "" : ",", row->bytes, row->count, row->type, row->op, row->root);
    json_half(report->json, "out_of_place", &row->out, report->options->latency);
    fprintf(report->json, ", ");
    json_half(report->json, "in_place", &row->in, report->options->latency);
    fprintf(report->json, "}");
    report->rows++;
}

void perf_print_end(struct perf_report *report)
{
    double average = report->busbw_count == 0 ? 0 : report->busbw_sum / report->busbw_count;
    bool good = report->wrong == 0;
    printf("# Out of bounds values : %llu %s\n", (unsigned long long)report->wrong, good ? "OK" : "FAILED");
    printf("# Avg bus bandwidth    : %g \n#\n", average);
    printf("# Collective test concluded: %s\n", report->test->binary);
    char now[32];
    date(now, sizeof(now));
    if (report->json != NULL)
        fprintf(report->json,
                "],\n \"out_of_bounds\": {\"count\": %llu, \"okay\": %s}, \"average_bus_bandwidth\": {\"bandwidth\": "
                "%g, \"okay\": true}, \"errors\": [], \"end_time\": \"%s\"}\n",
                (unsigned long long)report->wrong, good ? "true" : "false", average, now);
}
