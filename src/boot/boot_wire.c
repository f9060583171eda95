/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_wire.c - writers and bounds-checked parsers of every control plane message. See boot_wire.h. */
#include "boot_wire.h"

#include <stdlib.h>
#include <string.h>

enum { WIRE_MAGIC = 0x31425551 /* "QUB1" */, WIRE_VERSION = 1 };

void wire_put(struct wire_out *out, const void *data, size_t bytes)
{
    if (out->failed || bytes == 0)
        return;
    if (out->cap - out->size < bytes) {
        size_t cap = out->cap ? out->cap : 128;
        while (cap - out->size < bytes)
            cap *= 2;
        uint8_t *grown = realloc(out->bytes, cap);
        if (!grown) {
            out->failed = true;
            return;
        }
        out->bytes = grown;
        out->cap = cap;
    }
    memcpy(out->bytes + out->size, data, bytes);
    out->size += bytes;
}

void wire_put_uint(struct wire_out *out, uint64_t value, int bytes)
{
    uint8_t le[8];
    for (int i = 0; i < bytes; i++)
        le[i] = (uint8_t)(value >> (8 * i));
    wire_put(out, le, (size_t)bytes);
}

void wire_get(struct wire_in *in, void *data, size_t bytes)
{
    if (!in->ok || (size_t)(in->end - in->at) < bytes) {
        in->ok = false;
        memset(data, 0, bytes);
        return;
    }
    memcpy(data, in->at, bytes);
    in->at += bytes;
}

uint64_t wire_get_uint(struct wire_in *in, int bytes)
{
    uint8_t le[8] = {0};
    wire_get(in, le, (size_t)bytes);
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)le[i] << (8 * i);
    return value;
}

static struct wire_in wire_begin(const uint8_t *data, size_t bytes)
{
    return (struct wire_in){data, data + bytes, true};
}

/* Everything was there, and nothing is left over. */
static bool wire_whole(const struct wire_in *in)
{
    return in->ok && in->at == in->end;
}

void wire_header_write(uint8_t bytes[WIRE_HEADER_BYTES], const struct wire_header *header)
{
    struct wire_out out = {bytes, 0, WIRE_HEADER_BYTES, false};
    wire_put_uint(&out, WIRE_MAGIC, 4);
    wire_put_uint(&out, WIRE_VERSION, 2);
    wire_put_uint(&out, header->type, 2);
    wire_put_uint(&out, header->length, 4);
    wire_put_uint(&out, 0, 4);
    wire_put_uint(&out, header->generation, 8);
}

static uint32_t wire_limit(unsigned type)
{
    switch (type) {
    case WIRE_TABLE:
        return WIRE_MAX_TABLE;
    case WIRE_DATA:
        return WIRE_MAX_DATA + 64;
    case WIRE_ACK:
    case WIRE_CONFIRM:
    case WIRE_READY:
    case WIRE_GO:
        return 0;
    default:
        return WIRE_MAX_SMALL;
    }
}

bool wire_header_parse(const uint8_t bytes[WIRE_HEADER_BYTES], struct wire_header *header)
{
    struct wire_in in = wire_begin(bytes, WIRE_HEADER_BYTES);
    uint32_t magic = (uint32_t)wire_get_uint(&in, 4);
    uint16_t version = (uint16_t)wire_get_uint(&in, 2);
    struct wire_header got;
    got.type = (uint16_t)wire_get_uint(&in, 2);
    got.length = (uint32_t)wire_get_uint(&in, 4);
    uint32_t zero = (uint32_t)wire_get_uint(&in, 4);
    got.generation = wire_get_uint(&in, 8);
    if (magic != WIRE_MAGIC || version != WIRE_VERSION || zero != 0)
        return false;
    if (got.type < WIRE_HELLO || got.type >= WIRE_TYPE_COUNT || got.length > wire_limit(got.type))
        return false;
    *header = got;
    return true;
}

