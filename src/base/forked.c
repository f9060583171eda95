/* SPDX-License-Identifier: BSD-3-Clause */
/* forked.c - counts forks in the child. The counter is written in the child only, while it has one thread. */
#include "forked.h"

#include <pthread.h>

static uint32_t generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    generation++;
}

static void arm(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

uint32_t fork_generation(void)
{
    pthread_once(&once, arm);
    return generation;
}
