/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases of every store: whose write of a grain counts. */

#include <string.h>

#include "store/kit.h"

TEST(i5_stores_are_fenced_and_versions_go_up_by_one)
{
    kit_begin();
    fk_fence one = kit_fence(3, "n1", 1), two = kit_fence(4, "n2", 1);
    fk_store_op op = kit_load(k.b, "a", one);
    CHECK_DONE(op);
    CHECK_U64(op.record.version, 0);
    CHECK(op.record.snapshot.ptr == NULL);
    for (uint64_t v = 0; v < 3; v++) {
        op = kit_put(k.b, "a", one, v, "state");
        CHECK_DONE(op);
        CHECK_U64(op.record.version, v + 1);
    }
    op = kit_put(k.b, "a", one, 1, "old");
    CHECK_REFUSED(op, FK_E_CONFLICT);
    CHECK_U64(op.record.version, 3);
    CHECK_REFUSED(kit_put(k.b, "a", one, 7, "early"), FK_E_CONFLICT);
    op = kit_load(k.a, "a", two);
    CHECK_DONE(op);
    CHECK_U64(op.record.version, 3);
    CHECK_TEXT(op.record.snapshot, "state");
    CHECK_TEXT(op.record.dedup, "answers");
    CHECK_TEXT(op.record.pid, "/user/a");
    op = kit_put(k.b, "a", one, 3, "stale");
    CHECK_REFUSED(op, FK_E_FENCED);
    CHECK_U64(op.epoch, 4);
    CHECK_DONE(kit_put(k.a, "a", two, 3, "new"));
    kit_reopen();
    op = kit_peek(k.a, "a");
    CHECK_DONE(op);
    CHECK_TEXT(op.record.snapshot, "new");
    CHECK_U64(op.record.version, 4);
    CHECK_U64(op.record.fence.epoch, 4);
    CHECK_TEXT(op.record.fence.holder, "n2");
    kit_end();
}

TEST(load_fences_out_lower_epochs_and_equal_ones_of_others)
{
    kit_begin();
    CHECK_DONE(kit_load(k.a, "a", kit_fence(5, "n1", 2)));
    fk_store_op op = kit_load(k.b, "a", kit_fence(4, "n1", 2));
    CHECK_REFUSED(op, FK_E_FENCED);
    CHECK_U64(op.epoch, 5);
    CHECK_REFUSED(kit_load(k.b, "a", kit_fence(5, "n2", 2)), FK_E_FENCED);
    CHECK_REFUSED(kit_load(k.b, "a", kit_fence(5, "n1", 3)), FK_E_FENCED);
    CHECK_REFUSED(kit_put(k.b, "a", kit_fence(5, "n2", 2), 0, "x"), FK_E_FENCED);
    CHECK_REFUSED(kit_put(k.b, "a", kit_fence(5, "n1", 1), 0, "x"), FK_E_FENCED);
    CHECK_REFUSED(kit_put(k.b, "a", kit_fence(6, "n1", 2), 0, "x"), FK_E_FENCED); /* not loaded */
    CHECK_DONE(kit_load(k.b, "a", kit_fence(5, "n1", 2)));
    CHECK_DONE(kit_put(k.b, "a", kit_fence(5, "n1", 2), 0, "x"));
    CHECK_REFUSED(kit_put(k.b, "b", kit_fence(5, "n1", 2), 0, "x"), FK_E_FENCED); /* no row */
    kit_end();
}

TEST(the_same_store_again_is_the_same)
{
    kit_begin();
    fk_fence one = kit_fence(1, "n1", 1), two = kit_fence(2, "n1", 1);
    CHECK_DONE(kit_load(k.a, "a", one));
    CHECK_DONE(kit_put(k.a, "a", one, 0, "s1"));
    fk_store_op op = kit_put(k.a, "a", one, 0, "s1");
    CHECK_DONE(op);
    CHECK_U64(op.record.version, 1);
    op.request[1]++;
    kit_do(k.a, &op);
    CHECK_REFUSED(op, FK_E_CONFLICT); /* another request */
    CHECK_DONE(kit_load(k.a, "a", two));
    CHECK_REFUSED(kit_put(k.a, "a", one, 0, "s1"), FK_E_FENCED);
    CHECK_REFUSED(kit_put(k.a, "a", two, 0, "s1"), FK_E_CONFLICT); /* another fence stored it */
    CHECK_U64(kit_peek(k.a, "a").record.version, 1);
    kit_end();
}

