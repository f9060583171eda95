/* SPDX-License-Identifier: BSD-3-Clause */
/* shm.h - what the communicator asks of the shm transport beyond the contract: a local peer's board page. */
#ifndef QUIRE_TRANSPORT_SHM_H
#define QUIRE_TRANSPORT_SHM_H

#include "transport.h"

/* The board page (boot/board.h) in the segment of `rank`, or NULL when it isn't mapped. Valid until close. */
const void *shm_board(const struct transport_end *end, int rank);

#endif
