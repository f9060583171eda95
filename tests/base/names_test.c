/* SPDX-License-Identifier: BSD-3-Clause */
/* names_test.c - names and sizes of types, operators and collectives; operations as sentences. */
#include "base/op_name.h"
#include "base_test.h"
#include "quire.h"

START_TEST(types_have_the_names_that_nccl_tests_prints)
{
    static const char *const names[] = {"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                        "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    for (int t = 0; t < QUIRE_TYPE_COUNT; t++) {
        ck_assert_str_eq(quire_type_name((quire_type_t)t), names[t]);
        ck_assert_uint_eq(quire_type_size((quire_type_t)t), sizes[t]);
    }
    ck_assert_str_eq(quire_type_name((quire_type_t)99), "?");
    ck_assert_uint_eq(quire_type_size((quire_type_t)-1), 0);
    ck_assert_str_eq(quire_op_name(QUIRE_AVG), "avg");
    ck_assert_str_eq(quire_op_name((quire_op_t)5), "?");
    ck_assert_str_eq(quire_collective_name(QUIRE_BARRIER), "barrier");
    ck_assert_str_eq(quire_collective_name((quire_collective_t)77), "?");
}
END_TEST

START_TEST(an_operation_is_a_sentence)
{
    char text[128];
    struct op_name name = {
        .sequence = 12, .count = 1024, .collective = QUIRE_ALL_REDUCE, .type = QUIRE_FLOAT32, .op = QUIRE_SUM};
    ck_assert_str_eq(op_name_text(&name, text, sizeof(text)), "#12 all_reduce count 1024 float sum");
    name.collective = QUIRE_BROADCAST;
    name.root = 3;
    ck_assert_str_eq(op_name_text(&name, text, sizeof(text)), "#12 broadcast count 1024 float root 3");
    name.collective = QUIRE_BARRIER;
    ck_assert_str_eq(op_name_text(&name, text, sizeof(text)), "#12 barrier");
    name.collective = 250;
    ck_assert_str_eq(op_name_text(&name, text, 6), "#12 ?");
}
END_TEST

BASE_TEST_MAIN("names", types_have_the_names_that_nccl_tests_prints, an_operation_is_a_sentence)
