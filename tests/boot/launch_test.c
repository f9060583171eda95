/* SPDX-License-Identifier: BSD-3-Clause */
/* launch_test.c - what each launcher's environment means, and what contradictions are called. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/knobs.h"
#include "base/status.h"
#include "boot/launch.h"

static struct launch launch;

static quire_status_t read_env(const char *const *pairs)
{
    static const char *const known[] = {"QUIRE_RANK",
                                        "QUIRE_SIZE",
                                        "QUIRE_LOCAL_RANK",
                                        "QUIRE_LOCAL_SIZE",
                                        "QUIRE_JOB",
                                        "QUIRE_ROOT",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "TORCHELASTIC_RUN_ID",
                                        "TORCHELASTIC_RESTART_COUNT",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "PMIX_NAMESPACE",
                                        "OMPI_MCA_ess_base_jobid",
                                        "OMPI_MCA_orte_ess_jobid",
                                        "PMIX_SERVER_URI2",
                                        "OMPI_MCA_orte_hnp_uri",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_LOCALID",
                                        "SLURM_NNODES",
                                        "SLURM_STEP_NUM_NODES",
                                        "SLURM_JOB_ID",
                                        "SLURM_STEP_ID"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        unsetenv(known[i]);
    for (; pairs[0]; pairs += 2)
        setenv(pairs[0], pairs[1], 1);
    knobs_reload();
    status_text_clear();
    memset(&launch, 0x5a, sizeof(launch));
    return launch_read(&launch);
}
#define ENV(...) read_env((const char *const[]){__VA_ARGS__, NULL})

static void expect(int rank, int size, int local_rank, int local_size, const char *launcher,
                   enum boot_meeting_kind meeting, const char *where)
{
    ck_assert_int_eq(launch.info.rank, rank);
    ck_assert_int_eq(launch.info.size, size);
    ck_assert_int_eq(launch.info.local_rank, local_rank);
    ck_assert_int_eq(launch.info.local_size, local_size);
    ck_assert_str_eq(launch.info.launcher, launcher);
    ck_assert_int_eq(launch.meeting, meeting);
    if (where)
        ck_assert_str_eq(launch.where, where);
}

START_TEST(without_a_launcher_it_is_ok_and_none)
{
    ck_assert_int_eq(read_env((const char *const[]){NULL}), QUIRE_OK);
    ck_assert_int_eq(launch.info.rank, -1);
    ck_assert_str_eq(launch.info.launcher, "none");
    ck_assert_int_eq(ENV("RANK", "3"), QUIRE_OK); /* a common name, no launcher */
    ck_assert_str_eq(launch.info.launcher, "none");
    ck_assert_int_eq(ENV("SLURM_NTASKS", "8", "SLURM_JOB_ID", "5"), QUIRE_OK); /* a batch script */
    ck_assert_str_eq(launch.info.launcher, "none");
}
END_TEST

START_TEST(quire_run_is_understood)
{
    ck_assert_int_eq(
        ENV("QUIRE_RANK", "1", "QUIRE_SIZE", "4", "QUIRE_LOCAL_RANK", "1", "QUIRE_LOCAL_SIZE", "4", "QUIRE_JOB", "j77"),
        QUIRE_OK);
    expect(1, 4, 1, 4, "quire", BOOT_MEET_JOB, "j77");
    ck_assert_int_eq(ENV("QUIRE_RANK", "1", "QUIRE_SIZE", "4", "QUIRE_ROOT", "[::1]:4000"), QUIRE_OK);
    expect(1, 4, -1, -1, "quire", BOOT_MEET_ADDRESS, "[::1]:4000");
    ck_assert_int_eq(ENV("QUIRE_RANK", "0", "QUIRE_SIZE", "2", "QUIRE_ROOT", "file:/tmp/x"), QUIRE_OK);
    expect(0, 2, -1, -1, "quire", BOOT_MEET_FILE, "/tmp/x");
    ck_assert_int_eq(ENV("QUIRE_RANK", "0", "QUIRE_SIZE", "1"), QUIRE_OK);
    expect(0, 1, -1, -1, "quire", BOOT_MEET_JOB, NULL);
    ck_assert_int_eq(ENV("QUIRE_RANK", "0", "QUIRE_SIZE", "2", "QUIRE_JOB", "x"), QUIRE_OK);
    expect(0, 2, -1, -1, "quire", BOOT_MEET_JOB, "x");
}
END_TEST

