/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver.c - makes a fuzz target a program for any compiler: runs the seeds (files or directories given), then random
 * mutations of them until the time or the count is over, whichever is first. The random seed is printed, and the input
 * that brought the target down is written to a file, so that a failure can be repeated: TARGET -n 0 FILE.
 *   usage: TARGET [-t SECONDS] [-n COUNT] [-s SEED] [-o FAILED_INPUT] [FILE|DIRECTORY...]
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

/* What is running, for the report of its end. */
static const uint8_t *running;
static size_t running_size;
static const char *failed_path = "failed-input";

/* Only calls that are safe in a signal handler. */
static void save_running(void)
{
    static const char before[] = "the input that failed is in ";
    int fd = running == NULL ? -1 : open(failed_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    if (write(fd, running, running_size) == (ssize_t)running_size)
        (void)!(write(2, before, sizeof(before) - 1) + write(2, failed_path, strlen(failed_path)) + write(2, "\n", 1));
    close(fd);
    running = NULL;
}

static void on_signal(int number)
{
    save_running();
    signal(number, SIG_DFL);
    raise(number);
}

/* The sanitizers end the process themselves and call this first; absent in other builds. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void watch_for_the_end(void)
{
    /* SIGTERM: an outer timer ended us, so the input hangs. The sanitizers have handlers for their own signals. */
    static const int numbers[] = {SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (i < 2 || __sanitizer_set_death_callback == NULL)
            signal(numbers[i], on_signal);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(save_running);
}

/* Runs a copy of exactly the size, so that a read behind it is seen. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size == 0 ? 1 : size);
    if (exact == NULL)
        return;
    memcpy(exact, data, size);
    running = data;
    running_size = size;
    LLVMFuzzerTestOneInput(exact, size);
    running = NULL;
    free(exact);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void add_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        exit(2);
    }
    if (seed_count == MAX_SEEDS) {
        fprintf(stderr, "%s: more than %d seeds; left out\n", path, MAX_SEEDS);
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
    if (stat(path, &st) != 0) {
        perror(path);
        exit(2);
    }
    if (!S_ISDIR(st.st_mode)) {
        add_file(path);
        return;
    }
    /* Sorted: the same random seed must mean the same inputs everywhere. */
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *entry = entries[i]->d_name;
        if (entry[0] != '.' && (size_t)snprintf(name, sizeof(name), "%s/%s", path, entry) < sizeof(name))
            add_file(name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
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
        else if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            failed_path = argv[++i];
        else
            add_path(argv[i]);
    }
    if (seed_count == 0)
        seeds[seed_count++] = (struct seed){empty, 0};
    state = seed * 2 + 1;
    printf("%d seeds, random seed %llu\n", seed_count, (unsigned long long)seed);
    fflush(stdout);
    watch_for_the_end();
    double end = now() + seconds;
    for (int i = 0; i < seed_count; i++)
        run(seeds[i].data, seeds[i].size);
    uint8_t *work = malloc(MAX_BYTES);
    for (; work != NULL && (count < 0 || runs < count) && now() < end; runs++) {
        size_t size = mutate(work, &seeds[next() % (uint64_t)seed_count]);
        run(work, size);
    }
    printf("%ld mutations\n", runs);
    free(work);
    return 0;
}
