/* SPDX-License-Identifier: BSD-3-Clause */
/* api_test.c - arguments: what is refused, with which code and words, and that the communicator stays good. */
#include "../base/base_test.h"
#include "quire.h"

static quire_comm *alone(void)
{
    quire_unique_id id;
    quire_comm *comm;
    ck_assert_int_eq(quire_get_unique_id(&id), QUIRE_OK);
    ck_assert_int_eq(quire_comm_init_rank(&comm, 1, &id, 0, NULL), QUIRE_OK);
    return comm;
}

static void refused(quire_status_t st, quire_status_t want, const char *why)
{
    ck_assert_msg(st == want, "%s: %s", quire_status_name(st), quire_last_error(NULL));
    ck_assert_msg(strstr(quire_last_error(NULL), why) != NULL, "wanted \"%s\": %s", why, quire_last_error(NULL));
}

START_TEST(bad_arguments_are_named_and_change_nothing)
{
    quire_comm *comm = alone();
    float a[16] = {1}, b[16];
    refused(quire_all_reduce(NULL, b, 4, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL), QUIRE_ERR_INVALID_ARGUMENT,
            "send buffer");
    refused(quire_all_reduce(a, NULL, 4, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL), QUIRE_ERR_INVALID_ARGUMENT,
            "receive buffer");
    refused(quire_all_reduce(a, a + 1, 4, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL), QUIRE_ERR_INVALID_ARGUMENT, "overlap");
    refused(quire_all_reduce(a, b, 4, (quire_type_t)99, QUIRE_SUM, comm, NULL), QUIRE_ERR_INVALID_ARGUMENT,
            "element type");
    refused(quire_all_reduce(a, b, 4, QUIRE_FLOAT32, (quire_op_t)5, comm, NULL), QUIRE_ERR_INVALID_ARGUMENT,
            "operator");
    refused(quire_all_reduce(a, b, SIZE_MAX / 2, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL), QUIRE_ERR_INVALID_ARGUMENT,
            "overflow");
    refused(quire_broadcast(a, b, 4, QUIRE_FLOAT32, 1, comm, NULL), QUIRE_ERR_INVALID_ARGUMENT, "root 1");
    refused(quire_broadcast(a, b, 4, QUIRE_FLOAT32, -1, comm, NULL), QUIRE_ERR_INVALID_ARGUMENT, "root -1");
    refused(quire_send(a, 4, QUIRE_FLOAT32, 2, comm, NULL), QUIRE_ERR_INVALID_ARGUMENT, "peer 2");
    refused(quire_send(a, 4, QUIRE_FLOAT32, 0, comm, NULL), QUIRE_ERR_INVALID_USAGE, "group");
    refused(quire_barrier(NULL, NULL), QUIRE_ERR_INVALID_ARGUMENT, "communicator");
    refused(quire_barrier(comm, (quire_stream *)a), QUIRE_ERR_INVALID_ARGUMENT, "stream");
    ck_assert_int_eq(quire_all_reduce(NULL, NULL, 0, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL), QUIRE_OK);
    ck_assert_int_eq(quire_all_reduce(a, b, 16, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL), QUIRE_OK);
    ck_assert(b[0] == 1);
    ck_assert_int_eq(quire_comm_destroy(comm), QUIRE_OK);
}
END_TEST

