/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quire-plan.c - prints plans and proves them, for any rank count, without running anything. A tool that shows the
 * inside, so it links the static library.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algorithms.h"
#include "base/bytes.h"
#include "base/status.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, SVG_MAX_RANKS = 16, CHECK_PASSES = 3 };

struct want {
    int64_t lo, hi; /* ranks */
    int64_t root, rank, depth;
    bool all_roots, check, json;
    int collective;
    enum algorithm_id algorithm;
    const char *svg;
    char **files;
    int file_count;
};

static const char usage[] =
    "usage: quire-plan --ranks N --collective C --algorithm A [options]   print one rank's plan\n"
    "       quire-plan --ranks A..B --collective C --algorithm A --check  prove the plans of all ranks\n"
    "       quire-plan [--check] FILE...                                  read plans (all ranks' with --check)\n"
    "       quire-plan --list                                             algorithms and what they do\n"
    "  --root R|all   of a broadcast (0)      --rank R   whose plan to print (0)\n"
    "  --depth D      slots of a lane (8)     --json     for programs\n"
    "  --svg FILE     a picture: what each rank sends, step by step (up to 16 ranks)\n";

static int wrong(const char *what, const char *value)
{
    fprintf(stderr, "quire-plan: %s %s\n%s", what, value, usage);
    return EXIT_USAGE;
}

/* ---- proving ----------------------------------------------------------------------------------------------------- */

static void free_plans(struct plan **plans, uint32_t n)
{
    for (uint32_t r = 0; plans != NULL && r < n; r++)
        plan_free(plans[r]);
    free(plans);
}

static quire_status_t emit_all(const struct plan_shape *shape, struct plan ***out)
{
    struct plan **plans = calloc(shape->ranks, sizeof(*plans));
    quire_status_t st =
        plans == NULL ? quire_fail(QUIRE_ERR_RESOURCE, "no memory for %u plans", shape->ranks) : QUIRE_OK;
    for (uint32_t r = 0; st == QUIRE_OK && r < shape->ranks; r++)
        st = algorithm_emit(shape, r, &plans[r]);
    if (st == QUIRE_OK)
        *out = plans;
    else
        free_plans(plans, shape->ranks);
    return st;
}

static quire_status_t prove(struct plan **plans, uint32_t ranks, const struct want *want, bool canonical)
{
    quire_status_t st = QUIRE_OK;
    for (int in_place = 0; st == QUIRE_OK && in_place < 2; in_place++) {
        struct plan_check_options options = {(uint32_t)want->depth, CHECK_PASSES, in_place != 0, canonical};
        st = plan_check((const struct plan *const *)plans, ranks, &options);
    }
    return st;
}

static int check_one(const struct want *want, uint32_t ranks, uint32_t root)
{
    struct plan_shape shape = {(uint8_t)want->collective, (uint8_t)want->algorithm, ranks, root};
    struct plan **plans = NULL;
    size_t steps = 0;
    quire_status_t st = emit_all(&shape, &plans);
    for (uint32_t r = 0; st == QUIRE_OK && r < ranks; r++)
        steps += plans[r]->step_count;
    if (st == QUIRE_OK)
        st = prove(plans, ranks, want, algorithm_get(want->algorithm)->canonical);
    if (want->json)
        printf("{\"ranks\": %u, \"root\": %u, \"steps\": %zu, \"proved\": %s, \"reason\": \"%s\"}\n", ranks, root,
               steps, st == QUIRE_OK ? "true" : "false", st == QUIRE_OK ? "" : status_text_last());
    else if (st == QUIRE_OK)
        printf("%4u ranks, root %u: proved, %zu steps in all\n", ranks, root, steps);
    else
        printf("%4u ranks, root %u: FAILED: %s\n", ranks, root, status_text_last());
    fflush(stdout);
    free_plans(plans, st == QUIRE_OK || plans != NULL ? ranks : 0);
    return st == QUIRE_OK ? 0 : EXIT_FAILED;
}

