/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver.c - makes a fuzz target a program for any compiler: runs the seeds (files or directories given), then random
 * mutations of them until the time or the count is over. The random seed is printed, so that a failure can be repeated.
 *   usage: TARGET [-t SECONDS] [-n COUNT] [-s SEED] [FILE|DIRECTORY...]
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_SEEDS = 256, MAX_BYTES = 1 << 16 };

struct seed {
    uint8_t *data;
    size_t size;
};

static struct seed seeds[MAX_SEEDS];
static int seed_count;
static uint64_t state;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void add_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL || seed_count == MAX_SEEDS) {
        if (f != NULL)
            fclose(f);
        return;
    }
    struct seed *s = &seeds[seed_count];
    s->data = malloc(MAX_BYTES);
    if (s->data != NULL) {
        s->size = fread(s->data, 1, MAX_BYTES, f);
        seed_count++;
    }
    fclose(f);
}

static void add_path(const char *path)
{
    struct stat st;
    char name[4096];
    if (stat(path, &st) != 0)
        return;
    if (!S_ISDIR(st.st_mode)) {
        add_file(path);
        return;
    }
    DIR *dir = opendir(path);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.' && (size_t)snprintf(name, sizeof(name), "%s/%s", path, e->d_name) < sizeof(name))
            add_file(name);
    if (dir != NULL)
        closedir(dir);
}

/* A few changes to a seed: bits, bytes, lengths, pieces moved, pieces of another seed. Returns the new size. */
static size_t mutate(uint8_t *to, const struct seed *from)
{
    size_t size = from->size;
    memcpy(to, from->data, size);
    for (uint64_t changes = 1 + next() % 8; changes > 0; changes--) {
        size_t at = size == 0 ? 0 : next() % size;
        const struct seed *other = &seeds[next() % (uint64_t)seed_count];
        switch (next() % 6) {
        case 0:
            if (size > 0)
                to[at] ^= (uint8_t)(1u << next() % 8);
            break;
        case 1:
            if (size > 0)
                to[at] = (uint8_t)next();
            break;
        case 2:
            size = at;
            break;
        case 3:
            if (size < MAX_BYTES) {
                memmove(to + at + 1, to + at, size - at);
                to[at] = (uint8_t)next();
                size++;
            }
            break;
        case 4:
            if (other->size > 0) {
                size_t n = 1 + next() % other->size, start = next() % other->size;
                n = n > other->size - start ? other->size - start : n;
                n = n > MAX_BYTES - at ? MAX_BYTES - at : n;
                memcpy(to + at, other->data + start, n);
                size = at + n > size ? at + n : size;
            }
            break;
        default:
            if (size > 3)
                memset(to + at, next() % 2 ? 0xff : 0, size - at < 4 ? size - at : 4);
            break;
        }
    }
    return size;
}

int main(int argc, char **argv)
{
    static uint8_t empty[1];
    double seconds = 1;
    long count = -1, runs = 0;
    uint64_t seed = (uint64_t)time(NULL);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-t") == 0 && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
            count = atol(argv[++i]);
        else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 0);
        else
            add_path(argv[i]);
    }
    if (seed_count == 0)
        seeds[seed_count++] = (struct seed){empty, 0};
    state = seed * 2 + 1;
    printf("%d seeds, random seed %llu\n", seed_count, (unsigned long long)seed);
    fflush(stdout);
    for (int i = 0; i < seed_count; i++)
        LLVMFuzzerTestOneInput(seeds[i].data, seeds[i].size);
    uint8_t *work = malloc(MAX_BYTES);
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    for (; work != NULL && (count < 0 ? clock() < end : runs < count); runs++) {
        /* A copy of exactly the size, so that a read behind it is seen. */
        size_t size = mutate(work, &seeds[next() % (uint64_t)seed_count]);
        uint8_t *exact = malloc(size == 0 ? 1 : size);
        if (exact == NULL)
            break;
        memcpy(exact, work, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    printf("%ld mutations\n", runs);
    free(work);
    return 0;
}
