/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is sent is what arrives: every size, text, bytes, payloads. */

#include <stdlib.h>
#include <string.h>

#include "support/rig.h"

static void fill(unsigned char *bytes, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++) bytes[i] = (unsigned char)(seed * 31 + i * 7 + 1);
}

TEST(message_of_every_size_arrives_unchanged)
{
    enum { LARGEST = 200 };
    static fk_type type[LARGEST + 1];
    unsigned char bytes[LARGEST];
    rig r;
    probe p;
    rig_start(&r);
    fk_ref to = probe_spawn(&r, &p);
    for (uint32_t size = 1; size <= LARGEST; size++) {
        type[size] = (fk_type){ "sized", size, 1, NULL };
        fill(bytes, size, size);
        CHECK_OK(fk_send(r.sys, to, (fk_out){ &type[size], bytes }));
        memset(bytes, 0, sizeof(bytes)); /* copied: ours again */
        rig_run(&r);
        CHECK_U64(p.count, size);
        CHECK(p.type == &type[size]);
        CHECK_U64(p.len, size);
        fill(bytes, size, size);
        CHECK(memcmp(p.bytes, bytes, size) == 0);
    }
    rig_stop(&r);
}

static fk_err check_aligned(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    CHECK_U64((uintptr_t)msg->data % 16, 0);
    ++*(int *)state;
    return FK_OK;
}

TEST(message_bytes_are_aligned_to_sixteen)
{
    static const uint32_t SIZES[] = { 16, 32, 48, 96, 112, 160, 4096, 65536 };
    static fk_type type[8];
    unsigned char *bytes = calloc(1, 65536);
    int count = 0;
    rig r;
    fk_ref to;
    rig_start(&r);
    CHECK_OK(
        fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = check_aligned, .state = &count }, &to));
    for (int i = 0; i < 8; i++) {
        type[i] = (fk_type){ "aligned", SIZES[i], 16, NULL };
        CHECK_OK(fk_send(r.sys, to, (fk_out){ &type[i], bytes }));
    }
    rig_run(&r);
    CHECK_U64(count, 8);
    free(bytes);
    rig_stop(&r);
}

typedef struct pair {
    uint64_t a, b;
} pair;
FK_MESSAGE(pair);

static fk_err add_pair(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    uint64_t *sum = state;
    const pair *both = FK_AS(pair, msg);
    const num *one = FK_AS(num, msg);
    (void)ctx;
    CHECK((both == NULL) != (one == NULL)); /* a type matches itself only */
    *sum += both != NULL ? both->a * 1000 + both->b : one->n;
    return FK_OK;
}

TEST(message_as_tells_types_apart)
{
    uint64_t sum = 0;
    const pair constant = { 3, 4 };
    pair variable = { 5, 6 };
    rig r;
    fk_ref to;
    rig_start(&r);
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = add_pair, .state = &sum }, &to));
    CHECK_OK(fk_send(r.sys, to, FK_MSG(num, 7)));
    CHECK_OK(fk_send(r.sys, to, FK_MSG(pair, 1, 2)));
    CHECK_OK(fk_send(r.sys, to, FK_MSG(pair, .b = 9)));
    CHECK_OK(fk_send(r.sys, to, FK_MSG_AT(pair, &constant)));
    CHECK_OK(fk_send(r.sys, to, FK_MSG_AT(pair, &variable)));
    rig_run(&r);
    CHECK_U64(sum, 7 + 1002 + 9 + 3004 + 5006);
    rig_stop(&r);
}

