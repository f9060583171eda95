/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes.h - sizes, durations, hashes and little-endian fields: everything that reads or writes plain bytes. */
#ifndef QUIRE_BASE_BYTES_H
#define QUIRE_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "4", "64K", "1.5M", "2G", "1T" (binary multiples, optional trailing B or iB, no sign). False when malformed or over.
 */
bool bytes_parse_size(const char *text, uint64_t *bytes);
/* "250us", "3ms", "5s", "2m", "1h", bare number = seconds. Nanoseconds. False when malformed or over. */
bool bytes_parse_time(const char *text, uint64_t *ns);
/* Decimal, optional '-', whole string, within [lo,hi]. */
bool bytes_parse_int(const char *text, int64_t lo, int64_t hi, int64_t *value);
/* "64K", "1.5M", "123": shortest exact-to-3-digits form, into `text` of at least 16 bytes; returns text. */
char *bytes_size_text(uint64_t bytes, char *text);

#define BYTES_HASH_START UINT64_C(0xcbf29ce484222325)
/* FNV-1a, 64 bit; pass BYTES_HASH_START or an earlier result as `hash`. */
uint64_t bytes_hash(uint64_t hash, const void *data, size_t bytes);
/* Fills from getrandom(2); false only when the kernel refuses. */
bool bytes_random(void *data, size_t bytes);
/* Edit distance with transpositions, for "did you mean". At most `cap` is returned. */
int bytes_distance(const char *a, const char *b, int cap);

static inline size_t bytes_round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

/* a*b, or false on overflow. */
static inline bool bytes_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

#endif