TEST(remove_keeps_the_fence)
{
    kit_begin();
    fk_fence one = kit_fence(1, "n1", 1), two = kit_fence(2, "n2", 1);
    CHECK_DONE(kit_remove(k.a, "a", one, 0)); /* there is nothing */
    CHECK_DONE(kit_load(k.a, "a", one));
    CHECK_DONE(kit_put(k.a, "a", one, 0, "s"));
    CHECK_DONE(kit_load(k.a, "a", two));
    CHECK_REFUSED(kit_remove(k.a, "a", one, 1), FK_E_FENCED);
    CHECK_REFUSED(kit_remove(k.a, "a", two, 2), FK_E_CONFLICT);
    CHECK_DONE(kit_remove(k.a, "a", two, 1));
    CHECK_DONE(kit_remove(k.a, "a", two, 1));
    CHECK_REFUSED(kit_peek(k.a, "a"), FK_E_NOT_FOUND);
    CHECK_REFUSED(kit_load(k.b, "a", one), FK_E_FENCED);
    CHECK_REFUSED(kit_put(k.b, "a", one, 0, "stale"), FK_E_FENCED);
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL)); /* purges only what is old */
    CHECK_REFUSED(kit_load(k.b, "a", one), FK_E_FENCED);
    fk_store_op op = kit_load(k.b, "a", two);
    CHECK_DONE(op);
    CHECK_U64(op.record.version, 0);
    CHECK(op.record.snapshot.ptr == NULL);
    CHECK_DONE(kit_put(k.b, "a", two, 0, "again"));
    CHECK_U64(kit_peek(k.b, "a").record.version, 1);
    kit_end();
}

TEST(peek_changes_nothing)
{
    kit_begin();
    CHECK_REFUSED(kit_peek(k.a, "a"), FK_E_NOT_FOUND);
    CHECK_DONE(kit_load(k.a, "a", kit_fence(3, "n1", 1)));
    CHECK_REFUSED(kit_peek(k.a, "a"), FK_E_NOT_FOUND); /* no state */
    CHECK_DONE(kit_put(k.a, "a", kit_fence(3, "n1", 1), 0, ""));
    fk_store_op op = kit_peek(k.b, "a");
    CHECK_DONE(op);
    CHECK(op.record.snapshot.ptr != NULL); /* empty is not none */
    CHECK_U64(op.record.snapshot.len, 0);
    op = kit_put(k.a, "a", kit_fence(3, "n1", 1), 1, "x");
    CHECK_DONE(op);
    op.version = 2;
    op.record.dedup.ptr = NULL;
    kit_do(k.a, &op);
    CHECK_REFUSED(op, FK_E_INVALID);
    op.record.dedup.len = 0;
    op.record.snapshot = (fk_str){ NULL, 0 };
    kit_do(k.a, &op);
    CHECK_DONE(op);
    CHECK(kit_peek(k.b, "a").record.snapshot.ptr == NULL);
    kit_end();
}

TEST(keys_are_any_bytes)
{
    kit_begin();
    static char large[FK_GRAIN_KEY_MAX];
    memset(large, '\'', sizeof large);
    const fk_str keys[] = { FK_STR("\0"),     FK_STR("\0\0"),         FK_STR("'"),
                            FK_STR("\"; --"), FK_STR("\xff\xfe"),     FK_STR("a\0b"),
                            FK_STR("a\0c"),   { large, sizeof large } };
    enum { KEYS = sizeof keys / sizeof keys[0] };
    for (size_t i = 0; i < KEYS; i++) {
        fk_store_op op = kit_op(FK_STORE_LOAD);
        op.key = (fk_grain_key){ .kind = FK_STR("account"), .key = keys[i] };
        op.fence = kit_fence(1, "n1", 1);
        kit_do(k.a, &op);
        CHECK_DONE(op);
        CHECK_U64(op.record.version, 0);
        op.verb = FK_STORE_STORE;
        op.record.snapshot = keys[i];
        kit_do(k.a, &op);
        CHECK_DONE(op);
    }
    for (size_t i = 0; i < KEYS; i++) {
        fk_store_op op = kit_op(FK_STORE_PEEK);
        op.key = (fk_grain_key){ .kind = FK_STR("account"), .key = keys[i] };
        kit_do(k.b, &op);
        CHECK_DONE(op);
        CHECK_U64(op.record.snapshot.len, keys[i].len);
        CHECK(memcmp(op.record.snapshot.ptr, keys[i].ptr, keys[i].len) == 0);
    }
    fk_store_op op = kit_op(FK_STORE_PEEK);
    op.key = (fk_grain_key){ .kind = FK_STR("account"), .key = { large, sizeof large + 1 } };
    kit_do(k.b, &op);
    CHECK_REFUSED(op, FK_E_INVALID);
    kit_end();
}

