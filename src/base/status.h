/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.h - helpers over quire_status_t, and the error sentence of this thread.
 *
 * Errors go up by value. Whoever first knows the cause calls quire_fail() (or status_set_text), which writes the
 * sentence into this thread's buffer (status_text_last) and returns the code, so `return quire_fail(...)` is the idiom.
 * Callers above pass the code on unchanged and do not write a second sentence.
 */
#ifndef QUIRE_BASE_STATUS_H
#define QUIRE_BASE_STATUS_H

#include "quire.h"

enum { STATUS_TEXT_BYTES = 1024 };

/* True when the communicator can't be used any more. */
static inline int status_is_fatal(quire_status_t st)
{
    return st >= QUIRE_ERR_MISMATCH;
}

/* Records the sentence for this thread and returns `st`. Never changes errno. `%m` is the current errno's text. */
quire_status_t quire_fail(quire_status_t st, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* This thread's last sentence; never NULL. */
const char *status_text_last(void);
void status_text_clear(void);

/* INTERNAL with file and line. */
#define QUIRE_BUG(...) quire_bug_at(__FILE__, __LINE__, __VA_ARGS__)
quire_status_t quire_bug_at(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
