/* SPDX-License-Identifier: BSD-3-Clause */
/* log_test.c - one whole line a call, at the level asked for, to the file asked for, errno untouched. */
#include <errno.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base_test.h"

START_TEST(lines_go_to_the_file_with_level_rank_and_errno_kept)
{
    char pattern[] = "/tmp/quire-log-%p-XX", path[64], text[8192] = "";
    snprintf(path, sizeof(path), "/tmp/quire-log-%d-XX", (int)getpid());
    setenv("QUIRE_LOG_FILE", pattern, 1);
    setenv("QUIRE_LOG", "info", 1);
    knobs_reload();
    log_set_rank(3);
    errno = EAGAIN;
    log_info("number %d", 42);
    log_debug("not this");
    ck_assert_int_eq(errno, EAGAIN);
    log_set_level(LOG_TRACE);
    log_trace("now this: %m");
    char *longer = malloc(5000);
    memset(longer, 'x', 4999);
    longer[4999] = '\0';
    log_warn("%s", longer);
    free(longer);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_ne(f, NULL);
    ck_assert(fread(text, 1, sizeof(text) - 1, f) > 0);
    fclose(f);
    unlink(path);
    ck_assert(strstr(text, "rank 3 info  number 42\n") != NULL);
    ck_assert(strstr(text, "not this") == NULL);
    ck_assert(strstr(text, "trace now this: Resource temporarily unavailable\n") != NULL);
    ck_assert(text[strlen(text) - 1] == '\n');
}
END_TEST

/* Runs in a process of its own (Check forks), where nothing has read the knobs yet. */
START_TEST(the_first_line_may_come_before_any_knob_is_read)
{
    char pattern[] = "/tmp/quire-first-%p-XX", path[64], text[4096] = "";
    snprintf(path, sizeof(path), "/tmp/quire-first-%d-XX", (int)getpid());
    setenv("QUIRE_LOG_FILE", pattern, 1);
    setenv("QUIRE_TRANSPROT", "tcp", 1);
    log_error("first");
    FILE *f = fopen(path, "r");
    ck_assert_ptr_ne(f, NULL);
    ck_assert(fread(text, 1, sizeof(text) - 1, f) > 0);
    fclose(f);
    unlink(path);
    ck_assert_msg(strstr(text, "did you mean QUIRE_TRANSPORT?\n") != NULL, "the warning went elsewhere: %s", text);
    ck_assert(strstr(text, "error first\n") != NULL);
}
END_TEST

START_TEST(at_level_none_not_even_unknown_variables_are_told)
{
    char path[] = "/tmp/quire-none-XXXXXX";
    int fd = mkstemp(path), saved = dup(2);
    setenv("QUIRE_LOG", "none", 1);
    setenv("QUIRE_TRANSPROT", "tcp", 1);
    dup2(fd, 2);
    log_error("not this");
    dup2(saved, 2);
    unlink(path);
    ck_assert_int_eq(lseek(fd, 0, SEEK_END), 0);
    close(fd);
    close(saved);
}
END_TEST

BASE_TEST_MAIN("log", lines_go_to_the_file_with_level_rank_and_errno_kept,
               the_first_line_may_come_before_any_knob_is_read, at_level_none_not_even_unknown_variables_are_told)
