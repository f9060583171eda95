/* SPDX-License-Identifier: BSD-3-Clause */
/* memory_left_test.c - the least of machine and control groups, over made-up trees; and the real ones don't crash. */
#include <sys/stat.h>
#include <unistd.h>

#include "../base/base_test.h"
#include "memory_left.h"

enum { MIB = 1 << 20 };

static char root[64];

static void begin(void)
{
    strcpy(root, "/tmp/quire-left-XXXXXX");
    ck_assert_ptr_ne(mkdtemp(root), NULL);
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -r '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

/* Writes root/name, making the directories on the way. */
static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    FILE *f = fopen(path, "w");
    ck_assert_ptr_ne(f, NULL);
    fputs(text, f);
    fclose(f);
}

static void put_machine(void)
{
    put("proc/meminfo", "MemTotal:  2048 kB\nMemFree: 100 kB\nMemAvailable:   1048576 kB\nSwapFree: 7 kB\n");
}

static void put_group_2(const char *group, const char *limit, const char *used, const char *stat)
{
    char name[256];
    snprintf(name, sizeof(name), "sys/fs/cgroup%s/memory.max", group);
    put(name, limit);
    snprintf(name, sizeof(name), "sys/fs/cgroup%s/memory.current", group);
    put(name, used);
    snprintf(name, sizeof(name), "sys/fs/cgroup%s/memory.stat", group);
    put(name, stat);
}

START_TEST(nothing_known_limits_nothing)
{
    begin();
    ck_assert(memory_left(root) == UINT64_MAX);
    put("proc/meminfo", "no numbers here\n");
    put("proc/self/cgroup", "0::/a\nbroken\n5:memory\n:\n");
    ck_assert(memory_left(root) == UINT64_MAX);
    end();
}
END_TEST

START_TEST(the_machine_alone_counts_without_groups)
{
    begin();
    put_machine();
    ck_assert_uint_eq(memory_left(root), 1024ull * MIB);
    put("proc/self/cgroup", "0::/gone\n");
    ck_assert_uint_eq(memory_left(root), 1024ull * MIB);
    end();
}
END_TEST

START_TEST(a_limit_far_above_our_group_binds)
{
    begin();
    put_machine();
    put("proc/self/cgroup", "0::/job/step/rank\n");
    put_group_2("/job", "104857600\n", "52428800\n", "anon 1\n");
    put_group_2("/job/step", "max\n", "52428800\n", "anon 1\n");
    put_group_2("/job/step/rank", "209715200\n", "0\n", "anon 1\n");
    ck_assert_uint_eq(memory_left(root), 50ull * MIB);
    end();
}
END_TEST

START_TEST(a_container_that_sees_only_its_own_root_is_limited_by_it)
{
    begin();
    put_machine();
    put("proc/self/cgroup", "0::/named/from/the/host\n");
    put_group_2("", "10485760\n", "1048576\n", "anon 1\n");
    ck_assert_uint_eq(memory_left(root), 9ull * MIB);
    end();
}
END_TEST

START_TEST(pages_that_cache_files_are_free)
{
    begin();
    put_machine();
    put("proc/self/cgroup", "0::/\n");
    put_group_2("", "104857600\n", "104857600\n",
                "anon 5\nfile 99\ninactive_anon 7\ninactive_file 31457280\nactive_file 10485760\n");
    ck_assert_uint_eq(memory_left(root), 40ull * MIB);
    put_group_2("", "104857600\n", "209715200\n", "anon 5\n"); /* over its limit: nothing, not an enormous number */
    ck_assert_uint_eq(memory_left(root), 0);
    end();
}
END_TEST

START_TEST(version_1_groups_count_too)
{
    begin();
    put_machine();
    put("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n");
    put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "16777216\n");
    put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "8388608\n");
    put("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 4194304\ntotal_active_file 0\n");
    ck_assert_uint_eq(memory_left(root), 12ull * MIB);
    end();
}
END_TEST

START_TEST(the_real_machine_has_some)
{
    ck_assert(memory_left("") > 0);
}
END_TEST

BASE_TEST_MAIN("memory_left", nothing_known_limits_nothing, the_machine_alone_counts_without_groups,
               a_limit_far_above_our_group_binds, a_container_that_sees_only_its_own_root_is_limited_by_it,
               pages_that_cache_files_are_free, version_1_groups_count_too, the_real_machine_has_some)
