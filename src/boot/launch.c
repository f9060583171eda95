/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.c - reads launchers' environments. One function per launcher, tried from the most to the least specific:
 * quire-run, torchrun, Open MPI, Slurm (torchrun and mpirun may themselves run under Slurm). See launch.h.
 */
#include "launch.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/knobs.h"
#include "base/status.h"

/* NULL when unset or empty. */
static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && text[0] ? text : NULL;
}

/* Writes *value when the variable is set; INVALID_ARGUMENT when it does not parse. */
static quire_status_t read_int(const char *name, int low, int *value)
{
    const char *text = variable(name);
    int64_t number;
    if (!text)
        return QUIRE_OK;
    if (!bytes_parse_int(text, low, INT_MAX, &number))
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s='%.60s' is not a number of at least %d", name, text, low);
    *value = (int)number;
    return QUIRE_OK;
}

struct names {
    const char *launcher, *rank, *size, *local_rank, *local_size;
};

static quire_status_t read_numbers(const struct names *names, struct launch *launch)
{
    quire_launch *info = &launch->info;
    *info = (quire_launch){-1, -1, -1, -1, names->launcher};
    quire_status_t st = read_int(names->rank, 0, &info->rank);
    if (st == QUIRE_OK)
        st = read_int(names->size, 1, &info->size);
    if (st == QUIRE_OK && names->local_rank)
        st = read_int(names->local_rank, 0, &info->local_rank);
    if (st == QUIRE_OK && names->local_size)
        st = read_int(names->local_size, 1, &info->local_size);
    if (st != QUIRE_OK)
        return st;
    if (info->rank < 0 || info->size < 0)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s is set but %s is not: a rank needs both",
                          info->rank < 0 ? names->size : names->rank, info->rank < 0 ? names->rank : names->size);
    if (info->rank >= info->size)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s=%d is not below %s=%d", names->rank, info->rank, names->size,
                          info->size);
    if (info->local_size >= 0 && (info->local_rank >= info->local_size || info->local_size > info->size))
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "%s=%d, %s=%d and %s=%d contradict each other", names->local_rank,
                          info->local_rank, names->local_size, info->local_size, names->size, info->size);
    return QUIRE_OK;
}

static bool one_host(const struct launch *launch)
{
    return launch->info.size == 1 || launch->info.local_size == launch->info.size;
}

static quire_status_t set_where(struct launch *launch, enum boot_meeting_kind meeting, const char *text)
{
    size_t length = strlen(text);
    if (length >= sizeof(launch->where))
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "the meeting place '%.60s...' is longer than %zu bytes", text,
                          sizeof(launch->where) - 1);
    launch->meeting = meeting;
    memcpy(launch->where, text, length + 1);
    return QUIRE_OK;
}

/* QUIRE_ROOT wins over what the launcher offers. *found says whether it was set. */
static quire_status_t meet_at_root(struct launch *launch, bool *found)
{
    const char *root = knob_text(KNOB_ROOT);
    *found = root[0] != 0;
    if (!*found)
        return QUIRE_OK;
    if (strncmp(root, "file:", 5) == 0) {
        if (!root[5])
            return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "QUIRE_ROOT=file: names no path");
        return set_where(launch, BOOT_MEET_FILE, root + 5);
    }
    return set_where(launch, BOOT_MEET_ADDRESS, root);
}

static quire_status_t meet_on_one_host(struct launch *launch, const char *job)
{
    if (one_host(launch))
        return set_where(launch, BOOT_MEET_JOB, job);
    return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                      "%d ranks on several hosts need a meeting place that %s does not give: set QUIRE_ROOT=host:port "
                      "(an address of rank 0's host and a free port there), or QUIRE_ROOT=file:PATH on a shared file "
                      "system, to the same value for all ranks",
                      launch->info.size, launch->info.launcher);
}

static quire_status_t read_quire(struct launch *launch)
{
    static const struct names names = {"quire", "QUIRE_RANK", "QUIRE_SIZE", "QUIRE_LOCAL_RANK", "QUIRE_LOCAL_SIZE"};
    bool found = false;
    quire_status_t st = read_numbers(&names, launch);
    if (st == QUIRE_OK)
        st = meet_at_root(launch, &found);
    if (st != QUIRE_OK || found)
        return st;
    const char *job = variable("QUIRE_JOB");
    if (job && launch->info.local_size < 0)
        return set_where(launch, BOOT_MEET_JOB, job); /* started by hand: QUIRE_JOB says that it is one host */
    if (!job && one_host(launch) && launch->info.size > 1)
        return quire_fail(
            QUIRE_ERR_INVALID_ARGUMENT,
            "QUIRE_RANK and QUIRE_SIZE are set, but the ranks can't find each other: set QUIRE_JOB to the "
            "same text for all ranks of this host, or QUIRE_ROOT");
    char alone[32];
    snprintf(alone, sizeof(alone), "alone");
    return meet_on_one_host(launch, job ? job : alone);
}

