/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quire-info.c - this machine and this library on one screen, or the table of knobs. One of the tools that show the
 * inside (topology, instruction set), so it links the static library.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bytes.h"
#include "kernels/kernels.h"
#include "quire.h"
#include "topology.h"
#include "transport.h"

static const char usage[] = "usage: quire-info [--knobs] [--json] [--help] [--version]\n"
                            "  (nothing)   this machine: processor, caches, limits, addresses, launcher\n"
                            "  --knobs     every QUIRE_* variable: type, default, value in force, meaning\n"
                            "  --json      the same for programs\n";

/* A JSON string: quotes, backslashes and control characters escaped. */
static void json_string(const char *text)
{
    putchar('"');
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\')
            printf("\\%c", *p);
        else if (*p < 0x20)
            printf("\\u%04x", *p);
        else
            putchar(*p);
    }
    putchar('"');
}

struct knob_list {
    int json, count;
};

static void show_knob(void *arg, const char *name, const char *type, const char *def, const char *value, int was_set,
                      const char *help)
{
    struct knob_list *list = arg;
    if (!list->json) {
        printf("%-20s %-7s default %-8s %s%-10s %s\n", name, type, def[0] == '\0' ? "-" : def,
               was_set ? "now " : "    ", was_set ? value : "", help);
        return;
    }
    printf("%s\n  {\"name\": ", list->count++ == 0 ? "[" : ",");
    json_string(name);
    printf(", \"type\": ");
    json_string(type);
    printf(", \"default\": ");
    json_string(def);
    printf(", \"value\": ");
    json_string(value);
    printf(", \"set\": %s, \"help\": ", was_set ? "true" : "false");
    json_string(help);
    printf("}");
}

static int show_knobs(int json)
{
    struct knob_list list = {json, 0};
    if (quire_visit_knobs(show_knob, &list) != QUIRE_OK)
        return 1;
    if (json)
        printf("\n]\n");
    return 0;
}

static const char *limit_text(int resource, char *text)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0)
        return "?";
    if (limit.rlim_cur == RLIM_INFINITY)
        return "unlimited";
    return bytes_size_text(limit.rlim_cur, text);
}

/* One address a line for people, or a JSON array. */
static void show_addresses(int json)
{
    struct ifaddrs *all;
    int count = 0;
    if (getifaddrs(&all) != 0)
        return;
    for (struct ifaddrs *a = all; a != NULL; a = a->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        if (a->ifa_addr == NULL || !(a->ifa_flags & IFF_UP))
            continue;
        const void *at = a->ifa_addr->sa_family == AF_INET
                             ? (const void *)&((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr
                         : a->ifa_addr->sa_family == AF_INET6
                             ? (const void *)&((const struct sockaddr_in6 *)(const void *)a->ifa_addr)->sin6_addr
                             : NULL;
        if (at == NULL || inet_ntop(a->ifa_addr->sa_family, at, text, sizeof(text)) == NULL)
            continue;
        if (json)
            printf("%s{\"interface\": \"%s\", \"address\": \"%s\"}", count == 0 ? "" : ", ", a->ifa_name, text);
        else
            printf("%s%s %s\n", count == 0 ? "addresses   " : "            ", a->ifa_name, text);
        count++;
    }
    freeifaddrs(all);
}

static void machine_json(const struct topology *t, const quire_launch *launch)
{
    printf("{\"version\": \"%d.%d.%d\", \"kernels\": \"%s\", \"model\": ", QUIRE_MAJOR, QUIRE_MINOR, QUIRE_PATCH,
           kernel_isa());
    json_string(t->model);
    printf(", \"packages\": %d, \"nodes\": %d, \"cores\": %d, \"threads\": %d, \"allowed_cores\": %d, "
           "\"allowed_threads\": %d, \"llc_bytes\": %llu, \"llc_threads\": %d, \"memory_bytes\": %llu, "
           "\"launcher\": \"%s\", \"addresses\": [",
           t->packages, t->nodes, t->cores, t->threads, t->allowed_cores, t->allowed_threads,
           (unsigned long long)t->llc_bytes, t->llc_threads, (unsigned long long)t->memory_bytes, launch->launcher);
    show_addresses(1);
    printf("]}\n");
}

static int show_machine(int json)
{
    const struct topology *t = topology_get();
    quire_launch launch = {-1, 0, -1, -1, "none"};
    char text[1024], files[16], locked[16];
    if (quire_launch_info(&launch) != QUIRE_OK)
        fprintf(stderr, "quire-info: launcher: %s\n", quire_last_error(NULL));
    if (json) {
        machine_json(t, &launch);
        return 0;
    }
    printf("quire       %d.%d.%d, kernels %s\n", QUIRE_MAJOR, QUIRE_MINOR, QUIRE_PATCH, kernel_isa());
    topology_print(t, text, sizeof(text));
    printf("%s", text);
    printf("transports ");
    for (int i = 0; transport_all[i] != NULL; i++)
        printf(" %s", transport_all[i]->name);
    printf("\nlimits      %s open files, %s locked memory\n", limit_text(RLIMIT_NOFILE, files),
           limit_text(RLIMIT_MEMLOCK, locked));
    show_addresses(0);
    if (launch.rank >= 0)
        printf("launcher    %s: rank %d of %d\n", launch.launcher, launch.rank, launch.size);
    else
        printf("launcher    none seen\n");
    return 0;
}

int main(int argc, char **argv)
{
    int knobs = 0, json = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--knobs") == 0)
            knobs = 1;
        else if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--version") == 0) {
            printf("quire %d.%d.%d\n", QUIRE_MAJOR, QUIRE_MINOR, QUIRE_PATCH);
            return 0;
        } else if (strcmp(argv[i], "--help") == 0) {
            printf("%s", usage);
            return 0;
        } else {
            fprintf(stderr, "quire-info: unknown option %s\n%s", argv[i], usage);
            return 2;
        }
    }
    return knobs ? show_knobs(json) : show_machine(json);
}
