/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes.c - parsing of sizes, times and numbers; hashes; edit distance. Everything takes foreign text and never fails
   loudly: a bad text is false. */
#include "bytes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { FRACTION_DIGITS = 9, DISTANCE_MAX = 48 };

/* Digits with an optional fraction, as value = *whole + *part / *scale. Returns the place behind it, NULL if none. */
static const char *parse_decimal(const char *text, uint64_t *whole, uint64_t *part, uint64_t *scale)
{
    const char *p = text;
    int digits = 0;
    *whole = *part = 0;
    *scale = 1;
    for (; *p >= '0' && *p <= '9'; p++, digits++)
        if (__builtin_mul_overflow(*whole, UINT64_C(10), whole) ||
            __builtin_add_overflow(*whole, (uint64_t)(*p - '0'), whole))
            return NULL;
    if (*p == '.') {
        int fraction = 0;
        for (p++; *p >= '0' && *p <= '9'; p++, fraction++)
            if (fraction < FRACTION_DIGITS) {
                *part = *part * 10 + (uint64_t)(*p - '0');
                *scale *= 10;
            }
        if (fraction == 0)
            return NULL;
        digits += fraction;
    }
    return digits == 0 ? NULL : p;
}

/* (whole + part/scale) * unit without overflow. */
static bool times_unit(uint64_t whole, uint64_t part, uint64_t scale, uint64_t unit, uint64_t *value)
{
    unsigned __int128 v = (unsigned __int128)whole * unit + (unsigned __int128)part * unit / scale;
    if (v > UINT64_MAX)
        return false;
    *value = (uint64_t)v;
    return true;
}

bool bytes_parse_size(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGTPE";
    uint64_t whole, part, scale, unit = 1;
    const char *p = text == NULL ? NULL : parse_decimal(text, &whole, &part, &scale);
    if (p == NULL)
        return false;
    char letter = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    const char *at = letter == '\0' ? NULL : strchr(units, letter);
    if (at != NULL) {
        unit = UINT64_C(1) << (10 * (at - units + 1));
        p++;
        if (p[0] == 'i' && (p[1] == 'B' || p[1] == 'b'))
            p++;
    }
    if (*p == 'B' || *p == 'b')
        p++;
    if (*p != '\0' || (part != 0 && unit == 1))
        return false;
    uint64_t value;
    if (!times_unit(whole, part, scale, unit, &value))
        return false;
    *bytes = value;
    return true;
}

bool bytes_parse_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1},
                 {"us", 1000},
                 {"ms", 1000000},
                 {"s", UINT64_C(1000000000)},
                 {"", UINT64_C(1000000000)},
                 {"m", UINT64_C(60000000000)},
                 {"h", UINT64_C(3600000000000)}};
    uint64_t whole, part, scale, value;
    const char *p = text == NULL ? NULL : parse_decimal(text, &whole, &part, &scale);
    if (p == NULL)
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(p, units[i].name) == 0) {
            if (!times_unit(whole, part, scale, units[i].ns, &value))
                return false;
            *ns = value;
            return true;
        }
    return false;
}

bool bytes_parse_int(const char *text, int64_t lo, int64_t hi, int64_t *value)
{
    if (text == NULL)
        return false;
    const char *p = text;
    bool minus = *p == '-';
    int64_t v = 0;
    p += minus;
    if (*p == '\0')
        return false;
    for (; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(v, INT64_C(10), &v) ||
            __builtin_add_overflow(v, minus ? -(int64_t)(*p - '0') : (int64_t)(*p - '0'), &v))
            return false;
    }
    if (v < lo || v > hi)
        return false;
    *value = v;
    return true;
}

char *bytes_size_text(uint64_t bytes, char *text)
{
    static const char units[] = "KMGTPE";
    int unit = -1;
    uint64_t whole = bytes, scale = 1;
    while (whole >= 1024 && unit < 5) {
        unit++;
        scale <<= 10;
        whole = bytes / scale;
    }
    if (unit < 0) {
        snprintf(text, 16, "%llu", (unsigned long long)bytes);
        return text;
    }
    double value = (double)bytes / (double)scale;
    if (value >= 1023.5 && unit < 5) { /* would be rounded to 1024 of this unit: 1 of the next */
        value = 1;
        whole = 1;
        unit++;
    }
    if (unit == 5 && value > 15.9) /* 16E is over 64 bits: what is printed must be readable again */
        value = 15.9;
    snprintf(text, 16, "%.*f", whole >= 100 ? 0 : whole >= 10 ? 1 : 2, value);
    size_t n = strlen(text);
    if (strchr(text, '.') != NULL)
        while (text[n - 1] == '0' || text[n - 1] == '.') {
            bool dot = text[--n] == '.';
            text[n] = '\0';
            if (dot)
                break;
        }
    text[n] = units[unit];
    text[n + 1] = '\0';
    return text;
}

uint64_t bytes_hash(uint64_t hash, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

bool bytes_random(void *data, size_t bytes)
{
    uint8_t *p = data;
    while (bytes > 0) {
        ssize_t n = getrandom(p, bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

static int min3(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

int bytes_distance(const char *a, const char *b, int cap)
{
    int rows[3][DISTANCE_MAX + 1];
    size_t la = strlen(a), lb = strlen(b);
    if (la > DISTANCE_MAX || lb > DISTANCE_MAX)
        return cap;
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= lb; j++)
        last[j] = (int)j;
    for (size_t i = 1; i <= la; i++) {
        now[0] = (int)i;
        for (size_t j = 1; j <= lb; j++) {
            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        int *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[lb] < cap ? last[lb] : cap;
}
