/* SPDX-License-Identifier: BSD-3-Clause */
/* quire_run_test.c - the launcher as a program: statuses, first failure, grace, tags, signals, bad usage. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/base_test.h"
#include "harness/harness.h"

static char tool[4096];

/* Runs "quire-run ARGS" through the shell, output and errors into `out`; returns the exit status. */
static int run(const char *args, char *out, size_t bytes)
{
    char command[8192];
    snprintf(command, sizeof(command), "%s %s 2>&1", tool, args);
    FILE *f = popen(command, "r");
    ck_assert_ptr_ne(f, NULL);
    size_t n = fread(out, 1, bytes - 1, f);
    out[n] = '\0';
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + status;
}

START_TEST(every_rank_knows_its_place)
{
    char out[4096];
    ck_assert_int_eq(
        run("-n 3 -x COLOUR=red --tag sh -c 'echo $QUIRE_RANK/$QUIRE_SIZE $QUIRE_LOCAL_RANK $COLOUR ${#QUIRE_JOB}'",
            out, sizeof(out)),
        0);
    for (int r = 0; r < 3; r++) {
        char want[64];
        snprintf(want, sizeof(want), "[%d] %d/3 %d red 32\n", r, r, r);
        ck_assert_msg(strstr(out, want) != NULL, "%s", out);
    }
}
END_TEST

START_TEST(the_first_failure_is_told_and_returned)
{
    char out[4096];
    ck_assert_int_eq(run("-n 3 --on-failure kill sh -c 'test $QUIRE_RANK = 1 && exit 7; sleep 20'", out, sizeof(out)),
                     7);
    ck_assert_msg(strstr(out, "rank 1 (pid ") && strstr(out, "exited with status 7"), "%s", out);
    ck_assert_int_eq(run("-n 2 sh -c 'test $QUIRE_RANK = 0 && kill -SEGV $$; exit 0'", out, sizeof(out)),
                     128 + SIGSEGV);
    ck_assert_msg(strstr(out, "rank 0") && strstr(out, "signal 11 (SIGSEGV"), "%s", out);
    ck_assert_int_eq(run("-n 3 --on-failure ignore sh -c 'sleep 0.$QUIRE_RANK; exit $QUIRE_RANK'", out, sizeof(out)),
                     1);
}
END_TEST

START_TEST(stragglers_get_grace_then_term_then_kill)
{
    char out[4096];
    uint64_t start = harness_now_ns();
    /* Rank 0 fails; rank 1 ends when asked; rank 2 ignores TERM and must be killed. */
    ck_assert_int_eq(
        run("-n 3 --on-failure wait:200ms sh -c 'test $QUIRE_RANK = 0 && exit 3; test $QUIRE_RANK = 2 && trap \"\" "
            "TERM; exec sleep 30'",
            out, sizeof(out)),
        3);
    uint64_t took = harness_now_ns() - start;
    ck_assert(took > UINT64_C(200000000) && took < UINT64_C(20000000000));
    ck_assert_msg(strstr(out, "still running after rank 0's failure") != NULL, "%s", out);
}
END_TEST

START_TEST(what_ranks_started_is_ended_with_them)
{
    /* The pipe to this test is held by the sleepers as well: the answer comes at once only when they are gone. */
    char out[4096];
    uint64_t start = harness_now_ns();
    ck_assert_int_eq(
        run("-n 2 --on-failure kill sh -c 'test $QUIRE_RANK = 1 && exit 7; sleep 40; true'", out, sizeof(out)), 7);
    ck_assert_int_eq(run("-n 2 --on-failure kill sh -c 'sleep 40 & sleep 0.1; exit 5'", out, sizeof(out)), 5);
    /* Not even a child that ignores TERM while its parent has ended. */
    ck_assert_int_eq(run("-n 1 --timeout 100ms sh -c '(trap \"\" TERM; exec sleep 40) & wait'", out, sizeof(out)), 124);
    ck_assert(harness_now_ns() - start < UINT64_C(20000000000));
}
END_TEST

