/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h - one timing method for every library that is compared: a barrier in shared memory that belongs to none of
 * them, then one operation; the time of an iteration is the slowest rank's; the figure is the median over iterations.
 * Between iterations each rank writes its input and reads its result, as a program would; the last result is checked.
 */
#ifndef QUIRE_PERF_COMPARE_BENCH_H
#define QUIRE_PERF_COMPARE_BENCH_H

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BENCH_RANKS = 64, BENCH_ITERATIONS = 4000 };

struct bench {
    uint32_t arrived __attribute__((aligned(64)));
    uint32_t round __attribute__((aligned(64)));
    uint64_t ns[BENCH_RANKS][BENCH_ITERATIONS];
};

typedef void (*bench_call)(void *arg, const float *in, float *out, size_t count);

static struct bench *bench;
static int bench_rank, bench_size;

static inline uint64_t bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void bench_barrier(void)
{
    uint32_t round = __atomic_load_n(&bench->round, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&bench->arrived, 1, __ATOMIC_ACQ_REL) == (uint32_t)bench_size) {
        __atomic_store_n(&bench->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&bench->round, round + 1, __ATOMIC_RELEASE);
        return;
    }
    /* About 5 us of polite spinning: a yield costs 0.4 us, and that much skew would be measured as the operation. */
    for (int n = 0; __atomic_load_n(&bench->round, __ATOMIC_ACQUIRE) == round; n++) {
        if (n >= 200)
            sched_yield();
#if defined(__x86_64__)
        else
            __builtin_ia32_pause();
#endif
    }
}

static int bench_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Rank 0 prints "bytes median_us". */
static void bench_one(bench_call call, void *arg, size_t bytes, double seconds)
{
    size_t count = bytes / sizeof(float);
    float *in, *out, touched = 0;
    if (posix_memalign((void **)&in, 4096, bytes + 4096) != 0 || posix_memalign((void **)&out, 4096, bytes + 4096) != 0)
        exit(1);
    memset(in, 0, bytes);
    memset(out, 0, bytes);
    bench_barrier();
    uint64_t start = bench_now();
    call(arg, in, out, count);
    uint64_t once = bench_now() - start + 500;
    bench->ns[bench_rank][0] = once;
    bench_barrier();
    for (int r = 0; r < bench_size; r++)
        once = bench->ns[r][0] > once ? bench->ns[r][0] : once;
    int n = (int)(seconds * 1e9 / (double)once);
    n = n < 11 ? 11 : n > BENCH_ITERATIONS ? BENCH_ITERATIONS : n;
    int warm = n / 5 + 10;
    for (int i = -warm; i < n; i++) {
        for (size_t k = 0; k < count; k += 16)
            in[k] = (float)(i & 7);
        for (size_t k = 0; k < count; k += 16)
            touched += out[k];
        bench_barrier();
        start = bench_now();
        call(arg, in, out, count);
        uint64_t ns = bench_now() - start;
        if (i >= 0)
            bench->ns[bench_rank][i] = ns;
    }
    for (size_t k = 0; k < count; k++) {
        float want = k % 16 == 0 ? (float)((n - 1) & 7) * (float)bench_size : 0;
        if (out[k] != want) {
            fprintf(stderr, "rank %d: element %zu of %zu is %g, should be %g\n", bench_rank, k, count, (double)out[k],
                    (double)want);
            exit(1);
        }
    }
    bench_barrier();
    if (touched == 12345.678f)
        printf("#\n");
    if (bench_rank == 0) {
        static uint64_t worst[BENCH_ITERATIONS];
        for (int i = 0; i < n; i++) {
            worst[i] = 0;
            for (int r = 0; r < bench_size; r++)
                worst[i] = bench->ns[r][i] > worst[i] ? bench->ns[r][i] : worst[i];
        }
        qsort(worst, (size_t)n, sizeof(*worst), bench_compare);
        printf("%zu %.3f\n", bytes, (double)worst[n / 2] / 1e3);
        fflush(stdout);
    }
    bench_barrier();
    free(out);
    free(in);
}

static int bench_run(bench_call call, void *arg, int rank, int size, int argc, char **argv)
{
    if (argc < 3 || size > BENCH_RANKS) {
        fprintf(stderr, "usage: %s FILE BYTES...\n", argv[0]);
        return 2;
    }
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct bench)) != 0)
        return 1;
    bench = mmap(NULL, sizeof(struct bench), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (bench == MAP_FAILED)
        return 1;
    bench_rank = rank;
    bench_size = size;
    for (int i = 2; i < argc; i++)
        bench_one(call, arg, (size_t)strtoull(argv[i], NULL, 10), 0.2);
    return 0;
}

#endif
