/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service_test.c - the service thread against strangers, forks and many rounds: nobody blocks it, nothing is left
 * behind, a forked child's copies are dead.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "boot/boot_internal.h"
#include "boot/unique_id.h"
#include "crew.h"

static void rank_by_id(const struct crew *crew, int rank)
{
    struct crew_end end;
    quire_status_t st = crew_join(&end, rank, crew->size, BOOT_MEET_ID, crew_id(crew, rank), NULL, 20 * CLOCK_S);
    CREW_MUST(st == QUIRE_OK, "rank %d joins", rank);
    CREW_MUST(boot_barrier(end.boot, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "barrier");
    crew_leave(&end);
}

/* Ranks in this process, which is the root's too: the strangers' door is known. */
struct thread_rank {
    pthread_t thread;
    const quire_unique_id *id;
    int rank, size;
    quire_status_t st;
};

static void *thread_by_id(void *arg)
{
    struct thread_rank *t = arg;
    struct crew_end end;
    if (t->rank == 1)
        crew_sleep_ms(100); /* strangers come while the others wait */
    t->st = crew_join(&end, t->rank, t->size, BOOT_MEET_ID, t->id, NULL, 20 * CLOCK_S);
    if (t->st != QUIRE_OK)
        return NULL;
    t->st = boot_barrier(end.boot, deadline_in(20 * CLOCK_S));
    crew_leave(&end);
    return NULL;
}

static void threads_meet(const quire_unique_id *id, int size)
{
    struct thread_rank t[8];
    for (int i = 0; i < size; i++) {
        t[i] = (struct thread_rank){.id = id, .rank = i, .size = size, .st = QUIRE_ERR_INTERNAL};
        pthread_create(&t[i].thread, NULL, thread_by_id, &t[i]);
    }
    for (int i = 0; i < size; i++)
        pthread_join(t[i].thread, NULL);
    for (int i = 0; i < size; i++)
        ck_assert_int_eq(t[i].st, QUIRE_OK);
}

static int call_root(const quire_unique_id *id)
{
    struct id_fields fields;
    struct sockaddr_storage address;
    ck_assert_int_eq(id_decode(id, &fields), QUIRE_OK);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = service_door_name(fields.root.door, &address);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, length), 0);
    return fd;
}

static int call_root_tcp(const quire_unique_id *id)
{
    struct id_fields fields;
    ck_assert_int_eq(id_decode(id, &fields), QUIRE_OK);
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons(fields.root.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&v4, sizeof(v4)), 0);
    return fd;
}

/* True when the other side has closed within the time. */
static bool is_dropped(int fd, int ms)
{
    uint64_t until = clock_ns() + (uint64_t)ms * CLOCK_MS;
    char bytes[4096];
    while (clock_ns() < until) {
        struct pollfd p = {fd, POLLIN, 0};
        if (poll(&p, 1, deadline_poll_ms(until, 1000)) <= 0)
            continue;
        ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return true;
    }
    return false;
}

