/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c - one line, one write(2). The level and the file are read from the knobs at the first call; a file that can't
 * be opened means stderr. Invariant: errno is the same after a call as before it.
 */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "atomics.h"
#include "knobs.h"

enum { LINE_BYTES = 2048, HOST_BYTES = 64 };

static int level_in_force = -1; /* atomic; -1 not read yet */
static int own_rank = -1;       /* atomic */
static int log_fd = STDERR_FILENO;
static char host[HOST_BYTES];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread int inside; /* reading the knobs may itself want to warn */

static const char *const level_names[] = {"none", "error", "warn", "info", "debug", "trace"};

/* QUIRE_LOG_FILE with %h and %p replaced. */
static void file_name(const char *pattern, char *path, size_t bytes)
{
    size_t used = 0;
    for (; *pattern != '\0' && used + 1 < bytes; pattern++) {
        int n = 1;
        if (pattern[0] == '%' && pattern[1] == 'h') {
            n = snprintf(path + used, bytes - used, "%s", host);
            pattern++;
        } else if (pattern[0] == '%' && pattern[1] == 'p') {
            n = snprintf(path + used, bytes - used, "%d", (int)getpid());
            pattern++;
        } else {
            path[used] = *pattern;
        }
        used += (size_t)n;
    }
    path[used < bytes ? used : bytes - 1] = '\0';
}

static void start(void)
{
    if (gethostname(host, sizeof(host)) != 0)
        snprintf(host, sizeof(host), "?");
    host[sizeof(host) - 1] = '\0';
    const char *word = knob_text(KNOB_LOG);
    int level = LOG_WARN;
    for (int i = 0; i <= LOG_TRACE; i++)
        if (strcmp(word, level_names[i]) == 0)
            level = i;
    const char *pattern = knob_text(KNOB_LOG_FILE);
    if (pattern[0] != '\0') {
        char path[PATH_MAX];
        file_name(pattern, path, sizeof(path));
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (fd >= 0)
            log_fd = fd;
    }
    (void)atom_cas(&level_in_force, -1, level);
}

static void start_once(void)
{
    if (inside != 0)
        return;
    inside++;
    pthread_once(&once, start);
    inside--;
}

enum log_level log_level(void)
{
    int saved = errno;
    int level = atom_load_acquire(&level_in_force);
    if (level < 0) {
        /* Before the start, not in it: the first reading of the knobs may warn, and that line too must keep to the
           level and go to the file. */
        if (inside == 0)
            (void)knob_text(KNOB_LOG);
        start_once();
        level = atom_load_acquire(&level_in_force);
    }
    errno = saved;
    return level < 0 ? LOG_WARN : (enum log_level)level;
}

void log_set_level(enum log_level level)
{
    (void)log_level(); /* so that the start does not come after, and undo it */
    atom_store_release(&level_in_force, (int)level);
}

void log_set_rank(int rank)
{
    atom_store_relaxed(&own_rank, rank);
}

void log_write(enum log_level level, const char *format, ...)
{
    if (level > log_level() || level <= LOG_NONE || level > LOG_TRACE)
        return;
    int saved = errno;
    char line[LINE_BYTES];
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    int rank = atom_load_relaxed(&own_rank), n;
    n = snprintf(line, sizeof(line), "quire %02d:%02d:%02d.%03ld %s:%d ", tm.tm_hour, tm.tm_min, tm.tm_sec,
                 now.tv_nsec / 1000000, host, (int)getpid());
    if (rank >= 0)
        n += snprintf(line + n, sizeof(line) - (size_t)n, "rank %d ", rank);
    n += snprintf(line + n, sizeof(line) - (size_t)n, "%-5s ", level_names[level]);
    va_list args;
    va_start(args, format);
    errno = saved; /* for %m */
    int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
    va_end(args);
    n += m < 0 ? 0 : m;
    if (n > (int)sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n++] = '\n';
    ssize_t written = write(log_fd, line, (size_t)n);
    (void)written; /* nobody to tell */
    errno = saved;
}