TEST(list_gives_keys_with_a_state_in_order)
{
    kit_begin();
    static const char *const keys[] = { "b", "a", "\xff", "ab", "c", "B" };
    fk_fence f = kit_fence(1, "n1", 1);
    for (size_t i = 0; i < 6; i++) {
        CHECK_DONE(kit_load(k.a, keys[i], f));
        CHECK_DONE(kit_put(k.a, keys[i], f, 0, "s"));
    }
    CHECK_DONE(kit_load(k.a, "loaded", f));
    CHECK_DONE(kit_remove(k.a, "c", f, 1));
    fk_store_op op = kit_op(FK_STORE_LIST);
    op.kind = FK_STR("account");
    op.limit = 3;
    kit_do(k.b, &op);
    CHECK_DONE(op);
    CHECK_U64(k.keys, 3);
    CHECK_TEXT(k.key[0], "B");
    CHECK_TEXT(k.key[1], "a");
    CHECK_TEXT(k.key[2], "ab");
    op.after = k.key[2];
    op.limit = 10;
    kit_do(k.b, &op);
    CHECK_U64(k.keys, 5);
    CHECK_TEXT(k.key[3], "b");
    CHECK_TEXT(k.key[4], "\xff");
    op.kind = FK_STR("accounu");
    op.after = FK_STR("");
    kit_do(k.b, &op);
    CHECK_DONE(op);
    CHECK_U64(k.keys, 5);
    kit_end();
}

TEST(load_without_room_changes_nothing)
{
    kit_begin();
    fk_fence one = kit_fence(1, "n1", 1);
    CHECK_DONE(kit_load(k.a, "a", one));
    CHECK_DONE(kit_put(k.a, "a", one, 0, "s"));
    for (size_t room = 0; room < 3; room++) {
        k.room_left = room;
        fk_store_op op = kit_load(k.a, "a", kit_fence(2, "n2", 1));
        k.room_left = SIZE_MAX;
        CHECK_REFUSED(op, FK_E_NOMEM);
        CHECK_DONE(kit_put(k.a, "a", one, 1 + room, "s")); /* still its own */
    }
    kit_end();
}

TEST(batch_with_refused_ops_does_the_others)
{
    kit_begin();
    fk_fence f = kit_fence(1, "n1", 1);
    CHECK_DONE(kit_load(k.a, "a", f));
    CHECK_DONE(kit_load(k.a, "b", f));
    fk_store_op a = kit_put(k.a, "a", f, 0, "1");
    fk_store_op wrong = a, fenced = a, b = a, list = kit_op(FK_STORE_LIST), again = a;
    a.version = 1;
    a.request[0] = 9;
    wrong.key.key.len = 0;
    fenced.fence.epoch = 9;
    b.key.key = FK_STR("b");
    list.kind = FK_STR("account");
    list.limit = 9;
    again.version = 2;
    fk_store_op *const ops[] = { &a, &wrong, &fenced, &b, &list, &again };
    fk_store_apply(k.a, ops, 6);
    CHECK_DONE(a);
    CHECK_REFUSED(wrong, FK_E_INVALID);
    CHECK_REFUSED(fenced, FK_E_FENCED);
    CHECK_DONE(b);
    CHECK_DONE(list);
    CHECK_U64(k.keys, 2);
    CHECK_DONE(again);
    CHECK_U64(kit_peek(k.b, "a").record.version, 3);
    CHECK_U64(kit_peek(k.b, "b").record.version, 1);
    fk_store_apply(k.a, ops, 0);
    kit_end();
}

/* Whatever cannot be allocated is refused, and nothing is lost by it. */
TEST(ops_without_memory_are_refused)
{
    kit_begin();
    fk_fence f = kit_fence(1, "n1", 1);
    for (uint64_t at = 1; at < 40; at++) {
        char key[2] = { (char)('0' + at), 0 };
        rig_fault(&k.r, at, true);
        fk_store_op joined = kit_join(k.a, key, KIT_TTL);
        fk_store_op loaded = kit_load(k.a, key, f);
        fk_store_op stored = kit_put(k.a, key, f, 0, "state");
        fk_slot_claim claim = { .slot = (uint32_t)at };
        fk_store_op claimed = kit_claim(k.a, FK_STORE_ACQUIRE, key, 1, &claim);
        rig_fault(&k.r, 0, false);
        if (joined.err != FK_OK) CHECK_REFUSED(joined, FK_E_NOMEM);
        if (joined.err == FK_OK && claimed.err != FK_OK) CHECK_REFUSED(claimed, FK_E_NOMEM);
        if (loaded.err != FK_OK) CHECK_REFUSED(loaded, FK_E_NOMEM);
        if (loaded.err == FK_OK && stored.err != FK_OK) CHECK_REFUSED(stored, FK_E_NOMEM);
        CHECK_U64(kit_peek(k.b, key).record.version, stored.err == FK_OK);
        if (joined.err != FK_OK) CHECK_DONE(kit_join(k.a, key, KIT_TTL));
    }
    kit_end();
}
