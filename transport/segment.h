/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.h - memory that other processes of this host may map: a memfd, sealed against shrinking, passed by
 * descriptor, nothing left behind by name. Two uses: the lane segment of a rank (one per communicator end, with the
 * control page in front), and user memory from quire_mem_alloc.
 *
 * Pages are backed with fallocate before anybody may touch them (segment_back), so a full machine is RESOURCE and
 * never SIGBUS. A process maps a segment at most once (a registry keyed by device, inode and nonce), so ranks that are
 * threads of one process share one mapping, and sanitizers see one address per byte.
 *
 * The control page proves sharing: it holds a random nonce that the maker sends to its peers by another way (the
 * blob); a peer that maps the descriptor and reads the same nonce shares the memory, whatever names and ids say.
 */
#ifndef QUIRE_TRANSPORT_SEGMENT_H
#define QUIRE_TRANSPORT_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomics.h"
#include "quire.h"

enum { SEGMENT_MAGIC = 0x51534731, SEGMENT_BOARD_BYTES = 4096 };

/* At offset 0 of every lane segment. */
struct segment_control {
    uint32_t magic;
    uint32_t version;
    uint64_t nonce[2];
    uint64_t bytes; /* of the whole segment */
    int32_t rank;
    int32_t pid;
    uint32_t stop __attribute__((aligned(64)));                      /* the stop word of this rank, see base/stop.h */
    uint32_t bell __attribute__((aligned(64)));                      /* futex word: this rank sleeps here */
    uint32_t asleep;                                                 /* this rank is (about to be) asleep on the bell */
    uint8_t board[SEGMENT_BOARD_BYTES] __attribute__((aligned(64))); /* struct board_page of boot/board.h */
};

struct lane_segment {
    int fd;
    uint8_t *base;
    size_t bytes;
    uint64_t nonce[2];
    struct segment_control *control; /* == base for lane segments, NULL for plain memory */
    uint32_t references;             /* of the registry */
};

/*
 * Makes and maps `bytes` of address space, of which the first `backed` are backed by pages now. RESOURCE with wanted
 * and free. Checks RLIMIT_FSIZE first (ftruncate past it would raise a signal).
 */
quire_status_t segment_create(struct lane_segment **segment, size_t bytes, size_t backed, bool control);
/* Maps a peer's segment from its descriptor (not taken over); checks seal, size, and the nonce when control is true. */
quire_status_t segment_map(struct lane_segment **segment, int fd, const uint64_t nonce[2], bool control);
/* Gives a reference back; the last one unmaps. NULL is fine. */
void segment_put(struct lane_segment *segment);
/* Backs [offset, offset+bytes) with zeroed pages. RESOURCE when there are none. */
quire_status_t segment_back(struct lane_segment *segment, size_t offset, size_t bytes);

#endif
