/* SPDX-License-Identifier: BSD-3-Clause */
/* lane_set_test.c - where lanes lie, what is backed when, who rings whom, and what is refused. */
#include <limits.h>
#include <sys/stat.h>

#include "../base/base_test.h"
#include "base/status.h"
#include "lane_set.h"
#include "segment.h"

static const struct lane_geometry small = {4, 4096, 9};

struct range {
    size_t from, bytes;
};

static void check_apart(const struct range *r, size_t count, size_t end)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert(r[i].from % LANE_LINE == 0);
        ck_assert(r[i].from >= sizeof(struct segment_control) && r[i].from + r[i].bytes <= end);
        for (size_t k = 0; k < i; k++)
            ck_assert(r[i].from + r[i].bytes <= r[k].from || r[k].from + r[k].bytes <= r[i].from);
    }
}

START_TEST(lanes_lie_apart_and_inside)
{
    static const int sizes[] = {2, 3, 7};
    static const struct lane_geometry geometries[] = {{2, 64, 0}, {8, 65536, 1}, {64, 4096 - 192, 2}};
    for (int s = 0; s < 3; s++)
        for (int k = 0; k < 3; k++) {
            const struct lane_geometry *g = &geometries[k];
            struct range r[2 * (2 + 3 * 7)];
            size_t n = 0;
            int size = sizes[s];
            struct lane_places p = lane_places_of(g, size);
            for (int wide = 0; wide < 2; wide++)
                for (int channel = 0; channel < (wide ? 2 : 3); channel++)
                    for (int c = 0; c < (wide ? 1 : size); c++) {
                        size_t head = lane_place_head(&p, size, wide != 0, channel, c);
                        size_t bytes = lane_head_bytes(g, wide ? (uint32_t)size - 1 : 1);
                        ck_assert(head + bytes <= p.backed);
                        r[n++] = (struct range){head, bytes};
                        size_t payload = lane_place_payload(&p, size, wide != 0, channel, c);
                        ck_assert(payload % 4096 == 0 && payload >= p.backed);
                        r[n++] = (struct range){payload, lane_payload_bytes(g)};
                    }
            check_apart(r, n, p.bytes);
        }
}
END_TEST

START_TEST(slots_do_not_share_cache_sets)
{
    static const size_t sizes[] = {64, 4096 - 192, 4096, 65536, 1 << 20};
    for (int i = 0; i < 5; i++) {
        struct lane_geometry g = {2, sizes[i], 0};
        size_t stride = lane_payload_bytes(&g) / 2;
        ck_assert(stride >= sizes[i] && stride % LANE_LINE == 0 && stride % 4096 != 0);
    }
}
END_TEST

START_TEST(a_rank_alone_has_only_the_lane_to_itself)
{
    struct lane_set *set;
    ck_assert_int_eq(lane_set_create(&set, 0, 1, &small), QUIRE_OK);
    ck_assert_ptr_eq(set->segment, NULL);
    ck_assert_ptr_ne(set->out_pair[2][0].slots, NULL);
    ck_assert_ptr_eq(set->out_pair[0][0].slots, NULL);
    ck_assert_ptr_eq(set->out_wide[0].slots, NULL);
    ck_assert_int_eq(lane_check(&set->out_pair[2][0]), QUIRE_OK);
    lane_set_destroy(set);
    lane_set_destroy(NULL);
}
END_TEST

START_TEST(a_payload_is_backed_when_its_lane_first_sends)
{
    struct lane_set *set;
    struct stat before, after, again;
    ck_assert_int_eq(lane_set_create(&set, 1, 3, &small), QUIRE_OK);
    struct lane *lane = &set->out_pair[0][2];
    ck_assert(!lane->reserved);
    ck_assert_int_eq(fstat(set->segment->fd, &before), 0);
    ck_assert_uint_eq((size_t)before.st_blocks * 512, lane_places_of(&small, 3).backed);
    ck_assert_int_eq(lane_reserve(lane), QUIRE_OK);
    ck_assert_int_eq(fstat(set->segment->fd, &after), 0);
    ck_assert((size_t)(after.st_blocks - before.st_blocks) * 512 >= lane_payload_bytes(&small));
    ck_assert(lane->reserved && !set->out_pair[0][0].reserved && !set->out_wide[0].reserved);
    ck_assert_int_eq(lane_reserve(lane), QUIRE_OK);
    ck_assert_int_eq(fstat(set->segment->fd, &again), 0);
    ck_assert_int_eq(again.st_blocks, after.st_blocks);
    lane_set_destroy(set);
}
END_TEST