static void check_text(rig *r, fk_ref to, probe *p, size_t len)
{
    char *text = malloc(len + 1);
    fill((unsigned char *)text, len, (unsigned)len);
    size_t before = p->count;
    CHECK_OK(fk_send(r->sys, to, FK_TEXT_AT(((fk_str){ text, len }))));
    rig_run(r);
    CHECK_U64(p->count, before + 1);
    CHECK(p->type == &fk_type_text);
    CHECK_U64(p->len, len);
    CHECK(memcmp(p->bytes, text, len < sizeof(p->bytes) ? len : sizeof(p->bytes)) == 0);
    CHECK_OK(fk_send(r->sys, to, FK_BYTES_AT(((fk_str){ text, len }))));
    rig_run(r);
    CHECK_U64(p->count, before + 2);
    CHECK(p->type == &fk_type_bytes);
    CHECK_U64(p->len, len);
    free(text);
}

TEST(message_text_of_any_length_arrives)
{
    static const size_t LENS[] = { 0,   1,   7,    8,    9,    15,    16,    17,    31,     32,
                                   33,  63,  64,   65,   95,   96,    97,    127,   128,    129,
                                   255, 256, 8191, 8192, 8193, 65535, 65536, 65537, 1000000 };
    rig r;
    probe p;
    rig_start(&r);
    fk_ref to = probe_spawn(&r, &p);
    for (size_t i = 0; i < sizeof(LENS) / sizeof(LENS[0]); i++) check_text(&r, to, &p, LENS[i]);
    CHECK_OK(fk_send(r.sys, to, FK_TEXT("hello")));
    rig_run(&r);
    CHECK_U64(p.len, 5);
    CHECK(memcmp(p.bytes, "hello", 5) == 0);
    CHECK_OK(fk_send(r.sys, to, FK_TEXT_AT(((fk_str){ NULL, 0 }))));
    rig_run(&r);
    CHECK_U64(p.len, 0);
    rig_stop(&r);
}

static fk_err check_address(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const void **expected = state;
    (void)ctx;
    CHECK(msg->data == *expected);
    *expected = NULL;
    return FK_OK;
}

TEST(payload_moves_without_copying)
{
    const void *expected = NULL;
    fk_payload *payload;
    rig r;
    fk_ref to;
    rig_start(&r);
    CHECK_OK(fk_spawn(r.sys, FK_STR(""),
                      &(fk_props){ .receive = check_address, .state = &expected }, &to));
    static const size_t LENS[] = { 0, 1, 100, 10000, 3000000 };
    for (size_t i = 0; i < sizeof(LENS) / sizeof(LENS[0]); i++) {
        CHECK_OK(fk_payload_create(r.sys, NULL, LENS[i], &payload));
        CHECK_U64(fk_payload_len(payload), LENS[i]);
        memset(fk_payload_data(payload), 1, LENS[i]);
        expected = fk_payload_data(payload);
        CHECK_U64((uintptr_t)expected % 16, 0);
        CHECK_OK(fk_send(r.sys, to, FK_MSG_PAYLOAD(payload)));
        rig_run(&r);
        CHECK(expected == NULL);
    }
    rig_stop(&r);
}

static _Atomic int payload_drops;

static void count_drop(void *message)
{
    CHECK_U64(*(unsigned char *)message, 0x5a);
    atomic_fetch_add(&payload_drops, 1);
}

static const fk_type counted = { "counted", 0, 1, count_drop };

static fk_payload *counted_payload(rig *r)
{
    fk_payload *payload = NULL;
    atomic_store(&payload_drops, 0);
    CHECK_OK(fk_payload_create(r->sys, &counted, 500, &payload));
    memset(fk_payload_data(payload), 0x5a, 500);
    return payload;
}

TEST(payload_shared_is_dropped_with_the_last_share)
{
    rig r;
    probe p, q;
    rig_start(&r);
    fk_ref a = probe_spawn(&r, &p), b = probe_spawn(&r, &q);
    fk_payload *payload = counted_payload(&r);
    for (int i = 0; i < 10; i++) {
        fk_ref to = i % 2 != 0 ? a : b;
        CHECK_OK(fk_send(r.sys, to, FK_MSG_PAYLOAD(fk_payload_share(payload))));
    }
    rig_run(&r);
    CHECK_U64(p.count + q.count, 10);
    CHECK(p.type == &counted);
    CHECK_U64(p.len, 500);
    CHECK_U64(p.bytes[255], 0x5a);
    CHECK_U64(atomic_load(&payload_drops), 0);
    fk_payload_put(payload);
    CHECK_U64(atomic_load(&payload_drops), 1);
    fk_payload_put(NULL);
    rig_stop(&r);
}