START_TEST(torchrun_is_understood)
{
    ck_assert_int_eq(ENV("RANK", "5", "WORLD_SIZE", "8", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "4", "MASTER_ADDR",
                         "node0", "MASTER_PORT", "29500"),
                     QUIRE_OK);
    expect(5, 8, 1, 4, "torchrun", BOOT_MEET_ADDRESS, "node0:29501");
    ck_assert_int_eq(ENV("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "fd00::2", "MASTER_PORT", "65535"), QUIRE_OK);
    expect(0, 2, -1, -1, "torchrun", BOOT_MEET_ADDRESS, "[fd00::2]:65534");
    ck_assert_int_eq(ENV("RANK", "1", "WORLD_SIZE", "2", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "2", "MASTER_ADDR", "n",
                         "MASTER_PORT", "1234", "TORCHELASTIC_RUN_ID", "r1"),
                     QUIRE_OK);
    expect(1, 2, 1, 2, "torchrun", BOOT_MEET_JOB, NULL);
    ck_assert_ptr_nonnull(strstr(launch.where, "r1"));
    char first[256];
    strcpy(first, launch.where);
    ck_assert_int_eq(ENV("RANK", "1", "WORLD_SIZE", "2", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "2", "MASTER_ADDR", "n",
                         "MASTER_PORT", "1235", "TORCHELASTIC_RUN_ID", "r1"),
                     QUIRE_OK);
    ck_assert_str_ne(first, launch.where); /* two jobs of one host */
    ck_assert_int_eq(ENV("RANK", "1", "WORLD_SIZE", "2", "QUIRE_ROOT", "h:1"), QUIRE_OK);
    expect(1, 2, -1, -1, "torchrun", BOOT_MEET_ADDRESS, "h:1");
}
END_TEST

START_TEST(open_mpi_is_understood)
{
    ck_assert_int_eq(ENV("OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_SIZE", "3", "OMPI_COMM_WORLD_LOCAL_RANK", "2",
                         "OMPI_COMM_WORLD_LOCAL_SIZE", "3", "PMIX_NAMESPACE", "prterun-1@1", "SLURM_PROCID", "0"),
                     QUIRE_OK);
    expect(2, 3, 2, 3, "openmpi", BOOT_MEET_JOB, NULL);
    ck_assert_int_eq(ENV("OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_RANK", "0",
                         "OMPI_COMM_WORLD_LOCAL_SIZE", "2", "PMIX_NAMESPACE", "prterun-1@1"),
                     QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(status_text_last(), "QUIRE_ROOT"));
}
END_TEST

START_TEST(slurm_is_understood)
{
    ck_assert_int_eq(ENV("SLURM_PROCID", "3", "SLURM_NTASKS", "4", "SLURM_LOCALID", "3", "SLURM_NNODES", "1",
                         "SLURM_JOB_ID", "99", "SLURM_STEP_ID", "2"),
                     QUIRE_OK);
    expect(3, 4, 3, 4, "slurm", BOOT_MEET_JOB, "slurm-99-2");
    ck_assert_int_eq(
        ENV("SLURM_PROCID", "3", "SLURM_NTASKS", "4", "SLURM_LOCALID", "1", "SLURM_NNODES", "2", "SLURM_JOB_ID", "99"),
        QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(status_text_last(), "QUIRE_ROOT=host:port"));
    ck_assert_int_eq(ENV("SLURM_PROCID", "3", "SLURM_NTASKS", "4", "SLURM_LOCALID", "1", "SLURM_NNODES", "2",
                         "SLURM_JOB_ID", "99", "QUIRE_ROOT", "node1:5000"),
                     QUIRE_OK);
    expect(3, 4, 1, -1, "slurm", BOOT_MEET_ADDRESS, "node1:5000");
}
END_TEST

START_TEST(contradictions_are_named)
{
    ck_assert_int_eq(ENV("QUIRE_RANK", "4", "QUIRE_SIZE", "4"), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(status_text_last(), "QUIRE_RANK=4"));
    ck_assert_int_eq(ENV("QUIRE_RANK", "1"), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(status_text_last(), "QUIRE_SIZE is not"));
    ck_assert_int_eq(ENV("QUIRE_RANK", "x", "QUIRE_SIZE", "4"), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(ENV("QUIRE_RANK", "-1", "QUIRE_SIZE", "4"), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(ENV("QUIRE_RANK", "0", "QUIRE_SIZE", "2"), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(status_text_last(), "QUIRE_ROOT"));
    ck_assert_int_eq(ENV("QUIRE_RANK", "0", "QUIRE_SIZE", "2", "QUIRE_LOCAL_RANK", "3", "QUIRE_LOCAL_SIZE", "2"),
                     QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(ENV("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "h"), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(status_text_last(), "MASTER_PORT"));
    ck_assert_int_eq(ENV("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "h", "MASTER_PORT", "99999"),
                     QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(ENV("RANK", "0", "WORLD_SIZE", "99999999999"), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(ENV("QUIRE_RANK", "0", "QUIRE_SIZE", "2", "QUIRE_ROOT", "file:"), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(((unsigned char *)&launch)[0], 0x5a); /* not written */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/launch");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, without_a_launcher_it_is_ok_and_none);
    tcase_add_test(tc, quire_run_is_understood);
    tcase_add_test(tc, torchrun_is_understood);
    tcase_add_test(tc, open_mpi_is_understood);
    tcase_add_test(tc, slurm_is_understood);
    tcase_add_test(tc, contradictions_are_named);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
