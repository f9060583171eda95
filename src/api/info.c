/* SPDX-License-Identifier: BSD-3-Clause */
/* info.c - entry points that tell about the library: version, launcher, knobs, and what a call would do. */
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/knobs.h"
#include "base/status.h"
#include "boot/launch.h"
#include "comm/comm.h"

quire_status_t quire_get_version(int *version)
{
    if (version == NULL)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "version is NULL");
    *version = QUIRE_VERSION;
    return QUIRE_OK;
}

quire_status_t quire_launch_info(quire_launch *info)
{
    struct launch launch;
    if (info == NULL)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "info is NULL");
    quire_status_t st = launch_read(&launch);
    if (st == QUIRE_OK)
        *info = launch.info;
    return st;
}

quire_status_t quire_visit_knobs(quire_knob_visit visit, void *arg)
{
    static const char *const types[] = {"int", "size", "time", "bool", "string", "choice"};
    if (visit == NULL)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "visit is NULL");
    for (enum knob_id id = 0; id < KNOB_COUNT_; id++) {
        const struct knob_info *info = knob_info(id);
        visit(arg, info->variable, types[info->type], info->def, knob_text(id), knob_is_set(id), info->help);
    }
    return QUIRE_OK;
}

/* The plan of this rank behind the reasons. Returns the length needed, as snprintf does. */
static size_t explain_text(struct quire_comm *comm, const struct planner_request *request, char *text, size_t bytes)
{
    size_t used = planner_explain(&comm->planner_facts, request, text, bytes);
    const struct plan *plan;
    if (planner_plan(comm->planner, request, &plan) != QUIRE_OK)
        return used;
    return used + plan_print(plan, used < bytes ? text + used : NULL, used < bytes ? bytes - used : 0);
}

quire_status_t quire_explain(quire_comm *comm, quire_collective_t collective, size_t count, quire_type_t type,
                             quire_op_t op, char *text, size_t bytes)
{
    size_t elem = collective == QUIRE_BARRIER ? 1 : quire_type_size(type), total;
    if ((unsigned)collective >= QUIRE_COLLECTIVE_COUNT || elem == 0 || (text == NULL && bytes > 0))
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "quire_explain: %s",
                          elem == 0      ? "unknown element type"
                          : text == NULL ? "text is NULL"
                                         : "unknown collective");
    if (!bytes_mul(collective == QUIRE_BARRIER ? 0 : count, elem, &total))
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "quire_explain: %zu elements overflow", count);
    quire_status_t st = comm_enter(comm);
    if (st != QUIRE_OK)
        return st;
    struct planner_request request = {collective, total, type, op, 0};
    size_t wanted = explain_text(comm, &request, text, bytes);
    comm_leave(comm);
    return wanted < bytes ? QUIRE_OK
                          : quire_fail(QUIRE_ERR_RESOURCE, "quire_explain: the text needs %zu bytes", wanted + 1);
}