START_TEST(nothing_of_tagged_output_is_lost)
{
    static char out[1 << 20];
    FILE *f;
    char command[8192];
    /* Bytes of any value. */
    snprintf(command, sizeof(command), "%s -n 1 --tag printf 'a\\0b\\n'", tool);
    f = popen(command, "r");
    size_t n = fread(out, 1, sizeof(out), f);
    ck_assert_int_eq(pclose(f), 0);
    ck_assert_uint_eq(n, 8);
    ck_assert_mem_eq(out, "[0] a\0b\n", 8);
    /* The end of a line that a child keeps from ending. */
    ck_assert_int_eq(run("-n 1 --tag sh -c 'sleep 1 & printf partial'", out, sizeof(out)), 0);
    ck_assert_str_eq(out, "[0] partial\n");
    /* A long line, in one piece, from each rank. */
    ck_assert_int_eq(run("-n 3 --tag sh -c 'head -c 200000 /dev/zero | tr \"\\0\" x; echo'", out, sizeof(out)), 0);
    int lines = 0;
    for (char *line = strtok(out, "\n"); line != NULL; line = strtok(NULL, "\n"), lines++)
        ck_assert_uint_eq(strlen(line), 4 + 200000);
    ck_assert_int_eq(lines, 3);
    /* The two streams stay apart. */
    snprintf(command, sizeof(command), "%s -n 2 --tag sh -c 'echo out; echo err >&2' 2>/dev/null", tool);
    f = popen(command, "r");
    n = fread(out, 1, sizeof(out) - 1, f);
    out[n] = '\0';
    ck_assert_int_eq(pclose(f), 0);
    ck_assert(strstr(out, "[0] out\n") && strstr(out, "[1] out\n") && !strstr(out, "err"));
}
END_TEST

START_TEST(rank_0_alone_gets_the_input)
{
    char out[4096], command[8192];
    snprintf(command, sizeof(command), "echo hello | %s -n 3 --tag sh -c 'echo \"<$(cat)>\"'", tool);
    FILE *f = popen(command, "r");
    size_t n = fread(out, 1, sizeof(out) - 1, f);
    out[n] = '\0';
    ck_assert_int_eq(pclose(f), 0);
    ck_assert_msg(strstr(out, "[0] <hello>\n") && strstr(out, "[1] <>\n") && strstr(out, "[2] <>\n"), "%s", out);
}
END_TEST

/* A parent that ignores SIGCHLD leaves that to the launcher, which could then wait for ever. */
START_TEST(an_ignored_sigchld_does_not_hang_it)
{
    int status = -1;
    signal(SIGCHLD, SIG_IGN);
    pid_t pid = fork();
    if (pid == 0) {
        execl(tool, "quire-run", "-n", "2", "sh", "-c", "exit $QUIRE_RANK", (char *)NULL);
        _exit(99);
    }
    signal(SIGCHLD, SIG_DFL);
    pid_t got = 0;
    for (int i = 0; i < 500 && (got = waitpid(pid, &status, WNOHANG)) == 0; i++)
        usleep(10000);
    if (got == 0)
        kill(pid, SIGKILL);
    ck_assert_int_eq(got, pid);
    ck_assert_int_eq(WEXITSTATUS(status), 1);
}
END_TEST