static void send_hello(int fd, const struct wire_hello *hello, size_t cut)
{
    struct wire_out out = {NULL, 0, 0, false};
    wire_hello_write(&out, hello);
    struct blob *blob = blob_from(WIRE_HELLO, 0, &out);
    size_t bytes = blob->bytes - cut;
    ck_assert_int_eq(send(fd, blob->data, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
    blob_drop(blob);
}

START_TEST(strangers_are_dropped_and_hold_nobody_up)
{
    quire_unique_id id, other;
    struct id_fields fields;
    enum { STRANGERS = 8 };
    int fd[STRANGERS];
    ck_assert_int_eq(boot_make_id(&id), QUIRE_OK);
    ck_assert_int_eq(boot_make_id(&other), QUIRE_OK); /* keeps the service there to the end */
    ck_assert_int_eq(id_decode(&id, &fields), QUIRE_OK);
    for (int i = 0; i < STRANGERS; i++)
        fd[i] = i % 2 ? call_root_tcp(&id) : call_root(&id);
    ck_assert_int_eq(send(fd[0], "GET / H", 7, MSG_NOSIGNAL), 7); /* less than a header, then nothing */
    ck_assert_int_eq(send(fd[1], "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n", 35, MSG_NOSIGNAL), 35);
    /* fd[2]: silent */
    struct wire_hello hello = {.from = 1, .to = -1, .purpose = WIRE_FOR_JOIN};
    memcpy(hello.key, fields.key, WIRE_KEY_BYTES);
    send_hello(fd[3], &hello, 5); /* half a handshake */
    send_hello(fd[4], &hello, 0); /* the right key, but never a confirmation */
    hello.key[3] ^= 1;
    send_hello(fd[5], &hello, 0); /* a wrong key */
    uint8_t head[WIRE_HEADER_BYTES];
    wire_header_write(head, &(struct wire_header){WIRE_TABLE, 60 << 20, 0});
    ck_assert_int_eq(send(fd[6], head, sizeof(head), MSG_NOSIGNAL), (ssize_t)sizeof(head)); /* out of turn and huge */
    wire_header_write(head, &(struct wire_header){WIRE_HELLO, 1 << 20, 0});
    ck_assert_int_eq(send(fd[7], head, sizeof(head), MSG_NOSIGNAL), (ssize_t)sizeof(head)); /* oversize */
    uint64_t start = clock_ns();
    threads_meet(&id, 4);
    ck_assert_uint_lt(clock_ns() - start, 800 * CLOCK_MS); /* sooner than the slow ones were dropped */

    for (int i = 0; i < STRANGERS; i++) {
        ck_assert_msg(is_dropped(fd[i], 2000), "stranger %d is still connected", i);
        close(fd[i]);
    }
}
END_TEST

START_TEST(a_silent_stranger_is_dropped_within_a_second)
{
    quire_unique_id id;
    ck_assert_int_eq(boot_make_id(&id), QUIRE_OK);
    int fd = call_root_tcp(&id);
    uint64_t start = clock_ns();
    ck_assert(is_dropped(fd, 3000));
    ck_assert_uint_lt(clock_ns() - start, 1500 * CLOCK_MS);
    close(fd);
}
END_TEST

START_TEST(hundreds_of_clients_at_once_do_no_harm)
{
    quire_unique_id id;
    static int fd[400];
    ck_assert_int_eq(boot_make_id(&id), QUIRE_OK);
    for (int i = 0; i < 400; i++)
        fd[i] = call_root_tcp(&id);
    threads_meet(&id, 3);
    for (int i = 0; i < 400; i++)
        close(fd[i]);
}
END_TEST

START_TEST(many_rounds_leave_descriptors_threads_and_memory_flat)
{
    struct crew_end end[2];
    int fds = 0;
    long pages = 0, before = 0;
    crew_warm_up();
    int first = crew_count_fds(), threads = crew_count_threads();
    for (int round = 0; round < 300; round++) {
        quire_unique_id id;
        ck_assert_int_eq(boot_make_id(&id), QUIRE_OK);
        ck_assert_int_eq(crew_join(&end[0], 0, 1, BOOT_MEET_ID, &id, NULL, 20 * CLOCK_S), QUIRE_OK);
        ck_assert_int_eq(crew_join(&end[1], 0, 1, BOOT_MEET_JOB, NULL, crew_job(), 20 * CLOCK_S), QUIRE_OK);
        ck_assert_int_eq(boot_barrier(end[0].boot, deadline_in(CLOCK_S)), QUIRE_OK);
        crew_leave(&end[1]);
        crew_leave(&end[0]);
        FILE *statm = fopen("/proc/self/statm", "r");
        ck_assert_int_eq(fscanf(statm, "%*d %ld", &pages), 1);
        fclose(statm);
        if (round == 100)
            before = pages;
    }
    for (int i = 0; i < 100 && ((fds = crew_count_fds()) != first || crew_count_threads() != threads); i++)
        crew_sleep_ms(5); /* the last root may be giving back its reference */
    ck_assert_int_eq(fds, first);
    ck_assert_int_eq(crew_count_threads(), threads);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ck_assert_int_lt(pages - before, 64);
#else
    (void)before;
#endif
}
END_TEST

static void rank_of_many_rounds(const struct crew *crew, int rank)
{
    int fds = 0, threads = 0;
    for (int round = 0; round < 40; round++) {
        struct crew_end end;
        crew_must_join(&end, crew, rank, crew->arg);
        int mine = rank, all[CREW_MAX];
        CREW_MUST(boot_all_gather(end.boot, &mine, sizeof(mine), all, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "gather");
        crew_leave(&end);
        if (round == 5) {
            fds = crew_count_fds();
            threads = crew_count_threads(); /* sanitizers have one of their own */
        }
    }
    CREW_MUST(crew_count_fds() == fds, "%d descriptors became %d", fds, crew_count_fds());
    CREW_MUST(crew_count_threads() == threads, "%d threads became %d", threads, crew_count_threads());
}

START_TEST(processes_meet_again_and_again_without_leaks)
{
    struct crew crew = {.size = 4, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_of_many_rounds, 0), 0);
}
END_TEST

#ifndef __SANITIZE_THREAD__ /* it can't follow a child that starts threads again */
static void rank_that_forks(const struct crew *crew, int rank)
{
    struct crew_end end;
    crew_must_join(&end, crew, rank, crew->arg);
    for (int i = 0; i < 10; i++) {
        if (rank == 0) {
            pid_t child = fork();
            if (child == 0) {
                int fd = -7;
                CREW_MUST(boot_barrier(end.boot, DEADLINE_NEVER) == QUIRE_ERR_INVALID_USAGE, "barrier in a child");
                CREW_MUST(boot_dial(end.boot, 1, 1, DEADLINE_NEVER, &fd) == QUIRE_ERR_INVALID_USAGE, "dial in a child");
                struct crew_end own;
                quire_status_t st = crew_join(&own, 0, 1, BOOT_MEET_JOB, NULL, crew_job(), 20 * CLOCK_S);
                CREW_MUST(st == QUIRE_OK, "a child may have its own");
                crew_leave(&own);
                boot_destroy(end.boot);
                exit(0); /* with all exit handlers */
            }
            int status;
            CREW_MUST(waitpid(child, &status, 0) == child && status == 0, "child: 0x%x", (unsigned)status);
        }
        CREW_MUST(boot_barrier(end.boot, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "barrier %d", i);
    }
    CREW_MUST(stop_seen(&end.stop) == STOP_NONE, "cause: %s", end.stop.cause.text);
    crew_leave(&end);
}

START_TEST(a_forked_child_has_dead_copies_and_harms_nobody)
{
    struct crew crew = {.size = 2, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_that_forks, 0), 0);
}
END_TEST
#endif

static void rank_in_a_bare_namespace(const struct crew *crew, int rank)
{
    struct crew_end end;
    crew_must_join(&end, crew, rank, crew->arg);
    CREW_MUST(boot_barrier(end.boot, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "barrier");
    crew_leave(&end);
}

START_TEST(one_host_without_any_interface_works)
{
    if (unshare(CLONE_NEWNET) != 0) { /* even lo is down in a new one */
        fprintf(stderr, "note: no right to make a network namespace, not tested\n");
        return;
    }
    struct crew crew = {.size = 4, .arg = crew_job()};
    ck_assert_int_eq(crew_run(&crew, rank_in_a_bare_namespace, 0), 0);
    ck_assert_int_eq(crew_run(&crew, rank_by_id, 0), 0);
}
END_TEST

static void rank_on_its_own_host(const struct crew *crew, int rank)
{
    char path[64];
    snprintf(path, sizeof(path), "/run/netns/%s%d", (const char *)crew->arg, rank % 2);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CREW_MUST(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, "setns %s", path);
    close(fd);
    struct crew_end end;
    quire_status_t st = crew_join(&end, rank, crew->size, BOOT_MEET_ADDRESS, NULL, "10.231.7.1:4711", 20 * CLOCK_S);
    CREW_MUST(st == QUIRE_OK, "rank %d joins", rank);
    CREW_MUST(boot_barrier(end.boot, deadline_in(20 * CLOCK_S)) == QUIRE_OK, "barrier");
    uint64_t key = boot_peer(end.boot, rank)->host_key;
    for (int i = 0; i < crew->size; i++)
        CREW_MUST((boot_peer(end.boot, i)->host_key == key) == (i % 2 == rank % 2), "host key of rank %d", i);
    int sock = -1, domain = 0, got = 0, one = 0;
    socklen_t length = sizeof(domain);
    uint64_t deadline = deadline_in(20 * CLOCK_S);
    if (rank == 0) {
        CREW_MUST(boot_dial(end.boot, 1, 5, deadline, &sock) == QUIRE_OK, "dial");
        CREW_MUST(getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain != AF_UNIX, "over TCP");
        CREW_MUST(send(sock, &(int){99}, sizeof(int), MSG_NOSIGNAL) == sizeof(int), "send");
        CREW_MUST(boot_fetch_fd(end.boot, 1, 1, deadline, &one) == QUIRE_ERR_LINK, "fetch over hosts");
    } else if (rank == 1) {
        CREW_MUST(boot_accept(end.boot, 0, 5, deadline, &sock) == QUIRE_OK, "accept");
        struct pollfd p = {sock, POLLIN, 0};
        CREW_MUST(poll(&p, 1, 10000) == 1 && recv(sock, &got, sizeof(got), 0) == sizeof(got) && got == 99, "recv");
    }
    CREW_MUST(boot_barrier(end.boot, deadline) == QUIRE_OK, "barrier");
    if (rank == 3) {
        crew_sleep_ms(100); /* let the others out of the barrier */
        raise(SIGKILL);
    }
    int ms = crew_wait_fatal(&end.stop, 5000);
    CREW_MUST(ms >= 0 && ms < 1000 && end.stop.cause.rank == 3, "rank %d was told after %d ms", rank, ms);
    crew_leave(&end);
}

static int shell(const char *format, const char *name)
{
    char command[1024];
    snprintf(command, sizeof(command), format, name, name, name, name, name, name, name, name, name, name);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(two_hosts_meet_over_the_network)
{
    char name[32];
    snprintf(name, sizeof(name), "qbt%d-", (int)getpid());
    int rc =
        shell("{ ip netns add %s0 && ip netns add %s1 && ip -n %s0 link add veth0 type veth peer name veth0 netns %s1"
              " && ip -n %s0 addr add 10.231.7.1/24 dev veth0 && ip -n %s1 addr add 10.231.7.2/24 dev veth0"
              " && ip -n %s0 link set lo up && ip -n %s1 link set lo up && ip -n %s0 link set veth0 up && ip -n %s1 "
              "link set veth0 up; } 2>/dev/null",
              name);
    if (rc == 0) {
        struct crew crew = {.size = 4, .arg = name};
        rc = crew_run(&crew, rank_on_its_own_host, 1ull << 3);
    } else {
        fprintf(stderr, "note: no right to make two network namespaces, not tested\n");
        rc = 0;
    }
    shell("{ ip netns del %s0; ip netns del %s1; } 2>/dev/null", name);
    ck_assert_int_eq(rc, 0);
}
END_TEST

START_TEST(an_interface_that_does_not_exist_is_an_error_with_the_real_ones)
{
    struct wire_address list[WIRE_MAX_ADDRESSES];
    int count = -7;
    ck_assert_int_eq(address_list("nope0", list, WIRE_MAX_ADDRESSES, &count), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(status_text_last(), "nope0"));
    ck_assert_ptr_nonnull(strstr(status_text_last(), "lo"));
    ck_assert_int_eq(count, -7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/service");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, strangers_are_dropped_and_hold_nobody_up);
    tcase_add_test(tc, a_silent_stranger_is_dropped_within_a_second);
    tcase_add_test(tc, hundreds_of_clients_at_once_do_no_harm);
    tcase_add_test(tc, many_rounds_leave_descriptors_threads_and_memory_flat);
    tcase_add_test(tc, processes_meet_again_and_again_without_leaks);
#ifndef __SANITIZE_THREAD__
    tcase_add_test(tc, a_forked_child_has_dead_copies_and_harms_nobody);
#endif
    tcase_add_test(tc, one_host_without_any_interface_works);
    tcase_add_test(tc, two_hosts_meet_over_the_network);
    tcase_add_test(tc, an_interface_that_does_not_exist_is_an_error_with_the_real_ones);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