/*
 * MASTER_ADDR:MASTER_PORT is where torch's own store listens, in rank 0's process or its agent, so the port itself is
 * taken: we meet at the next one. On one host no port is needed.
 */
static quire_status_t read_torchrun(struct launch *launch)
{
    static const struct names names = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
    bool found = false;
    quire_status_t st = read_numbers(&names, launch);
    if (st == QUIRE_OK)
        st = meet_at_root(launch, &found);
    if (st != QUIRE_OK || found)
        return st;
    const char *address = variable("MASTER_ADDR"), *run = variable("TORCHELASTIC_RUN_ID");
    const char *restart = variable("TORCHELASTIC_RESTART_COUNT");
    int port = -1;
    char text[256];
    if ((st = read_int("MASTER_PORT", 1, &port)) != QUIRE_OK)
        return st;
    if (port > 65535)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "MASTER_PORT=%d is not in 1..65535", port);
    if (one_host(launch)) {
        if (snprintf(text, sizeof(text), "torchrun-%s-%d-%s-%s", address ? address : "", port, run ? run : "",
                     restart ? restart : "") >= (int)sizeof(text))
            return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "MASTER_ADDR and TORCHELASTIC_RUN_ID are too long together");
        return set_where(launch, BOOT_MEET_JOB, text);
    }
    if (!address || port < 0)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                          "RANK and WORLD_SIZE are set but %s is not: set it, or QUIRE_ROOT=host:port",
                          address ? "MASTER_PORT" : "MASTER_ADDR");
    bool v6 = strchr(address, ':') && address[0] != '[';
    if (snprintf(text, sizeof(text), v6 ? "[%s]:%d" : "%s:%d", address, port == 65535 ? 65534 : port + 1) >=
        (int)sizeof(text))
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "MASTER_ADDR is too long");
    return set_where(launch, BOOT_MEET_ADDRESS, text);
}

static quire_status_t read_openmpi(struct launch *launch)
{
    static const struct names names = {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                       "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
    /* Open MPI 5, then 4: whatever names the job. */
    static const char *const jobs[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid",
                                       "PMIX_SERVER_URI2", "OMPI_MCA_orte_hnp_uri"};
    bool found = false;
    quire_status_t st = read_numbers(&names, launch);
    if (st == QUIRE_OK)
        st = meet_at_root(launch, &found);
    if (st != QUIRE_OK || found)
        return st;
    const char *job = NULL;
    for (size_t i = 0; !job && i < sizeof(jobs) / sizeof(jobs[0]); i++)
        job = variable(jobs[i]);
    if (!job && one_host(launch) && launch->info.size > 1)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                          "mpirun set the ranks but nothing that names the job: set QUIRE_ROOT=host:port");
    char text[64]; /* URIs are long, and only have to differ */
    snprintf(text, sizeof(text), "openmpi-%016" PRIx64, job ? bytes_hash(BYTES_HASH_START, job, strlen(job)) : 0);
    return meet_on_one_host(launch, text);
}

static quire_status_t read_slurm(struct launch *launch)
{
    static const struct names names = {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL};
    bool found = false;
    int nodes = -1;
    quire_status_t st = read_numbers(&names, launch);
    if (st == QUIRE_OK)
        st = read_int(variable("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES", 1, &nodes);
    if (st != QUIRE_OK)
        return st;
    if (nodes == 1)
        launch->info.local_size = launch->info.size;
    if ((st = meet_at_root(launch, &found)) != QUIRE_OK || found)
        return st;
    const char *job = variable("SLURM_JOB_ID"), *step = variable("SLURM_STEP_ID");
    if (!job && one_host(launch) && launch->info.size > 1)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                          "Slurm set the ranks but no SLURM_JOB_ID: set QUIRE_ROOT=host:port");
    char text[128];
    snprintf(text, sizeof(text), "slurm-%.50s-%.50s", job ? job : "", step ? step : "");
    return meet_on_one_host(launch, text);
}

quire_status_t launch_read(struct launch *out)
{
    struct launch launch;
    memset(&launch, 0, sizeof(launch));
    quire_status_t st = QUIRE_OK;
    if (variable("QUIRE_RANK") || variable("QUIRE_SIZE"))
        st = read_quire(&launch);
    else if (variable("RANK") && variable("WORLD_SIZE"))
        st = read_torchrun(&launch); /* both: each alone is too common a name */
    else if (variable("OMPI_COMM_WORLD_RANK") || variable("OMPI_COMM_WORLD_SIZE"))
        st = read_openmpi(&launch);
    else if (variable("SLURM_PROCID")) /* SLURM_NTASKS alone: a batch script, not a task */
        st = read_slurm(&launch);
    else
        launch.info = (quire_launch){-1, -1, -1, -1, "none"};
    if (st == QUIRE_OK)
        *out = launch;
    return st;
}
