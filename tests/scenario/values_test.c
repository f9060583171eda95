/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * values_test.c - results of every collective, to the byte: guard pages behind and before the buffers, odd offsets,
 * poisoned outputs, untouched inputs, every type and operator, forked ranks and threads.
 */
#include "scenario.h"

enum { SMALL = 5 };

/* Counts around block, slot and vector borders. */
static const size_t counts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 255, 1000, 4097, 16384, 40001, 200003};

/* What the element must be: sums of small integers are exact in every type as long as they stay small. */
static uint64_t element(int rank, size_t i, quire_type_t type, quire_op_t op, int size)
{
    uint64_t v = harness_value(rank, i);
    bool tiny = quire_type_size(type) == 1;
    if (op == QUIRE_PROD)
        return 1 + v % 2 * (uint64_t)(rank < 3); /* 1 or 2 at the first three ranks only: at most 8 */
    if (op == QUIRE_AVG)
        return (uint64_t)size * (v % 2); /* the average of multiples of size, over equal values, stays whole */
    return tiny ? v % 2 : v % 8;
}

static double expected(size_t i, quire_type_t type, quire_op_t op, int size)
{
    double e = (double)element(0, i, type, op, size);
    for (int r = 1; r < size; r++) {
        double v = (double)element(r, i, type, op, size);
        e = op == QUIRE_PROD ? e * v : op == QUIRE_MAX ? (v > e ? v : e) : op == QUIRE_MIN ? (v < e ? v : e) : e + v;
    }
    return op == QUIRE_AVG ? e / size : e;
}

static int one_all_reduce(quire_comm *comm, int rank, int size, size_t count, quire_type_t type, quire_op_t op,
                          size_t skew, bool in_place, bool at_end)
{
    size_t elem = quire_type_size(type), bytes = count * elem;
    struct guarded in = guarded_make(bytes, at_end, skew), out = guarded_make(bytes, at_end, skew);
    uint8_t *copy = malloc(bytes + 1);
    for (size_t i = 0; i < count; i++)
        harness_put(in.at, i, type, element(rank, i, type, op, size));
    memcpy(copy, in.at, bytes);
    memset(out.at, 0xee, bytes);
    RANK_OK(quire_all_reduce(in.at, in_place ? in.at : out.at, count, type, op, comm, NULL));
    const uint8_t *result = in_place ? in.at : out.at;
    for (size_t i = 0; i < count; i++)
        if (harness_get(result, i, type) != expected(i, type, op, size)) {
            fprintf(stderr, "rank %d of %d: %s %s count %zu skew %zu%s: element %zu is %g, expected %g\n", rank, size,
                    quire_type_name(type), quire_op_name(op), count, skew, in_place ? " in place" : "", i,
                    harness_get(result, i, type), expected(i, type, op, size));
            return 1;
        }
    RANK_TRUE(in_place || memcmp(copy, in.at, bytes) == 0);
    RANK_TRUE(guarded_intact(&in) && guarded_intact(&out));
    free(copy);
    guarded_free(&in);
    guarded_free(&out);
    return 0;
}

static int all_reduce_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    RANK_OK(scenario_join(s, rank, size, &comm));
    for (quire_type_t type = 0; type < QUIRE_TYPE_COUNT; type++)
        for (quire_op_t op = 0; op < QUIRE_OP_COUNT; op++)
            for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
                /* Not every combination: the large counts on a few types, offsets going round. */
                size_t skew = (c * 5 + type * 3 + op) % 16;
                if (counts[c] > 5000 && type != QUIRE_FLOAT32 && type != QUIRE_BFLOAT16 && op != QUIRE_SUM)
                    continue;
                if (one_all_reduce(comm, rank, size, counts[c], type, op, skew, (c + op) % 2 == 0, (c + type) % 2 == 0))
                    return 1;
            }
    RANK_OK(quire_comm_destroy(comm));
    return 0;
}