const char *wire_type_name(unsigned type)
{
    static const char *const names[WIRE_TYPE_COUNT] = {
        "?",    "hello", "ack",   "nack",    "confirm", "join", "table", "ready",  "go", "fail",
        "data", "note",  "cause", "refusal", "goodbye", "left", "ask",   "answer", "fd"};
    return type < WIRE_TYPE_COUNT ? names[type] : "?";
}

void wire_hello_write(struct wire_out *out, const struct wire_hello *hello)
{
    wire_put(out, hello->key, WIRE_KEY_BYTES);
    wire_put_uint(out, (uint32_t)hello->from, 4);
    wire_put_uint(out, (uint32_t)hello->to, 4);
    wire_put_uint(out, hello->purpose, 4);
    wire_put_uint(out, hello->number, 4);
    wire_put_uint(out, hello->tag, 8);
}

bool wire_hello_parse(const uint8_t *data, size_t bytes, struct wire_hello *hello)
{
    struct wire_in in = wire_begin(data, bytes);
    struct wire_hello got;
    wire_get(&in, got.key, WIRE_KEY_BYTES);
    got.from = (int32_t)wire_get_uint(&in, 4);
    got.to = (int32_t)wire_get_uint(&in, 4);
    got.purpose = (uint32_t)wire_get_uint(&in, 4);
    got.number = (uint32_t)wire_get_uint(&in, 4);
    got.tag = wire_get_uint(&in, 8);
    if (!wire_whole(&in) || got.purpose < WIRE_FOR_JOIN || got.purpose > WIRE_FOR_FETCH)
        return false;
    if (got.from < 0 || got.from >= WIRE_MAX_SIZE || got.to < -1 || got.to >= WIRE_MAX_SIZE)
        return false;
    *hello = got;
    return true;
}

void wire_member_write(struct wire_out *out, const struct wire_member *member)
{
    size_t host = strnlen(member->host, BOOT_HOST_BYTES - 1);
    wire_put_uint(out, host, 1);
    wire_put(out, member->host, host);
    wire_put_uint(out, member->host_key, 8);
    wire_put_uint(out, (uint32_t)member->pid, 4);
    wire_put_uint(out, member->door, 8);
    wire_put_uint(out, member->port, 2);
    wire_put_uint(out, member->address_count, 1);
    for (int i = 0; i < member->address_count; i++) {
        wire_put_uint(out, member->address[i].family, 1);
        wire_put(out, member->address[i].bytes, member->address[i].family == 4 ? 4 : 16);
    }
}

static bool wire_member_read(struct wire_in *in, struct wire_member *member)
{
    memset(member, 0, sizeof(*member));
    size_t host = (size_t)wire_get_uint(in, 1);
    if (host >= BOOT_HOST_BYTES)
        return false;
    wire_get(in, member->host, host);
    for (size_t i = 0; i < host; i++)
        if (member->host[i] < ' ' || member->host[i] > '~')
            return false;
    member->host_key = wire_get_uint(in, 8);
    member->pid = (int32_t)wire_get_uint(in, 4);
    member->door = wire_get_uint(in, 8);
    member->port = (uint16_t)wire_get_uint(in, 2);
    member->address_count = (uint8_t)wire_get_uint(in, 1);
    if (!in->ok || member->address_count > WIRE_MAX_ADDRESSES)
        return false;
    for (int i = 0; i < member->address_count; i++) {
        struct wire_address *address = &member->address[i];
        address->family = (uint8_t)wire_get_uint(in, 1);
        if (address->family != 4 && address->family != 6)
            return false;
        wire_get(in, address->bytes, address->family == 4 ? 4 : 16);
    }
    return in->ok;
}

void wire_join_write(struct wire_out *out, const struct wire_join *join)
{
    wire_put_uint(out, (uint32_t)join->rank, 4);
    wire_put_uint(out, (uint32_t)join->size, 4);
    wire_put_uint(out, join->timeout_ns, 8);
    wire_member_write(out, &join->member);
}

