/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * facts.c - what all ranks must agree on before they can plan alike. Each rank sends one page: how its part of the
 * start went so far, every fact with its value as text, and the transports' blobs. All ranks read all pages, so all of
 * them come to the same sentence.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/knobs.h"
#include "comm.h"

enum { FACT_COUNT = 12, FACT_VALUE_BYTES = 24, FACT_NAME_BYTES = 32, OUTCOME_TEXT_BYTES = 380 };

struct outcome {
    uint32_t status;
    char text[OUTCOME_TEXT_BYTES];
};

struct fact {
    char name[FACT_NAME_BYTES];
    char value[FACT_VALUE_BYTES];
};

struct fact_page {
    struct outcome outcome;
    struct fact facts[FACT_COUNT];
};

static void outcome_set(struct outcome *outcome, quire_status_t st)
{
    memset(outcome, 0, sizeof(*outcome));
    outcome->status = (uint32_t)st;
    if (st != QUIRE_OK)
        snprintf(outcome->text, sizeof(outcome->text), "%s", status_text_last());
}

/* The first failed rank's outcome as this thread's; its own text stays as it is. */
static quire_status_t outcome_judge(const struct quire_comm *comm, const struct outcome *outcomes, size_t stride)
{
    for (int r = 0; r < comm->size; r++) {
        const struct outcome *o = (const struct outcome *)((const uint8_t *)outcomes + stride * (size_t)r);
        if (o->status == QUIRE_OK)
            continue;
        char text[OUTCOME_TEXT_BYTES];
        snprintf(text, sizeof(text), "%.*s", OUTCOME_TEXT_BYTES - 1, o->text);
        return quire_fail((quire_status_t)o->status, "rank %d: %s", r, text);
    }
    return QUIRE_OK;
}

quire_status_t comm_agree(struct quire_comm *comm, quire_status_t st, uint64_t deadline)
{
    struct outcome own;
    outcome_set(&own, st);
    struct outcome *all = calloc((size_t)comm->size, sizeof(*all));
    if (all == NULL)
        return st != QUIRE_OK ? st : quire_fail(QUIRE_ERR_RESOURCE, "no memory for %d ranks", comm->size);
    quire_status_t gathered = boot_all_gather(comm->boot, &own, sizeof(own), all, deadline);
    if (gathered == QUIRE_OK)
        gathered = outcome_judge(comm, all, sizeof(*all));
    free(all);
    return gathered;
}

static void fact_add(struct fact_page *page, int *count, const char *name, const char *value)
{
    if (*count == FACT_COUNT)
        return;
    snprintf(page->facts[*count].name, FACT_NAME_BYTES, "%s", name);
    snprintf(page->facts[*count].value, FACT_VALUE_BYTES, "%s", value);
    (*count)++;
}

static void page_fill(const struct quire_comm *comm, struct fact_page *page)
{
    int count = 0;
    fact_add(page, &count, "config.deterministic", comm->deterministic ? "1" : "0");
    fact_add(page, &count, "the transport asked for", comm->forced_transport);
    for (enum knob_id id = 0; id < KNOB_COUNT_; id++)
        if (knob_info(id)->fact && id != KNOB_DETERMINISTIC && id != KNOB_TRANSPORT)
            fact_add(page, &count, knob_info(id)->variable, knob_text(id));
}

/* The first fact on which a rank differs from rank 0, with every rank that does. */
static quire_status_t facts_judge(const struct quire_comm *comm, const uint8_t *pages, size_t stride)
{
    const struct fact_page *first = (const struct fact_page *)pages;
    for (int f = 0; f < FACT_COUNT; f++) {
        char ranks[128] = "";
        size_t used = 0;
        const struct fact *other = NULL;
        for (int r = 1; r < comm->size; r++) {
            const struct fact *theirs = &((const struct fact_page *)(pages + stride * (size_t)r))->facts[f];
            if (memcmp(theirs, &first->facts[f], sizeof(*theirs)) == 0)
                continue;
            if (other == NULL)
                other = theirs;
            if (used < sizeof(ranks) - 16)
                used += (size_t)snprintf(ranks + used, sizeof(ranks) - used, "%s%d", used == 0 ? "" : ", ", r);
        }
        if (other != NULL)
            return quire_fail(QUIRE_ERR_MISMATCH,
                              "%.*s must be the same on all ranks: it is \"%.*s\" at rank 0 and \"%.*s\" at rank %s",
                              FACT_NAME_BYTES, first->facts[f].name, FACT_VALUE_BYTES, first->facts[f].value,
                              FACT_VALUE_BYTES, other->value, ranks);
    }
    return QUIRE_OK;
}

quire_status_t comm_exchange_facts(struct quire_comm *comm, quire_status_t st, const void *blobs, size_t bytes,
                                   void *all_blobs, uint64_t deadline)
{
    size_t stride = sizeof(struct fact_page) + bytes;
    uint8_t *own = calloc(1, stride), *all = calloc((size_t)comm->size, stride);
    quire_status_t result;
    if (own == NULL || all == NULL) {
        result = quire_fail(QUIRE_ERR_RESOURCE, "no memory for the facts of %d ranks", comm->size);
        goto out;
    }
    struct fact_page *page = (struct fact_page *)own;
    outcome_set(&page->outcome, st);
    page_fill(comm, page);
    memcpy(own + sizeof(*page), blobs, bytes);
    result = boot_all_gather(comm->boot, own, stride, all, deadline);
    if (result == QUIRE_OK)
        result = outcome_judge(comm, (const struct outcome *)all, stride);
    if (result == QUIRE_OK)
        result = facts_judge(comm, all, stride);
    if (result == QUIRE_OK)
        for (int r = 0; r < comm->size; r++)
            memcpy((uint8_t *)all_blobs + bytes * (size_t)r, all + stride * (size_t)r + sizeof(*page), bytes);
out:
    free(all);
    free(own);
    return result;
}