TEST(payload_that_is_not_sent_is_dropped_by_put)
{
    rig r;
    rig_start(&r);
    fk_payload *payload = counted_payload(&r);
    fk_payload_share(payload);
    fk_payload_put(payload);
    CHECK_U64(atomic_load(&payload_drops), 0);
    fk_payload_put(payload);
    CHECK_U64(atomic_load(&payload_drops), 1);
    rig_stop(&r);
}

TEST(payload_to_nobody_is_a_dead_letter_with_its_own_type)
{
    rig r;
    rig_start(&r);
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG_PAYLOAD(counted_payload(&r))));
    CHECK_U64(r.letters.count, 1);
    CHECK(r.letters.last.type == &counted);
    CHECK_U64(r.letters.last.len, 500);
    CHECK_U64(atomic_load(&payload_drops), 1);
    rig_stop(&r);
}

TEST(payload_sent_to_another_system_goes_home)
{
    for (int direct = 0; direct < 2; direct++) {
        rig a, b;
        probe p;
        rig_start_with(&a, (fk_system_config){ .pools_malloc = direct != 0 });
        rig_start_with(&b, (fk_system_config){ .pools_malloc = direct != 0 });
        fk_ref to = probe_spawn(&b, &p);
        fk_payload *payload = counted_payload(&a);
        CHECK_OK(fk_send(b.sys, to, FK_MSG_PAYLOAD(fk_payload_share(payload))));
        CHECK_OK(fk_send(b.sys, FK_REF_NONE, FK_MSG_PAYLOAD(payload)));
        rig_run(&b);
        CHECK_U64(p.count, 1);
        CHECK_U64(p.bytes[255], 0x5a);
        CHECK_U64(atomic_load(&payload_drops), 1);
        rig_stop(&a); /* each has what is its own */
        rig_stop(&b);
    }
}

TEST(payload_too_large_to_count_is_refused)
{
    fk_payload *payload = NULL;
    rig r;
    rig_start(&r);
    CHECK_ERR(fk_payload_create(r.sys, NULL, SIZE_MAX, &payload), FK_E_LIMIT);
    CHECK(payload == NULL);
    CHECK_ERR(fk_payload_create(NULL, NULL, 1, &payload), FK_E_INVALID);
    CHECK_ERR(fk_payload_create(r.sys, NULL, 1, NULL), FK_E_INVALID);
    rig_stop(&r);
}

TEST(message_sender_is_none_from_outside_and_as_given_by_send_from)
{
    rig r;
    probe p, q;
    rig_start(&r);
    fk_ref a = probe_spawn(&r, &p), b = probe_spawn(&r, &q);
    CHECK_OK(fk_send(r.sys, a, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK(fk_ref_is_none(p.sender));
    CHECK(fk_ref_equal(p.sender, FK_REF_NONE));
    CHECK_OK(fk_send_from(r.sys, a, b, FK_MSG(num, 2)));
    rig_run(&r);
    CHECK(fk_ref_equal(p.sender, b));
    rig_stop(&r);
}

TEST(message_order_of_one_sender_is_kept)
{
    rig r;
    probe p;
    rig_start(&r);
    fk_ref to = probe_spawn(&r, &p);
    for (uint64_t i = 0; i < 1000; i++) CHECK_OK(fk_send(r.sys, to, FK_MSG(num, i)));
    rig_run(&r);
    CHECK_U64(p.count, 1000);
    for (uint64_t i = 0; i < 1000; i++) CHECK_U64(p.n[i], i);
    rig_stop(&r);
}
