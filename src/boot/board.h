/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * board.h - where a rank posts the name of every collective it starts, so that others can see what it is doing without
 * sharing a lane with it. One page per rank: shared memory for local peers (they map it), asked for through the control
 * plane by remote ones (boot_ask_board).
 *
 * Invariants: one writer, the thread inside the communicator. `posted` is the last sequence number posted; entries
 * [posted-63, posted] are whole. A reader that was overtaken sees it by a different sequence number in the entry.
 * Memory order: B1 the store of posted (release) pairs with B2 its load (acquire); the words of an entry are relaxed
 * atomics, since a slow reader may race with the 64th next post and then discards what it read.
 */
#ifndef QUIRE_BOOT_BOARD_H
#define QUIRE_BOOT_BOARD_H

#include "base/atomics.h"
#include "base/op_name.h"

enum { BOARD_ENTRIES = 64, BOARD_WORDS = sizeof(struct op_name) / sizeof(uint64_t) };

struct board_page {
    uint64_t posted __attribute__((aligned(64)));
    uint64_t done; /* last operation this rank has completed */
    uint64_t entry[BOARD_ENTRIES][BOARD_WORDS] __attribute__((aligned(64)));
};

enum board_answer {
    BOARD_FOUND,
    BOARD_BEHIND, /* that rank has not started this operation */
    BOARD_GONE    /* too long ago: the entry was reused */
};

static inline void board_post(struct board_page *page, const struct op_name *name)
{
    uint64_t words[BOARD_WORDS], *entry = page->entry[name->sequence % BOARD_ENTRIES];
    memcpy(words, name, sizeof(words));
    for (int i = 0; i < BOARD_WORDS; i++)
        atom_store_relaxed(&entry[i], words[i]);
    atom_store_release(&page->posted, name->sequence); /* B1 */
}

static inline enum board_answer board_read(const struct board_page *page, uint64_t sequence, struct op_name *name)
{
    if (atom_load_acquire(&page->posted) < sequence) /* B2 */
        return BOARD_BEHIND;
    uint64_t words[BOARD_WORDS] = {0};
    const uint64_t *entry = page->entry[sequence % BOARD_ENTRIES];
    for (int i = 0; i < BOARD_WORDS; i++)
        words[i] = atom_load_relaxed(&entry[i]);
    struct op_name got;
    memcpy(&got, words, sizeof(got));
    if (got.sequence != sequence)
        return BOARD_GONE;
    *name = got;
    return BOARD_FOUND;
}

#endif
