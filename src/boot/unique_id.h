/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unique_id.h - the 128 bytes of a unique id: where its root listens and the key of the meeting. Internal to src/boot.
 *
 * Layout: magic 4, version 1, address count 1, port 2, key 16, door 8, host key 8, addresses (family 1, then 4 or 16
 * bytes each) and zeros up to byte 120, checksum 8 over all before. As many addresses as fit, best first.
 */
#ifndef QUIRE_BOOT_UNIQUE_ID_H
#define QUIRE_BOOT_UNIQUE_ID_H

#include "boot_wire.h"

struct id_fields {
    uint8_t key[WIRE_KEY_BYTES];
    struct wire_member root; /* without host and pid */
};

void id_encode(quire_unique_id *id, const struct id_fields *fields);
/* INVALID_ARGUMENT with the reason; *fields is written only on success. */
quire_status_t id_decode(const quire_unique_id *id, struct id_fields *fields);

/* The id as text for a file: one line. `text` holds ID_TEXT_BYTES. */
enum { ID_TEXT_BYTES = 2 * QUIRE_UNIQUE_ID_BYTES + 16 };
void id_to_text(const quire_unique_id *id, char *text);
bool id_from_text(const char *text, size_t bytes, quire_unique_id *id);

#endif
