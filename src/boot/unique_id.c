/* SPDX-License-Identifier: BSD-3-Clause */
/* unique_id.c - encoding, decoding and checking of unique ids. See unique_id.h. Ids come from strangers: fuzzed. */
#include "unique_id.h"

#include <string.h>

#include "base/bytes.h"
#include "base/status.h"

enum { ID_MAGIC = 0x44495551 /* "QUID" */, ID_VERSION = 1, ID_SUM_AT = 120 };

static const char id_text_head[] = "quire-id ";

void id_encode(quire_unique_id *id, const struct id_fields *fields)
{
    memset(id, 0, sizeof(*id));
    /* A full buffer is all there is room for, so the writer can't want more: cap it to the part before the sum. */
    struct wire_out out = {id->bytes, 0, ID_SUM_AT, false};
    const struct wire_member *root = &fields->root;
    int count = 0, room = ID_SUM_AT - 40;
    while (count < root->address_count) {
        int need = root->address[count].family == 4 ? 5 : 17;
        if (need > room)
            break;
        room -= need;
        count++;
    }
    wire_put_uint(&out, ID_MAGIC, 4);
    wire_put_uint(&out, ID_VERSION, 1);
    wire_put_uint(&out, (uint64_t)count, 1);
    wire_put_uint(&out, root->port, 2);
    wire_put(&out, fields->key, WIRE_KEY_BYTES);
    wire_put_uint(&out, root->door, 8);
    wire_put_uint(&out, root->host_key, 8);
    for (int i = 0; i < count; i++) {
        wire_put_uint(&out, root->address[i].family, 1);
        wire_put(&out, root->address[i].bytes, root->address[i].family == 4 ? 4 : 16);
    }
    out = (struct wire_out){id->bytes + ID_SUM_AT, 0, 8, false};
    wire_put_uint(&out, bytes_hash(BYTES_HASH_START, id->bytes, ID_SUM_AT), 8);
}

static quire_status_t id_bad(const char *why)
{
    return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                      "these 128 bytes are no unique id (%s): pass on what quire_get_unique_id wrote, unchanged", why);
}

quire_status_t id_decode(const quire_unique_id *id, struct id_fields *fields)
{
    if (!id)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "the unique id is NULL");
    struct wire_in sum = {id->bytes + ID_SUM_AT, id->bytes + QUIRE_UNIQUE_ID_BYTES, true};
    struct wire_in in = {id->bytes, id->bytes + ID_SUM_AT, true};
    struct id_fields got;
    memset(&got, 0, sizeof(got));
    if (wire_get_uint(&in, 4) != ID_MAGIC)
        return id_bad("it does not begin with the magic");
    if (wire_get_uint(&in, 1) != ID_VERSION)
        return id_bad("it is of another version of the library");
    if (wire_get_uint(&sum, 8) != bytes_hash(BYTES_HASH_START, id->bytes, ID_SUM_AT))
        return id_bad("the checksum is wrong");
    got.root.address_count = (uint8_t)wire_get_uint(&in, 1);
    got.root.port = (uint16_t)wire_get_uint(&in, 2);
    wire_get(&in, got.key, WIRE_KEY_BYTES);
    got.root.door = wire_get_uint(&in, 8);
    got.root.host_key = wire_get_uint(&in, 8);
    if (got.root.address_count > WIRE_MAX_ADDRESSES)
        return id_bad("it has too many addresses");
    for (int i = 0; i < got.root.address_count; i++) {
        struct wire_address *address = &got.root.address[i];
        address->family = (uint8_t)wire_get_uint(&in, 1);
        if (address->family != 4 && address->family != 6)
            return id_bad("an address has an unknown family");
        wire_get(&in, address->bytes, address->family == 4 ? 4 : 16);
    }
    if (!in.ok)
        return id_bad("its addresses do not fit");
    for (; in.at < in.end; in.at++)
        if (*in.at)
            return id_bad("there are bytes after its addresses");
    *fields = got;
    return QUIRE_OK;
}

quire_status_t boot_check_id(const quire_unique_id *id)
{
    struct id_fields fields;
    return id_decode(id, &fields);
}

void id_to_text(const quire_unique_id *id, char *text)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = sizeof(id_text_head) - 1;
    memcpy(text, id_text_head, at);
    for (int i = 0; i < QUIRE_UNIQUE_ID_BYTES; i++) {
        text[at++] = digits[id->bytes[i] >> 4];
        text[at++] = digits[id->bytes[i] & 15];
    }
    text[at++] = '\n';
    text[at] = 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool id_from_text(const char *text, size_t bytes, quire_unique_id *id)
{
    size_t head = sizeof(id_text_head) - 1;
    if (bytes != head + 2 * QUIRE_UNIQUE_ID_BYTES + 1 || memcmp(text, id_text_head, head) != 0 ||
        text[bytes - 1] != '\n')
        return false;
    quire_unique_id got;
    for (int i = 0; i < QUIRE_UNIQUE_ID_BYTES; i++) {
        int high = hex_digit(text[head + 2 * (size_t)i]), low = hex_digit(text[head + 2 * (size_t)i + 1]);
        if (high < 0 || low < 0)
            return false;
        got.bytes[i] = (unsigned char)(high << 4 | low);
    }
    *id = got;
    return true;
}
