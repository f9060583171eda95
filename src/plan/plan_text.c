/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_text.c - a plan as text and back. The format is described in docs/plans.md: a header of `key value` words, then
 * strands, one step a line. Printing and parsing are each other's inverse; parsing trusts nothing.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "plan.h"

enum { WORD_BYTES = 32, TEXT_MAX_BYTES = 1 << 26 };

static const char *const kinds[PLAN_KIND_COUNT] = {"send", "recv", "reduce", "copy", "signal", "wait"};
static const char *const buffers[] = {"none", "in", "out", "scratch"};
static const struct {
    const char *name;
    uint8_t flag;
} flags[] = {{"in_wide", PLAN_IN_WIDE},    {"out_wide", PLAN_OUT_WIDE}, {"forward", PLAN_FORWARD},
             {"fold", PLAN_FOLD},          {"finish", PLAN_FINISH},     {"slot_first", PLAN_SLOT_FIRST},
             {"skip_self", PLAN_SKIP_SELF}};

/* ---- printing ---------------------------------------------------------------------------------------------------- */

struct out {
    char *text;
    size_t bytes, used;
};

static void add(struct out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct out *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = o->used < o->bytes ? o->bytes - o->used : 0;
    int n = vsnprintf(room == 0 ? NULL : o->text + o->used, room, format, args);
    va_end(args);
    o->used += n > 0 ? (size_t)n : 0;
}

static void add_number(struct out *o, const char *key, int64_t value, int64_t usual)
{
    if (value != usual)
        add(o, " %s %lld", key, (long long)value);
}

static void add_ref(struct out *o, const char *key, struct plan_ref ref)
{
    if (ref.buffer != PLAN_NONE || ref.block != 0)
        add(o, " %s %s.%u", key, buffers[ref.buffer], ref.block);
}

static void add_step(struct out *o, const struct plan_step *s)
{
    add(o, "  %s", kinds[s->kind]);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (s->flags & flags[i].flag)
            add(o, " %s", flags[i].name);
    add_number(o, "channel", s->channel, 0);
    add_number(o, "out_channel", s->out_channel, 0);
    add_number(o, "from", s->from, -1);
    add_number(o, "to", s->to, -1);
    add_ref(o, "src", s->src);
    add_ref(o, "dst", s->dst);
    add_number(o, "blocks", s->blocks, 1);
    add_number(o, "part", s->part, 0);
    add_number(o, "event", s->event, 0);
    add_number(o, "fold_lo", s->fold_lo, 0);
    add_number(o, "fold_hi", s->fold_hi, 0);
    add_number(o, "repeat", s->repeat, 1);
    add_number(o, "from_stride", s->from_stride, 0);
    add_number(o, "to_stride", s->to_stride, 0);
    add_number(o, "src_stride", s->src_stride, 0);
    add_number(o, "dst_stride", s->dst_stride, 0);
    add(o, "\n");
}

size_t plan_print(const struct plan *plan, char *text, size_t bytes)
{
    struct out o = {text, bytes, 0};
    add(&o,
        "plan %s algorithm %u ranks %u rank %u root %u blocks %u scratch %u slot_blocks %u events %u hash %016llx\n",
        quire_collective_name((quire_collective_t)plan->shape.collective), plan->shape.algorithm, plan->shape.ranks,
        plan->rank, plan->shape.root, plan->blocks, plan->scratch_blocks, plan->slot_blocks, plan->event_count,
        (unsigned long long)plan->hash);
    for (uint32_t i = 0; i < plan->strand_count; i++) {
        add(&o, "strand %u\n", i);
        for (uint32_t k = 0; k < plan->strands[i].count; k++)
            add_step(&o, &plan->steps[plan->strands[i].first + k]);
    }
    return o.used;
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

struct in {
    const char *at, *end;
    unsigned line;
};

static quire_status_t bad(const struct in *in, const char *what, const char *word)
{
    return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "line %u: %s%s%s", in->line, what, word[0] == '\0' ? "" : ": ", word);
}

/*
 * The next word of this line; false at its end. A word that is too long comes out cut with a '?' at its end, so that it
 * is neither a name nor a number (a number cut short would be another one).
 */
