/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - what the library prints, to stderr or QUIRE_LOG_FILE, one line per call:
 *   quire 12:03:55.123 host:pid rank R warn  text
 * Levels by QUIRE_LOG (none error warn info debug trace; default warn). A log call never changes errno, allocates
 * nothing and writes its line in one write(2). Thread-safe.
 */
#ifndef QUIRE_BASE_LOG_H
#define QUIRE_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

/* The level in force, read once from the knob table. */
enum log_level log_level(void);
void log_set_level(enum log_level level);
/* The rank printed in this process's lines; -1 for none (the default). */
void log_set_rank(int rank);
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)
#define log_trace(...) log_write(LOG_TRACE, __VA_ARGS__)

#endif
