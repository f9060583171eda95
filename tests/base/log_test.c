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

BASE_TEST_MAIN("log", lines_go_to_the_file_with_level_rank_and_errno_kept)