START_TEST(a_peer_that_maps_the_segment_finds_its_lanes_and_bells)
{
    enum { SIZE = 3 };
    struct lane_set *set[SIZE];
    for (int r = 0; r < SIZE; r++)
        ck_assert_int_eq(lane_set_create(&set[r], r, SIZE, &small), QUIRE_OK);
    for (int r = 0; r < SIZE; r++)
        for (int p = 0; p < SIZE; p++)
            if (p != r)
                lane_set_map_incoming(set[r], p, set[p]->segment->base, &set[p]->segment->control->bell);
    for (int from = 0; from < SIZE; from++) {
        struct op_name name = {.sequence = 40 + (uint64_t)from};
        memset(lane_fill(&set[from]->out_wide[1], 8), from, 8);
        lane_publish(&set[from]->out_wide[1], &name, 8);
        for (int to = 0; to < SIZE; to++) {
            if (to == from)
                continue;
            struct lane *out = &set[from]->out_pair[2][to], *in = &set[to]->in_pair[2][from];
            name.count = (uint64_t)to;
            memset(lane_fill(out, 8), 16 * from + to, 8);
            lane_publish(out, &name, 8);
            ck_assert_ptr_eq(out->bell[0], &set[to]->segment->control->bell);
            ck_assert_ptr_eq(in->bell[0], &set[from]->segment->control->bell);
            ck_assert_ptr_eq(set[from]->out_wide[1].bell[lane_set_consumer(set[from], to)], out->bell[0]);
            ck_assert(in->peer == from && out->peer == to && !in->wide && in->channel == 2);
        }
    }
    for (int to = 0; to < SIZE; to++)
        for (int from = 0; from < SIZE; from++) {
            if (to == from)
                continue;
            struct lane *wide = &set[to]->in_wide[1][from], *pair = &set[to]->in_pair[2][from];
            const struct lane_slot *w = lane_peek(wide), *p = lane_peek(pair);
            ck_assert(w != NULL && p != NULL);
            ck_assert_uint_eq(w->name.sequence, 40 + (uint64_t)from);
            ck_assert_int_eq(*(const uint8_t *)lane_data(wide, w), from);
            ck_assert_uint_eq(p->name.count, (uint64_t)to);
            ck_assert_int_eq(*(const uint8_t *)lane_data(pair, p), 16 * from + to);
            ck_assert_ptr_eq(lane_peek(&set[to]->in_wide[0][from]), NULL);
            ck_assert_ptr_eq(lane_peek(&set[to]->in_pair[1][from]), NULL);
            ck_assert(!lane_all_released(&set[from]->out_wide[1], 1));
            lane_release(wide);
            lane_release(pair);
        }
    for (int r = 0; r < SIZE; r++)
        ck_assert(lane_all_released(&set[r]->out_wide[1], 1));
    for (int r = 0; r < SIZE; r++)
        lane_set_destroy(set[r]);
}
END_TEST

START_TEST(shapes_without_a_layout_are_refused)
{
    static const struct lane_geometry bad[] = {{0, 4096, 0},   {1, 4096, 0}, {3, 4096, 0},
                                               {128, 4096, 0}, {8, 0, 0},    {8, 100, 0}};
    struct lane_set *set = NULL;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_int_eq(lane_set_create(&set, 0, 2, &bad[i]), QUIRE_ERR_INVALID_ARGUMENT);
    ck_assert_int_eq(lane_set_create(&set, 2, 2, &small), QUIRE_ERR_INTERNAL);
    ck_assert_int_eq(lane_set_create(&set, 0, 0, &small), QUIRE_ERR_INTERNAL);
    /* Sums that would wrap to something small. */
    static const struct lane_geometry huge[] = {
        {64, SIZE_MAX - 63, 0}, {64, (size_t)1 << 58, 0}, {2, (size_t)1 << 62, 0}};
    for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
        ck_assert_int_eq(lane_set_create(&set, 0, INT_MAX, &huge[i]), QUIRE_ERR_RESOURCE);
        ck_assert(strstr(status_text_last(), "addressed") != NULL);
        ck_assert_int_eq(lane_set_create(&set, 0, 2, &huge[i]), QUIRE_ERR_RESOURCE);
    }
    ck_assert_ptr_eq(set, NULL);
}
END_TEST

BASE_TEST_MAIN("lane_set", lanes_lie_apart_and_inside, slots_do_not_share_cache_sets,
               a_rank_alone_has_only_the_lane_to_itself, a_payload_is_backed_when_its_lane_first_sends,
               a_peer_that_maps_the_segment_finds_its_lanes_and_bells, shapes_without_a_layout_are_refused)
