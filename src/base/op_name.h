/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_name.h - the name of one operation: what all ranks must agree on. It heads every slot of the operation on a lane
 * and is posted on the board. Two ranks run the same operation exactly when all 32 bytes are equal.
 *
 * For send and receive `sequence` counts the messages of that pair in that direction, and `count` is bytes.
 */
#ifndef QUIRE_BASE_OP_NAME_H
#define QUIRE_BASE_OP_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { OP_NAME_REFUSED = 1 /* this rank refused the call locally; nobody should wait for its data */ };
enum { OP_NAME_NONE = 0xff /* type or operator: not applicable */ };

struct op_name {
    uint64_t sequence; /* of this communicator's collectives, from 1 */
    uint64_t count;    /* elements; bytes for send and receive */
    uint32_t epoch;    /* of the communicator: grows with shrink and grow */
    uint32_t root;     /* 0 where there is none */
    uint32_t plan_id;  /* low half of the shape's hash */
    uint8_t collective;
    uint8_t type;
    uint8_t op;
    uint8_t flags;
};
_Static_assert(sizeof(struct op_name) == 32, "an operation's name is 32 bytes, on the wire and in shared memory");

static inline bool op_name_equal(const struct op_name *a, const struct op_name *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* "#12 all_reduce count 1024 float sum", for errors; at most `bytes`, always terminated. Returns text. */
char *op_name_text(const struct op_name *name, char *text, size_t bytes);

#endif
