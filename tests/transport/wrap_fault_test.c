/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wrap_fault_test.c - specs that parse and that don't; and, with real ranks over tcp, that every disturbance is noticed
 * and named by somebody, or (delay) only costs time.
 */
#include "../scenario/scenario.h"
#include "base/knobs.h"
#include "base/status.h"
#include "wrap_fault.h"

START_TEST(bad_specs_are_told_with_the_bad_part)
{
    static const char *const bad[] = {"udp:drop=1",   "tcp:drop=2", "tcp:drop",
                                      "tcp:hop=1",    "tcp:kill=1", "tcp:delay=x",
                                      "tcp:kill=1@0", "",           "tcp:corrupt=0.1,drop=-1"};
    struct transport_end end = {&transport_shm};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(wrap_fault(&end, bad[i]) == QUIRE_ERR_INVALID_ARGUMENT, "%s", bad[i]);
    ck_assert(strstr(status_text_last(), "drop=-1") != NULL);
    ck_assert_int_eq(wrap_fault(&end, "tcp:drop=0.5,delay=1ms,kill=3@10,seed=4,corrupt=0,corrupt_bytes=1"), QUIRE_OK);
}
END_TEST

struct disturbance {
    const char *spec;
    const char *says; /* NULL: all goes well */
};

static int disturbed_rank(int rank, int size, void *arg)
{
    const struct scenario *s = arg;
    const struct disturbance *d = s->arg;
    quire_comm *comm;
    float in[5000] = {0}, out[5000];
    setenv("QUIRE_TRANSPORT", "tcp", 1);
    if (rank == 0)
        setenv("QUIRE_FAULT", d->spec, 1);
    knobs_reload();
    RANK_OK(scenario_join(s, rank, size, &comm));
    quire_status_t st = QUIRE_OK;
    for (int i = 0; st == QUIRE_OK && i < (d->says == NULL ? 20 : 20000); i++) {
        in[7] = (float)i;
        st = quire_all_reduce(in, out, 5000, QUIRE_FLOAT32, QUIRE_SUM, comm, NULL);
        RANK_TRUE(st != QUIRE_OK || out[7] == (float)(i * size));
    }
    if (d->says == NULL) {
        RANK_TRUE(st == QUIRE_OK);
    } else {
        RANK_TRUE(st == QUIRE_ERR_PEER_FAILED);
        if (strstr(quire_last_error(comm), d->says) == NULL)
            fprintf(stderr, "%s\n", quire_last_error(comm));
        RANK_TRUE(strstr(quire_last_error(comm), d->says) != NULL);
    }
    (void)quire_comm_destroy(comm);
    return 0;
}

START_TEST(every_disturbance_is_noticed)
{
    static const struct disturbance all[] = {{"tcp:delay=2ms", NULL},
                                             {"tcp:drop=0.05,seed=7", "a frame was lost"},
                                             {"tcp:corrupt=0.05,seed=7", "header was damaged"},
                                             {"tcp:corrupt_bytes=0.05,seed=7", "payload's checksum differs"},
                                             {"tcp:kill=1@50", "rank 1"}};
    struct scenario s = {.arg = &all[_i]};
    scenario_begin(&s);
    ck_assert_int_eq(harness_fork(2, disturbed_rank, &s, 50, -1), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wrap_fault");
    TCase *tcase = tcase_create("wrap_fault");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, bad_specs_are_told_with_the_bad_part);
    tcase_add_loop_test(tcase, every_disturbance_is_noticed, 0, 5);
    suite_add_tcase(suite, tcase);
    return scenario_main(suite);
}