static int check_range(const struct want *want)
{
    int status = 0;
    for (int64_t n = want->lo; n <= want->hi; n++) {
        int64_t last = want->all_roots && want->collective == QUIRE_BROADCAST ? n - 1 : want->root;
        for (int64_t root = want->all_roots ? 0 : want->root; root <= last; root++)
            status |= check_one(want, (uint32_t)n, (uint32_t)root);
    }
    return status;
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static int print_plan(const struct plan *plan, bool json)
{
    size_t bytes = plan_print(plan, NULL, 0) + 1;
    char *text = malloc(bytes);
    if (text == NULL)
        return EXIT_FAILED;
    plan_print(plan, text, bytes);
    if (!json) {
        fputs(text, stdout);
    } else {
        printf("{\"rank\": %u, \"ranks\": %u, \"steps\": %u, \"text\": \"", plan->rank, plan->shape.ranks,
               plan->step_count);
        for (const char *p = text; *p != '\0'; p++)
            *p == '\n' ? (void)fputs("\\n", stdout) : (void)putchar(*p);
        printf("\"}\n");
    }
    free(text);
    return 0;
}

static int print_one(const struct want *want)
{
    struct plan_shape shape = {(uint8_t)want->collective, (uint8_t)want->algorithm, (uint32_t)want->lo,
                               (uint32_t)want->root};
    struct plan *plan;
    if (algorithm_emit(&shape, (uint32_t)want->rank, &plan) != QUIRE_OK) {
        fprintf(stderr, "quire-plan: %s\n", status_text_last());
        return EXIT_FAILED;
    }
    int status = print_plan(plan, want->json);
    plan_free(plan);
    return status;
}

static int list(void)
{
    printf("%-14s %-22s %s\n", "algorithm", "collectives", "order of addition");
    for (enum algorithm_id id = 0; id < ALGORITHM_COUNT; id++) {
        char does[128] = "";
        size_t used = 0;
        for (int c = 0; c < QUIRE_COLLECTIVE_COUNT; c++) {
            struct plan_shape shape = {(uint8_t)c, (uint8_t)id, 4, 0};
            if (algorithm_get(id)->unfit(&shape) == NULL)
                used += (size_t)snprintf(does + used, sizeof(does) - used, "%s%s", used == 0 ? "" : " ",
                                         quire_collective_name((quire_collective_t)c));
        }
        printf("%-14s %-22s %s\n", algorithm_get(id)->name, does,
               algorithm_get(id)->canonical ? "canonical" : "its own");
    }
    return 0;
}

/* ---- picture ----------------------------------------------------------------------------------------------------- */

static void svg_step(FILE *f, const struct plan *p, const struct plan_step *s, uint32_t rank, int row)
{
    static const char *const colors[] = {"#2a6fbb", "#3a9a5c", "#b8562c", "#777777", "#999933", "#993399"};
    static const char *const names[] = {"send", "recv", "reduce", "copy", "signal", "wait"};
    int x = 70 + (int)rank * 110, y = 60 + row * 34;
    fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"90\" height=\"26\" rx=\"4\" fill=\"%s\"/>\n", x - 45, y - 13,
            colors[s->kind]);
    fprintf(f, "<text x=\"%d\" y=\"%d\" fill=\"white\">%s%s", x, y + 4, names[s->kind],
            s->flags & PLAN_FORWARD ? "+fwd" : "");
    if (s->from >= 0)
        fprintf(f, " &lt;%d", s->from);
    if (s->flags & PLAN_OUT_WIDE)
        fprintf(f, " &gt;all");
    else if (s->to >= 0)
        fprintf(f, " &gt;%d", s->to);
    if (s->repeat > 1)
        fprintf(f, " x%u", s->repeat);
    fprintf(f, "</text>\n");
}

