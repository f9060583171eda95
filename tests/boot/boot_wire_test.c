/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_wire_test.c - every message comes back as it was written, and no cut or changed one is taken. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "boot/boot_wire.h"

/* Copies the bytes to the very end of a page before an unmapped one: reading over the end is a fault. */
static const uint8_t *at_the_edge(const uint8_t *bytes, size_t size)
{
    static uint8_t *pages;
    if (!pages) {
        pages = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_int_eq(mprotect(pages + 4 * 4096, 4096, PROT_NONE), 0);
    }
    ck_assert_uint_le(size, 4 * 4096);
    uint8_t *to = pages + 4 * 4096 - size;
    if (size)
        memcpy(to, bytes, size);
    return to;
}

static struct wire_member member_of(int i)
{
    struct wire_member member = {.host_key = 0x1122334455667788u + (unsigned)i,
                                 .pid = 77 + i,
                                 .door = 0xfedcba9876543210u,
                                 .port = (uint16_t)(4000 + i),
                                 .address_count = (uint8_t)(i % (WIRE_MAX_ADDRESSES + 1))};
    snprintf(member.host, sizeof(member.host), "host-%d", i);
    for (int k = 0; k < member.address_count; k++) {
        member.address[k].family = k % 2 ? 6 : 4;
        for (int b = 0; b < (k % 2 ? 16 : 4); b++)
            member.address[k].bytes[b] = (uint8_t)(i + k + b);
    }
    return member;
}

START_TEST(headers_are_checked)
{
    uint8_t bytes[WIRE_HEADER_BYTES];
    struct wire_header header = {WIRE_DATA, 12345, 0xabcdef0123456789u}, got;
    wire_header_write(bytes, &header);
    ck_assert(wire_header_parse(at_the_edge(bytes, sizeof(bytes)), &got));
    ck_assert_uint_eq(got.type, WIRE_DATA);
    ck_assert_uint_eq(got.length, 12345);
    ck_assert_uint_eq(got.generation, 0xabcdef0123456789u);
    for (size_t i = 0; i < 16; i++) { /* magic, version, type, length, zero; the generation may be anything */
        if (i >= 6 && i < 12)
            continue;
        bytes[i] ^= 0x40;
        ck_assert_msg(!wire_header_parse(bytes, &got), "byte %zu", i);
        bytes[i] ^= 0x40;
    }
    static const struct wire_header wrong[] = {{0, 0, 0},        {WIRE_TYPE_COUNT, 0, 0},
                                               {WIRE_ACK, 1, 0}, {WIRE_HELLO, WIRE_MAX_SMALL + 1, 0},
                                               {WIRE_GO, 24, 0}, {WIRE_TABLE, WIRE_MAX_TABLE + 1, 0},
                                               {65535, 0, 0},    {WIRE_DATA, UINT32_MAX, 0}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        wire_header_write(bytes, &wrong[i]);
        ck_assert_msg(!wire_header_parse(bytes, &got), "case %zu", i);
    }
}
END_TEST

START_TEST(hello_round_trips_and_no_cut_one_is_taken)
{
    struct wire_out out = {NULL, 0, 0, false};
    struct wire_hello hello = {.from = 3, .to = -1, .purpose = WIRE_FOR_FETCH, .number = 9, .tag = 1ull << 60}, got;
    memset(hello.key, 0x77, sizeof(hello.key));
    wire_hello_write(&out, &hello);
    ck_assert(wire_hello_parse(at_the_edge(out.bytes, out.size), out.size, &got));
    ck_assert_mem_eq(&got, &hello, sizeof(got));
    for (size_t cut = 0; cut < out.size; cut++)
        ck_assert(!wire_hello_parse(at_the_edge(out.bytes, cut), cut, &got));
    out.bytes[WIRE_KEY_BYTES + 3] = 0x80; /* from < 0 */
    ck_assert(!wire_hello_parse(out.bytes, out.size, &got));
    free(out.bytes);
}
END_TEST