static bool word(struct in *in, char out[WORD_BYTES])
{
    size_t n = 0;
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\t'))
        in->at++;
    if (in->at < in->end && *in->at == '#')
        while (in->at < in->end && *in->at != '\n')
            in->at++;
    for (; in->at < in->end && !isspace((unsigned char)*in->at); in->at++)
        if (n + 1 < WORD_BYTES)
            out[n++] = isprint((unsigned char)*in->at) ? *in->at : '?';
        else
            out[n - 1] = '?';
    out[n] = '\0';
    return n > 0;
}

/* To the next line; false at the end of the text. */
static bool next_line(struct in *in)
{
    while (in->at < in->end && *in->at != '\n')
        in->at++;
    if (in->at == in->end)
        return false;
    in->at++;
    in->line++;
    return true;
}

static bool number_of(const char *text, int64_t lo, int64_t hi, int64_t *value)
{
    char *end;
    if (text[0] == '\0' || isspace((unsigned char)text[0]))
        return false;
    long long v = strtoll(text, &end, 10);
    *value = v;
    return *end == '\0' && v >= lo && v <= hi;
}

static bool ref_of(const char *text, struct plan_ref *ref)
{
    const char *dot = strchr(text, '.');
    int64_t block;
    if (dot == NULL || !number_of(dot + 1, 0, UINT32_MAX, &block))
        return false;
    for (size_t b = 0; b < sizeof(buffers) / sizeof(buffers[0]); b++)
        if (strlen(buffers[b]) == (size_t)(dot - text) && strncmp(buffers[b], text, (size_t)(dot - text)) == 0) {
            *ref = (struct plan_ref){(uint8_t)b, (uint32_t)block};
            return true;
        }
    return false;
}

struct header {
    struct plan_shape shape;
    int64_t rank, blocks, scratch, slot_blocks, events;
};

static quire_status_t parse_header(struct in *in, struct header *h)
{
    char key[WORD_BYTES], value[WORD_BYTES];
    int64_t ranks = 0, root = 0, algorithm = 0, collective = -1;
    const struct {
        const char *key;
        int64_t *value, hi;
    } fields[] = {{"algorithm", &algorithm, 255},
                  {"ranks", &ranks, UINT32_MAX},
                  {"rank", &h->rank, UINT32_MAX},
                  {"root", &root, UINT32_MAX},
                  {"blocks", &h->blocks, UINT32_MAX},
                  {"scratch", &h->scratch, UINT32_MAX},
                  {"slot_blocks", &h->slot_blocks, UINT32_MAX},
                  {"events", &h->events, PLAN_MAX_EVENTS}};
    enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };
    while (!word(in, key))
        if (!next_line(in))
            return bad(in, "an empty text", "");
    if (strcmp(key, "plan") != 0 || !word(in, value))
        return bad(in, "expected \"plan COLLECTIVE ...\"", key);
    for (int c = 0; c < QUIRE_COLLECTIVE_COUNT; c++)
        if (strcmp(value, quire_collective_name((quire_collective_t)c)) == 0)
            collective = c;
    if (collective < 0)
        return bad(in, "unknown collective", value);
    while (word(in, key)) {
        size_t f = 0;
        if (!word(in, value))
            return bad(in, "a key without a value", key);
        if (strcmp(key, "hash") == 0)
            continue; /* follows from the shape */
        while (f < FIELDS && strcmp(fields[f].key, key) != 0)
            f++;
        if (f == FIELDS)
            return bad(in, "unknown key", key);
        if (!number_of(value, 0, fields[f].hi, fields[f].value))
            return bad(in, "not a number in range", value);
    }
    h->shape.collective = (uint8_t)collective;
    h->shape.algorithm = (uint8_t)algorithm;
    h->shape.ranks = (uint32_t)ranks;
    h->shape.root = (uint32_t)root;
    return QUIRE_OK;
}

static bool set_flag(struct plan_step *s, const char *key)
{
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (strcmp(flags[i].name, key) == 0) {
            s->flags |= flags[i].flag;
            return true;
        }
    return false;
}

