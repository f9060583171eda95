/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h - the process's one service thread. It sleeps in epoll; it owns the listeners, all control-plane sockets
 * and process handles; it accepts, checks handshakes (a stranger is dropped within a second and accepting goes on),
 * passes floods on, answers board and descriptor requests, notices dead peers and raises stop words.
 *
 * Started at first use, ended when the last user leaves. After fork the child has none: service_alive() is false there
 * and everything built on it fails with INVALID_USAGE.
 */
#ifndef QUIRE_BOOT_SERVICE_H
#define QUIRE_BOOT_SERVICE_H

#include <stdbool.h>

#include "quire.h"

struct service;

/* Takes a reference, starting the thread for the first. */
quire_status_t service_get(struct service **service);
void service_put(struct service *service);
/* False in a forked child. */
bool service_alive(const struct service *service);

#endif
