/* SPDX-License-Identifier: BSD-3-Clause */
/* segment_test.c - segments: one mapping a process, proof by nonce, limits as errors and never as signals. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/base_test.h"
#include "base/status.h"
#include "segment.h"

enum { BYTES = 1 << 20, MAPPERS = 4, ROUNDS = 500 };

START_TEST(a_process_maps_a_segment_once)
{
    struct lane_segment *a, *b;
    ck_assert_int_eq(segment_create(&a, BYTES, 8192, true), QUIRE_OK);
    ck_assert_int_eq(segment_map(&b, a->fd, a->nonce, true), QUIRE_OK);
    ck_assert_ptr_eq(a, b);
    segment_put(b);
    a->base[BYTES - 1] = 1; /* still mapped */
    segment_put(a);
    segment_put(NULL);
}
END_TEST

START_TEST(another_process_sees_the_same_memory)
{
    struct lane_segment *a;
    int status;
    ck_assert_int_eq(segment_create(&a, BYTES, BYTES, true), QUIRE_OK);
    uint64_t nonce[2] = {a->nonce[0], a->nonce[1]};
    int fd = dup(a->fd);
    pid_t child = fork();
    if (child == 0) {
        munmap(a->base, BYTES); /* as if it had never been here; the registry is the parent's */
        void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        memcpy((uint8_t *)at + 5000, "hello", 6);
        _exit(memcmp(((struct segment_control *)at)->nonce, nonce, sizeof(nonce)) != 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_str_eq((char *)a->base + 5000, "hello");
    close(fd);
    segment_put(a);
}
END_TEST

START_TEST(a_wrong_nonce_proves_nothing)
{
    struct lane_segment *a, *b = NULL;
    ck_assert_int_eq(segment_create(&a, BYTES, 8192, true), QUIRE_OK);
    uint64_t wrong[2] = {a->nonce[0], a->nonce[1] ^ 1};
    ck_assert_int_eq(segment_map(&b, a->fd, wrong, true), QUIRE_ERR_LINK);
    ck_assert_ptr_eq(b, NULL);
    ck_assert(strstr(status_text_last(), "nonce") != NULL);
    segment_put(a);
}
END_TEST

START_TEST(memory_that_could_shrink_is_refused)
{
    struct lane_segment *b = NULL;
    uint64_t nonce[2] = {0, 0};
    int fd = memfd_create("loose", MFD_CLOEXEC);
    ck_assert(ftruncate(fd, BYTES) == 0);
    ck_assert_int_eq(segment_map(&b, fd, nonce, false), QUIRE_ERR_LINK);
    ck_assert(strstr(status_text_last(), "sealed") != NULL);
    close(fd);
    fd = open("/dev/null", O_RDWR);
    ck_assert_int_eq(segment_map(&b, fd, nonce, false), QUIRE_ERR_LINK);
    close(fd);
}
END_TEST

START_TEST(limits_are_errors_that_say_what_was_wanted)
{
    struct lane_segment *a = NULL;
    struct rlimit limit = {1 << 16, 1 << 16};
    ck_assert_int_eq(segment_create(&a, SIZE_MAX / 4096, SIZE_MAX / 4096, false), QUIRE_ERR_RESOURCE);
    ck_assert(strstr(status_text_last(), "shared memory") != NULL);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(segment_create(&a, BYTES, BYTES, false), QUIRE_ERR_RESOURCE);
    ck_assert_msg(strstr(status_text_last(), "1M") && strstr(status_text_last(), "64K"), "%s", status_text_last());
    ck_assert_ptr_eq(a, NULL);
}
END_TEST

START_TEST(backing_outside_the_segment_is_a_bug)
{
    struct lane_segment *a;
    ck_assert_int_eq(segment_create(&a, BYTES, 0, false), QUIRE_OK);
    ck_assert_int_eq(segment_back(a, 4096, 8192), QUIRE_OK);
    ck_assert_int_eq(segment_back(a, BYTES - 4096, 8192), QUIRE_ERR_INTERNAL);
    segment_put(a);
}
END_TEST

struct mapper {
    pthread_barrier_t *start;
    int fd;
    struct lane_segment *got;
};

static void *map_it(void *arg)
{
    struct mapper *m = arg;
    uint64_t nonce[2] = {0, 0};
    pthread_barrier_wait(m->start);
    if (segment_map(&m->got, m->fd, nonce, false) != QUIRE_OK)
        m->got = NULL;
    return NULL;
}

START_TEST(threads_that_meet_a_segment_at_once_share_one_mapping)
{
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, MAPPERS);
    for (int round = 0; round < ROUNDS; round++) {
        struct mapper m[MAPPERS];
        pthread_t threads[MAPPERS];
        int fd = memfd_create("theirs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ck_assert(ftruncate(fd, BYTES) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
        for (int i = 0; i < MAPPERS; i++) {
            m[i] = (struct mapper){&start, fd, NULL};
            ck_assert_int_eq(pthread_create(&threads[i], NULL, map_it, &m[i]), 0);
        }
        for (int i = 0; i < MAPPERS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < MAPPERS; i++) {
            ck_assert_ptr_ne(m[i].got, NULL);
            ck_assert_ptr_eq(m[i].got, m[0].got);
        }
        for (int i = 0; i < MAPPERS; i++)
            segment_put(m[i].got);
        close(fd);
    }
    pthread_barrier_destroy(&start);
}
END_TEST

START_TEST(plain_memory_is_not_taken_for_lanes)
{
    struct lane_segment *plain, *b = NULL;
    uint64_t nonce[2] = {0, 0};
    ck_assert_int_eq(segment_create(&plain, BYTES, BYTES, false), QUIRE_OK);
    /* Known to this process, and with a control page that would pass: it still has no lanes. */
    struct segment_control *forged = (struct segment_control *)plain->base;
    *forged = (struct segment_control){.magic = SEGMENT_MAGIC, .version = 1, .bytes = BYTES};
    ck_assert_int_eq(segment_map(&b, plain->fd, nonce, true), QUIRE_ERR_LINK);
    ck_assert_ptr_eq(b, NULL);
    ck_assert_int_eq(segment_map(&b, plain->fd, nonce, false), QUIRE_OK);
    ck_assert_ptr_eq(b, plain);
    segment_put(b);
    segment_put(plain);
}
END_TEST

/* A new memory control group below ours with a limit of 16M; false where that isn't permitted. */
static bool make_group(char path[512])
{
    char line[512], own[256] = "", file[600];
    FILE *f = fopen("/proc/self/cgroup", "r");
    bool version_1 = false;
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        char *memory = strstr(line, ":memory:");
        if (memory != NULL || (strncmp(line, "0::", 3) == 0 && !version_1)) {
            snprintf(own, sizeof(own), "%.255s", memory != NULL ? memory + 8 : line + 3);
            version_1 = memory != NULL;
        }
    }
    if (f != NULL)
        fclose(f);
    own[strcspn(own, "\n")] = '\0';
    snprintf(path, 512, "/sys/fs/cgroup%s%.200s/quire-segment-%d", version_1 ? "/memory" : "", own, (int)getpid());
    snprintf(file, sizeof(file), "%s/%s", path, version_1 ? "memory.limit_in_bytes" : "memory.max");
    if (mkdir(path, 0700) != 0)
        return false;
    f = fopen(file, "r+");
    bool good = f != NULL && fputs("16777216", f) >= 0;
    if (f != NULL)
        good = fclose(f) == 0 && good;
    if (!good)
        rmdir(path);
    return good;
}

/* The kernel kills who touches memory over a group's limit; it does so in fallocate too. */
START_TEST(a_full_control_group_is_an_error_and_kills_nobody)
{
    char path[512], file[600];
    int status = -1;
    if (!make_group(path)) {
        printf("skipped: no memory control group can be made here\n");
        return;
    }
    snprintf(file, sizeof(file), "%s/cgroup.procs", path);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct lane_segment *a = NULL;
        FILE *f = fopen(file, "w");
        if (f == NULL || fprintf(f, "%d", (int)getpid()) < 0 || fclose(f) != 0)
            _exit(3);
        if (segment_create(&a, 64 << 20, 64 << 20, true) != QUIRE_ERR_RESOURCE)
            _exit(4);
        if (strstr(status_text_last(), "64M") == NULL)
            _exit(5);
        _exit(segment_create(&a, 1 << 20, 1 << 20, true) == QUIRE_OK ? 0 : 6);
    }
    waitpid(child, &status, 0);
    for (int tries = 0; tries < 100 && rmdir(path) != 0; tries++)
        usleep(10000);
    ck_assert_msg(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == 3)
        printf("skipped: the group can't be joined\n");
    else
        ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

BASE_TEST_MAIN("segment", threads_that_meet_a_segment_at_once_share_one_mapping, plain_memory_is_not_taken_for_lanes,
               a_full_control_group_is_an_error_and_kills_nobody, a_process_maps_a_segment_once,
               another_process_sees_the_same_memory, a_wrong_nonce_proves_nothing, memory_that_could_shrink_is_refused,
               limits_are_errors_that_say_what_was_wanted, backing_outside_the_segment_is_a_bug)
