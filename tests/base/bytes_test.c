/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes_test.c - sizes, times, numbers, hashes and distances: what parses, what doesn't. */
#include "base/bytes.h"
#include "base_test.h"

START_TEST(sizes_parse_exactly_or_not_at_all)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},
                {"4", 4},
                {"64K", 65536},
                {"64k", 65536},
                {"64KiB", 65536},
                {"1.5M", 1572864},
                {"2GB", 2147483648u},
                {"1T", UINT64_C(1) << 40},
                {"16B", 16},
                {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {"",    "K",  "-1", "1.5", "12X", "1KK", "18446744073709551616",
                                      "20E", " 1", "1 ", ".K"};
    uint64_t value;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ck_assert_msg(bytes_parse_size(good[i].text, &value), "%s", good[i].text);
        ck_assert_uint_eq(value, good[i].value);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!bytes_parse_size(bad[i], &value), "%s", bad[i]);
}
END_TEST

START_TEST(times_are_nanoseconds)
{
    uint64_t ns;
    ck_assert(bytes_parse_time("250us", &ns) && ns == 250000);
    ck_assert(bytes_parse_time("1.5s", &ns) && ns == 1500000000);
    ck_assert(bytes_parse_time("2", &ns) && ns == 2000000000);
    ck_assert(bytes_parse_time("2m", &ns) && ns == 120000000000);
    ck_assert(bytes_parse_time("0", &ns) && ns == 0);
    ck_assert(!bytes_parse_time("5 s", &ns) && !bytes_parse_time("s", &ns) && !bytes_parse_time("-1s", &ns));
    ck_assert(!bytes_parse_time("99999999999999h", &ns));
}
END_TEST

START_TEST(numbers_keep_their_range)
{
    int64_t v;
    ck_assert(bytes_parse_int("-1", -1, 5, &v) && v == -1);
    ck_assert(!bytes_parse_int("6", -1, 5, &v) && !bytes_parse_int("", 0, 5, &v) && !bytes_parse_int("-", -9, 5, &v));
    ck_assert(bytes_parse_int("-9223372036854775808", INT64_MIN, 0, &v) && v == INT64_MIN);
    ck_assert(!bytes_parse_int("9223372036854775808", 0, INT64_MAX, &v) && !bytes_parse_int("3x", 0, 5, &v));
}
END_TEST

START_TEST(sizes_print_short)
{
    char text[16];
    ck_assert_str_eq(bytes_size_text(123, text), "123");
    ck_assert_str_eq(bytes_size_text(65536, text), "64K");
    ck_assert_str_eq(bytes_size_text(1572864, text), "1.5M");
    ck_assert_str_eq(bytes_size_text(UINT64_C(100) << 30, text), "100G");
    ck_assert_str_eq(bytes_size_text(1048575, text), "1M");
    ck_assert_str_eq(bytes_size_text(1047551, text), "1023K");
    ck_assert_str_eq(bytes_size_text((UINT64_C(1) << 60) - 1, text), "1E");
    ck_assert_str_eq(bytes_size_text(UINT64_MAX, text), "15.9E");
}
END_TEST

START_TEST(what_is_printed_can_be_read_again)
{
    for (int shift = 0; shift < 64; shift++)
        for (int64_t off = -2; off <= 2; off++) {
            char text[16];
            uint64_t bytes = (UINT64_C(1) << shift) + (uint64_t)off, again = 0;
            ck_assert_msg(bytes_parse_size(bytes_size_text(bytes, text), &again), "%s", text);
            ck_assert_msg((again > bytes ? again - bytes : bytes - again) <= bytes / 100, "%s", text);
        }
}
END_TEST

START_TEST(distance_knows_swapped_letters)
{
    ck_assert_int_eq(bytes_distance("QUIRE_LOG", "QUIRE_LOG", 5), 0);
    ck_assert_int_eq(bytes_distance("QUIRE_LGO", "QUIRE_LOG", 5), 1);
    ck_assert_int_eq(bytes_distance("abc", "xyz", 2), 2);
}
END_TEST

START_TEST(hashes_chain)
{
    ck_assert_uint_eq(bytes_hash(BYTES_HASH_START, "", 0), BYTES_HASH_START);
    ck_assert_uint_eq(bytes_hash(BYTES_HASH_START, "a", 1),
                      UINT64_C(0xaf63dc4c8601ec8c)); /* FNV-1a's published vector */
    ck_assert_uint_eq(bytes_hash(bytes_hash(BYTES_HASH_START, "ab", 2), "c", 1),
                      bytes_hash(BYTES_HASH_START, "abc", 3));
}
END_TEST

BASE_TEST_MAIN("bytes", sizes_parse_exactly_or_not_at_all, times_are_nanoseconds, numbers_keep_their_range,
               sizes_print_short, what_is_printed_can_be_read_again, distance_knows_swapped_letters, hashes_chain)
