/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * planner.h - request -> plan. The choice is a pure function of the request and of facts that all ranks agreed on at
 * init, so every rank chooses the same algorithm without talking. Nothing local or noisy decides.
 *
 * A planner belongs to one communicator end and is used by the thread inside it. Plans it returns stay valid, at the
 * same address, until planner_destroy.
 */
#ifndef QUIRE_PLANNER_PLANNER_H
#define QUIRE_PLANNER_PLANNER_H

#include "algorithms.h"
#include "plan/plan.h"

/* What decides; the same on every rank. */
struct planner_facts {
    uint32_t ranks;
    bool shared;              /* every pair of ranks shares memory: wide lanes are cheap everywhere */
    bool deterministic;       /* canonical order of addition only */
    enum algorithm_id forced; /* ALGORITHM_COUNT: free choice */
    size_t one_shot_max;      /* bytes; SIZE_MAX: the planner's own limits */
    uint32_t lane_depth;      /* for proving plans */
    bool prove;               /* check each plan on all ranks before its first use (local choice, not a fact) */
};

struct planner_request {
    quire_collective_t collective;
    size_t bytes;
    quire_type_t type;
    quire_op_t op;
    uint32_t root; /* broadcast: root; send, receive: peer */
};

enum { PLANNER_REASON_BYTES = 160 };

struct planner;

/* RESOURCE when out of memory. */
quire_status_t planner_create(struct planner **planner, const struct planner_facts *facts, uint32_t rank);
void planner_destroy(struct planner *planner);

/* The plan for this rank, from the cache or made now. INVALID_USAGE with each candidate's reason when none fits. */
quire_status_t planner_plan(struct planner *planner, const struct planner_request *request, const struct plan **plan);

/* The choice alone, and why (at most PLANNER_REASON_BYTES; may be NULL). Pure. ALGORITHM_COUNT when none fits. */
enum algorithm_id planner_choose(const struct planner_facts *facts, const struct planner_request *request,
                                 char *reason);

/* Writes candidates, choice and reasons as text; returns the length needed as snprintf does. */
size_t planner_explain(const struct planner_facts *facts, const struct planner_request *request, char *text,
                       size_t bytes);

/* The largest all_reduce, in bytes, that goes one-shot over shared memory with n ranks; see planner.c. */
size_t planner_one_shot_max(uint32_t ranks);

#endif
