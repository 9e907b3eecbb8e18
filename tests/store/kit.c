/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One op at a time, and memory that is freed at the end of a test. */

#include "store/kit.h"

#include <stdlib.h>
#include <string.h>

kit k;

typedef struct block {
    struct block *next;
    max_align_t data[];
} block;

static block *blocks;

static void *kit_room(fk_store_op *op, size_t size)
{
    (void)op;
    if (k.room_left == 0) return NULL;
    if (k.room_left != SIZE_MAX) k.room_left--;
    block *made = malloc(sizeof *made + size);
    CHECK(made != NULL);
    made->next = blocks;
    blocks = made;
    return made->data;
}

static void kit_put_key(fk_store_op *op, fk_str key)
{
    char *copy = kit_room(op, key.len + 1);
    CHECK(k.keys < sizeof k.key / sizeof k.key[0]);
    memcpy(copy, key.ptr, key.len);
    k.key[k.keys++] = (fk_str){ copy, key.len };
}

fk_store *kit_open(bool is_state)
{
    fk_store *store = NULL;
    const char *why = NULL;
    CHECK_OK(fk_store_open(fk_str_of(kit_url()), NULL, is_state, &k.r.port, &store, &why));
    CHECK(why == NULL);
    return store;
}

void kit_close(fk_store *store)
{
    store->ops->close(store);
}

void kit_begin(void)
{
    kit_clean();
    rig_init(&k.r);
    k.r.is_real_time = true;
    k.room_left = SIZE_MAX;
    k.keys = 0;
    k.a = kit_open(false);
    k.b = kit_open(true);
}

void kit_end(void)
{
    kit_close(k.a);
    kit_close(k.b);
    CHECK_U64(atomic_load(&k.r.bytes), 0);
    while (blocks != NULL) {
        block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
    kit_clean();
}

/* One handle at a time: what is only in memory stays as well. */
void kit_reopen(void)
{
    kit_close(k.a);
    k.a = kit_open(false);
    kit_close(k.b);
    k.b = kit_open(true);
}

fk_store_op kit_op(fk_store_verb verb)
{
    return (fk_store_op){ .verb = verb,
                          .room = kit_room,
                          .put_key = kit_put_key,
                          .verdict = FK_VERDICT_UNKNOWN,
                          .err = FK_E_STATE };
}

void kit_do(fk_store *store, fk_store_op *op)
{
    fk_store_op *const ops[] = { op };
    fk_store_apply(store, ops, 1);
}

fk_store_op kit_join(fk_store *store, const char *id, unsigned ttl_ms)
{
    static const fk_str kinds[] = { { "account", 7 }, { "bank", 4 } };
    fk_store_op op = kit_op(FK_STORE_JOIN);
    op.member = (fk_member){ .id = fk_str_of(id),
                             .address = FK_STR("fraktor.tcp://s@127.0.0.1:1"),
                             .kinds = kinds,
                             .kind_count = 2,
                             .weight = 3,
                             .status = FK_MEMBER_UP };
    op.ttl = FK_MILLIS(ttl_ms);
    op.strategy = "rendezvous";
    op.slots = 1024;
    kit_do(store, &op);
    return op;
}

fk_store_op kit_member(fk_store *store, fk_store_verb verb, const char *id, uint64_t incarnation)
{
    fk_store_op op = kit_op(verb);
    op.member.id = fk_str_of(id);
    op.member.incarnation = incarnation;
    op.ttl = FK_MILLIS(KIT_TTL);
    kit_do(store, &op);
    return op;
}

fk_store_op kit_view(fk_store *store, uint64_t known)
{
    fk_store_op op = kit_op(FK_STORE_VIEW);
    op.version = known;
    kit_do(store, &op);
    return op;
}

fk_store_op kit_claim(fk_store *store, fk_store_verb verb, const char *id, uint64_t incarnation,
                      fk_slot_claim *claim)
{
    fk_store_op op = kit_op(verb);
    op.member.id = fk_str_of(id);
    op.member.incarnation = incarnation;
    op.kind = FK_STR("account");
    op.claims = claim;
    op.claim_count = 1;
    kit_do(store, &op);
    return op;
}

uint64_t kit_acquire(fk_store *store, const char *id, uint64_t incarnation, uint32_t slot)
{
    fk_slot_claim claim = { .slot = slot };
    fk_store_op op = kit_claim(store, FK_STORE_ACQUIRE, id, incarnation, &claim);
    CHECK_DONE(op);
    return claim.epoch;
}

fk_fence kit_fence(uint64_t epoch, const char *holder, uint64_t incarnation)
{
    return (fk_fence){ epoch, fk_str_of(holder), incarnation };
}

static fk_store_op kit_grain(fk_store_verb verb, const char *key, fk_fence fence)
{
    fk_store_op op = kit_op(verb);
    op.key = (fk_grain_key){ .kind = FK_STR("account"), .key = fk_str_of(key) };
    op.fence = fence;
    return op;
}

fk_store_op kit_load(fk_store *store, const char *key, fk_fence fence)
{
    fk_store_op op = kit_grain(FK_STORE_LOAD, key, fence);
    kit_do(store, &op);
    return op;
}

/* The version is the request's number, too. */
fk_store_op kit_put(fk_store *store, const char *key, fk_fence fence, uint64_t version,
                    const char *snapshot)
{
    fk_store_op op = kit_grain(FK_STORE_STORE, key, fence);
    op.version = version;
    op.request[0] = version;
    op.request[1] = 77;
    op.record.snapshot = fk_str_of(snapshot);
    op.record.pid = FK_STR("/user/a");
    op.record.dedup = FK_STR("answers");
    kit_do(store, &op);
    return op;
}

fk_store_op kit_remove(fk_store *store, const char *key, fk_fence fence, uint64_t version)
{
    fk_store_op op = kit_grain(FK_STORE_REMOVE, key, fence);
    op.version = version;
    kit_do(store, &op);
    return op;
}

fk_store_op kit_peek(fk_store *store, const char *key)
{
    fk_store_op op = kit_grain(FK_STORE_PEEK, key, kit_fence(0, "", 0));
    kit_do(store, &op);
    return op;
}
