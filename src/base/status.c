/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.c - codes to words, and this thread's error sentence. The sentence lives in thread-local storage, so writing
 * and reading it needs no lock; nothing here changes errno.
 */
#include "status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static __thread char last[STATUS_TEXT_BYTES];

const char *quire_status_name(quire_status_t status)
{
    switch (status) {
#define STATUS_NAME(symbol, value, name, text)                                                                         \
    case symbol:                                                                                                       \
        return name;
        QUIRE_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    case QUIRE_STATUS_MAX_:
        break;
    }
    return "UNKNOWN";
}

const char *quire_status_text(quire_status_t status)
{
    switch (status) {
#define STATUS_TEXT(symbol, value, name, text)                                                                         \
    case symbol:                                                                                                       \
        return text;
        QUIRE_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    case QUIRE_STATUS_MAX_:
        break;
    }
    return "not a status code of this library";
}

static void write_last(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static void write_last(const char *format, va_list args)
{
    /* Through a second buffer: the arguments may point into the sentence that is being replaced. */
    char text[STATUS_TEXT_BYTES];
    int saved = errno;
    vsnprintf(text, sizeof(text), format, args);
    memcpy(last, text, sizeof(last));
    errno = saved;
}

quire_status_t quire_fail(quire_status_t st, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_last(format, args);
    va_end(args);
    return st;
}

quire_status_t quire_bug_at(const char *file, int line, const char *format, ...)
{
    char text[STATUS_TEXT_BYTES / 2];
    int saved = errno;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    errno = saved;
    return quire_fail(QUIRE_ERR_INTERNAL, "a bug in Quire, at %s:%d: %s", file, line, text);
}

const char *status_text_last(void)
{
    return last;
}

void status_text_clear(void)
{
    last[0] = '\0';
}
