/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory_left.c - reads /proc/meminfo and the limits of control groups, version 2 and version 1. A group's limit binds
 * all groups below it, so every group from ours up to the root of the mount is looked at. Inside a container the mount
 * often begins at the container's own group while /proc/self/cgroup names the path from the host's root; groups on the
 * path that can't be found are passed over, and the root of the mount is then the one that binds.
 *
 * Invariant: what can't be read never makes the answer smaller.
 */
#include "memory_left.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 8192 };

struct group_files {
    const char *mount, *limit, *usage;
    const char *cached[2]; /* lines of memory.stat: pages of files, which the kernel can drop */
};

static const struct group_files version_2 = {
    "/sys/fs/cgroup", "memory.max", "memory.current", {"\ninactive_file ", "\nactive_file "}};
static const struct group_files version_1 = {"/sys/fs/cgroup/memory",
                                             "memory.limit_in_bytes",
                                             "memory.usage_in_bytes",
                                             {"\ntotal_inactive_file ", "\ntotal_active_file "}};

/* The whole file behind a newline, so that a key that begins a line can be looked for as one. False when unreadable. */
static bool read_text(const char *path, char text[TEXT_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t length = 1;
    text[0] = '\n';
    for (ssize_t n; length < TEXT_BYTES - 1 && (n = read(fd, text + length, TEXT_BYTES - 1 - length)) > 0;)
        length += (size_t)n;
    close(fd);
    text[length] = '\0';
    return length > 1;
}

/* The number behind `key`, or `otherwise` when there is none ("max" included). */
static uint64_t number_behind(const char *text, const char *key, uint64_t otherwise)
{
    const char *at = strstr(text, key);
    if (at == NULL)
        return otherwise;
    at += strlen(key);
    at += strspn(at, " ");
    return *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : otherwise;
}

static uint64_t number_in(const char *directory, const char *file)
{
    char path[2 * PATH_MAX], text[TEXT_BYTES];
    int n = snprintf(path, sizeof(path), "%s/%s", directory, file);
    if (n < 0 || (size_t)n >= sizeof(path) || !read_text(path, text))
        return UINT64_MAX;
    return number_behind(text, "\n", UINT64_MAX);
}

static uint64_t left_in_group(const char *directory, const struct group_files *files)
{
    char path[2 * PATH_MAX], text[TEXT_BYTES];
    uint64_t limit = number_in(directory, files->limit), used = number_in(directory, files->usage), cached = 0;
    if (limit == UINT64_MAX || used == UINT64_MAX)
        return UINT64_MAX;
    int n = snprintf(path, sizeof(path), "%s/memory.stat", directory);
    if (n > 0 && (size_t)n < sizeof(path) && read_text(path, text))
        for (int i = 0; i < 2; i++)
            cached += number_behind(text, files->cached[i], 0);
    used = used > cached ? used - cached : 0;
    return limit > used ? limit - used : 0;
}

/* Our group and all above it; `group` is its path below the mount, "/" at least. */
static uint64_t left_in_groups(const char *root, const struct group_files *files, const char *group)
{
    char directory[PATH_MAX];
    uint64_t left = UINT64_MAX;
    int mount = snprintf(directory, sizeof(directory), "%s%s", root, files->mount);
    int all = snprintf(directory, sizeof(directory), "%s%s%s", root, files->mount, group);
    if (mount < 0 || all < 0 || (size_t)all >= sizeof(directory))
        return UINT64_MAX;
    for (;;) {
        uint64_t here = left_in_group(directory, files);
        left = here < left ? here : left;
        char *slash = strrchr(directory, '/');
        if (slash == NULL || slash < directory + mount)
            return left;
        *slash = '\0';
    }
}

/* A line is "number:controllers:path"; version 2 has no controllers in it. */
static uint64_t left_by_line(const char *root, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL)
        return UINT64_MAX;
    *group++ = '\0';
    controllers++;
    if (*controllers == '\0')
        return left_in_groups(root, &version_2, group);
    char *rest = controllers;
    for (const char *name; (name = strsep(&rest, ",")) != NULL;)
        if (strcmp(name, "memory") == 0)
            return left_in_groups(root, &version_1, group);
    return UINT64_MAX;
}

uint64_t memory_left(const char *root)
{
    char path[PATH_MAX], text[TEXT_BYTES];
    uint64_t left = UINT64_MAX;
    int n = snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    if (n > 0 && (size_t)n < sizeof(path) && read_text(path, text)) {
        uint64_t kilobytes = number_behind(text, "\nMemAvailable:", UINT64_MAX);
        left = kilobytes > UINT64_MAX / 1024 ? UINT64_MAX : kilobytes * 1024;
    }
    n = snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    if (n < 0 || (size_t)n >= sizeof(path) || !read_text(path, text))
        return left;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        uint64_t group = left_by_line(root, line);
        left = group < left ? group : left;
    }
    return left;
}
