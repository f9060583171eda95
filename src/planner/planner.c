/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * planner.c - which algorithm for which request, and the cache of plans.
 *
 * The rules, for all_reduce of S bytes on n ranks that share memory (bytes each rank's core moves):
 *   one_shot  copies S in and reads n-1 peers' S: n*S, one exchange
 *   two_shot  copies S(n-1)/n in, folds S/n from n-1 peers, reads S(n-1)/n back: about 3S, two exchanges
 * so one_shot wins while its extra (n-3)*S costs less than the second exchange, and for two ranks always; measured
 * crossovers set the limits.
 * Over sockets a wide lane costs its producer n-1 sends, so large requests go around a ring: 2S(n-1)/n per link.
 */
#include "planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum {
    WIDE_MAX = 64,              /* ranks: one fold takes at most this many sources */
    WIDE_SOCKET_MAX = 16,       /* above this fan-out a wide lane over sockets costs more than a tree */
    SOCKET_ONE_SHOT = 64 << 10, /* bytes */
    BROADCAST_WIDE_MAX = 64,
};

struct planned {
    struct planned *next;
    struct plan_shape shape;
    struct plan *plan;
};

struct planner {
    struct planner_facts facts;
    uint32_t rank;
    struct planned *plans;
};

size_t planner_one_shot_max(uint32_t ranks)
{
    if (ranks <= 2)
        return SIZE_MAX; /* two_shot moves no less and waits twice: slower at every size, near or far cores */
    if (ranks <= 4)
        return (size_t)32 << 10;
    return ((size_t)64 << 10) / ranks;
}

static struct plan_shape shape_of(const struct planner_facts *facts, const struct planner_request *request,
                                  enum algorithm_id id)
{
    struct plan_shape shape = {0};
    shape.collective = (uint8_t)request->collective;
    shape.algorithm = (uint8_t)id;
    shape.ranks = facts->ranks;
    shape.root = request->collective == QUIRE_ALL_REDUCE || request->collective == QUIRE_BARRIER ? 0 : request->root;
    return shape;
}

/* Why a candidate is out; NULL when it is in. */
static const char *unfit(const struct planner_facts *facts, const struct planner_request *request, enum algorithm_id id)
{
    struct plan_shape shape = shape_of(facts, request, id);
    const struct algorithm *algorithm = algorithm_get(id);
    const char *why = algorithm->unfit(&shape); /* static text */
    if (why != NULL)
        return why; // cppcheck-suppress returnDanglingLifetime
    bool adds = request->collective == QUIRE_ALL_REDUCE;
    if (adds && !algorithm->canonical && facts->ranks > 1 && (facts->deterministic || facts->shared))
        return facts->deterministic ? "its order of addition isn't canonical and deterministic is set"
                                    : "its order of addition isn't canonical, which holds inside a host";
    return NULL;
}

static enum algorithm_id prefer(const struct planner_facts *facts, const struct planner_request *r, char *reason)
{
    size_t own = facts->shared ? planner_one_shot_max(facts->ranks) : SOCKET_ONE_SHOT;
    size_t limit = facts->one_shot_max == SIZE_MAX ? own : facts->one_shot_max;
    char dummy[PLANNER_REASON_BYTES];
    reason = reason == NULL ? dummy : reason;
    switch (r->collective) {
    case QUIRE_ALL_REDUCE:
        if (r->bytes <= limit) {
            snprintf(reason, PLANNER_REASON_BYTES, "%zu bytes are within one_shot's limit of %zu: one exchange",
                     r->bytes, limit);
            return ALGORITHM_ONE_SHOT;
        }
        snprintf(reason, PLANNER_REASON_BYTES, "%zu bytes are over one_shot's limit of %zu: %s", r->bytes, limit,
                 facts->shared || facts->deterministic ? "each rank folds its share once"
                                                       : "each byte crosses each link of the ring twice");
        return facts->shared || facts->deterministic ? ALGORITHM_TWO_SHOT : ALGORITHM_RING;
    case QUIRE_BROADCAST:
        if (facts->shared && facts->ranks <= BROADCAST_WIDE_MAX) {
            snprintf(reason, PLANNER_REASON_BYTES, "all ranks read the root's lane");
            return ALGORITHM_ONE_SHOT;
        }
        snprintf(reason, PLANNER_REASON_BYTES, "%s", "the root is not the only one that sends");
        return ALGORITHM_BINOMIAL;
    case QUIRE_BARRIER:
        if (facts->ranks <= (facts->shared ? WIDE_MAX : WIDE_SOCKET_MAX)) {
            snprintf(reason, PLANNER_REASON_BYTES, "one exchange of empty slots");
            return ALGORITHM_ONE_SHOT;
        }
        snprintf(reason, PLANNER_REASON_BYTES, "%s", "ceil(log2 n) rounds of pairs");
        return ALGORITHM_DISSEMINATION;
    default:
        snprintf(reason, PLANNER_REASON_BYTES, "%s", "the pair's own lane");
        return ALGORITHM_PAIR;
    }
}

