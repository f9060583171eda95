/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_conformance_test.c - the tcp transport passes the suite that all transports pass. */
#include "harness/conformance.h"

int main(void)
{
    return conformance_main(&(struct conformance){&transport_tcp, true, NULL});
}
