/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.c - sealing and checking frame headers. */
#include "wire.h"

#include "base/bytes.h"

/* Four multiplications over the header's words: cheap beside the system call that carries it. */
static uint32_t header_sum(const struct wire_header *header)
{
    struct wire_header copy = *header;
    uint64_t words[sizeof(copy) / 8], sum = BYTES_HASH_START;
    copy.check = 0;
    memcpy(words, &copy, sizeof(copy));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        sum = (sum ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    return (uint32_t)(sum >> 32);
}

void wire_seal(struct wire_header *header)
{
    header->magic = WIRE_MAGIC;
    header->check = header_sum(header);
}

const char *wire_check(const struct wire_header *header, size_t slot_bytes)
{
    if (header->magic != WIRE_MAGIC)
        return "the stream is out of step: no frame begins here";
    if (header->check != header_sum(header))
        return "a frame's header was damaged: its checksum differs";
    if (header->type != WIRE_DATA && header->type != WIRE_CREDIT)
        return "a frame of an unknown type";
    if (header->lane >= WIRE_LANES || header->checked > 1)
        return "a frame for a lane that does not exist";
    if (header->type == WIRE_CREDIT && (header->bytes != 0 || header->checked != 0))
        return "a credit frame with bytes";
    if (header->type == WIRE_DATA && header->form != LANE_BYTES)
        return "a reference, which can't cross a socket";
    if (header->bytes > slot_bytes)
        return "a frame that is longer than a slot";
    return NULL;
}

uint64_t wire_sum(const void *data, size_t bytes)
{
    const uint8_t *p = data;
    uint64_t sum = bytes * UINT64_C(0x9e3779b97f4a7c15), word = 0;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        memcpy(&word, p, 8);
        sum = (sum ^ word) * UINT64_C(0xbf58476d1ce4e5b9);
        sum ^= sum >> 31;
    }
    word = 0;
    memcpy(&word, p, bytes);
    sum = (sum ^ word) * UINT64_C(0xbf58476d1ce4e5b9);
    return sum ^ sum >> 31;
}