static void run_both(harness_rank run, int size)
{
    struct scenario s;
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(size, run, &s, 120, -1), 0);
    scenario_begin(&s);
    ck_assert_int_eq(harness_threads(size, run, &s, 120), 0);
}

START_TEST(all_reduce_is_exact_on_every_rank)
{
    static const int sizes[] = {1, 2, 3, 4, 5};
    run_both(all_reduce_rank, sizes[_i]);
}
END_TEST

static int broadcast_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    RANK_OK(scenario_join(s, rank, size, &comm));
    for (int root = 0; root < size; root++)
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
            size_t bytes = counts[c];
            struct guarded in = guarded_make(bytes, true, c % 16), out = guarded_make(bytes, true, (c + 3) % 16);
            for (size_t i = 0; i < bytes; i++)
                in.at[i] = (uint8_t)harness_value(root, i + c);
            memset(out.at, 0xee, bytes);
            bool in_place = rank == root && c % 2 == 0;
            RANK_OK(quire_broadcast(rank == root ? in.at : NULL, in_place ? in.at : out.at, bytes, QUIRE_UINT8, root,
                                    comm, NULL));
            for (size_t i = 0; i < bytes; i++)
                RANK_TRUE((in_place ? in.at : out.at)[i] == (uint8_t)harness_value(root, i + c));
            RANK_TRUE(guarded_intact(&in) && guarded_intact(&out));
            guarded_free(&in);
            guarded_free(&out);
        }
    RANK_OK(quire_comm_destroy(comm));
    return 0;
}

START_TEST(broadcast_gives_the_roots_bytes)
{
    static const int sizes[] = {1, 2, 3, 5};
    run_both(broadcast_rank, sizes[_i]);
}
END_TEST

/* Every rank sends to every rank (itself too) in one group, listed in an order of its own. */
static int exchange_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    RANK_OK(scenario_join(s, rank, size, &comm));
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        size_t n = counts[c], row = n + 1;
        int32_t *out = malloc(row * (size_t)size * sizeof(*out)), *in = malloc(row * (size_t)size * sizeof(*in));
        for (int p = 0; p < size; p++)
            for (size_t i = 0; i < n; i++)
                out[(size_t)p * row + i] = (int32_t)harness_value(rank * 100 + p, i);
        memset(in, 0xee, row * (size_t)size * sizeof(*in));
        RANK_OK(quire_group_start());
        for (int k = 0; k < size; k++) {
            int to = (rank + k) % size, from = (rank * 7 + k) % size;
            RANK_OK(quire_send(out + (size_t)to * row, n, QUIRE_INT32, to, comm, NULL));
            RANK_OK(quire_recv(in + (size_t)from * row, n, QUIRE_INT32, from, comm, NULL));
        }
        RANK_OK(quire_group_end());
        for (int p = 0; p < size; p++) {
            for (size_t i = 0; i < n; i++)
                RANK_TRUE(in[(size_t)p * row + i] == (int32_t)harness_value(p * 100 + rank, i));
            RANK_TRUE(in[(size_t)p * row + n] == (int32_t)0xeeeeeeee);
        }
        free(in);
        free(out);
    }
    RANK_OK(quire_comm_destroy(comm));
    return 0;
}

START_TEST(a_group_exchanges_between_all_pairs)
{
    static const int sizes[] = {1, 2, 3, 4};
    run_both(exchange_rank, sizes[_i]);
}
END_TEST

