/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - monotonic time, and deadlines. A deadline is an absolute monotonic time in nanoseconds; DEADLINE_NEVER (0
 * timeout) never passes. Reading the clock costs about 25 ns, so hot loops look at it every few hundred polls only.
 */
#ifndef QUIRE_BASE_CLOCK_H
#define QUIRE_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CLOCK_MS UINT64_C(1000000)
#define CLOCK_S UINT64_C(1000000000)
#define DEADLINE_NEVER UINT64_MAX

static inline uint64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * CLOCK_S + (uint64_t)ts.tv_nsec;
}

/* `timeout_ns` from now; 0 means never. */
static inline uint64_t deadline_in(uint64_t timeout_ns)
{
    uint64_t now = clock_ns();
    return timeout_ns == 0 || timeout_ns > UINT64_MAX - now ? DEADLINE_NEVER : now + timeout_ns;
}

static inline bool deadline_passed(uint64_t deadline)
{
    return deadline != DEADLINE_NEVER && clock_ns() >= deadline;
}

/* Milliseconds until the deadline for poll(2), at most `cap_ms`, at least 0, rounded up. */
static inline int deadline_poll_ms(uint64_t deadline, int cap_ms)
{
    uint64_t now = clock_ns();
    if (deadline == DEADLINE_NEVER)
        return cap_ms;
    if (deadline <= now)
        return 0;
    uint64_t ms = (deadline - now + CLOCK_MS - 1) / CLOCK_MS;
    return ms < (uint64_t)cap_ms ? (int)ms : cap_ms;
}

#endif