START_TEST(init_refuses_what_makes_no_sense)
{
    quire_unique_id id, junk;
    quire_comm *comm = NULL;
    quire_config config = QUIRE_CONFIG_INITIALIZER;
    ck_assert_int_eq(quire_get_unique_id(&id), QUIRE_OK);
    memset(&junk, 0x5a, sizeof(junk));
    refused(quire_comm_init_rank(&comm, 2, &id, 2, NULL), QUIRE_ERR_INVALID_ARGUMENT, "rank 2 of 2");
    refused(quire_comm_init_rank(&comm, 0, &id, 0, NULL), QUIRE_ERR_INVALID_ARGUMENT, "rank 0 of 0");
    refused(quire_comm_init_rank(NULL, 1, &id, 0, NULL), QUIRE_ERR_INVALID_ARGUMENT, "comm is NULL");
    refused(quire_comm_init_rank(&comm, 1, NULL, 0, NULL), QUIRE_ERR_INVALID_ARGUMENT, "id is NULL");
    refused(quire_comm_init_rank(&comm, 1, &junk, 0, NULL), QUIRE_ERR_INVALID_ARGUMENT, "");
    config.size = 3;
    refused(quire_comm_init_rank(&comm, 1, &id, 0, &config), QUIRE_ERR_INVALID_ARGUMENT, "QUIRE_CONFIG_INITIALIZER");
    config = (quire_config)QUIRE_CONFIG_INITIALIZER;
    config.transport = "pigeon";
    refused(quire_comm_init_rank(&comm, 1, &id, 0, &config), QUIRE_ERR_INVALID_ARGUMENT, "pigeon");
    config.transport = NULL;
    config.timeout_ms = -5;
    refused(quire_comm_init_rank(&comm, 1, &id, 0, &config), QUIRE_ERR_INVALID_ARGUMENT, "timeout");
    ck_assert_ptr_eq(comm, NULL);
}
END_TEST

START_TEST(an_id_is_good_once)
{
    quire_unique_id id;
    quire_comm *comm, *second = NULL;
    quire_config config = QUIRE_CONFIG_INITIALIZER;
    config.init_timeout_ms = 1000;
    ck_assert_int_eq(quire_get_unique_id(&id), QUIRE_OK);
    ck_assert_int_eq(quire_comm_init_rank(&comm, 1, &id, 0, NULL), QUIRE_OK);
    ck_assert_int_ne(quire_comm_init_rank(&second, 1, &id, 0, &config), QUIRE_OK);
    ck_assert_ptr_eq(second, NULL);
    ck_assert_int_eq(quire_comm_destroy(comm), QUIRE_OK);
}
END_TEST

START_TEST(after_finalize_only_queries_and_destroy)
{
    quire_comm *comm = alone();
    int value = -1;
    quire_status_t st;
    ck_assert_int_eq(quire_comm_finalize(comm), QUIRE_OK);
    refused(quire_barrier(comm, NULL), QUIRE_ERR_INVALID_USAGE, "finalized");
    ck_assert(quire_comm_rank(comm, &value) == QUIRE_OK && value == 0);
    ck_assert(quire_comm_size(comm, &value) == QUIRE_OK && value == 1);
    ck_assert(quire_comm_device(comm, &value) == QUIRE_OK && value == -1);
    ck_assert(quire_comm_async_error(comm, &st) == QUIRE_OK && st == QUIRE_OK);
    refused(quire_comm_rank(comm, NULL), QUIRE_ERR_INVALID_ARGUMENT, "NULL");
    ck_assert_int_eq(quire_comm_destroy(comm), QUIRE_OK);
    ck_assert_int_eq(quire_comm_destroy(NULL), QUIRE_OK);
}
END_TEST

START_TEST(memory_is_zeroed_and_freed_once)
{
    unsigned char *memory;
    void *handle;
    quire_comm *comm = alone();
    refused(quire_mem_alloc((void **)&memory, 0), QUIRE_ERR_INVALID_ARGUMENT, "0 bytes");
    ck_assert_int_eq(quire_mem_alloc((void **)&memory, 5000), QUIRE_OK);
    for (int i = 0; i < 5000; i++)
        ck_assert(memory[i] == 0);
    ck_assert(((uintptr_t)memory & 4095) == 0);
    ck_assert_int_eq(quire_comm_register(comm, memory, 5000, &handle), QUIRE_OK);
    refused(quire_comm_register(comm, NULL, 5000, &handle), QUIRE_ERR_INVALID_ARGUMENT, "NULL");
    ck_assert_int_eq(quire_comm_deregister(comm, handle), QUIRE_OK);
    ck_assert_int_eq(quire_comm_deregister(comm, NULL), QUIRE_OK);
    ck_assert_int_eq(quire_mem_free(memory), QUIRE_OK);
    refused(quire_mem_free(&handle), QUIRE_ERR_INVALID_ARGUMENT, "not made by quire_mem_alloc");
    ck_assert_int_eq(quire_mem_free(NULL), QUIRE_OK);
    refused(quire_mem_alloc((void **)&memory, (size_t)1 << 50), QUIRE_ERR_RESOURCE, "free");
    ck_assert_int_eq(quire_comm_destroy(comm), QUIRE_OK);
}
END_TEST