/* Sets one numbered field; NULL when good, else what is wrong. */
static const char *set_field(struct plan_step *s, const char *key, const char *value)
{
    int64_t v;
    if (strcmp(key, "src") == 0 || strcmp(key, "dst") == 0)
        return ref_of(value, key[0] == 's' ? &s->src : &s->dst) ? NULL : "expected BUFFER.BLOCK";
    if (!number_of(value, INT32_MIN, UINT32_MAX, &v))
        return "not a number";
    const struct {
        const char *key;
        uint32_t *to;
    } naturals[] = {{"blocks", &s->blocks},   {"part", &s->part},       {"event", &s->event},
                    {"fold_lo", &s->fold_lo}, {"fold_hi", &s->fold_hi}, {"repeat", &s->repeat}};
    const struct {
        const char *key;
        int32_t *to;
    } integers[] = {{"from", &s->from},
                    {"to", &s->to},
                    {"from_stride", &s->from_stride},
                    {"to_stride", &s->to_stride},
                    {"src_stride", &s->src_stride},
                    {"dst_stride", &s->dst_stride}};
    for (size_t i = 0; i < sizeof(naturals) / sizeof(naturals[0]); i++)
        if (strcmp(naturals[i].key, key) == 0) {
            *naturals[i].to = (uint32_t)v;
            return v < 0 ? "must not be negative" : NULL;
        }
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
        if (strcmp(integers[i].key, key) == 0) {
            *integers[i].to = (int32_t)v;
            return v > INT32_MAX ? "too large" : NULL;
        }
    if (strcmp(key, "channel") != 0 && strcmp(key, "out_channel") != 0)
        return "unknown key";
    if (v < 0 || v >= PLAN_CHANNEL_COUNT)
        return "no such channel";
    *(key[0] == 'c' ? &s->channel : &s->out_channel) = (uint8_t)v;
    return NULL;
}

static quire_status_t parse_step(struct in *in, const char *kind, struct plan_step *s)
{
    char key[WORD_BYTES], value[WORD_BYTES];
    uint8_t k = 0;
    while (k < PLAN_KIND_COUNT && strcmp(kinds[k], kind) != 0)
        k++;
    if (k == PLAN_KIND_COUNT)
        return bad(in, "neither a strand nor a step", kind);
    *s = plan_step_make((enum plan_kind)k);
    while (word(in, key)) {
        if (set_flag(s, key))
            continue;
        if (!word(in, value))
            return bad(in, "a key without a value, or an unknown flag", key);
        const char *fault = set_field(s, key, value);
        if (fault != NULL)
            return bad(in, fault, strcmp(fault, "unknown key") == 0 ? key : value);
    }
    return QUIRE_OK;
}

static quire_status_t parse_body(struct in *in, struct plan_builder *b)
{
    char first[WORD_BYTES], number[WORD_BYTES];
    int64_t strands = 0, n;
    while (next_line(in)) {
        struct plan_step step;
        if (!word(in, first))
            continue;
        if (strcmp(first, "strand") == 0) {
            if (!word(in, number) || !number_of(number, strands, strands, &n))
                return bad(in, "strands are numbered from 0 in order", number);
            if (strands++ > 0)
                plan_builder_strand(b);
            continue;
        }
        if (strands == 0)
            return bad(in, "a step before the first strand", first);
        quire_status_t st = parse_step(in, first, &step);
        if (st != QUIRE_OK)
            return st;
        plan_builder_step(b, &step);
    }
    return QUIRE_OK;
}

quire_status_t plan_parse(const char *text, size_t bytes, struct plan **plan)
{
    struct in in = {text, text + bytes, 1};
    struct header h = {.blocks = 1, .slot_blocks = 1};
    if (bytes > TEXT_MAX_BYTES)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%zu bytes are too many for a plan", bytes);
    quire_status_t st = parse_header(&in, &h);
    if (st != QUIRE_OK)
        return st;
    struct plan_builder *b =
        plan_builder_create(&h.shape, (uint32_t)h.rank, (uint32_t)h.blocks, (uint32_t)h.slot_blocks);
    if (b == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory to parse a plan");
    plan_builder_scratch(b, (uint32_t)h.scratch);
    for (int64_t e = 0; e < h.events; e++)
        (void)plan_builder_event(b);
    st = parse_body(&in, b);
    if (st != QUIRE_OK) {
        plan_builder_destroy(b);
        return st;
    }
    return plan_freeze(b, plan);
}
