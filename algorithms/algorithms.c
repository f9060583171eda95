/* SPDX-License-Identifier: BSD-3-Clause */
/* algorithms.c - the list, by id and by name. */
#include "algorithms.h"

#include <string.h>

#include "base/status.h"

static const struct algorithm *const all[ALGORITHM_COUNT] = {
    [ALGORITHM_ONE_SHOT] = &algorithm_one_shot,
    [ALGORITHM_TWO_SHOT] = &algorithm_two_shot,
    [ALGORITHM_RING] = &algorithm_ring,
    [ALGORITHM_BINOMIAL] = &algorithm_binomial,
    [ALGORITHM_DISSEMINATION] = &algorithm_dissemination,
    [ALGORITHM_PAIR] = &algorithm_pair,
};

const struct algorithm *algorithm_get(enum algorithm_id id)
{
    return all[id];
}

enum algorithm_id algorithm_by_name(const char *name)
{
    enum algorithm_id id = 0;
    while (id < ALGORITHM_COUNT && strcmp(all[id]->name, name) != 0)
        id++;
    return id;
}

quire_status_t algorithm_emit(const struct plan_shape *shape, uint32_t rank, struct plan **plan)
{
    if (shape->algorithm >= ALGORITHM_COUNT || shape->ranks < 1 || rank >= shape->ranks || shape->root >= shape->ranks)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "no such algorithm, or rank %u or root %u not below %u", rank,
                          shape->root, shape->ranks);
    const struct algorithm *algorithm = all[shape->algorithm];
    const char *why = algorithm->unfit(shape);
    if (why != NULL)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s does not fit %s on %u ranks: %s", algorithm->name,
                          quire_collective_name((quire_collective_t)shape->collective), shape->ranks, why);
    return algorithm->emit(shape, rank, plan);
}
