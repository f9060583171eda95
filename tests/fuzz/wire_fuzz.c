/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire_fuzz.c - any bytes as frame headers: what wire_check accepts has every field in range. Half of the inputs are
 * sealed first, so that the checksum does not hide the fields behind it.
 */
#include <stdlib.h>
#include <string.h>

#include "wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct wire_header *header)
{
    enum { SLOT = 65536 };
    if (wire_check(header, SLOT) != NULL)
        return;
    if (header->lane >= WIRE_LANES || header->bytes > SLOT || header->checked > 1 ||
        (header->type != WIRE_DATA && header->type != WIRE_CREDIT) ||
        (header->type == WIRE_CREDIT && header->bytes != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_header header;
    for (; size >= sizeof(header); data += sizeof(header), size -= sizeof(header)) {
        memcpy(&header, data, sizeof(header));
        check(&header);
        wire_seal(&header);
        check(&header);
    }
    (void)wire_sum(data, size);
    return 0;
}
