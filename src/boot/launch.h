/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.h - what the launcher's environment says: quire-run (QUIRE_RANK, QUIRE_SIZE, ...), torchrun (RANK, WORLD_SIZE,
 * LOCAL_RANK, MASTER_ADDR, MASTER_PORT), Open MPI (OMPI_COMM_WORLD_*), Slurm (SLURM_PROCID, SLURM_NTASKS, ...).
 */
#ifndef QUIRE_BOOT_LAUNCH_H
#define QUIRE_BOOT_LAUNCH_H

#include "boot.h"

struct launch {
    quire_launch info;              /* rank -1 and launcher "none" without one */
    enum boot_meeting_kind meeting; /* ADDRESS, FILE or JOB */
    char where[256];
};

/*
 * OK without a launcher too. INVALID_ARGUMENT when the variables contradict each other or don't parse, or when a
 * launcher gives rank and size but no meeting place can be had (several hosts, no QUIRE_ROOT): the text says what to
 * set.
 */
quire_status_t launch_read(struct launch *launch);

#endif
