/* SPDX-License-Identifier: BSD-3-Clause */
/* knobs_fuzz.c - every parser of environment values: any text, no crash; what parses as a size prints and parses back,
 * within a percent.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/knobs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), back[16];
    uint64_t bytes, ns, again;
    int64_t value;
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (enum knob_id id = 0; id < KNOB_COUNT_; id++)
        (void)knob_parse(id, text, &value);
    (void)bytes_parse_time(text, &ns);
    if (bytes_parse_int(text, -1000, 1000, &value) && (value < -1000 || value > 1000))
        abort();
    if (bytes_parse_size(text, &bytes)) {
        if (!bytes_parse_size(bytes_size_text(bytes, back), &again))
            abort();
        if ((again > bytes ? again - bytes : bytes - again) > bytes / 100)
            abort();
    }
    if (bytes_distance(text, "QUIRE_TRANSPORT", 10) > 10)
        abort();
    free(text);
    return 0;
}
