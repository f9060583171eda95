/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_wire.h - the bytes of the control plane: a header and one body per message type. Everything that comes from a
 * socket or a file passes through the parsers here; each is bounds-checked and has a size limit by type, so that
 * foreign bytes can neither be over-read nor make us allocate.
 *
 * All integers are little-endian. A parser writes its output only when it returns true.
 */
#ifndef QUIRE_BOOT_WIRE_H
#define QUIRE_BOOT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/op_name.h"
#include "base/stop.h"
#include "boot.h"

enum {
    WIRE_HEADER_BYTES = 24,
    WIRE_KEY_BYTES = 16,
    WIRE_MAX_SIZE = 1 << 16,   /* ranks */
    WIRE_MAX_ADDRESSES = 8,    /* of one process */
    WIRE_MAX_SMALL = 2048,     /* any message but TABLE and DATA */
    WIRE_MAX_TABLE = 64 << 20, /* the table of all ranks */
    WIRE_MAX_DATA = 1 << 30    /* one message of a collective */
};

enum wire_type {
    WIRE_HELLO = 1, /* dialler -> acceptor: who I am and what I want */
    WIRE_ACK,       /* acceptor: the key and ranks are known here */
    WIRE_NACK,      /* acceptor: refused, with a cause */
    WIRE_CONFIRM,   /* dialler: of all paths I tried, this one is used */
    WIRE_JOIN,      /* rank -> root */
    WIRE_TABLE,     /* root -> rank: everyone */
    WIRE_READY,     /* rank -> root: my links stand */
    WIRE_GO,        /* root -> rank: all links stand */
    WIRE_FAIL,      /* either way between rank and root: init failed, with the cause */
    WIRE_DATA,      /* link: one round of a collective */
    WIRE_NOTE,      /* link, flooded: rank waits in collective number so-and-so */
    WIRE_CAUSE,     /* link, flooded */
    WIRE_REFUSAL,   /* link, flooded */
    WIRE_GOODBYE,   /* link, flooded: rank has left in good order */
    WIRE_LEFT,      /* link: rank has left because its communicator failed, with the cause */
    WIRE_ASK,       /* link: board request */
    WIRE_ANSWER,    /* link: its answer */
    WIRE_FD,        /* acceptor of a FETCH: the descriptor rides on this message, or a cause */
    WIRE_TYPE_COUNT
};

struct wire_header {
    uint16_t type;
    uint32_t length;     /* of the body */
    uint64_t generation; /* low half of the communicator's key; 0 before it is known */
};

enum wire_purpose { WIRE_FOR_JOIN = 1, WIRE_FOR_LINK, WIRE_FOR_DIAL, WIRE_FOR_FETCH };

struct wire_hello {
    uint8_t key[WIRE_KEY_BYTES]; /* JOIN: the meeting's key; otherwise the communicator's */
    int32_t from, to;            /* ranks; `to` is -1 for the root */
    uint32_t purpose;            /* enum wire_purpose */
    uint32_t number;             /* DIAL: the transport's own */
    uint64_t tag;                /* FETCH */
};

struct wire_address {
    uint8_t family; /* 4 or 6 */
    uint8_t bytes[16];
};

/* How to reach one process, and what to call it. */
struct wire_member {
    char host[BOOT_HOST_BYTES];
    uint64_t host_key;
    int32_t pid;
    uint64_t door; /* names its abstract Unix socket */
    uint16_t port; /* 0: no TCP */
    uint8_t address_count;
    struct wire_address address[WIRE_MAX_ADDRESSES];
};

struct wire_join {
    int32_t rank, size;
    uint64_t timeout_ns; /* what is left of it; 0 none */
    struct wire_member member;
};

enum wire_op { WIRE_ALL_GATHER = 1, WIRE_BARRIER, WIRE_BROADCAST };

struct wire_data {
    uint8_t op;
    uint8_t round;
    uint64_t sequence;
    uint64_t bytes;         /* what each rank gives */
    const uint8_t *payload; /* inside the parsed bytes */
    size_t payload_bytes;
};

struct wire_flood {
    uint64_t id;
    struct cause cause;
};

struct wire_note {
    int32_t rank;
    uint64_t sequence;
};

struct wire_ask {
    uint64_t request;
    uint64_t sequence;
};

struct wire_answer {
    uint64_t request;
    uint32_t answer; /* enum board_answer, or WIRE_NO_BOARD */
    uint64_t posted;
    struct op_name name;
};
enum { WIRE_NO_BOARD = 100 };

/* A growing message; `failed` after a lack of memory, checked once at the end. */
struct wire_out {
    uint8_t *bytes;
    size_t size, cap;
    bool failed;
};

struct wire_in {
    const uint8_t *at, *end;
    bool ok; /* false after the first read over the end */
};

void wire_put(struct wire_out *out, const void *data, size_t bytes);
void wire_put_uint(struct wire_out *out, uint64_t value, int bytes);
void wire_get(struct wire_in *in, void *data, size_t bytes);
uint64_t wire_get_uint(struct wire_in *in, int bytes);

void wire_header_write(uint8_t bytes[WIRE_HEADER_BYTES], const struct wire_header *header);
/* False for foreign magic or version, an unknown type, or a length over the type's limit. */
bool wire_header_parse(const uint8_t bytes[WIRE_HEADER_BYTES], struct wire_header *header);
const char *wire_type_name(unsigned type);

void wire_hello_write(struct wire_out *out, const struct wire_hello *hello);
bool wire_hello_parse(const uint8_t *data, size_t bytes, struct wire_hello *hello);
void wire_join_write(struct wire_out *out, const struct wire_join *join);
bool wire_join_parse(const uint8_t *data, size_t bytes, struct wire_join *join);
void wire_table_begin(struct wire_out *out, const uint8_t key[WIRE_KEY_BYTES], int size);
void wire_member_write(struct wire_out *out, const struct wire_member *member);
/* members has room for `size` entries; false when the table is for another size. */
bool wire_table_parse(const uint8_t *data, size_t bytes, uint8_t key[WIRE_KEY_BYTES], struct wire_member *members,
                      int size);
void wire_cause_write(struct wire_out *out, const struct cause *cause);
bool wire_cause_parse(const uint8_t *data, size_t bytes, struct cause *cause);
void wire_flood_write(struct wire_out *out, const struct wire_flood *flood);
bool wire_flood_parse(const uint8_t *data, size_t bytes, struct wire_flood *flood);
void wire_data_write(struct wire_out *out, const struct wire_data *data);
bool wire_data_parse(const uint8_t *bytes, size_t count, struct wire_data *data);
void wire_note_write(struct wire_out *out, const struct wire_note *note);
bool wire_note_parse(const uint8_t *data, size_t bytes, struct wire_note *note);
void wire_ask_write(struct wire_out *out, const struct wire_ask *ask);
bool wire_ask_parse(const uint8_t *data, size_t bytes, struct wire_ask *ask);
void wire_answer_write(struct wire_out *out, const struct wire_answer *answer);
bool wire_answer_parse(const uint8_t *data, size_t bytes, struct wire_answer *answer);

#endif
