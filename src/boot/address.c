/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address.c - what this host is called and where it can be reached: usable interface addresses, the host's key, parsing
 * of "host:port". Nothing here touches the service.
 */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/status.h"

bool address_to_sockaddr(const struct wire_address *address, uint16_t port, struct sockaddr_storage *out,
                         socklen_t *length)
{
    memset(out, 0, sizeof(*out));
    if (address->family == 4) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)out;
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        memcpy(&v4->sin_addr, address->bytes, 4);
        *length = sizeof(*v4);
        return true;
    }
    if (address->family == 6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        memcpy(&v6->sin6_addr, address->bytes, 16);
        *length = sizeof(*v6);
        return true;
    }
    return false;
}

bool address_from_sockaddr(const struct sockaddr *from, struct wire_address *address)
{
    memset(address, 0, sizeof(*address));
    if (from->sa_family == AF_INET) {
        address->family = 4;
        memcpy(address->bytes, &((const struct sockaddr_in *)from)->sin_addr, 4);
        return true;
    }
    if (from->sa_family == AF_INET6) {
        address->family = 6;
        memcpy(address->bytes, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
        return true;
    }
    return false;
}

/* True when `name` is one of the comma separated names of `list`. */
static bool name_in_list(const char *name, const char *list)
{
    size_t length = strlen(name);
    while (*list) {
        size_t item = strcspn(list, ",");
        if (item == length && memcmp(list, name, length) == 0)
            return true;
        list += item;
        list += *list == ',';
    }
    return false;
}

/* Every name in the filter must exist, or a typing error would silently leave no address. */
static quire_status_t filter_check(const struct ifaddrs *all, const char *list)
{
    char real[256] = "";
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (name_in_list(i->ifa_name, real))
            continue;
        size_t used = strlen(real);
        snprintf(real + used, sizeof(real) - used, "%s%s", used ? "," : "", i->ifa_name);
    }
    while (*list) {
        char name[64];
        size_t item = strcspn(list, ",");
        snprintf(name, sizeof(name), "%.*s", (int)item, list);
        if (item > 0 && !name_in_list(name, real))
            return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                              "QUIRE_INTERFACE names '%s', which this host does not have; it has %s", name, real);
        list += item;
        list += *list == ',';
    }
    return QUIRE_OK;
}

static bool address_usable(const struct ifaddrs *i, const char *filter)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
        return false;
    bool exclude = filter[0] == '^';
    if (filter[0] && name_in_list(i->ifa_name, filter + exclude) == exclude)
        return false;
    if (i->ifa_addr->sa_family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
        return !IN6_IS_ADDR_LINKLOCAL(v6); /* means nothing without our scope id */
    }
    return i->ifa_addr->sa_family == AF_INET;
}

quire_status_t address_list(const char *filter, struct wire_address *out, int max, int *count)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0) {
        *count = 0; /* a host without interfaces still has Unix sockets */
        return QUIRE_OK;
    }
    quire_status_t st = filter_check(all, filter + (filter[0] == '^'));
    int found = 0;
    /* Others first: a loopback address reaches nobody but ourselves. */
    for (int loopback = 0; loopback <= 1 && st == QUIRE_OK; loopback++)
        for (int family = AF_INET;; family = AF_INET6) {
            for (const struct ifaddrs *i = all; i && found < max; i = i->ifa_next)
                if (address_usable(i, filter) && i->ifa_addr->sa_family == family &&
                    !!(i->ifa_flags & IFF_LOOPBACK) == loopback)
                    found += address_from_sockaddr(i->ifa_addr, &out[found]);
            if (family == AF_INET6)
                break;
        }
    freeifaddrs(all);
    if (st == QUIRE_OK)
        *count = found;
    return st;
}

uint64_t address_host_key(void)
{
    uint64_t hash = BYTES_HASH_START;
    char text[128];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t got = read(fd, text, sizeof(text));
        if (got > 0)
            hash = bytes_hash(hash, text, (size_t)got);
        close(fd);
    }
    /* Abstract sockets belong to the network namespace, pids to theirs. */
    static const char *const spaces[] = {"/proc/self/ns/net", "/proc/self/ns/pid"};
    for (int i = 0; i < 2; i++) {
        ssize_t got = readlink(spaces[i], text, sizeof(text));
        if (got > 0)
            hash = bytes_hash(hash, text, (size_t)got);
    }
    return hash;
}

void address_host_name(char host[BOOT_HOST_BYTES])
{
    if (gethostname(host, BOOT_HOST_BYTES) != 0)
        snprintf(host, BOOT_HOST_BYTES, "unknown");
    host[BOOT_HOST_BYTES - 1] = 0;
    for (char *c = host; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

quire_status_t address_split(const char *text, char *host, size_t host_bytes, uint16_t *port)
{
    const char *colon, *begin = text;
    size_t length;
    if (text[0] == '[') {
        const char *end = strchr(text, ']');
        if (!end || end[1] != ':')
            return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "meeting address '%.100s' is not of the form [v6]:port",
                              text);
        begin = text + 1;
        length = (size_t)(end - begin);
        colon = end + 1;
    } else {
        colon = strrchr(text, ':');
        if (!colon || strchr(text, ':') != colon)
            return quire_fail(QUIRE_ERR_INVALID_ARGUMENT,
                              "meeting address '%.100s' is not of the form host:port or [v6]:port", text);
        length = (size_t)(colon - begin);
    }
    int64_t number;
    if (!bytes_parse_int(colon + 1, 1, 65535, &number))
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "the port in meeting address '%.100s' is not in 1..65535", text);
    if (length == 0 || length >= host_bytes)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "the host in meeting address '%.100s' is empty or too long",
                          text);
    memcpy(host, begin, length);
    host[length] = 0;
    *port = (uint16_t)number;
    return QUIRE_OK;
}

quire_status_t address_resolve(const char *text, struct wire_address *out, int max, int *count, uint16_t *port)
{
    char host[256];
    uint16_t number;
    quire_status_t st = address_split(text, host, sizeof(host), &number);
    if (st != QUIRE_OK)
        return st;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
    int rc = getaddrinfo(host, NULL, &hints, &list);
    if (rc != 0)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "host '%s' of meeting address '%.100s' does not resolve: %s",
                          host, text, gai_strerror(rc));
    int found = 0;
    for (struct addrinfo *i = list; i && found < max; i = i->ai_next)
        found += address_from_sockaddr(i->ai_addr, &out[found]);
    freeaddrinfo(list);
    if (found == 0)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "host '%s' has no IPv4 or IPv6 address", host);
    *count = found;
    *port = number;
    return QUIRE_OK;
}