bool wire_join_parse(const uint8_t *data, size_t bytes, struct wire_join *join)
{
    struct wire_in in = wire_begin(data, bytes);
    struct wire_join got;
    got.rank = (int32_t)wire_get_uint(&in, 4);
    got.size = (int32_t)wire_get_uint(&in, 4);
    got.timeout_ns = wire_get_uint(&in, 8);
    if (!wire_member_read(&in, &got.member) || !wire_whole(&in))
        return false;
    if (got.size < 1 || got.size > WIRE_MAX_SIZE || got.rank < 0 || got.rank >= got.size)
        return false;
    *join = got;
    return true;
}

void wire_table_begin(struct wire_out *out, const uint8_t key[WIRE_KEY_BYTES], int size)
{
    wire_put(out, key, WIRE_KEY_BYTES);
    wire_put_uint(out, (uint32_t)size, 4);
}

bool wire_table_parse(const uint8_t *data, size_t bytes, uint8_t key[WIRE_KEY_BYTES], struct wire_member *members,
                      int size)
{
    struct wire_in in = wire_begin(data, bytes);
    wire_get(&in, key, WIRE_KEY_BYTES);
    if (wire_get_uint(&in, 4) != (uint64_t)size)
        return false;
    for (int i = 0; i < size; i++)
        if (!wire_member_read(&in, &members[i]))
            return false;
    return wire_whole(&in);
}

void wire_cause_write(struct wire_out *out, const struct cause *cause)
{
    size_t length = strnlen(cause->text, CAUSE_TEXT_BYTES - 1);
    wire_put_uint(out, cause->status, 4);
    wire_put_uint(out, (uint32_t)cause->rank, 4);
    wire_put_uint(out, cause->sequence, 8);
    wire_put_uint(out, length, 2);
    wire_put(out, cause->text, length);
}

static bool wire_cause_read(struct wire_in *in, struct cause *cause)
{
    struct cause got;
    memset(&got, 0, sizeof(got));
    got.status = (uint32_t)wire_get_uint(in, 4);
    got.rank = (int32_t)wire_get_uint(in, 4);
    got.sequence = wire_get_uint(in, 8);
    size_t length = (size_t)wire_get_uint(in, 2);
    if (length >= CAUSE_TEXT_BYTES)
        return false;
    wire_get(in, got.text, length);
    if (!in->ok || got.rank < -1 || got.rank >= WIRE_MAX_SIZE || !cause_valid(&got))
        return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)got.text[i] < ' ' && got.text[i] != '\n')
            return false; /* it is printed on terminals */
    *cause = got;
    return true;
}

bool wire_cause_parse(const uint8_t *data, size_t bytes, struct cause *cause)
{
    struct wire_in in = wire_begin(data, bytes);
    struct cause got;
    if (!wire_cause_read(&in, &got) || !wire_whole(&in))
        return false;
    *cause = got;
    return true;
}

void wire_flood_write(struct wire_out *out, const struct wire_flood *flood)
{
    wire_put_uint(out, flood->id, 8);
    wire_cause_write(out, &flood->cause);
}

bool wire_flood_parse(const uint8_t *data, size_t bytes, struct wire_flood *flood)
{
    struct wire_in in = wire_begin(data, bytes);
    uint64_t id = wire_get_uint(&in, 8);
    struct cause cause;
    if (!wire_cause_read(&in, &cause) || !wire_whole(&in))
        return false;
    flood->id = id;
    flood->cause = cause;
    return true;
}

void wire_data_write(struct wire_out *out, const struct wire_data *data)
{
    wire_put_uint(out, data->op, 1);
    wire_put_uint(out, data->round, 1);
    wire_put_uint(out, data->sequence, 8);
    wire_put_uint(out, data->bytes, 8);
    wire_put(out, data->payload, data->payload_bytes);
}

