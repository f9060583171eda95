/* SPDX-License-Identifier: BSD-3-Clause */
/* stop.c - the slow half of stop.h: recording causes and refusals. */
#include "stop.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void stop_init(struct stop *stop)
{
    memset(stop, 0, sizeof(*stop));
    stop->word = &stop->own_word;
    pthread_mutex_init(&stop->lock, NULL);
}

void stop_destroy(struct stop *stop)
{
    pthread_mutex_destroy(&stop->lock);
}

void stop_place(struct stop *stop, uint32_t *word)
{
    pthread_mutex_lock(&stop->lock);
    if (word != stop->word) {
        atom_store_release(word, atom_load_acquire(stop->word));
        stop->word = word;
    }
    pthread_mutex_unlock(&stop->lock);
}

bool stop_fail(struct stop *stop, const struct cause *cause)
{
    pthread_mutex_lock(&stop->lock);
    bool first = atom_load_acquire(stop->word) != STOP_FATAL;
    if (first) {
        if (cause != &stop->cause)
            stop->cause = *cause;
        atom_store_release(stop->word, (uint32_t)STOP_FATAL); /* S1 pairs with S2 */
    } else {
        stop->later_causes++;
    }
    pthread_mutex_unlock(&stop->lock);
    return first;
}

void stop_refuse(struct stop *stop, const struct cause *cause)
{
    pthread_mutex_lock(&stop->lock);
    stop->refusals[stop->refusal_count++ % STOP_REFUSALS] = *cause;
    (void)atom_cas(stop->word, (uint32_t)STOP_NONE, (uint32_t)STOP_NOTICE);
    pthread_mutex_unlock(&stop->lock);
}

/* An entry that is still of use has status != OK. */
static bool refusal_live(const struct cause *refusal)
{
    return refusal->status != QUIRE_OK;
}

bool stop_refused(struct stop *stop, uint64_t sequence, struct cause *out)
{
    bool found = false, left = false;
    pthread_mutex_lock(&stop->lock);
    for (int i = 0; i < STOP_REFUSALS; i++) {
        struct cause *refusal = &stop->refusals[i];
        bool ordered = !(sequence & STOP_PAIR_BIT) && !(refusal->sequence & STOP_PAIR_BIT);
        if (!refusal_live(refusal))
            continue;
        if (refusal->sequence == sequence && !found) {
            *out = *refusal;
            found = true;
            /* Several ranks may wait in one process, but each has its own stop: a pair's refusal is used up here. A
               collective's stays until a later operation asks. */
            if (sequence & STOP_PAIR_BIT)
                refusal->status = QUIRE_OK;
        } else if (ordered && refusal->sequence < sequence) {
            refusal->status = QUIRE_OK;
        }
        left |= refusal_live(refusal);
    }
    if (!left)
        (void)atom_cas(stop->word, (uint32_t)STOP_NOTICE, (uint32_t)STOP_NONE);
    pthread_mutex_unlock(&stop->lock);
    return found;
}

const struct cause *stop_cause(const struct stop *stop)
{
    return atom_load_acquire(stop->word) == STOP_FATAL ? &stop->cause : NULL; /* S2 */
}

quire_status_t stop_status(struct stop *stop)
{
    const struct cause *cause = stop_cause(stop);
    return cause == NULL ? QUIRE_OK : quire_fail((quire_status_t)cause->status, "%s", cause->text);
}

struct cause cause_make(quire_status_t status, int rank, const char *format, ...)
{
    struct cause cause;
    memset(&cause, 0, sizeof(cause));
    cause.status = (uint32_t)status;
    cause.rank = rank;
    va_list args;
    va_start(args, format);
    vsnprintf(cause.text, sizeof(cause.text), format, args);
    va_end(args);
    return cause;
}

bool cause_valid(const struct cause *cause)
{
    static const quire_status_t known[] = {
#define STATUS_VALUE(symbol, value, name, text) symbol,
        QUIRE_STATUS_LIST(STATUS_VALUE)
#undef STATUS_VALUE
    };
    if (memchr(cause->text, '\0', sizeof(cause->text)) == NULL)
        return false;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (cause->status == (uint32_t)known[i])
            return known[i] >= QUIRE_ERR_INVALID_ARGUMENT;
    return false;
}