enum algorithm_id planner_choose(const struct planner_facts *facts, const struct planner_request *request, char *reason)
{
    if (facts->forced != ALGORITHM_COUNT && unfit(facts, request, facts->forced) == NULL) {
        if (reason != NULL)
            snprintf(reason, PLANNER_REASON_BYTES, "QUIRE_ALGORITHM asks for it");
        return facts->forced;
    }
    enum algorithm_id id = prefer(facts, request, reason);
    if (unfit(facts, request, id) == NULL)
        return id;
    /* The preferred one can't do this many ranks: the first that can, in the order of the list. */
    for (id = 0; id < ALGORITHM_COUNT; id++)
        if (unfit(facts, request, id) == NULL) {
            if (reason != NULL)
                snprintf(reason, PLANNER_REASON_BYTES, "the first candidate that fits %u ranks", facts->ranks);
            return id;
        }
    return ALGORITHM_COUNT;
}

/* Emits the plans of all ranks and proves them, in place and out of place. Slow: for debugging. */
static quire_status_t prove(const struct planner *planner, const struct plan_shape *shape)
{
    struct plan **plans = calloc(shape->ranks, sizeof(*plans));
    quire_status_t st = plans == NULL ? quire_fail(QUIRE_ERR_RESOURCE, "no memory to prove a plan") : QUIRE_OK;
    for (uint32_t r = 0; st == QUIRE_OK && r < shape->ranks; r++)
        st = algorithm_emit(shape, r, &plans[r]);
    for (int in_place = 0; st == QUIRE_OK && in_place < 2; in_place++) {
        struct plan_check_options options = {planner->facts.lane_depth, 3, in_place != 0,
                                             algorithm_get((enum algorithm_id)shape->algorithm)->canonical};
        st = plan_check((const struct plan *const *)plans, shape->ranks, &options);
    }
    for (uint32_t r = 0; plans != NULL && r < shape->ranks; r++)
        plan_free(plans[r]);
    free(plans);
    return st;
}

quire_status_t planner_plan(struct planner *planner, const struct planner_request *request, const struct plan **plan)
{
    enum algorithm_id id = planner_choose(&planner->facts, request, NULL);
    if (id == ALGORITHM_COUNT) {
        char text[STATUS_TEXT_BYTES / 2];
        planner_explain(&planner->facts, request, text, sizeof(text));
        return quire_fail(QUIRE_ERR_INVALID_USAGE, "no algorithm fits: %s", text);
    }
    struct plan_shape shape = shape_of(&planner->facts, request, id);
    for (struct planned *p = planner->plans; p != NULL; p = p->next)
        if (plan_shape_equal(&p->shape, &shape)) {
            *plan = p->plan;
            return QUIRE_OK;
        }
    struct planned *made = calloc(1, sizeof(*made));
    if (made == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a plan");
    made->shape = shape;
    quire_status_t st = algorithm_emit(&shape, planner->rank, &made->plan);
    if (st == QUIRE_OK && planner->facts.prove && request->collective != QUIRE_SEND &&
        request->collective != QUIRE_RECV)
        st = prove(planner, &shape);
    if (st != QUIRE_OK) {
        plan_free(made->plan);
        free(made);
        return st;
    }
    made->next = planner->plans;
    planner->plans = made;
    *plan = made->plan;
    return QUIRE_OK;
}

quire_status_t planner_create(struct planner **planner, const struct planner_facts *facts, uint32_t rank)
{
    struct planner *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a planner");
    p->facts = *facts;
    p->rank = rank;
    *planner = p;
    return QUIRE_OK;
}

void planner_destroy(struct planner *planner)
{
    if (planner == NULL)
        return;
    for (struct planned *p = planner->plans, *next; p != NULL; p = next) {
        next = p->next;
        plan_free(p->plan);
        free(p);
    }
    free(planner);
}