bool wire_data_parse(const uint8_t *bytes, size_t count, struct wire_data *data)
{
    struct wire_in in = wire_begin(bytes, count);
    struct wire_data got;
    got.op = (uint8_t)wire_get_uint(&in, 1);
    got.round = (uint8_t)wire_get_uint(&in, 1);
    got.sequence = wire_get_uint(&in, 8);
    got.bytes = wire_get_uint(&in, 8);
    if (!in.ok || got.op < WIRE_ALL_GATHER || got.op > WIRE_BROADCAST || got.round > 31)
        return false;
    got.payload = in.at;
    got.payload_bytes = (size_t)(in.end - in.at);
    *data = got;
    return true;
}

void wire_note_write(struct wire_out *out, const struct wire_note *note)
{
    wire_put_uint(out, (uint32_t)note->rank, 4);
    wire_put_uint(out, note->sequence, 8);
}

bool wire_note_parse(const uint8_t *data, size_t bytes, struct wire_note *note)
{
    struct wire_in in = wire_begin(data, bytes);
    struct wire_note got;
    got.rank = (int32_t)wire_get_uint(&in, 4);
    got.sequence = wire_get_uint(&in, 8);
    if (!wire_whole(&in) || got.rank < 0 || got.rank >= WIRE_MAX_SIZE)
        return false;
    *note = got;
    return true;
}

void wire_ask_write(struct wire_out *out, const struct wire_ask *ask)
{
    wire_put_uint(out, ask->request, 8);
    wire_put_uint(out, ask->sequence, 8);
}

bool wire_ask_parse(const uint8_t *data, size_t bytes, struct wire_ask *ask)
{
    struct wire_in in = wire_begin(data, bytes);
    struct wire_ask got;
    got.request = wire_get_uint(&in, 8);
    got.sequence = wire_get_uint(&in, 8);
    if (!wire_whole(&in))
        return false;
    *ask = got;
    return true;
}

void wire_answer_write(struct wire_out *out, const struct wire_answer *answer)
{
    wire_put_uint(out, answer->request, 8);
    wire_put_uint(out, answer->answer, 4);
    wire_put_uint(out, answer->posted, 8);
    wire_put_uint(out, answer->name.sequence, 8);
    wire_put_uint(out, answer->name.count, 8);
    wire_put_uint(out, answer->name.epoch, 4);
    wire_put_uint(out, answer->name.root, 4);
    wire_put_uint(out, answer->name.plan_id, 4);
    wire_put_uint(out, answer->name.collective, 1);
    wire_put_uint(out, answer->name.type, 1);
    wire_put_uint(out, answer->name.op, 1);
    wire_put_uint(out, answer->name.flags, 1);
}

bool wire_answer_parse(const uint8_t *data, size_t bytes, struct wire_answer *answer)
{
    struct wire_in in = wire_begin(data, bytes);
    struct wire_answer got;
    got.request = wire_get_uint(&in, 8);
    got.answer = (uint32_t)wire_get_uint(&in, 4);
    got.posted = wire_get_uint(&in, 8);
    got.name.sequence = wire_get_uint(&in, 8);
    got.name.count = wire_get_uint(&in, 8);
    got.name.epoch = (uint32_t)wire_get_uint(&in, 4);
    got.name.root = (uint32_t)wire_get_uint(&in, 4);
    got.name.plan_id = (uint32_t)wire_get_uint(&in, 4);
    got.name.collective = (uint8_t)wire_get_uint(&in, 1);
    got.name.type = (uint8_t)wire_get_uint(&in, 1);
    got.name.op = (uint8_t)wire_get_uint(&in, 1);
    got.name.flags = (uint8_t)wire_get_uint(&in, 1);
    if (!wire_whole(&in) || (got.answer > BOARD_GONE && got.answer != WIRE_NO_BOARD))
        return false;
    *answer = got;
    return true;
}
