/* SPDX-License-Identifier: BSD-3-Clause */
/* address_test.c - this host's addresses and meeting addresses in text. */
#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "boot/address.h"

static bool is_loopback(const struct wire_address *address)
{
    static const uint8_t one[16] = {[15] = 1};
    return address->family == 4 ? address->bytes[0] == 127 : memcmp(address->bytes, one, 16) == 0;
}

START_TEST(loopback_comes_last_and_the_filter_is_obeyed)
{
    struct wire_address all[32], some[32];
    int count = -1, fewer = -1;
    ck_assert_int_eq(address_list("", all, 32, &count), QUIRE_OK);
    bool seen = false;
    for (int i = 0; i < count; i++) {
        ck_assert(!seen || is_loopback(&all[i]));
        seen |= is_loopback(&all[i]);
    }
    ck_assert_int_eq(address_list("^lo", some, 32, &fewer), QUIRE_OK);
    for (int i = 0; i < fewer; i++)
        ck_assert(!is_loopback(&some[i]));
    ck_assert_int_le(fewer, count);
    ck_assert_int_eq(address_list("lo", some, 32, &fewer), QUIRE_OK);
    for (int i = 0; i < fewer; i++)
        ck_assert(is_loopback(&some[i]));
    ck_assert_int_eq(address_list("", some, 1, &fewer), QUIRE_OK);
    ck_assert_int_le(fewer, 1);
    ck_assert_int_eq(address_list("lo,nope0", some, 32, &fewer), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(status_text_last(), "'nope0'"));
    ck_assert_int_eq(address_list("^nope0", some, 32, &fewer), QUIRE_ERR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(meeting_addresses_are_split_or_refused)
{
    char host[64];
    uint16_t port = 0;
    ck_assert_int_eq(address_split("node-1:29500", host, sizeof(host), &port), QUIRE_OK);
    ck_assert_str_eq(host, "node-1");
    ck_assert_int_eq(port, 29500);
    ck_assert_int_eq(address_split("[fd00::2]:65535", host, sizeof(host), &port), QUIRE_OK);
    ck_assert_str_eq(host, "fd00::2");
    ck_assert_int_eq(port, 65535);
    static const char *const wrong[] = {"",          "host",  ":5",     "host:", "host:0",  "host:65536", "host:x",
                                        "fd00::2:5", "[::1]", "[::1]5", "[]:5",  "host:5 ", "host:-5",    "[::1:5"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(address_split(wrong[i], host, sizeof(host), &port) == QUIRE_ERR_INVALID_ARGUMENT, "'%s'",
                      wrong[i]);
    ck_assert_int_eq(address_split("0123456789:5", host, 10, &port), QUIRE_ERR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(numeric_addresses_resolve_to_themselves)
{
    struct wire_address list[4];
    int count = 0;
    uint16_t port = 0;
    ck_assert_int_eq(address_resolve("127.0.0.1:80", list, 4, &count, &port), QUIRE_OK);
    ck_assert(count == 1 && port == 80 && list[0].family == 4 && is_loopback(&list[0]));
    ck_assert_int_eq(address_resolve("[::1]:81", list, 4, &count, &port), QUIRE_OK);
    ck_assert(count == 1 && port == 81 && list[0].family == 6 && is_loopback(&list[0]));
    struct sockaddr_storage out;
    socklen_t length;
    ck_assert(address_to_sockaddr(&list[0], port, &out, &length));
    ck_assert_int_eq(ntohs(((struct sockaddr_in6 *)&out)->sin6_port), 81);
    list[0].family = 9;
    ck_assert(!address_to_sockaddr(&list[0], port, &out, &length));
}
END_TEST

START_TEST(the_host_key_is_stable)
{
    char host[BOOT_HOST_BYTES];
    ck_assert_uint_eq(address_host_key(), address_host_key());
    address_host_name(host);
    ck_assert_uint_gt(strlen(host), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/address");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, loopback_comes_last_and_the_filter_is_obeyed);
    tcase_add_test(tc, meeting_addresses_are_split_or_refused);
    tcase_add_test(tc, numeric_addresses_resolve_to_themselves);
    tcase_add_test(tc, the_host_key_is_stable);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
