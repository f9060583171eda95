/* SPDX-License-Identifier: BSD-3-Clause */
/* transport.c - the list of transports, in order of preference. */
#include "transport.h"

#include <string.h>

const struct transport *const transport_all[] = {&transport_self, &transport_shm, &transport_tcp, NULL};

const struct transport *transport_by_name(const char *name)
{
    for (int i = 0; transport_all[i] != NULL; i++)
        if (strcmp(transport_all[i]->name, name) == 0)
            return transport_all[i];
    return NULL;
}
