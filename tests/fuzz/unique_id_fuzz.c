/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unique_id_fuzz.c - foreign bytes as a unique id, as they are and with a right checksum (else hardly any gets past
 * it), and as the text of a meeting file.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "boot/unique_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const quire_unique_id *id)
{
    struct id_fields fields, again;
    if (id_decode(id, &fields) != QUIRE_OK)
        return;
    quire_unique_id back;
    id_encode(&back, &fields);
    if (id_decode(&back, &again) != QUIRE_OK || memcmp(&fields, &again, sizeof(fields)) != 0 ||
        memcmp(id, &back, sizeof(back)) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    quire_unique_id id;
    memset(&id, 0, sizeof(id));
    memcpy(&id, data, size < sizeof(id) ? size : sizeof(id));
    look(&id);
    uint64_t sum = bytes_hash(BYTES_HASH_START, id.bytes, 120);
    for (int i = 0; i < 8; i++)
        id.bytes[120 + i] = (uint8_t)(sum >> (8 * i));
    look(&id);
    char *text = malloc(size ? size : 1);
    if (size)
        memcpy(text, data, size);
    if (id_from_text(text, size, &id))
        look(&id);
    free(text);
    return 0;
}
