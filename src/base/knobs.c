/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * knobs.c - the table read from the environment. Read once under a lock; afterwards values never change, so readers
 * take none (knobs_reload is for tests alone).
 */
#include "knobs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atomics.h"
#include "bytes.h"
#include "log.h"
#include "status.h"

extern char **environ;

enum { KNOB_TEXT_BYTES = 256, SUGGEST_WITHIN = 4 };

static const struct knob_info infos[] = {
#define KNOB_INFO(id, variable, type, def, choices, fact, help) {variable, type, def, choices, fact, help},
    KNOB_LIST(KNOB_INFO)
#undef KNOB_INFO
};

struct knob {
    int64_t value;
    char text[KNOB_TEXT_BYTES];
    bool set, bad;
};

static struct knob knobs[KNOB_COUNT_];
static uint32_t ready; /* atomic */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const struct knob_info *knob_info(enum knob_id id)
{
    return &infos[id];
}

/* True when `text` is one of "a|b|c"; its number in *value. */
static bool parse_choice(const char *choices, const char *text, int64_t *value)
{
    size_t n = strlen(text);
    int64_t number = 0;
    for (const char *p = choices; p != NULL; number++) {
        const char *bar = strchr(p, '|');
        size_t length = bar == NULL ? strlen(p) : (size_t)(bar - p);
        if (length == n && n > 0 && memcmp(p, text, n) == 0) {
            *value = number;
            return true;
        }
        p = bar == NULL ? NULL : bar + 1;
    }
    return false;
}

static bool parse_bool(const char *text, int64_t *value)
{
    static const char *const words[2][4] = {{"0", "no", "off", "false"}, {"1", "yes", "on", "true"}};
    for (int v = 0; v < 2; v++)
        for (int i = 0; i < 4; i++)
            if (strcmp(text, words[v][i]) == 0) {
                *value = v;
                return true;
            }
    return false;
}

static bool parse_size(const char *text, int64_t *value)
{
    uint64_t bytes;
    if (strcmp(text, "auto") == 0) {
        *value = -1; /* SIZE_MAX */
        return true;
    }
    if (!bytes_parse_size(text, &bytes) || bytes > INT64_MAX)
        return false;
    *value = (int64_t)bytes;
    return true;
}

/* Limits that a type alone does not have. NULL when the value is fine. */
static const char *limits(enum knob_id id, int64_t value)
{
    if (id == KNOB_LANE_DEPTH && (value < 2 || value > 64 || (value & (value - 1)) != 0))
        return "a power of two from 2 to 64";
    if (id == KNOB_SLOT_BYTES && (value < 4096 || value > (1 << 20) || value % 64 != 0))
        return "a multiple of 64 from 4K to 1M";
    if (id == KNOB_SPIN && (value < -1 || value > 1000000000))
        return "-1, or polls up to a thousand million";
    return NULL;
}

static const char *expected(enum knob_id id)
{
    static const char *const words[] = {
        [KNOB_INT] = "a whole number", [KNOB_SIZE] = "a size such as 64K", [KNOB_TIME] = "a time such as 5s or 250ms",
        [KNOB_BOOL] = "0 or 1",        [KNOB_STRING] = "a shorter text",
    };
    return infos[id].type == KNOB_CHOICE ? infos[id].choices : words[infos[id].type];
}

quire_status_t knob_parse(enum knob_id id, const char *text, int64_t *value)
{
    int64_t v = 0;
    uint64_t ns;
    bool good = false;
    switch (infos[id].type) {
    case KNOB_INT:
        good = bytes_parse_int(text, INT64_MIN, INT64_MAX, &v);
        break;
    case KNOB_SIZE:
        good = parse_size(text, &v);
        break;
    case KNOB_TIME:
        good = bytes_parse_time(text, &ns) && ns <= INT64_MAX;
        v = good ? (int64_t)ns : 0;
        break;
    case KNOB_BOOL:
        good = parse_bool(text, &v);
        break;
    case KNOB_STRING:
        good = strlen(text) < KNOB_TEXT_BYTES;
        break;
    case KNOB_CHOICE:
        good = parse_choice(infos[id].choices, text, &v);
        break;
    }
    const char *limit = good ? limits(id, v) : NULL;
    if (!good || limit != NULL)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s=%.64s: expected %s", infos[id].variable, text,
                          limit != NULL ? limit : expected(id));
    *value = v;
    return QUIRE_OK;
}

