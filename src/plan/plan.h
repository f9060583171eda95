/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - a collective as data: what one rank does, as steps over blocks of its buffers, on lanes.
 *
 * Vocabulary
 *   block   the unit the steps speak of. A layout maps block -> element range when the plan is bound to a call, so a
 *           plan belongs to a shape and never to a size.
 *   slice   the part of a block that passes through the lanes at once. Slice k of every block is moved in pass k.
 *   pass    one run of a strand over its steps. The number of passes is ceil(longest block / slice), at least 1, so
 *           that an empty call still exchanges its name.
 *   strand  a list of steps run in order, once per pass, with its own pass counter. Strands of one plan run
 *           concurrently; only lanes and signal/wait order them.
 *   lane    a ring of slots: one producer, one consumer (a pair lane) or every other rank (a wide lane). Named here by
 *           (channel, wide or pair, producer, consumer), never by pointer. A lane carries slots in order; every slot
 *           that is sent is read exactly once by each consumer.
 *
 * Invariants of a frozen plan (plan_valid): every rank, block, event in range; `repeat` >= 1; events signalled in one
 * strand only and at most once a pass; each lane is written by one strand only and read by one strand only; nothing
 * writes IN; only a REDUCE finishes; a fold takes at most PLAN_MAX_FOLD ranks; REDUCE and COPY have a source (but for
 * the empty fold of a barrier), COPY a destination.
 *
 * A plan is immutable after plan_freeze and holds no pointers into other memory: it may be shared, cached and compared.
 */
#ifndef QUIRE_PLAN_PLAN_H
#define QUIRE_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quire.h"

enum plan_buffer {
    PLAN_NONE,    /* nowhere: a result that is only forwarded */
    PLAN_IN,      /* the caller's send buffer; the same memory as OUT when the call is in place */
    PLAN_OUT,     /* the caller's receive buffer */
    PLAN_SCRATCH, /* library memory, scratch_blocks blocks of the layout's size */
};

enum plan_kind {
    PLAN_SEND,   /* publish src blocks [src.block, +blocks) as one slot of the out lane */
    PLAN_RECV,   /* read one slot's part into dst; with dst NONE its block tells the length of what is forwarded */
    PLAN_REDUCE, /* dst = src op slot (or the fold over many lanes, with PLAN_FOLD) */
    PLAN_COPY,   /* dst = src, both local */
    PLAN_SIGNAL, /* event: this strand has reached here in this pass */
    PLAN_WAIT,   /* until the event was signalled for this pass */
    PLAN_KIND_COUNT
};

enum plan_flag {
    PLAN_IN_WIDE = 1,     /* the lane read is wide */
    PLAN_OUT_WIDE = 2,    /* the lane written is wide */
    PLAN_FORWARD = 4,     /* RECV, REDUCE: the result is also published as one slot of the out lane */
    PLAN_FOLD = 8,        /* REDUCE: canonical fold over ranks fold_lo <= r < fold_hi: this rank's own contribution is
                             src, every other's is `part` of the next slot of that rank's wide lane on `channel` */
    PLAN_FINISH = 16,     /* REDUCE: the last addition of these elements: averages divide here */
    PLAN_SLOT_FIRST = 32, /* REDUCE without FOLD: dst = slot op src (matters to the order of addition) */
    PLAN_SKIP_SELF = 64,  /* SEND: the block numbered as this rank keeps its place in the slot but isn't filled */
    PLAN_FLAGS_ALL = 127
};

enum {
    PLAN_CHANNELS = 2,    /* channels of collectives: 0 and 1 */
    PLAN_CHANNEL_P2P = 2, /* send and receive: pair lanes of their own */
    PLAN_CHANNEL_COUNT = 3,
    PLAN_MAX_STRANDS = 8,
    PLAN_MAX_EVENTS = 8,
    PLAN_MAX_FOLD = 64, /* ranks in one fold: the sources that a kernel can take */
};

struct plan_ref {
    uint8_t buffer; /* enum plan_buffer */
    uint32_t block;
};

/*
 * One step, `repeat` times with strides: iteration i uses from + i*from_stride and to + i*to_stride modulo ranks, and
 * blocks + i*stride modulo the number of blocks (so ring and pairwise are a handful of steps at any rank count).
 */
struct plan_step {
    uint8_t kind;        /* enum plan_kind */
    uint8_t flags;       /* enum plan_flag, or-ed */
    uint8_t channel;     /* of the lane read */
    uint8_t out_channel; /* of the lane written */
    int32_t from;        /* producer of the lane read; -1 when none */
    int32_t to;          /* consumer of the pair lane written; -1 when none or wide */
    struct plan_ref src, dst;
    uint32_t blocks; /* SEND: blocks in the slot; otherwise 1 */
    uint32_t part;   /* RECV, REDUCE: which of the slot's blocks; the same in every iteration */
    uint32_t event;  /* SIGNAL, WAIT */
    uint32_t fold_lo, fold_hi;
    uint32_t repeat;
    int32_t from_stride, to_stride, src_stride, dst_stride;
};

