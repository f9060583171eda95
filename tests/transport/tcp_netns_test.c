/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_netns_test.c - the tcp transport passes the suite over real TCP between two network namespaces joined by a veth
 * pair. The namespaces have no names and end with this process. Skipped, with a note, where they can't be made.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/conformance.h"

static int space[2]; /* the two namespaces; a socket stays in the one it was made in */

static bool enter(int which)
{
    return setns(space[which], CLONE_NEWNET) == 0;
}

/* Runs ip(8) in the namespace this thread is in. */
static bool ip(const char *arguments)
{
    char command[256];
    snprintf(command, sizeof(command), "ip %s 2>/dev/null", arguments);
    return system(command) == 0;
}

static bool make_spaces(void)
{
    char move[128];
    for (int i = 0; i < 2; i++)
        if (unshare(CLONE_NEWNET) != 0 || (space[i] = open("/proc/self/ns/net", O_RDONLY)) < 0)
            return false;
    snprintf(move, sizeof(move), "link set qa netns /proc/%d/fd/%d", (int)getpid(), space[0]);
    return ip("link add qa type veth peer name qb") && ip(move) && ip("addr add 10.77.0.2/24 dev qb") &&
           ip("link set lo up") && ip("link set qb up") && enter(0) && ip("addr add 10.77.0.1/24 dev qa") &&
           ip("link set lo up") && ip("link set qa up");
}

/* From the second namespace to the first. */
static bool connect_across(int pair[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("10.77.0.1")};
    socklen_t length = sizeof(address);
    int one = 1, listener = -1, far = -1, near = -1;
    bool good = enter(0) && (listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0 &&
                bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0 &&
                getsockname(listener, (struct sockaddr *)&address, &length) == 0 && enter(1) &&
                (far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0 &&
                connect(far, (struct sockaddr *)&address, length) == 0 &&
                (near = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0 &&
                fcntl(far, F_SETFL, O_NONBLOCK) == 0 &&
                setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0 &&
                setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0;
    if (listener >= 0)
        close(listener);
    if (!good) {
        if (far >= 0)
            close(far);
        if (near >= 0)
            close(near);
        return false;
    }
    pair[0] = near;
    pair[1] = far;
    return true;
}

int main(void)
{
    int probe[2];
    if (!make_spaces()) {
        printf("skipped: network namespaces with a veth pair can't be made here\n");
        return 0;
    }
    if (!connect_across(probe)) {
        perror("the namespaces are there, but no connection between them");
        return 1;
    }
    close(probe[0]);
    close(probe[1]);
    return conformance_main(&(struct conformance){&transport_tcp, true, connect_across});
}