/* Several messages to one peer in a row keep their order; a lone send meets a lone receive. */
static int ordered_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    uint64_t value;
    RANK_OK(scenario_join(s, rank, size, &comm));
    for (uint64_t i = 0; i < 200; i++) {
        value = i;
        if (rank == 0)
            RANK_OK(quire_send(&value, 1, QUIRE_UINT64, 1, comm, NULL));
        else
            RANK_OK(quire_recv(&value, 1, QUIRE_UINT64, 0, comm, NULL));
        RANK_TRUE(value == i);
    }
    uint64_t many[SMALL];
    RANK_OK(quire_group_start());
    for (uint64_t i = 0; i < SMALL; i++) {
        if (rank == 0)
            many[i] = 100 + i;
        if (rank == 0)
            RANK_OK(quire_send(&many[i], 1, QUIRE_UINT64, 1, comm, NULL));
        else
            RANK_OK(quire_recv(&many[i], 1, QUIRE_UINT64, 0, comm, NULL));
    }
    RANK_OK(quire_group_end());
    for (uint64_t i = 0; i < SMALL; i++)
        RANK_TRUE(many[i] == 100 + i);
    RANK_OK(quire_comm_destroy(comm));
    return 0;
}

START_TEST(messages_of_a_pair_keep_their_order)
{
    run_both(ordered_rank, 2);
}
END_TEST

/* No rank leaves a barrier before the last has come. */
static int barrier_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    uint32_t *entered = *(uint32_t *const *)s->arg;
    quire_comm *comm;
    RANK_OK(scenario_join(s, rank, size, &comm));
    for (uint32_t round = 1; round <= 50; round++) {
        if (rank == (int)(round % (uint32_t)size))
            usleep(500);
        __atomic_add_fetch(entered, 1, __ATOMIC_RELEASE);
        RANK_OK(quire_barrier(comm, NULL));
        RANK_TRUE(__atomic_load_n(entered, __ATOMIC_ACQUIRE) >= round * (uint32_t)size);
    }
    RANK_OK(quire_comm_destroy(comm));
    return 0;
}

START_TEST(a_barrier_waits_for_all)
{
    uint32_t entered = 0, *at = &entered;
    struct scenario s = {.arg = &at};
    scenario_begin(&s);
    ck_assert_int_eq(harness_threads(4, barrier_rank, &s, 60), 0);
}
END_TEST

/* The same bits on all ranks and in the canonical order, though the sum of these floats depends on the order. */
static int canonical_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    quire_comm *comm;
    RANK_OK(scenario_join(s, rank, size, &comm));
    for (size_t count = 3; count < 400000; count = count * 9 + 1) {
        float *in = malloc(count * sizeof(*in)), *out = malloc(count * sizeof(*out));
        for (size_t i = 0; i < count; i++)
            in[i] = (float)(harness_value(rank, i) % 100003) * 1.1f * (rank % 2 ? 1e-3f : 1.0f);
        RANK_OK(quire_all_reduce(in, out, count, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL));
        for (size_t i = 0; i < count; i++) {
            float v[5];
            for (int r = 0; r < size; r++)
                v[r] = (float)(harness_value(r, i) % 100003) * 1.1f * (r % 2 ? 1e-3f : 1.0f);
            /* F(0,5) = (F(0,2)) + F(2,5); F(2,5) = v2 + (v3 + v4) */
            float expect = (v[0] + v[1]) + (v[2] + (v[3] + v[4]));
            RANK_TRUE(memcmp(&expect, &out[i], sizeof(expect)) == 0);
        }
        free(out);
        free(in);
    }
    RANK_OK(quire_comm_destroy(comm));
    return 0;
}

START_TEST(sums_are_folded_in_the_canonical_order_at_every_size)
{
    run_both(canonical_rank, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("values");
    TCase *tcase = tcase_create("values");
    tcase_set_timeout(tcase, 250);
    tcase_add_loop_test(tcase, all_reduce_is_exact_on_every_rank, 0, 5);
    tcase_add_loop_test(tcase, broadcast_gives_the_roots_bytes, 0, 4);
    tcase_add_loop_test(tcase, a_group_exchanges_between_all_pairs, 0, 4);
    tcase_add_test(tcase, messages_of_a_pair_keep_their_order);
    tcase_add_test(tcase, a_barrier_waits_for_all);
    tcase_add_test(tcase, sums_are_folded_in_the_canonical_order_at_every_size);
    suite_add_tcase(suite, tcase);
    return scenario_main(suite);
}
