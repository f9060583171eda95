/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_wire_fuzz.c - every parser of the control plane on foreign bytes. The first byte chooses the message type, the
 * rest is its body. What a parser takes must come back the same when it is written and parsed again.
 */
#include <stdlib.h>
#include <string.h>

#include "boot/boot_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

#define AGAIN(kind)                                                                                                    \
    do {                                                                                                               \
        struct wire_##kind got, again;                                                                                 \
        if (wire_##kind##_parse(body, bytes, &got)) {                                                                  \
            wire_##kind##_write(&out, &got);                                                                           \
            must(!out.failed && out.size == bytes && wire_##kind##_parse(out.bytes, out.size, &again));                \
            must(memcmp(out.bytes, body, bytes) == 0);                                                                 \
        }                                                                                                              \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    /* On the heap and exactly as long, so that sanitizers see a read over the end. */
    size_t bytes = size - 1;
    uint8_t *body = malloc(bytes ? bytes : 1);
    struct wire_out out = {NULL, 0, 0, false};
    if (bytes)
        memcpy(body, data + 1, bytes);
    switch (data[0] % 12) {
    case 0: {
        struct wire_header header;
        if (bytes >= WIRE_HEADER_BYTES)
            wire_header_parse(body, &header);
        break;
    }
    case 1:
        AGAIN(hello);
        break;
    case 2:
        AGAIN(join);
        break;
    case 3: {
        struct wire_member members[5];
        uint8_t key[WIRE_KEY_BYTES];
        wire_table_parse(body, bytes, key, members, 1 + data[0] % 5);
        break;
    }
    case 4: {
        struct cause cause, again;
        if (wire_cause_parse(body, bytes, &cause)) {
            must(cause_valid(&cause));
            wire_cause_write(&out, &cause);
            must(wire_cause_parse(out.bytes, out.size, &again));
        }
        break;
    }
    case 5: {
        struct wire_flood flood;
        if (wire_flood_parse(body, bytes, &flood))
            must(cause_valid(&flood.cause));
        break;
    }
    case 6:
        AGAIN(data);
        break;
    case 7:
        AGAIN(note);
        break;
    case 8:
        AGAIN(ask);
        break;
    case 9:
        AGAIN(answer);
        break;
    default:
        break;
    }
    free(out.bytes);
    free(body);
    return 0;
}
