/* SPDX-License-Identifier: BSD-3-Clause */
/* discover_hwloc.c - fills struct topology from hwloc: the running machine, or one described in an XML file. */
#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "topology.h"

static struct topology this_machine;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int count_of(hwloc_topology_t h, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(h, type);
    return n > 0 ? n : 0;
}

/* Cores with at least one hardware thread in `set`. */
static int cores_in(hwloc_topology_t h, hwloc_const_bitmap_t set)
{
    int cores = 0;
    for (hwloc_obj_t core = NULL; (core = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_CORE, core)) != NULL;)
        cores += hwloc_bitmap_intersects(core->cpuset, set) != 0;
    return cores;
}

static void fill_caches(hwloc_topology_t h, struct topology *t)
{
    static const hwloc_obj_type_t levels[] = {HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE};
    hwloc_obj_t l2 = hwloc_get_obj_by_type(h, HWLOC_OBJ_L2CACHE, 0);
    t->l2_bytes = l2 == NULL ? 0 : l2->attr->cache.size;
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        hwloc_obj_t cache = hwloc_get_obj_by_type(h, levels[i], 0);
        if (cache == NULL)
            continue;
        t->llc_bytes = cache->attr->cache.size;
        t->llc_threads = hwloc_bitmap_weight(cache->cpuset);
        return;
    }
}

static void fill(hwloc_topology_t h, struct topology *t, hwloc_const_bitmap_t allowed)
{
    hwloc_obj_t root = hwloc_get_root_obj(h), package = hwloc_get_obj_by_type(h, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package == NULL ? NULL : hwloc_obj_get_info_by_name(package, "CPUModel");
    memset(t, 0, sizeof(*t));
    snprintf(t->model, sizeof(t->model), "%s", model == NULL ? "" : model);
    t->packages = count_of(h, HWLOC_OBJ_PACKAGE);
    t->nodes = count_of(h, HWLOC_OBJ_NUMANODE);
    t->cores = count_of(h, HWLOC_OBJ_CORE);
    t->threads = count_of(h, HWLOC_OBJ_PU);
    t->allowed_cores = cores_in(h, allowed);
    t->allowed_threads = hwloc_bitmap_weight(allowed);
    t->memory_bytes = root->total_memory;
    fill_caches(h, t);
}

/* What the C library says, where hwloc was silent. */
static void complete(struct topology *t)
{
    cpu_set_t set;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE), online = sysconf(_SC_NPROCESSORS_ONLN);
    if (t->threads < 1)
        t->threads = online > 0 ? (int)online : 1;
    if (t->cores < 1)
        t->cores = t->threads;
    if (t->allowed_threads < 1)
        t->allowed_threads = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : t->threads;
    if (t->allowed_threads < 1)
        t->allowed_threads = 1;
    if (t->allowed_cores < 1)
        t->allowed_cores = t->allowed_threads < t->cores ? t->allowed_threads : t->cores;
    /* Memory that was plugged in while the machine ran is missing from hwloc's figure. */
    if (pages > 0 && page > 0 && (uint64_t)pages * (uint64_t)page > t->memory_bytes)
        t->memory_bytes = (uint64_t)pages * (uint64_t)page;
    if (t->packages < 1)
        t->packages = 1;
    if (t->nodes < 1)
        t->nodes = 1;
}

static void discover(void)
{
    hwloc_topology_t h;
    memset(&this_machine, 0, sizeof(this_machine));
    if (hwloc_topology_init(&h) != 0) {
        complete(&this_machine);
        return;
    }
    if (hwloc_topology_load(h) == 0) {
        /* A process that is bound to one core (by a launcher) still shares the machine with its fellows: what counts
           is what the control group allows, not this process's own binding. */
        fill(h, &this_machine, hwloc_topology_get_allowed_cpuset(h));
    }
    hwloc_topology_destroy(h);
    complete(&this_machine);
}

const struct topology *topology_get(void)
{
    pthread_once(&once, discover);
    return &this_machine;
}

quire_status_t topology_load_xml(const char *path, struct topology *topology)
{
    hwloc_topology_t h;
    if (hwloc_topology_init(&h) != 0)
        return quire_fail(QUIRE_ERR_RESOURCE, "no memory for a topology");
    quire_status_t st = QUIRE_OK;
    if (hwloc_topology_set_xml(h, path) != 0 || hwloc_topology_load(h) != 0)
        st = quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s is no hwloc XML file that can be read: %m", path);
    else
        fill(h, topology, hwloc_get_root_obj(h)->cpuset);
    hwloc_topology_destroy(h);
    return st;
}
