/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_all_reduce.c - MPI_Allreduce by bench.h's method; built by compare_mpi.sh. */
#include <mpi.h>

#include "bench.h"

static void call(void *arg, const float *in, float *out, size_t count)
{
    if (MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS)
        exit(1);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int status = bench_run(call, NULL, rank, size, argc, argv);
    MPI_Finalize();
    return status;
}