START_TEST(join_and_table_round_trip_and_no_cut_one_is_taken)
{
    struct wire_out out = {NULL, 0, 0, false};
    struct wire_join join = {.rank = 2, .size = 10, .timeout_ns = 5, .member = member_of(8)}, got;
    memset(&got, 0, sizeof(got));
    wire_join_write(&out, &join);
    ck_assert(wire_join_parse(at_the_edge(out.bytes, out.size), out.size, &got));
    ck_assert_int_eq(got.rank, 2);
    ck_assert_int_eq(got.size, 10);
    ck_assert_mem_eq(&got.member, &join.member, sizeof(got.member));
    for (size_t cut = 0; cut < out.size; cut++)
        ck_assert(!wire_join_parse(at_the_edge(out.bytes, cut), cut, &got));
    out.size = 0;

    struct wire_member members[9];
    uint8_t key[WIRE_KEY_BYTES] = "0123456789abcde", other[WIRE_KEY_BYTES];
    wire_table_begin(&out, key, 9);
    for (int i = 0; i < 9; i++) {
        struct wire_member member = member_of(i);
        wire_member_write(&out, &member);
    }
    ck_assert(wire_table_parse(at_the_edge(out.bytes, out.size), out.size, other, members, 9));
    ck_assert_mem_eq(key, other, sizeof(key));
    for (int i = 0; i < 9; i++) {
        struct wire_member member = member_of(i);
        ck_assert_mem_eq(&members[i], &member, sizeof(member));
    }
    ck_assert(!wire_table_parse(out.bytes, out.size, other, members, 8));
    for (size_t cut = 0; cut < out.size; cut++)
        ck_assert(!wire_table_parse(at_the_edge(out.bytes, cut), cut, other, members, 9));
    free(out.bytes);
}
END_TEST

START_TEST(floods_carry_causes_unchanged)
{
    struct wire_out out = {NULL, 0, 0, false};
    struct wire_flood flood = {42, cause_make(QUIRE_ERR_PEER_FAILED, 7, "rank %d broke", 7)}, got;
    flood.cause.sequence = 1ull << 40;
    memset(&got, 0, sizeof(got));
    wire_flood_write(&out, &flood);
    ck_assert(wire_flood_parse(at_the_edge(out.bytes, out.size), out.size, &got));
    ck_assert_uint_eq(got.id, 42);
    ck_assert_uint_eq(got.cause.sequence, 1ull << 40);
    ck_assert_str_eq(got.cause.text, "rank 7 broke");
    for (size_t cut = 0; cut < out.size; cut++)
        ck_assert(!wire_flood_parse(at_the_edge(out.bytes, cut), cut, &got));
    out.bytes[out.size - 1] = 0x1b; /* an escape sequence for whoever prints it */
    ck_assert(!wire_flood_parse(out.bytes, out.size, &got));
    out.bytes[out.size - 1] = 'x';
    out.bytes[8] = 250; /* no status */
    ck_assert(!wire_flood_parse(out.bytes, out.size, &got));
    free(out.bytes);
}
END_TEST

START_TEST(data_notes_asks_and_answers_round_trip)
{
    struct wire_out out = {NULL, 0, 0, false};
    struct wire_data data = {WIRE_BROADCAST, 5, 1ull << 50, 3, (const uint8_t *)"abc", 3}, data_got;
    wire_data_write(&out, &data);
    const uint8_t *edge = at_the_edge(out.bytes, out.size);
    ck_assert(wire_data_parse(edge, out.size, &data_got));
    ck_assert_uint_eq(data_got.payload_bytes, 3);
    ck_assert_mem_eq(data_got.payload, "abc", 3);
    ck_assert(!wire_data_parse(edge, 17, &data_got));
    out.size = 0;

    struct wire_note note = {5, 99}, note_got;
    wire_note_write(&out, &note);
    ck_assert(wire_note_parse(at_the_edge(out.bytes, out.size), out.size, &note_got));
    ck_assert(note_got.rank == 5 && note_got.sequence == 99);
    ck_assert(!wire_note_parse(out.bytes, out.size - 1, &note_got));
    out.size = 0;

    struct wire_ask ask = {1, 2}, ask_got;
    wire_ask_write(&out, &ask);
    ck_assert(wire_ask_parse(at_the_edge(out.bytes, out.size), out.size, &ask_got));
    ck_assert(ask_got.request == 1 && ask_got.sequence == 2);
    out.size = 0;

    struct wire_answer answer = {.request = 4, .answer = BOARD_GONE, .posted = 5, .name = {1, 2, 3, 4, 5, 6, 7, 8, 9}},
                       answer_got;
    wire_answer_write(&out, &answer);
    ck_assert(wire_answer_parse(at_the_edge(out.bytes, out.size), out.size, &answer_got));
    ck_assert(op_name_equal(&answer.name, &answer_got.name) && answer_got.posted == 5);
    out.bytes[8] = 3; /* no such answer */
    ck_assert(!wire_answer_parse(out.bytes, out.size, &answer_got));
    free(out.bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/boot_wire");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, headers_are_checked);
    tcase_add_test(tc, hello_round_trips_and_no_cut_one_is_taken);
    tcase_add_test(tc, join_and_table_round_trip_and_no_cut_one_is_taken);
    tcase_add_test(tc, floods_carry_causes_unchanged);
    tcase_add_test(tc, data_notes_asks_and_answers_round_trip);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