START_TEST(groups_nest_and_end_once)
{
    quire_comm *comm = alone();
    int a = 3, b = 0;
    refused(quire_group_end(), QUIRE_ERR_INVALID_USAGE, "without quire_group_start");
    ck_assert_int_eq(quire_group_start(), QUIRE_OK);
    ck_assert_int_eq(quire_group_start(), QUIRE_OK);
    ck_assert_int_eq(quire_send(&a, 1, QUIRE_INT32, 0, comm, NULL), QUIRE_OK);
    ck_assert_int_eq(quire_group_end(), QUIRE_OK);
    ck_assert_int_eq(b, 0);
    ck_assert_int_eq(quire_recv(&b, 1, QUIRE_INT32, 0, comm, NULL), QUIRE_OK);
    ck_assert_int_eq(quire_group_end(), QUIRE_OK);
    ck_assert_int_eq(b, 3);
    ck_assert_int_eq(quire_group_start(), QUIRE_OK);
    ck_assert_int_eq(quire_send(&a, 1, QUIRE_INT32, 0, comm, NULL), QUIRE_OK);
    refused(quire_group_end(), QUIRE_ERR_INVALID_USAGE, "partner");
    ck_assert_int_eq(quire_group_start(), QUIRE_OK);
    ck_assert_int_eq(quire_group_end(), QUIRE_OK); /* an empty one */
    /* After the refused message the next pair still matches. */
    ck_assert_int_eq(quire_group_start(), QUIRE_OK);
    a = 9;
    ck_assert_int_eq(quire_recv(&b, 1, QUIRE_INT32, 0, comm, NULL), QUIRE_OK);
    ck_assert_int_eq(quire_send(&a, 1, QUIRE_INT32, 0, comm, NULL), QUIRE_OK);
    quire_status_t st = quire_group_end();
    ck_assert_msg(st == QUIRE_OK, "%s", quire_last_error(NULL));
    ck_assert_int_eq(b, 9);
    ck_assert_int_eq(quire_comm_destroy(comm), QUIRE_OK);
}
END_TEST

START_TEST(explain_tells_choice_and_plan)
{
    quire_comm *comm = alone();
    char text[4096], small[10];
    ck_assert_int_eq(quire_explain(comm, QUIRE_ALL_REDUCE, 1000, QUIRE_FLOAT32, QUIRE_SUM, text, sizeof(text)),
                     QUIRE_OK);
    ck_assert(strstr(text, "choice: ") && strstr(text, "plan all_reduce"));
    refused(quire_explain(comm, QUIRE_ALL_REDUCE, 1000, QUIRE_FLOAT32, QUIRE_SUM, small, sizeof(small)),
            QUIRE_ERR_RESOURCE, "needs");
    ck_assert_uint_eq(strlen(small), 9);
    ck_assert_int_eq(quire_comm_destroy(comm), QUIRE_OK);
}
END_TEST

static void count_knob(void *arg, const char *name, const char *type, const char *def, const char *value, int was_set,
                       const char *help)
{
    ck_assert(strncmp(name, "QUIRE_", 6) == 0 && help[0] != '\0' && type[0] != '\0');
    ++*(int *)arg;
}

START_TEST(knobs_are_listed)
{
    int count = 0, version = 0;
    ck_assert_int_eq(quire_visit_knobs(count_knob, &count), QUIRE_OK);
    ck_assert_int_ge(count, 20);
    ck_assert(quire_get_version(&version) == QUIRE_OK && version == QUIRE_VERSION);
}
END_TEST

BASE_TEST_MAIN("api", bad_arguments_are_named_and_change_nothing, init_refuses_what_makes_no_sense, an_id_is_good_once,
               after_finalize_only_queries_and_destroy, memory_is_zeroed_and_freed_once, groups_nest_and_end_once,
               explain_tells_choice_and_plan, knobs_are_listed)
