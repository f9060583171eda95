/* SPDX-License-Identifier: BSD-3-Clause */
/* quire_all_reduce.c - quire_all_reduce by bench.h's method; built by compare_mpi.sh. */
#include "bench.h"
#include "quire.h"

static void call(void *arg, const float *in, float *out, size_t count)
{
    if (quire_all_reduce(in, out, count, QUIRE_FLOAT32, QUIRE_SUM, arg, NULL) != QUIRE_OK) {
        fprintf(stderr, "%s\n", quire_last_error(arg));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    quire_comm *comm;
    int rank, size;
    if (quire_comm_init_env(&comm, NULL) != QUIRE_OK) {
        fprintf(stderr, "%s\n", quire_last_error(NULL));
        return 1;
    }
    quire_comm_rank(comm, &rank);
    quire_comm_size(comm, &size);
    int status = bench_run(call, comm, rank, size, argc, argv);
    return quire_comm_destroy(comm) != QUIRE_OK || status != 0;
}