static int draw(const struct want *want)
{
    struct plan_shape shape = {(uint8_t)want->collective, (uint8_t)want->algorithm, (uint32_t)want->lo,
                               (uint32_t)want->root};
    struct plan **plans;
    uint32_t rows = 0;
    if (shape.ranks > SVG_MAX_RANKS)
        return wrong("--svg draws at most 16 ranks, not", "so many");
    if (emit_all(&shape, &plans) != QUIRE_OK) {
        fprintf(stderr, "quire-plan: %s\n", status_text_last());
        return EXIT_FAILED;
    }
    for (uint32_t r = 0; r < shape.ranks; r++)
        rows =
            plans[r]->step_count + plans[r]->strand_count > rows ? plans[r]->step_count + plans[r]->strand_count : rows;
    FILE *f = fopen(want->svg, "w");
    if (f == NULL) {
        perror(want->svg);
        free_plans(plans, shape.ranks);
        return EXIT_FAILED;
    }
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" font-family=\"sans-serif\" "
            "font-size=\"11\" text-anchor=\"middle\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            40 + shape.ranks * 110, 90 + rows * 34);
    for (uint32_t r = 0; r < shape.ranks; r++) {
        int row = 0;
        fprintf(f, "<text x=\"%u\" y=\"24\" font-weight=\"bold\">rank %u</text>\n", 70 + r * 110, r);
        for (uint32_t s = 0; s < plans[r]->strand_count; s++, row++)
            for (uint32_t k = 0; k < plans[r]->strands[s].count; k++)
                svg_step(f, plans[r], &plans[r]->steps[plans[r]->strands[s].first + k], r, row++);
    }
    fprintf(f, "</svg>\n");
    int status = fclose(f) == 0 ? 0 : EXIT_FAILED;
    free_plans(plans, shape.ranks);
    if (status == 0)
        printf("wrote %s\n", want->svg);
    return status;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static struct plan *read_plan(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t used = 0, room = 0, n;
    struct plan *plan = NULL;
    if (f == NULL) {
        perror(path);
        return NULL;
    }
    do {
        if (used + 65536 > room) {
            char *grown = realloc(text, room = used + 65536 + room);
            if (grown == NULL)
                break;
            text = grown;
        }
        n = fread(text + used, 1, 65536, f);
        used += n;
    } while (n > 0);
    fclose(f);
    if (plan_parse(text, used, &plan) != QUIRE_OK)
        fprintf(stderr, "%s: %s\n", path, status_text_last());
    free(text);
    return plan;
}

static int take_files(const struct want *want)
{
    int status = 0;
    struct plan **plans = calloc((size_t)want->file_count, sizeof(*plans));
    if (plans == NULL)
        return EXIT_FAILED;
    for (int i = 0; i < want->file_count && status == 0; i++) {
        plans[i] = read_plan(want->files[i]);
        status = plans[i] == NULL ? EXIT_FAILED : want->check ? 0 : print_plan(plans[i], want->json);
    }
    if (status == 0 && want->check) {
        bool canonical = plans[0]->shape.algorithm < ALGORITHM_COUNT &&
                         algorithm_get((enum algorithm_id)plans[0]->shape.algorithm)->canonical;
        quire_status_t st = prove(plans, (uint32_t)want->file_count, want, canonical);
        printf("%s%s\n", st == QUIRE_OK ? "proved" : "FAILED: ", st == QUIRE_OK ? "" : status_text_last());
        status = st == QUIRE_OK ? 0 : EXIT_FAILED;
    }
    free_plans(plans, (uint32_t)want->file_count);
    return status;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static bool parse_ranks(const char *text, struct want *want)
{
    char lo[32];
    const char *dots = strstr(text, "..");
    if (dots == NULL)
        return bytes_parse_int(text, 1, 1 << 20, &want->lo) && (want->hi = want->lo, true);
    if ((size_t)(dots - text) >= sizeof(lo))
        return false;
    snprintf(lo, sizeof(lo), "%.*s", (int)(dots - text), text);
    return bytes_parse_int(lo, 1, 1 << 20, &want->lo) && bytes_parse_int(dots + 2, want->lo, 1 << 20, &want->hi);
}

static bool take(struct want *want, const char *name, const char *value)
{
    if (strcmp(name, "--ranks") == 0)
        return parse_ranks(value, want);
    if (strcmp(name, "--root") == 0) {
        want->all_roots = strcmp(value, "all") == 0;
        return want->all_roots || bytes_parse_int(value, 0, 1 << 20, &want->root);
    }
    if (strcmp(name, "--rank") == 0)
        return bytes_parse_int(value, 0, 1 << 20, &want->rank);
    if (strcmp(name, "--depth") == 0)
        return bytes_parse_int(value, 1, 1024, &want->depth);
    if (strcmp(name, "--svg") == 0) {
        want->svg = value;
        return true;
    }
    if (strcmp(name, "--algorithm") == 0) {
        want->algorithm = algorithm_by_name(value);
        return want->algorithm != ALGORITHM_COUNT;
    }
    for (int c = 0; c < QUIRE_COLLECTIVE_COUNT; c++)
        if (strcmp(value, quire_collective_name((quire_collective_t)c)) == 0)
            want->collective = c;
    return want->collective >= 0;
}

static int parse(struct want *want, int argc, char **argv, bool *listing)
{
    static const char *const valued[] = {"--ranks", "--root",      "--rank",      "--depth",
                                         "--svg",   "--algorithm", "--collective"};
    for (int i = 1; i < argc; i++) {
        bool known = false;
        if (argv[i][0] != '-') {
            want->files = argv + i;
            want->file_count = argc - i;
            return 0;
        }
        if (strcmp(argv[i], "--check") == 0)
            want->check = true;
        else if (strcmp(argv[i], "--json") == 0)
            want->json = true;
        else if (strcmp(argv[i], "--list") == 0)
            *listing = true;
        else {
            for (size_t v = 0; v < sizeof(valued) / sizeof(valued[0]); v++)
                known = known || strcmp(argv[i], valued[v]) == 0;
            if (!known)
                return wrong("unknown option", argv[i]);
            if (i + 1 == argc)
                return wrong("a value is missing behind", argv[i]);
            if (!take(want, argv[i], argv[i + 1]))
                return wrong("not a value this option can take:", argv[i + 1]);
            i++;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct want want = {.depth = 8, .collective = -1, .algorithm = ALGORITHM_COUNT};
    bool listing = false;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        printf("%s", usage);
        return 0;
    }
    int status = parse(&want, argc, argv, &listing);
    if (status != 0)
        return status;
    if (listing)
        return list();
    if (want.file_count > 0)
        return take_files(&want);
    if (want.lo == 0 || want.collective < 0 || want.algorithm == ALGORITHM_COUNT)
        return wrong("--ranks, --collective and --algorithm are needed", "");
    if (want.check)
        return check_range(&want);
    if (want.svg != NULL)
        return draw(&want);
    return print_one(&want);
}
