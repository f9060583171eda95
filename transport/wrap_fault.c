/* SPDX-License-Identifier: BSD-3-Clause */
/* wrap_fault.c - reading the spec, and the dice. See wrap_fault.h. */
#include "wrap_fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "tcp.h"

struct tcp_fault {
    double drop, corrupt, corrupt_bytes;
    uint64_t delay_ns;
    int kill_rank; /* -1 none */
    uint64_t kill_at, frames_to_kill_rank;
    uint64_t seed;
};

/* Uniform in [0,1). */
static double dice(struct tcp_fault *fault)
{
    fault->seed = fault->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(fault->seed >> 11) / (double)(UINT64_C(1) << 53);
}

enum tcp_fault_action tcp_fault_next(struct tcp_fault *fault, int rank, uint64_t *held_until)
{
    if (fault->delay_ns != 0) {
        uint64_t now = clock_ns();
        if (*held_until == 0)
            *held_until = now + fault->delay_ns;
        if (now < *held_until)
            return TCP_FAULT_HOLD;
        *held_until = 0;
    }
    if (rank == fault->kill_rank && ++fault->frames_to_kill_rank == fault->kill_at)
        return TCP_FAULT_KILL;
    if (fault->drop > 0 && dice(fault) < fault->drop)
        return TCP_FAULT_DROP;
    if (fault->corrupt > 0 && dice(fault) < fault->corrupt)
        return TCP_FAULT_CORRUPT;
    if (fault->corrupt_bytes > 0 && dice(fault) < fault->corrupt_bytes)
        return TCP_FAULT_CORRUPT_BYTES;
    return TCP_FAULT_NONE;
}

void tcp_fault_free(struct tcp_fault *fault)
{
    free(fault);
}

static bool parse_probability(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && *value >= 0 && *value <= 1;
}

static bool parse_kill(const char *text, struct tcp_fault *fault)
{
    int rank, used = 0;
    unsigned long long at;
    if (sscanf(text, "%d@%llu%n", &rank, &at, &used) != 2 || text[used] != '\0' || rank < 0 || at == 0)
        return false;
    fault->kill_rank = rank;
    fault->kill_at = at;
    return true;
}

static bool parse_item(char *item, struct tcp_fault *fault)
{
    char *equals = strchr(item, '=');
    int64_t seed = 0;
    if (equals == NULL)
        return false;
    *equals = '\0';
    const char *value = equals + 1;
    bool good = strcmp(item, "drop") == 0            ? parse_probability(value, &fault->drop)
                : strcmp(item, "corrupt") == 0       ? parse_probability(value, &fault->corrupt)
                : strcmp(item, "corrupt_bytes") == 0 ? parse_probability(value, &fault->corrupt_bytes)
                : strcmp(item, "delay") == 0         ? bytes_parse_time(value, &fault->delay_ns)
                : strcmp(item, "kill") == 0          ? parse_kill(value, fault)
                : strcmp(item, "seed") == 0          ? bytes_parse_int(value, 0, INT64_MAX, &seed)
                                                     : false;
    if (good && strcmp(item, "seed") == 0)
        fault->seed = (uint64_t)seed;
    *equals = '=';
    return good;
}

quire_status_t wrap_fault(struct transport_end *end, const char *spec)
{
    char text[256];
    struct tcp_fault read = {.kill_rank = -1, .seed = 1};
    if (strncmp(spec, "tcp:", 4) != 0 || strlen(spec) >= sizeof(text))
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "fault spec \"%.64s\": expected tcp:KEY=VALUE,...", spec);
    snprintf(text, sizeof(text), "%s", spec + 4);
    char *rest = text;
    for (char *item; (item = strsep(&rest, ",")) != NULL;)
        if (!parse_item(item, &read))
            return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                              "fault spec \"%.64s\": \"%.32s\" is none of drop=P corrupt=P corrupt_bytes=P delay=T "
                              "kill=RANK@N seed=N",
                              spec, item);
    if (end->transport != &transport_tcp)
        return QUIRE_OK;
    struct tcp_fault *fault = malloc(sizeof(*fault));
    if (fault == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a fault");
    *fault = read;
    tcp_set_fault(end, fault);
    return QUIRE_OK;
}
