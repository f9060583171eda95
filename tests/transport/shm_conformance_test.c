/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_conformance_test.c - the shm transport passes the suite that all transports pass. */
#include "harness/conformance.h"

int main(void)
{
    return conformance_main(&(struct conformance){&transport_shm, false, NULL});
}
