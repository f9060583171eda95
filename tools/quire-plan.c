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

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, CHECK_PASSES = 3 };
enum { SVG_MAX_RANKS = 16, SVG_MAX_BOXES = 4096, SVG_BOX_WIDTH = 96, SVG_ROW = 40, SVG_TOP = 56 };

struct want {
    int64_t lo, hi; /* ranks */
    int64_t root, rank, depth;
    bool all_roots, all_ranks, check, json;
    int collective;
    enum algorithm_id algorithm;
    const char *svg;
    char **files;
    int file_count;
};

static const char usage[] =
    "usage: quire-plan --ranks N --collective C --algorithm A [options]   print one rank's plan\n"
    "       quire-plan --ranks A..B --collective C --algorithm A --check  prove the plans of all ranks\n"
    "       quire-plan [--check] FILE...                                  read plans (all ranks' with --check); - is\n"
    "                                                                     standard input\n"
    "       quire-plan --list                                             algorithms and what they do\n"
    "  --root R|all   of a broadcast (0)      --rank R|all   whose plan to print (0)\n"
    "  --depth D      slots of a lane (8)     --json         for programs\n"
    "  --svg FILE     a picture of one pass: steps of each rank downwards in time, lanes across (up to 16 ranks)\n"
    "exit status: 0 good, 1 a plan failed its check or could not be made, 2 wrong usage\n";

static int wrong(const char *what, const char *value)
{
    fprintf(stderr, "quire-plan: %s %s\n%s", what, value, usage);
    return EXIT_USAGE;
}

static int failed(void)
{
    fprintf(stderr, "quire-plan: %s\n", status_text_last());
    return EXIT_FAILED;
}

