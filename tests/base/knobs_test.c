/* SPDX-License-Identifier: BSD-3-Clause */
/* knobs_test.c - defaults, values from the environment, bad values, unknown names. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/status.h"
#include "base_test.h"

START_TEST(defaults_are_in_force_when_nothing_is_set)
{
    ck_assert_int_eq(knob_int(KNOB_LANE_DEPTH), 8);
    ck_assert_uint_eq(knob_size(KNOB_SLOT_BYTES), 65536);
    ck_assert_uint_eq(knob_time_ns(KNOB_TIMEOUT), UINT64_C(600000000000));
    ck_assert_uint_eq(knob_size(KNOB_ONE_SHOT_MAX), SIZE_MAX);
    ck_assert_str_eq(knob_text(KNOB_TRANSPORT), "auto");
    ck_assert(!knob_is_set(KNOB_TRANSPORT));
    ck_assert_int_eq(knobs_check(), QUIRE_OK);
    /* Every default parses as its own type. */
    for (enum knob_id id = 0; id < KNOB_COUNT_; id++) {
        int64_t value;
        ck_assert_msg(knob_parse(id, knob_info(id)->def, &value) == QUIRE_OK, "%s", knob_info(id)->variable);
    }
}
END_TEST

START_TEST(the_environment_wins)
{
    uint64_t before = knobs_fact_hash();
    setenv("QUIRE_TRANSPORT", "tcp", 1);
    setenv("QUIRE_TIMEOUT", "250ms", 1);
    setenv("QUIRE_LANE_DEPTH", "16", 1);
    knobs_reload();
    ck_assert_str_eq(knob_text(KNOB_TRANSPORT), "tcp");
    ck_assert(knob_is_set(KNOB_TRANSPORT));
    ck_assert_uint_eq(knob_time_ns(KNOB_TIMEOUT), 250000000);
    ck_assert_int_eq(knob_int(KNOB_LANE_DEPTH), 16);
    ck_assert(knobs_fact_hash() != before);
}
END_TEST

START_TEST(bad_values_are_named_and_defaults_stay)
{
    setenv("QUIRE_TRANSPORT", "pigeon", 1);
    setenv("QUIRE_LANE_DEPTH", "3", 1);
    setenv("QUIRE_SLOT_BYTES", "100", 1);
    knobs_reload();
    ck_assert_int_eq(knobs_check(), QUIRE_ERR_INVALID_ARGUMENT);
    const char *text = status_text_last();
    ck_assert_msg(strstr(text, "QUIRE_TRANSPORT=pigeon") && strstr(text, "auto|shm|tcp"), "%s", text);
    ck_assert_msg(strstr(text, "QUIRE_LANE_DEPTH=3") && strstr(text, "power of two"), "%s", text);
    ck_assert_msg(strstr(text, "QUIRE_SLOT_BYTES=100") != NULL, "%s", text);
    ck_assert_str_eq(knob_text(KNOB_TRANSPORT), "auto");
    ck_assert_int_eq(knob_int(KNOB_LANE_DEPTH), 8);
}
END_TEST

START_TEST(an_unknown_name_gets_a_suggestion)
{
    char path[] = "/tmp/quire-knobs-XXXXXX", text[4096] = "";
    int fd = mkstemp(path), saved = dup(2);
    setenv("QUIRE_TRANSPROT", "tcp", 1);
    dup2(fd, 2);
    knobs_reload();
    (void)knob_int(KNOB_SPIN);
    dup2(saved, 2);
    lseek(fd, 0, SEEK_SET);
    ck_assert(read(fd, text, sizeof(text) - 1) > 0);
    unlink(path);
    ck_assert_msg(strstr(text, "QUIRE_TRANSPROT") && strstr(text, "did you mean QUIRE_TRANSPORT?"), "%s", text);
}
END_TEST

static void *reader(void *arg)
{
    return (void *)(intptr_t)knob_int(KNOB_LANE_DEPTH);
}

START_TEST(threads_that_read_first_together_see_one_table_and_warn_once)
{
    enum { THREADS = 8 };
    char path[] = "/tmp/quire-race-XXXXXX", text[4096] = "";
    int fd = mkstemp(path), saved = dup(2), warnings = 0;
    pthread_t threads[THREADS];
    setenv("QUIRE_LANE_DEPTH", "32", 1);
    setenv("QUIRE_TRANSPROT", "tcp", 1);
    dup2(fd, 2);
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, reader, NULL), 0);
    for (int t = 0; t < THREADS; t++) {
        void *seen;
        pthread_join(threads[t], &seen);
        ck_assert_int_eq((intptr_t)seen, 32);
    }
    dup2(saved, 2);
    close(saved);
    unlink(path);
    ck_assert(pread(fd, text, sizeof(text) - 1, 0) > 0);
    close(fd);
    for (const char *p = text; (p = strstr(p, "QUIRE_TRANSPROT is not")) != NULL; p++)
        warnings++;
    ck_assert_int_eq(warnings, 1);
}
END_TEST

START_TEST(ranges_hold_at_their_edges)
{
    static const struct {
        enum knob_id id;
        const char *text;
        bool good;
    } cases[] = {{KNOB_LANE_DEPTH, "2", true},      {KNOB_LANE_DEPTH, "64", true},    {KNOB_LANE_DEPTH, "1", false},
                 {KNOB_LANE_DEPTH, "128", false},   {KNOB_LANE_DEPTH, "12", false},   {KNOB_LANE_DEPTH, "-8", false},
                 {KNOB_SLOT_BYTES, "4K", true},     {KNOB_SLOT_BYTES, "1M", true},    {KNOB_SLOT_BYTES, "4160", true},
                 {KNOB_SLOT_BYTES, "4032", false},  {KNOB_SLOT_BYTES, "4097", false}, {KNOB_SLOT_BYTES, "auto", false},
                 {KNOB_SLOT_BYTES, "2M", false},    {KNOB_SPIN, "-1", true},          {KNOB_SPIN, "-2", false},
                 {KNOB_DETERMINISTIC, "yes", true}, {KNOB_DETERMINISTIC, "2", false}, {KNOB_TIMEOUT, "0", true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t value = 4711;
        quire_status_t st = knob_parse(cases[i].id, cases[i].text, &value);
        ck_assert_msg((st == QUIRE_OK) == cases[i].good, "%s=%s", knob_info(cases[i].id)->variable, cases[i].text);
        ck_assert_msg(cases[i].good || value == 4711, "%s: a failed parse wrote its output", cases[i].text);
    }
}
END_TEST

BASE_TEST_MAIN("knobs", threads_that_read_first_together_see_one_table_and_warn_once, ranges_hold_at_their_edges,
               defaults_are_in_force_when_nothing_is_set, the_environment_wins, bad_values_are_named_and_defaults_stay,
               an_unknown_name_gets_a_suggestion)
