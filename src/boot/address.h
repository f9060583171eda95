/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - this host's addresses, key and name, and text addresses. Internal to src/boot. */
#ifndef QUIRE_BOOT_ADDRESS_H
#define QUIRE_BOOT_ADDRESS_H

#include <sys/socket.h>

#include "boot_wire.h"

bool address_to_sockaddr(const struct wire_address *address, uint16_t port, struct sockaddr_storage *out,
                         socklen_t *length);
bool address_from_sockaddr(const struct sockaddr *from, struct wire_address *address);
/* Usable addresses of this host, loopback last. `filter` is QUIRE_INTERFACE: "a,b" only those, "^a,b" all but those. */
quire_status_t address_list(const char *filter, struct wire_address *out, int max, int *count);
/* The boot id and the namespaces that matter, hashed. */
uint64_t address_host_key(void);
void address_host_name(char host[BOOT_HOST_BYTES]);
/* "host:port" or "[v6]:port". */
quire_status_t address_split(const char *text, char *host, size_t host_bytes, uint16_t *port);
/* The same, with the host looked up (may block on name service). */
quire_status_t address_resolve(const char *text, struct wire_address *out, int max, int *count, uint16_t *port);

#endif