static void put_json(const char *text)
{
    putchar('"');
    for (const char *p = text; *p != '\0'; p++)
        if (*p == '\n')
            fputs("\\n", stdout);
        else if ((unsigned char)*p < 0x20)
            printf("\\u%04x", (unsigned)*p);
        else
            printf(*p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    putchar('"');
}

static struct plan_shape shape_of(const struct want *want, int64_t ranks, int64_t root)
{
    return (struct plan_shape){(uint8_t)want->collective, (uint8_t)want->algorithm, (uint32_t)ranks, (uint32_t)root};
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

static void tell(const struct want *want, uint32_t ranks, uint32_t root, size_t steps, quire_status_t st)
{
    const char *reason = st == QUIRE_OK ? "" : status_text_last();
    if (want->json) {
        printf("{\"ranks\": %u, \"root\": %u, \"steps\": %zu, \"proved\": %s, \"reason\": ", ranks, root, steps,
               st == QUIRE_OK ? "true" : "false");
        put_json(reason);
        printf("}\n");
    } else if (st == QUIRE_OK) {
        printf("%4u ranks, root %u: proved, %zu steps in all\n", ranks, root, steps);
    } else {
        printf("%4u ranks, root %u: FAILED: %s\n", ranks, root, reason);
    }
    fflush(stdout); /* the lines are the progress of a long range */
}

static int check_one(const struct want *want, uint32_t ranks, uint32_t root)
{
    struct plan_shape shape = shape_of(want, ranks, root);
    struct plan **plans = NULL;
    size_t steps = 0;
    quire_status_t st = emit_all(&shape, &plans);
    for (uint32_t r = 0; st == QUIRE_OK && r < ranks; r++)
        steps += plans[r]->step_count;
    if (st == QUIRE_OK)
        st = prove(plans, ranks, want, algorithm_get(want->algorithm)->canonical);
    tell(want, ranks, root, steps, st);
    free_plans(plans, ranks);
    return st == QUIRE_OK ? 0 : EXIT_FAILED;
}

/* Rank counts of a range that don't have the root asked for are passed over. */
static int check_range(const struct want *want)
{
    int status = 0;
    for (int64_t n = want->lo; n <= want->hi; n++) {
        int64_t last = want->all_roots && want->collective == QUIRE_BROADCAST ? n - 1 : want->root;
        for (int64_t root = want->all_roots ? 0 : want->root; root <= last && root < n; root++)
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
        printf("{\"rank\": %u, \"ranks\": %u, \"steps\": %u, \"text\": ", plan->rank, plan->shape.ranks,
               plan->step_count);
        put_json(text);
        printf("}\n");
    }
    free(text);
    return 0;
}

static int print_ranks(const struct want *want)
{
    struct plan_shape shape = shape_of(want, want->lo, want->root);
    int64_t first = want->all_ranks ? 0 : want->rank, last = want->all_ranks ? want->lo - 1 : want->rank;
    for (int64_t r = first; r <= last; r++) {
        struct plan *plan;
        if (algorithm_emit(&shape, (uint32_t)r, &plan) != QUIRE_OK)
            return failed();
        int status = print_plan(plan, want->json);
        plan_free(plan);
        if (status != 0)
            return status;
    }
    return 0;
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

/*
 * One pass, run on paper: in every row each strand that can go on makes one step. What is published in a row can be
 * read in the next. Lanes are as deep as they need to be.
 */
struct picture {
    FILE *f;
    struct plan **plans;
    uint32_t ranks, strands; /* strands: columns of a rank */
    uint32_t boxes, row;
    struct pen {
        uint32_t step, repeat;
        uint32_t signals[PLAN_MAX_EVENTS]; /* row + 1 of the signal; of the rank, kept in its strand 0 */
    } pens[SVG_MAX_RANKS][PLAN_MAX_STRANDS];
    /* Boxes that published on a lane, in order, and how many each consumer has read. Consumer SVG_MAX_RANKS: wide. */
    struct track {
        uint32_t sent, read[SVG_MAX_RANKS];
        struct spot {
            uint32_t x, row;
        } * from;
    } tracks[PLAN_CHANNEL_COUNT][SVG_MAX_RANKS][SVG_MAX_RANKS + 1];
};

static uint32_t strided(int32_t base, int32_t stride, uint32_t i, uint32_t n)
{
    int64_t v = (base + (int64_t)stride * i) % (int64_t)n;
    return (uint32_t)(v < 0 ? v + n : v);
}

static uint32_t box_x(const struct picture *p, uint32_t rank, uint32_t strand)
{
    return 16 + (rank * p->strands + strand) * (SVG_BOX_WIDTH + 16) + SVG_BOX_WIDTH / 2;
}

/* The range of ranks a step reads from; empty when it reads no lane. */
static void sources(const struct picture *p, const struct plan_step *s, uint32_t i, uint32_t *lo, uint32_t *hi)
{
    *lo = *hi = 0;
    if (s->kind != PLAN_RECV && s->kind != PLAN_REDUCE)
        return;
    bool folds = s->flags & PLAN_FOLD;
    *lo = folds ? s->fold_lo : strided(s->from, s->from_stride, i, p->ranks);
    *hi = folds ? s->fold_hi : *lo + 1;
}

static struct track *track_in(struct picture *p, const struct plan_step *s, uint32_t from, uint32_t rank)
{
    return &p->tracks[s->channel][from][s->flags & PLAN_IN_WIDE ? SVG_MAX_RANKS : rank];
}

static bool can_draw(struct picture *p, const struct plan_step *s, uint32_t rank, uint32_t i)
{
    uint32_t lo, hi;
    sources(p, s, i, &lo, &hi);
    for (uint32_t r = lo; r < hi; r++) {
        const struct track *t = track_in(p, s, r, rank);
        if (!(s->flags & PLAN_FOLD && r == rank) && (t->read[rank] >= t->sent || t->from[t->read[rank]].row >= p->row))
            return false;
    }
    uint32_t signalled = p->pens[rank][0].signals[s->event];
    return s->kind != PLAN_WAIT || (signalled != 0 && signalled <= p->row);
}

static void draw_box(const struct picture *p, const struct plan_step *s, uint32_t rank, uint32_t i, uint32_t x)
{
    static const char *const colors[] = {"#2a6fbb", "#3a9a5c", "#b8562c", "#777777", "#999933", "#993399"};
    static const char *const names[] = {"send", "recv", "reduce", "copy", "signal", "wait"};
    static const char *const buffers[] = {"", "in", "out", "scratch"};
    const struct plan *plan = p->plans[rank];
    bool to = s->dst.buffer != PLAN_NONE;
    struct plan_ref ref = to ? s->dst : s->src;
    uint32_t n = ref.buffer == PLAN_SCRATCH ? plan->scratch_blocks : plan->blocks;
    uint32_t y = SVG_TOP + p->row * SVG_ROW;
    fprintf(p->f, "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"24\" rx=\"4\" fill=\"%s\"/>\n", x - SVG_BOX_WIDTH / 2,
            y - 12, SVG_BOX_WIDTH, colors[s->kind]);
    fprintf(p->f, "<text x=\"%u\" y=\"%u\" fill=\"white\">%s%s", x, y + 4, names[s->kind],
            s->flags & PLAN_FINISH ? "!" : "");
    if (s->kind == PLAN_SIGNAL || s->kind == PLAN_WAIT)
        fprintf(p->f, " %u", s->event);
    else if (ref.buffer != PLAN_NONE)
        fprintf(p->f, " %s.%u", buffers[ref.buffer],
                strided((int32_t)ref.block, to ? s->dst_stride : s->src_stride, i, n));
    if (s->blocks > 1)
        fprintf(p->f, "..%u", ref.block + s->blocks - 1);
    fprintf(p->f, "</text>\n");
}

/* Draws the box and the arrows into it, and notes what it publishes. False when there is no memory. */
static bool draw_step(struct picture *p, const struct plan_step *s, uint32_t rank, uint32_t strand, uint32_t i)
{
    uint32_t lo, hi, x = box_x(p, rank, strand), y = SVG_TOP + p->row * SVG_ROW;
    draw_box(p, s, rank, i, x);
    sources(p, s, i, &lo, &hi);
    for (uint32_t r = lo; r < hi; r++) {
        struct track *t = track_in(p, s, r, rank);
        if (s->flags & PLAN_FOLD && r == rank)
            continue;
        const struct spot *from = &t->from[t->read[rank]++];
        fprintf(p->f, "<line x1=\"%u\" y1=\"%u\" x2=\"%u\" y2=\"%u\" stroke=\"%s\" marker-end=\"url(#a)\"/>\n", from->x,
                SVG_TOP + from->row * SVG_ROW + 12, x, y - 14, s->flags & PLAN_IN_WIDE ? "#bbbbbb" : "#444444");
    }
    if (s->kind == PLAN_SIGNAL)
        p->pens[rank][0].signals[s->event] = p->row + 1;
    if (s->kind != PLAN_SEND && !(s->flags & PLAN_FORWARD))
        return true;
    uint32_t to = s->flags & PLAN_OUT_WIDE ? SVG_MAX_RANKS : strided(s->to, s->to_stride, i, p->ranks);
    struct track *t = &p->tracks[s->out_channel][rank][to];
    struct spot *grown = realloc(t->from, (t->sent + 1) * sizeof(*grown));
    if (grown == NULL)
        return false;
    t->from = grown;
    t->from[t->sent++] = (struct spot){x, p->row};
    return true;
}

/* One row; true while something was drawn. */
static bool draw_row(struct picture *p)
{
    bool drawn = false;
    for (uint32_t r = 0; r < p->ranks; r++)
        for (uint32_t k = 0; k < p->plans[r]->strand_count; k++) {
            struct pen *pen = &p->pens[r][k];
            const struct plan_strand *strand = &p->plans[r]->strands[k];
            if (pen->step >= strand->count || p->boxes >= SVG_MAX_BOXES)
                continue;
            const struct plan_step *s = &p->plans[r]->steps[strand->first + pen->step];
            if (!can_draw(p, s, r, pen->repeat))
                continue;
            if (!draw_step(p, s, r, k, pen->repeat))
                return false;
            drawn = true;
            p->boxes++;
            if (++pen->repeat == s->repeat) {
                pen->repeat = 0;
                pen->step++;
            }
        }
    return drawn;
}

/* A step of every strand was left over: nothing could go on, or the picture was full. */
static bool picture_unfinished(const struct picture *p)
{
    for (uint32_t r = 0; r < p->ranks; r++)
        for (uint32_t k = 0; k < p->plans[r]->strand_count; k++)
            if (p->pens[r][k].step < p->plans[r]->strands[k].count)
                return true;
    return false;
}

static void draw_all(struct picture *p)
{
    uint64_t rows = 0;
    for (uint32_t r = 0; r < p->ranks; r++) {
        p->strands = p->plans[r]->strand_count > p->strands ? p->plans[r]->strand_count : p->strands;
        for (uint32_t i = 0; i < p->plans[r]->step_count; i++)
            rows += p->plans[r]->steps[i].repeat;
    }
    rows = rows < SVG_MAX_BOXES ? rows : SVG_MAX_BOXES;
    /* The height follows at the end: a view box is read wherever it stands only in the root, so leave room for it. */
    fprintf(p->f, "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"11\" "
                  "text-anchor=\"middle\" ");
    long at = ftell(p->f);
    fprintf(p->f,
            "%60s>\n<defs><marker id=\"a\" markerWidth=\"7\" markerHeight=\"6\" refX=\"5\" refY=\"3\" "
            "orient=\"auto\"><path d=\"M0 0L6 3L0 6z\"/></marker></defs>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            "");
    for (uint32_t r = 0; r < p->ranks; r++)
        fprintf(p->f, "<text x=\"%u\" y=\"24\" font-weight=\"bold\">rank %u</text>\n",
                (box_x(p, r, 0) + box_x(p, r, p->strands - 1)) / 2, r);
    while (p->row < rows && draw_row(p))
        p->row++;
    if (picture_unfinished(p))
        fprintf(p->f,
                "<text x=\"16\" y=\"%u\" text-anchor=\"start\" fill=\"#b00000\">not all steps can be drawn: the "
                "plans wait for each other, or are too long</text>\n",
                SVG_TOP + p->row * SVG_ROW);
    fprintf(p->f, "</svg>\n");
    if (fseek(p->f, at, SEEK_SET) == 0)
        fprintf(p->f, "width=\"%u\" height=\"%u\"", box_x(p, p->ranks, 0) - SVG_BOX_WIDTH / 2,
                SVG_TOP + (p->row + 1) * SVG_ROW);
}

static int draw(const struct want *want)
{
    struct plan_shape shape = shape_of(want, want->lo, want->root);
    struct plan **plans;
    if (emit_all(&shape, &plans) != QUIRE_OK)
        return failed();
    int status = EXIT_FAILED;
    struct picture *p = calloc(1, sizeof(*p));
    FILE *f = fopen(want->svg, "w");
    if (p == NULL || f == NULL) {
        perror(want->svg);
        goto out;
    }
    p->f = f;
    p->plans = plans;
    p->ranks = shape.ranks;
    draw_all(p);
    status = ferror(f) != 0 ? EXIT_FAILED : 0;
out:
    if (f != NULL && fclose(f) != 0)
        status = EXIT_FAILED;
    for (struct track *t = p == NULL ? NULL : &p->tracks[0][0][0];
         t != NULL && t < &p->tracks[0][0][0] + sizeof(p->tracks) / sizeof(*t); t++)
        free(t->from);
    free(p);
    free_plans(plans, shape.ranks);
    return status;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static char *read_text(const char *path, size_t *bytes)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : fopen(path, "r");
    char *text = NULL;
    size_t used = 0, room = 0, n;
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
    if (!standard)
        fclose(f);
    *bytes = used;
    return text;
}

struct reading {
    struct plan **plans;
    size_t count;
};

/* One plan, whose first line has `before` lines in front of it in its file. */
static int take_plan(struct reading *all, const char *path, const char *text, size_t bytes, size_t before)
{
    /* Empty lines in front, so that errors tell the line of the file. */
    char *padded = malloc(before + bytes + 1);
    struct plan **grown = realloc(all->plans, (all->count + 1) * sizeof(*grown));
    if (grown != NULL)
        all->plans = grown;
    if (padded == NULL || grown == NULL) {
        free(padded);
        fprintf(stderr, "quire-plan: no memory for the plans of %s\n", path);
        return EXIT_FAILED;
    }
    memset(padded, '\n', before);
    memcpy(padded + before, text, bytes);
    quire_status_t st = plan_parse(padded, before + bytes, &all->plans[all->count]);
    free(padded);
    if (st == QUIRE_OK)
        all->count++;
    else
        fprintf(stderr, "%s: %s\n", path, status_text_last());
    return st == QUIRE_OK ? 0 : EXIT_FAILED;
}

/* A file may hold the plans of several ranks, as --rank all prints them: each begins with a line of "plan ". */
static int take_file(struct reading *all, const char *path)
{
    size_t bytes = 0, start = 0, start_line = 0, line = 0;
    char *text = read_text(path, &bytes);
    if (text == NULL)
        return EXIT_FAILED;
    int status = 0;
    bool seen = false;
    for (size_t at = 0; at < bytes && status == 0; line++) {
        const char *end = memchr(text + at, '\n', bytes - at);
        if (bytes - at >= 5 && memcmp(text + at, "plan ", 5) == 0) {
            if (seen) {
                status = take_plan(all, path, text + start, at - start, start_line);
                start = at;
                start_line = line;
            }
            seen = true;
        }
        at = end == NULL ? bytes : (size_t)(end + 1 - text);
    }
    if (status == 0)
        status = take_plan(all, path, text + start, bytes - start, start_line);
    free(text);
    return status;
}

static int take_files(const struct want *want)
{
    struct reading all = {NULL, 0};
    int status = 0;
    for (int i = 0; i < want->file_count && status == 0; i++)
        status = take_file(&all, want->files[i]);
    if (status == 0 && want->check) {
        enum algorithm_id id = (enum algorithm_id)all.plans[0]->shape.algorithm;
        bool canonical = id < ALGORITHM_COUNT && algorithm_get(id)->canonical;
        size_t steps = 0;
        for (size_t i = 0; i < all.count; i++)
            steps += all.plans[i]->step_count;
        quire_status_t st = prove(all.plans, (uint32_t)all.count, want, canonical);
        tell(want, (uint32_t)all.count, all.plans[0]->shape.root, steps, st);
        status = st == QUIRE_OK ? 0 : EXIT_FAILED;
    }
    for (size_t i = 0; i < all.count && status == 0 && !want->check; i++)
        status = print_plan(all.plans[i], want->json);
    free_plans(all.plans, (uint32_t)all.count);
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
    if (strcmp(name, "--rank") == 0) {
        want->all_ranks = strcmp(value, "all") == 0;
        return want->all_ranks || bytes_parse_int(value, 0, 1 << 20, &want->rank);
    }
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
        if (argv[i][0] != '-' || argv[i][1] == '\0') {
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

/* What can't be meant together; 0 when all is well. */
static int judge(const struct want *want)
{
    bool shaped = want->lo != 0 || want->collective >= 0 || want->algorithm != ALGORITHM_COUNT;
    if (want->file_count > 0)
        return shaped || want->svg != NULL
                   ? wrong("a file tells its own shape: no --ranks, --svg and the like with", want->files[0])
                   : 0;
    if (want->lo == 0 || want->collective < 0 || want->algorithm == ALGORITHM_COUNT)
        return wrong("--ranks, --collective and --algorithm are needed", "");
    if (want->lo != want->hi && (!want->check || want->svg != NULL))
        return wrong("a range of --ranks is for --check alone", "");
    if (want->svg != NULL && want->lo > SVG_MAX_RANKS)
        return wrong("--svg draws at most 16 ranks", "");
    if (want->all_roots && !want->check)
        return wrong("--root all is for --check", "");
    if (want->root >= want->hi)
        return wrong("--root must be below --ranks", "");
    if (!want->check && !want->all_ranks && want->rank >= want->lo)
        return wrong("--rank must be below --ranks", "");
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
    status = judge(&want);
    if (status != 0)
        return status;
    if (want.file_count > 0)
        return take_files(&want);
    status = want.check ? check_range(&want) : want.svg == NULL ? print_ranks(&want) : 0;
    if (want.svg != NULL && draw(&want) != 0)
        status = EXIT_FAILED;
    return status;
}
