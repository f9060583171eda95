/* SPDX-License-Identifier: BSD-3-Clause */
/* unique_id_test.c - an id says what was put in, and no other 128 bytes are one. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "boot/unique_id.h"

static struct id_fields fields_with(int v4, int v6)
{
    struct id_fields fields;
    memset(&fields, 0, sizeof(fields));
    for (int i = 0; i < WIRE_KEY_BYTES; i++)
        fields.key[i] = (uint8_t)(i * 7);
    fields.root.door = 0x0123456789abcdefu;
    fields.root.host_key = 0xfeedfacecafebeefu;
    fields.root.port = 54321;
    for (int i = 0; i < v4 + v6; i++) {
        fields.root.address[i].family = i < v4 ? 4 : 6;
        memset(fields.root.address[i].bytes, i + 1, i < v4 ? 4 : 16);
    }
    fields.root.address_count = (uint8_t)(v4 + v6);
    return fields;
}

START_TEST(an_id_says_what_was_put_in)
{
    for (int v4 = 0; v4 <= WIRE_MAX_ADDRESSES; v4++)
        for (int v6 = 0; v4 + v6 <= WIRE_MAX_ADDRESSES; v6++) {
            struct id_fields in = fields_with(v4, v6), out;
            quire_unique_id id;
            memset(&id, 0xee, sizeof(id));
            id_encode(&id, &in);
            ck_assert_int_eq(id_decode(&id, &out), QUIRE_OK);
            ck_assert_int_eq(boot_check_id(&id), QUIRE_OK);
            int fit = out.root.address_count;
            ck_assert_int_le(fit, v4 + v6);
            if (5 * v4 + 17 * v6 <= 80)
                ck_assert_int_eq(fit, v4 + v6);
            else
                ck_assert_int_ge(fit, 4);
            ck_assert_mem_eq(out.root.address, in.root.address, (size_t)fit * sizeof(in.root.address[0]));
            ck_assert_mem_eq(out.key, in.key, WIRE_KEY_BYTES);
            ck_assert(out.root.door == in.root.door && out.root.host_key == in.root.host_key &&
                      out.root.port == in.root.port);
        }
}
END_TEST

START_TEST(a_changed_byte_makes_it_no_id)
{
    struct id_fields in = fields_with(3, 2), out;
    quire_unique_id id;
    id_encode(&id, &in);
    for (int i = 0; i < QUIRE_UNIQUE_ID_BYTES; i++) {
        id.bytes[i] ^= 0x10;
        ck_assert_int_eq(id_decode(&id, &out), QUIRE_ERR_INVALID_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(status_text_last(), "no unique id"));
        id.bytes[i] ^= 0x10;
    }
    memset(&id, 0, sizeof(id));
    ck_assert_int_eq(boot_check_id(&id), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(boot_check_id(NULL), QUIRE_ERR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(ids_in_files_are_taken_whole_or_not_at_all)
{
    struct id_fields in = fields_with(2, 1);
    quire_unique_id id, back;
    char text[ID_TEXT_BYTES];
    id_encode(&id, &in);
    id_to_text(&id, text);
    size_t length = strlen(text);
    ck_assert(id_from_text(text, length, &back));
    ck_assert_mem_eq(&id, &back, sizeof(id));
    for (size_t cut = 0; cut < length; cut++)
        ck_assert(!id_from_text(text, cut, &back));
    text[50] = 'g';
    ck_assert(!id_from_text(text, length, &back));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/unique_id");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, an_id_says_what_was_put_in);
    tcase_add_test(tc, a_changed_byte_makes_it_no_id);
    tcase_add_test(tc, ids_in_files_are_taken_whole_or_not_at_all);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