START_TEST(tagged_lines_stay_whole)
{
    static char out[1 << 20];
    ck_assert_int_eq(
        run("-n 4 --tag sh -c 'for i in 1 2 3 4 5 6 7 8 9; do printf abc; printf \"def\\n\"; done; printf end'", out,
            sizeof(out)),
        0);
    int lines = 0, ends = 0;
    for (char *line = strtok(out, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        ck_assert_msg(line[0] == '[' && (strcmp(line + 3, " abcdef") == 0 || strcmp(line + 3, " end") == 0), "%s",
                      line);
        lines++;
        ends += strstr(line, "end") != NULL;
    }
    ck_assert_int_eq(lines, 4 * 10);
    ck_assert_int_eq(ends, 4);
}
END_TEST

START_TEST(signals_reach_the_ranks_and_a_timeout_ends_them)
{
    char out[4096], command[8192];
    snprintf(command, sizeof(command),
             "%s -n 2 sh -c 'trap \"echo got it; exit 0\" USR1; sleep 0.1; while :; do sleep 0.05 || echo helper "
             "killed; done' & pid=$!; "
             "sleep 0.6; "
             "kill -USR1 $pid; wait $pid",
             tool);
    FILE *f = popen(command, "r");
    size_t n = fread(out, 1, sizeof(out) - 1, f);
    out[n] = '\0';
    ck_assert_int_eq(pclose(f), 0);
    ck_assert_str_eq(out, "got it\ngot it\n");
    ck_assert_int_eq(run("-n 2 --timeout=300ms sleep 30", out, sizeof(out)), 124);
    /* Asked to end: 128 + signal, though the ranks end well; asked again, no grace is given. */
    snprintf(command, sizeof(command),
             "%s -n 2 sh -c 'trap \"exit 0\" TERM; while :; do sleep 0.05; done' & pid=$!; sleep 0.6; kill -TERM $pid; "
             "wait $pid",
             tool);
    ck_assert_int_eq(WEXITSTATUS(system(command)), 128 + SIGTERM);
    uint64_t start = harness_now_ns();
    snprintf(
        command, sizeof(command),
        "%s -n 1 --on-failure wait:60s sh -c 'trap \"\" INT HUP; sleep 50; true' & pid=$!; sleep 0.4; kill -HUP $pid; "
        "sleep 0.2; kill -HUP $pid; wait $pid",
        tool);
    ck_assert_int_eq(WEXITSTATUS(system(command)), 128 + SIGHUP);
    ck_assert(harness_now_ns() - start < UINT64_C(20000000000));
}
END_TEST

START_TEST(the_ranks_die_with_the_launcher)
{
    char path[] = "/tmp/quire-run-XXXXXX", command[8192];
    int fd = mkstemp(path), pid = 0;
    close(fd);
    snprintf(command, sizeof(command),
             "%s -n 1 sh -c 'echo $$ > %s; exec sleep 60' & pid=$!; sleep 0.5; kill -KILL $pid; wait $pid", tool, path);
    ck_assert_int_ne(system(command), -1);
    FILE *f = fopen(path, "r");
    ck_assert_int_eq(fscanf(f, "%d", &pid), 1);
    fclose(f);
    unlink(path);
    for (int i = 0; i < 100 && kill(pid, 0) == 0; i++)
        usleep(20000);
    /* Gone, or a zombie that nobody reaps in this container. */
    char state[256] = "";
    snprintf(command, sizeof(command), "/proc/%d/stat", pid);
    if ((f = fopen(command, "r")) != NULL) {
        ck_assert(fgets(state, sizeof(state), f) != NULL);
        fclose(f);
        ck_assert_msg(strstr(state, ") Z ") != NULL, "%s", state);
    }
}
END_TEST

START_TEST(bad_usage_is_told)
{
    static const struct {
        const char *args, *why;
        int status;
    } bad[] = {{"", "how many ranks", 2},
               {"-n 0 true", "-n 0", 2},
               {"-n 2", "no program", 2},
               {"-n 2 --bind moon true", "--bind moon", 2},
               {"-n 2 --on-failure maybe true", "maybe", 2},
               {"-n 2 --frob true", "--frob", 2},
               {"-n", "wants a value", 2},
               {"-n 2 -x FOO true", "NAME=VALUE", 2},
               {"-n 2 /nonexistent/program", "can't run /nonexistent/program", 127},
               {"-n 2 no-such-program-at-all", "in PATH=", 127},
               {"-n 2 --tag=yes true", "unknown option --tag=yes", 2},
               {"-n 2 --bind= true", "--bind : expected", 2},
               {"-n 1 /etc/passwd", "Permission denied", 126},
               {"-n 1 -x PATH=/etc passwd", "/etc/passwd: Permission denied", 126}};
    char out[8192];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(run(bad[i].args, out, sizeof(out)), bad[i].status);
        ck_assert_msg(strstr(out, bad[i].why) != NULL, "%s: %s", bad[i].args, out);
    }
    ck_assert_int_eq(run("--help", out, sizeof(out)), 0);
}
END_TEST

START_TEST(bound_ranks_get_cores_of_their_own)
{
    char out[4096];
    ck_assert_int_eq(run("-n 2 --bind core --tag sh -c 'grep Cpus_allowed_list /proc/self/status'", out, sizeof(out)),
                     0);
    char *a = strstr(out, "[0] Cpus_allowed_list:"), *b = strstr(out, "[1] Cpus_allowed_list:");
    ck_assert(a != NULL && b != NULL && strchr(a, '-') == NULL);
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
        ck_assert_int_ne(atoi(strchr(a, '\t') + 1), atoi(strchr(b, '\t') + 1));
    ck_assert_int_eq(run("-n 2 --bind numa true", out, sizeof(out)), 0);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {every_rank_knows_its_place,
                                  the_first_failure_is_told_and_returned,
                                  stragglers_get_grace_then_term_then_kill,
                                  what_ranks_started_is_ended_with_them,
                                  nothing_of_tagged_output_is_lost,
                                  rank_0_alone_gets_the_input,
                                  an_ignored_sigchld_does_not_hang_it,
                                  tagged_lines_stay_whole,
                                  signals_reach_the_ranks_and_a_timeout_ends_them,
                                  the_ranks_die_with_the_launcher,
                                  bad_usage_is_told,
                                  bound_ranks_get_cores_of_their_own};
    char *slash;
    snprintf(tool, sizeof(tool), "%s", argv[0]);
    for (int up = 0; up < 3 && (slash = strrchr(tool, '/')) != NULL; up++)
        *slash = '\0';
    strncat(tool, "/quire-run", sizeof(tool) - strlen(tool) - 1);
    return base_test_main("quire_run", tests, sizeof(tests) / sizeof(tests[0]));
}