static void read_one(enum knob_id id)
{
    struct knob *knob = &knobs[id];
    const char *text = getenv(infos[id].variable);
    memset(knob, 0, sizeof(*knob));
    if (text != NULL && text[0] == '\0' && infos[id].type != KNOB_STRING)
        text = NULL; /* set to nothing: as if unset */
    if (text != NULL) {
        knob->set = true;
        knob->bad = knob_parse(id, text, &knob->value) != QUIRE_OK;
    }
    if (text == NULL || knob->bad) {
        text = infos[id].def;
        if (knob_parse(id, text, &knob->value) != QUIRE_OK)
            knob->value = 0;
    }
    snprintf(knob->text, sizeof(knob->text), "%s", text);
}

static void warn_unknown(const char *entry, size_t length)
{
    char name[64];
    const char *nearest = NULL;
    int best = SUGGEST_WITHIN;
    if (length >= sizeof(name))
        return;
    memcpy(name, entry, length);
    name[length] = '\0';
    for (int id = 0; id < KNOB_COUNT_; id++) {
        if (strcmp(infos[id].variable, name) == 0)
            return;
        int distance = bytes_distance(infos[id].variable, name, SUGGEST_WITHIN);
        if (distance < best) {
            best = distance;
            nearest = infos[id].variable;
        }
    }
    if (nearest != NULL)
        log_warn("%s is not a variable that Quire knows; did you mean %s?", name, nearest);
    else
        log_warn("%s is not a variable that Quire knows; quire-info --knobs lists them", name);
}

static void read_all(void)
{
    char sentence[STATUS_TEXT_BYTES];
    snprintf(sentence, sizeof(sentence), "%s", status_text_last());
    for (enum knob_id id = 0; id < KNOB_COUNT_; id++)
        read_one(id);
    (void)quire_fail(QUIRE_OK, "%s", sentence); /* reading the table is no error of this thread's */
}

static void make_ready(void)
{
    bool first = false;
    if (__builtin_expect(atom_load_acquire(&ready) != 0, 1))
        return;
    pthread_mutex_lock(&lock);
    if (atom_load_acquire(&ready) == 0) {
        read_all();
        atom_store_release(&ready, 1u);
        first = true;
    }
    pthread_mutex_unlock(&lock);
    for (char **e = environ; first && e != NULL && *e != NULL; e++)
        if (strncmp(*e, "QUIRE_", 6) == 0)
            warn_unknown(*e, strcspn(*e, "="));
}

int64_t knob_int(enum knob_id id)
{
    make_ready();
    return knobs[id].value;
}

size_t knob_size(enum knob_id id)
{
    make_ready();
    return (size_t)knobs[id].value;
}

uint64_t knob_time_ns(enum knob_id id)
{
    make_ready();
    return (uint64_t)knobs[id].value;
}

bool knob_bool(enum knob_id id)
{
    make_ready();
    return knobs[id].value != 0;
}

const char *knob_text(enum knob_id id)
{
    make_ready();
    return knobs[id].text;
}

bool knob_is_set(enum knob_id id)
{
    make_ready();
    return knobs[id].set && !knobs[id].bad;
}

quire_status_t knobs_check(void)
{
    char text[STATUS_TEXT_BYTES] = "";
    size_t used = 0;
    make_ready();
    for (enum knob_id id = 0; id < KNOB_COUNT_; id++) {
        int64_t value;
        const char *now = knobs[id].bad ? getenv(infos[id].variable) : NULL;
        if (now == NULL || used + 160 > sizeof(text) || knob_parse(id, now, &value) == QUIRE_OK)
            continue;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used == 0 ? "" : "; ", status_text_last());
    }
    return used == 0 ? QUIRE_OK : quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s", text);
}

uint64_t knobs_fact_hash(void)
{
    uint64_t hash = BYTES_HASH_START;
    make_ready();
    for (enum knob_id id = 0; id < KNOB_COUNT_; id++)
        if (infos[id].fact) {
            hash = bytes_hash(hash, infos[id].variable, strlen(infos[id].variable) + 1);
            hash = bytes_hash(hash, knobs[id].text, strlen(knobs[id].text) + 1);
        }
    return hash;
}

void knobs_reload(void)
{
    pthread_mutex_lock(&lock);
    atom_store_release(&ready, 0u);
    pthread_mutex_unlock(&lock);
}
