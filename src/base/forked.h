/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forked.h - which process we are in. After fork() the child holds copies of objects whose threads and sockets belong
 * to the parent; each object remembers the generation it was made in and is dead in any other.
 */
#ifndef QUIRE_BASE_FORKED_H
#define QUIRE_BASE_FORKED_H

#include <stdint.h>

/* Grows by one in each forked child. The first call arms the handler; call it before the object can be used. */
uint32_t fork_generation(void);

#endif