/* What a plan belongs to. Equal shapes give equal plans on a rank; the hash of the shape is the plan id in op names. */
struct plan_shape {
    uint8_t collective; /* quire_collective_t */
    uint8_t algorithm;  /* enum algorithm_id, see algorithms.h */
    uint32_t ranks;
    uint32_t root; /* broadcast: the root. send, recv: the peer */
};

struct plan_strand {
    uint32_t first, count; /* into steps */
};

struct plan {
    struct plan_shape shape;
    uint32_t rank;
    uint32_t blocks; /* of IN and OUT */
    uint32_t scratch_blocks;
    uint32_t slot_blocks; /* the most blocks any slot of this shape holds, on any rank: sets the slice */
    uint32_t event_count;
    uint32_t strand_count;
    uint32_t step_count;
    uint64_t hash; /* plan_shape_hash(shape) */
    struct plan_strand strands[PLAN_MAX_STRANDS];
    struct plan_step steps[];
};

static inline bool plan_shape_equal(const struct plan_shape *a, const struct plan_shape *b)
{
    return a->collective == b->collective && a->algorithm == b->algorithm && a->ranks == b->ranks && a->root == b->root;
}

/* The same on every rank; never 0 in its low half. */
uint64_t plan_shape_hash(const struct plan_shape *shape);

/* ---- builder: algorithms only call these ------------------------------------------------------------------------- */
struct plan_builder;
/* NULL when out of memory. `blocks`, `slot_blocks`: as in struct plan, the same on all ranks. */
struct plan_builder *plan_builder_create(const struct plan_shape *shape, uint32_t rank, uint32_t blocks,
                                         uint32_t slot_blocks);
void plan_builder_destroy(struct plan_builder *builder);
void plan_builder_scratch(struct plan_builder *builder, uint32_t blocks);
/* Starts the next strand; later steps go there. */
void plan_builder_strand(struct plan_builder *builder);
/* A step with everything unset: from/to -1, blocks 1, repeat 1. */
struct plan_step plan_step_make(enum plan_kind kind);
/* Appends; errors (memory, too many) are kept and returned by plan_freeze. */
void plan_builder_step(struct plan_builder *builder, const struct plan_step *step);
/* Number of a new event. */
uint32_t plan_builder_event(struct plan_builder *builder);
/* Validates, copies into one allocation, destroys the builder in every case. Free with plan_free. */
quire_status_t plan_freeze(struct plan_builder *builder, struct plan **plan);
void plan_free(struct plan *plan);
/* The invariants above; the sentence of the first one broken goes to this thread's error text. */
quire_status_t plan_valid(const struct plan *plan);

/* ---- layout: blocks -> elements ---------------------------------------------------------------------------------- */
struct plan_layout {
    size_t count; /* elements in the buffer */
    size_t elem;  /* bytes of one element */
    uint32_t blocks;
    size_t block_elems; /* every block but the last ones has this many */
};

/* Even split; block boundaries at multiples of 64 bytes, so trailing blocks may be short or empty. */
struct plan_layout plan_layout_even(size_t count, size_t elem, uint32_t blocks);

/* Elements [*first, +*n) of slice `pass` of block `block`, slices of slice_elems elements; *n may be 0. */
static inline void plan_layout_slice(const struct plan_layout *l, uint32_t block, size_t pass, size_t slice_elems,
                                     size_t *first, size_t *n)
{
    size_t lo = (size_t)block * l->block_elems, hi = lo + l->block_elems;
    if (hi > l->count)
        hi = l->count;
    size_t at = lo + pass * slice_elems;
    *first = at;
    *n = at >= hi ? 0 : hi - at < slice_elems ? hi - at : slice_elems;
}

/* ---- text: plan_text.c ------------------------------------------------------------------------------------------- */
/*
 * Prints one rank's plan. Returns the length it needs without the terminator, as snprintf does; at most `bytes` are
 * written, always terminated when bytes > 0. The format, one line a step, is described in docs/plans.md.
 */
size_t plan_print(const struct plan *plan, char *text, size_t bytes);
/* Parses what plan_print wrote (or a person). INVALID_ARGUMENT with line number and reason. Foreign bytes: fuzzed. */
quire_status_t plan_parse(const char *text, size_t bytes, struct plan **plan);

/* ---- checker: plan_check.c --------------------------------------------------------------------------------------- */
struct plan_check_options {
    uint32_t depth;  /* slots in each lane, as the executor will have */
    uint32_t passes; /* passes to run, at least 3 to see reuse */
    bool in_place;   /* IN and OUT are the same memory */
    bool canonical;  /* also prove that reductions follow the canonical order of addition */
};
/*
 * Proves, for the plans of all `ranks` ranks of one shape: each output block holds each contribution exactly once
 * (broadcast: the root's and nothing else; barrier: no rank leaves before all have entered); every slot sent is read
 * once by each consumer; no deadlock with lanes of that depth over that many passes; no unordered write and access of
 * one block (happens-before through lanes, events and strand order). OK, or INVALID_ARGUMENT with a sentence that
 * names rank, strand, step and pass.
 */
quire_status_t plan_check(const struct plan *const *plans, uint32_t ranks, const struct plan_check_options *options);

#endif
