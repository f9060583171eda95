/* SPDX-License-Identifier: BSD-3-Clause */
/* segment_test.c - segments: one mapping a process, proof by nonce, limits as errors and never as signals. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/base_test.h"
#include "base/status.h"
#include "segment.h"

enum { BYTES = 1 << 20 };

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

BASE_TEST_MAIN("segment", a_process_maps_a_segment_once, another_process_sees_the_same_memory,
               a_wrong_nonce_proves_nothing, memory_that_could_shrink_is_refused,
               limits_are_errors_that_say_what_was_wanted, backing_outside_the_segment_is_a_bug)
