/* SPDX-License-Identifier: BSD-3-Clause */
/* self_conformance_test.c - the self transport passes the suite that all transports pass. */
#include "harness/conformance.h"

int main(void)
{
    return conformance_main(&(struct conformance){&transport_self, false, NULL});
}
