/* SPDX-License-Identifier: BSD-3-Clause */
/* explain.c - the planner's reasons, for people: every candidate with what speaks against it, and the choice. */
#include <stdarg.h>
#include <stdio.h>

#include "planner.h"

struct text {
    char *at;
    size_t bytes, used;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = t->used < t->bytes ? t->bytes - t->used : 0;
    int n = vsnprintf(room == 0 ? NULL : t->at + t->used, room, format, args);
    va_end(args);
    t->used += n > 0 ? (size_t)n : 0;
}

size_t planner_explain(const struct planner_facts *facts, const struct planner_request *request, char *text,
                       size_t bytes)
{
    struct text t = {text, bytes, 0};
    char reason[PLANNER_REASON_BYTES];
    enum algorithm_id choice = planner_choose(facts, request, reason);
    add(&t, "%s of %zu bytes on %u ranks, %s%s\n", quire_collective_name(request->collective), request->bytes,
        facts->ranks, facts->shared ? "shared memory between all" : "sockets between some",
        facts->deterministic ? ", deterministic" : "");
    if (choice == ALGORITHM_COUNT)
        add(&t, "choice: none\n");
    else
        add(&t, "choice: %s, because %s\n", algorithm_get(choice)->name, reason);
    add(&t, "candidates:\n");
    for (enum algorithm_id id = 0; id < ALGORITHM_COUNT; id++) {
        const struct algorithm *algorithm = algorithm_get(id);
        struct planner_facts one = *facts;
        one.forced = id;
        bool fits = planner_choose(&one, request, NULL) == id;
        struct plan_shape shape = {(uint8_t)request->collective, (uint8_t)id, facts->ranks, request->root};
        const char *why = algorithm->unfit(&shape);
        add(&t, "  %-14s %s\n", algorithm->name,
            id == choice  ? "chosen"
            : why != NULL ? why
            : fits        ? "fits, not preferred at this size"
                          : "its order of addition isn't the canonical one asked for here");
    }
    return t.used;
}
