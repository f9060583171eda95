/* SPDX-License-Identifier: BSD-3-Clause */
/* knobs_test.c - defaults, values from the environment, bad values, unknown names. */
#include <fcntl.h>
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

BASE_TEST_MAIN("knobs", defaults_are_in_force_when_nothing_is_set, the_environment_wins,
               bad_values_are_named_and_defaults_stay, an_unknown_name_gets_a_suggestion)
