/* SPDX-License-Identifier: BSD-3-Clause */
/* status_test.c - names and texts of every code; the sentence of a thread is its own and keeps errno. */
#include <errno.h>
#include <pthread.h>

#include "base/status.h"
#include "base_test.h"

START_TEST(every_code_has_a_name_and_a_text)
{
#define IS(symbol, value, name, text)                                                                                  \
    ck_assert_str_eq(quire_status_name(symbol), name);                                                                 \
    ck_assert_str_eq(quire_status_text(symbol), text);                                                                 \
    ck_assert_int_eq(symbol, value);
    QUIRE_STATUS_LIST(IS)
#undef IS
    ck_assert_str_eq(quire_status_name((quire_status_t)12345), "UNKNOWN");
    ck_assert(quire_status_text((quire_status_t)-7)[0] != '\0');
}
END_TEST

START_TEST(a_sentence_may_quote_the_one_before_and_keeps_errno)
{
    errno = ENOENT;
    ck_assert_int_eq(quire_fail(QUIRE_ERR_RESOURCE, "opening: %m"), QUIRE_ERR_RESOURCE);
    ck_assert_str_eq(status_text_last(), "opening: No such file or directory");
    quire_fail(QUIRE_ERR_RESOURCE, "init: %s", status_text_last());
    ck_assert_str_eq(status_text_last(), "init: opening: No such file or directory");
    ck_assert_int_eq(errno, ENOENT);
    status_text_clear();
    ck_assert_str_eq(status_text_last(), "");
}
END_TEST

static void *other_thread(void *arg)
{
    quire_fail(QUIRE_ERR_INTERNAL, "from the other thread");
    return NULL;
}

START_TEST(threads_do_not_see_each_others_sentence)
{
    pthread_t thread;
    quire_fail(QUIRE_ERR_INTERNAL, "mine");
    ck_assert_int_eq(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_str_eq(status_text_last(), "mine");
}
END_TEST

START_TEST(a_bug_tells_its_place)
{
    ck_assert_int_eq(QUIRE_BUG("step %d", 7), QUIRE_ERR_INTERNAL);
    ck_assert(strstr(status_text_last(), "status_test.c:") != NULL && strstr(status_text_last(), "step 7") != NULL);
}
END_TEST

BASE_TEST_MAIN("status", every_code_has_a_name_and_a_text, a_sentence_may_quote_the_one_before_and_keeps_errno,
               threads_do_not_see_each_others_sentence, a_bug_tells_its_place)
