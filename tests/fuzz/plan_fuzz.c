/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_fuzz.c - any text: a clear error, or a valid plan that prints and parses to the same text. A small one then
 * takes its rank's place among the plans of the others, and the checker says something about them without harm.
 */
#include <stdlib.h>
#include <string.h>

#include "algorithms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print(const struct plan *plan, size_t *bytes)
{
    *bytes = plan_print(plan, NULL, 0);
    char *text = malloc(*bytes + 1);
    if (text != NULL)
        plan_print(plan, text, *bytes + 1);
    return text;
}

enum { RANKS = 4, ITERATIONS = 512 };

static void check_among_others(const struct plan *plan)
{
    const struct plan *plans[RANKS] = {NULL};
    struct plan *others[RANKS] = {NULL};
    uint64_t iterations = 0;
    bool all = plan->shape.ranks <= RANKS && plan->blocks <= 64 && plan->scratch_blocks <= 64;
    for (uint32_t i = 0; all && i < plan->step_count; i++)
        iterations += plan->steps[i].repeat;
    all = all && iterations <= ITERATIONS;
    for (uint32_t r = 0; all && r < plan->shape.ranks; r++) {
        if (r != plan->rank)
            all = algorithm_emit(&plan->shape, r, &others[r]) == QUIRE_OK;
        plans[r] = r == plan->rank ? plan : others[r];
    }
    for (int variant = 0; all && variant < 4; variant++) {
        struct plan_check_options options = {variant & 1 ? 2 : 8, 3, variant & 2, false};
        (void)plan_check(plans, plan->shape.ranks, &options);
    }
    for (uint32_t r = 0; r < RANKS; r++)
        plan_free(others[r]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan *plan, *again;
    size_t first_bytes, second_bytes;
    if (plan_parse((const char *)data, size, &plan) != QUIRE_OK)
        return 0;
    if (plan_valid(plan) != QUIRE_OK)
        abort();
    char *first = print(plan, &first_bytes);
    if (first == NULL || plan_parse(first, first_bytes, &again) != QUIRE_OK)
        abort();
    char *second = print(again, &second_bytes);
    if (second == NULL || strcmp(first, second) != 0)
        abort();
    check_among_others(plan);
    free(second);
    free(first);
    plan_free(again);
    plan_free(plan);
    return 0;
}
