/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_fuzz.c - any text: a clear error, or a valid plan that prints and parses to the same text. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print(const struct plan *plan, size_t *bytes)
{
    *bytes = plan_print(plan, NULL, 0);
    char *text = malloc(*bytes + 1);
    if (text != NULL)
        plan_print(plan, text, *bytes + 1);
    return text;
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
    free(second);
    free(first);
    plan_free(again);
    plan_free(plan);
    return 0;
}
