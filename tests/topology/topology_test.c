/* SPDX-License-Identifier: BSD-3-Clause */
/* topology_test.c - this machine, a machine made up by hwloc's synthetic description, and files that are none. */
#include "../base/base_test.h"
#include "base/status.h"
#include "topology.h"

START_TEST(this_machine_has_cores_and_memory)
{
    const struct topology *t = topology_get();
    ck_assert_ptr_eq(t, topology_get());
    ck_assert_int_ge(t->cores, 1);
    ck_assert_int_ge(t->threads, t->allowed_threads);
    ck_assert_int_ge(t->allowed_threads, t->allowed_cores);
    ck_assert_int_ge(t->allowed_cores, 1);
    ck_assert(t->memory_bytes > 1 << 24);
}
END_TEST

START_TEST(a_described_machine_is_read)
{
    /* 2 packages, 2 nodes, 4 cores each with 2 threads, a last-level cache for each package. */
    setenv("HWLOC_SYNTHETIC", "pack:2 [numa(memory=1073741824)] l3:1(size=33554432) l2:4(size=1048576) core:1 pu:2", 1);
    setenv("HWLOC_THISSYSTEM", "0", 1);
    const struct topology *t = topology_get();
    ck_assert_int_eq(t->packages, 2);
    ck_assert_int_eq(t->nodes, 2);
    ck_assert_int_eq(t->cores, 8);
    ck_assert_int_eq(t->threads, 16);
    ck_assert_int_eq(t->llc_threads, 8);
    ck_assert_uint_eq(t->llc_bytes, 33554432);
    ck_assert_uint_eq(t->l2_bytes, 1048576);
    char text[1024];
    ck_assert_uint_eq(topology_print(t, text, sizeof(text)), strlen(text));
    ck_assert(strstr(text, "8 in 2 packages, 16 hardware threads") && strstr(text, "last level 32M for 8 threads"));
}
END_TEST

START_TEST(a_file_that_is_none_is_an_error)
{
    struct topology t;
    ck_assert_int_eq(topology_load_xml("/nonexistent.xml", &t), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert(strstr(status_text_last(), "/nonexistent.xml") != NULL);
}
END_TEST

BASE_TEST_MAIN("topology", this_machine_has_cores_and_memory, a_described_machine_is_read,
               a_file_that_is_none_is_an_error)
