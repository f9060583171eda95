/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane_test.c - the ring alone: order, credits, many consumers, laps, epochs, the check; and two threads over one
 * memory, which the thread sanitizer watches (tests/transport/lane_mutant_test.sh plants a missing release).
 */
#include <pthread.h>
#include <sched.h>

#include "../base/base_test.h"
#include "base/status.h"
#include "lane.h"

enum { CONSUMERS = 3, LAPS = 40, MESSAGES = 20000 };

struct ring {
    struct lane producer, consumer[CONSUMERS];
    void *head, *payload;
};

static void make(struct ring *ring, uint32_t consumers, uint32_t depth)
{
    struct lane_geometry g = {depth, 256, 7};
    ring->head = aligned_alloc(64, (lane_head_bytes(&g, consumers) + 63) / 64 * 64);
    ring->payload = aligned_alloc(64, (lane_payload_bytes(&g) + 63) / 64 * 64);
    memset(ring->head, 0, lane_head_bytes(&g, consumers));
    lane_init_producer(&ring->producer, &g, ring->head, ring->payload, consumers);
    for (uint32_t i = 0; i < consumers; i++)
        lane_init_consumer(&ring->consumer[i], &g, ring->head, ring->payload, consumers, i);
}

static void drop(struct ring *ring)
{
    free(ring->payload);
    free(ring->head);
}

static void send(struct lane *lane, uint64_t number, uint32_t bytes)
{
    struct op_name name = {.sequence = number, .count = bytes};
    uint8_t *at = lane_fill(lane, bytes);
    for (uint32_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(number + i);
    lane_publish(lane, &name, bytes);
}

/* What is wrong with the slot, NULL when nothing is. One verdict a slot: an assertion a byte would cost seconds. */
static const char *fault_of(const struct lane *lane, const struct lane_slot *slot, uint64_t number, uint32_t bytes)
{
    const uint8_t *at = lane_data(lane, slot);
    if (slot->name.sequence != number)
        return "another slot";
    if (slot->bytes != bytes)
        return "another size";
    for (uint32_t i = 0; i < bytes; i++)
        if (at[i] != (uint8_t)(number + i))
            return "wrong bytes";
    return NULL;
}

static bool take(struct lane *lane, uint64_t number, uint32_t bytes)
{
    const struct lane_slot *slot = lane_peek(lane);
    if (slot == NULL)
        return false;
    const char *fault = fault_of(lane, slot, number, bytes);
    ck_assert_msg(fault == NULL, "slot %llu: %s", (unsigned long long)number, fault);
    lane_release(lane);
    return true;
}

START_TEST(the_slowest_consumer_holds_the_producer)
{
    struct ring ring;
    make(&ring, CONSUMERS, 4);
    for (uint64_t n = 0; n < 4; n++) {
        ck_assert(lane_can_send(&ring.producer));
        send(&ring.producer, n, (uint32_t)(n * 30));
    }
    ck_assert(!lane_can_send(&ring.producer));
    for (int c = 0; c < CONSUMERS; c++) {
        ck_assert(!lane_can_send(&ring.producer));
        ck_assert(take(&ring.consumer[c], 0, 0));
    }
    ck_assert(lane_can_send(&ring.producer));
    ck_assert(lane_all_released(&ring.producer, 1) && !lane_all_released(&ring.producer, 2));
    send(&ring.producer, 4, 120);
    ck_assert(!lane_can_send(&ring.producer));
    ck_assert_int_eq(lane_check(&ring.producer), QUIRE_OK);
    ck_assert_int_eq(lane_check(&ring.consumer[0]), QUIRE_OK);
    ring.consumer[0].position++;
    ck_assert_int_eq(lane_check(&ring.consumer[0]), QUIRE_ERR_INTERNAL);
    drop(&ring);
}
END_TEST

START_TEST(slots_keep_order_and_bytes_over_many_laps)
{
    struct ring ring;
    make(&ring, 1, 2);
    static const uint32_t sizes[] = {0, 1, 15, 16, 17, 64, 255, 256};
    for (uint64_t n = 0; n < LAPS; n++) {
        send(&ring.producer, n, sizes[n % 8]);
        ck_assert(take(&ring.consumer[0], n, sizes[n % 8]));
        ck_assert_ptr_eq(lane_peek(&ring.consumer[0]), NULL); /* what lay there a lap ago is not taken for new */
    }
    drop(&ring);
}
END_TEST

START_TEST(a_slot_of_another_epoch_is_not_seen)
{
    struct ring ring;
    make(&ring, 1, 2);
    send(&ring.producer, 1, 8);
    ring.consumer[0].epoch_bits = UINT64_C(8) << 48;
    ck_assert_ptr_eq(lane_peek(&ring.consumer[0]), NULL);
    ring.consumer[0].epoch_bits = UINT64_C(7) << 48;
    ck_assert_ptr_ne(lane_peek(&ring.consumer[0]), NULL);
    drop(&ring);
}
END_TEST

static void *produce(void *arg)
{
    struct lane *lane = arg;
    for (uint64_t n = 0; n < MESSAGES; n++) {
        while (!lane_can_send(lane))
            sched_yield(); /* more threads than cores: a spin costs its whole tick */
        send(lane, n, (uint32_t)(n % 257));
    }
    return NULL;
}

/* Assertions of Check belong to its own thread, so a consumer hands back its first complaint. */
static void *consume(void *arg)
{
    struct lane *lane = arg;
    const char *fault = NULL;
    for (uint64_t n = 0; n < MESSAGES; n++) {
        const struct lane_slot *slot;
        while ((slot = lane_peek(lane)) == NULL)
            sched_yield(); /* more threads than cores: a spin costs its whole tick */
        if (fault == NULL)
            fault = fault_of(lane, slot, n, (uint32_t)(n % 257));
        lane_release(lane);
    }
    return (void *)(uintptr_t)fault;
}

START_TEST(threads_see_whole_slots)
{
    struct ring ring;
    pthread_t threads[1 + CONSUMERS];
    make(&ring, CONSUMERS, 8);
    pthread_create(&threads[0], NULL, produce, &ring.producer);
    for (int c = 0; c < CONSUMERS; c++)
        pthread_create(&threads[1 + c], NULL, consume, &ring.consumer[c]);
    pthread_join(threads[0], NULL);
    for (int c = 0; c < CONSUMERS; c++) {
        void *fault;
        pthread_join(threads[1 + c], &fault);
        ck_assert_msg(fault == NULL, "consumer %d: %s", c, (const char *)fault);
    }
    ck_assert_int_eq(lane_check(&ring.producer), QUIRE_OK);
    drop(&ring);
}
END_TEST

BASE_TEST_MAIN("lane", the_slowest_consumer_holds_the_producer, slots_keep_order_and_bytes_over_many_laps,
               a_slot_of_another_epoch_is_not_seen, threads_see_whole_slots)
