/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases of every store: members, their leases, and the view. */

#include <string.h>

#include "store/kit.h"

TEST(members_incarnations_go_on_for_ever)
{
    kit_begin();
    for (uint64_t i = 1; i <= 3; i++) CHECK_U64(kit_join(k.a, "n1", KIT_TTL).member.incarnation, i);
    CHECK_DONE(kit_member(k.a, FK_STORE_LEAVE, "n1", 3));
    CHECK_U64(kit_join(k.b, "n1", 20).member.incarnation, 4);
    kit_pass(k.a, 60);
    CHECK_U64(kit_join(k.a, "n2", KIT_TTL).member.incarnation, 1);
    kit_reopen();
    CHECK_U64(kit_join(k.a, "n1", KIT_TTL).member.incarnation, 5);
    kit_end();
}

TEST(views_are_not_for_who_has_another_strategy_or_number_of_slots)
{
    kit_begin();
    fk_store_op view = kit_op(FK_STORE_VIEW);
    view.strategy = "modulo";
    view.slots = 2048;
    kit_do(k.a, &view);
    CHECK_DONE(view); /* nobody has decided yet */
    fk_store_op op = kit_join(k.a, "n1", KIT_TTL);
    CHECK_DONE(op);
    view.slots = op.slots;
    kit_do(k.b, &view);
    CHECK_REFUSED(view, FK_E_MISMATCH);
    view.strategy = op.strategy;
    kit_do(k.b, &view);
    CHECK_DONE(view);
    view.slots = op.slots * 2;
    view.version = op.version; /* nor that there is nothing new */
    kit_do(k.b, &view);
    CHECK_REFUSED(view, FK_E_MISMATCH);
    view.strategy = NULL; /* does not say */
    kit_do(k.b, &view);
    CHECK_DONE(view);
    kit_end();
}

TEST(members_of_another_strategy_or_number_of_slots_are_refused)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    fk_store_op op = kit_join(k.a, "n2", KIT_TTL);
    uint64_t version = op.version;
    op.strategy = "modulo";
    kit_do(k.b, &op);
    CHECK_REFUSED(op, FK_E_MISMATCH);
    op.strategy = "rendezvous";
    op.slots = 2048;
    kit_do(k.b, &op);
    CHECK_REFUSED(op, FK_E_MISMATCH);
    CHECK_U64(kit_view(k.a, 0).version, version); /* nothing was done */
    op.slots = 1000;
    kit_do(k.b, &op);
    CHECK_REFUSED(op, FK_E_INVALID);
    kit_end();
}

TEST(members_that_leave_or_expire_never_come_back)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", 40));
    CHECK_DONE(kit_join(k.a, "n2", KIT_TTL));
    CHECK_DONE(kit_member(k.a, FK_STORE_RENEW, "n2", 1));
    kit_pass(k.a, 100);
    CHECK_REFUSED(kit_member(k.a, FK_STORE_RENEW, "n1", 1), FK_E_FENCED);
    CHECK_REFUSED(kit_member(k.b, FK_STORE_UPDATE, "n1", 1), FK_E_FENCED);
    CHECK_REFUSED(kit_member(k.b, FK_STORE_RENEW, "n1", 1), FK_E_FENCED);
    CHECK_REFUSED(kit_member(k.b, FK_STORE_RENEW, "n2", 2), FK_E_FENCED);
    CHECK_DONE(kit_member(k.a, FK_STORE_LEAVE, "n1", 1));
    CHECK_DONE(kit_member(k.a, FK_STORE_LEAVE, "n2", 1));
    CHECK_DONE(kit_member(k.a, FK_STORE_LEAVE, "n2", 1));
    CHECK_REFUSED(kit_member(k.b, FK_STORE_RENEW, "n2", 1), FK_E_FENCED);
    kit_end();
}

TEST(members_with_a_successor_go_on_until_their_lease_is_over)
{
    kit_begin();
    fk_store_op older = kit_join(k.a, "n1", KIT_TTL);
    CHECK_U64(kit_acquire(k.a, "n1", 1, 7), 1);
    CHECK_U64(kit_join(k.b, "n1", 200).member.incarnation, 2);
    CHECK_REFUSED(kit_member(k.a, FK_STORE_RENEW, "n1", 1), FK_E_FENCED);
    CHECK_REFUSED(kit_member(k.a, FK_STORE_UPDATE, "n1", 1), FK_E_FENCED);
    CHECK_U64(kit_acquire(k.a, "n1", 1, 7), 1); /* it has it still */
    kit_do(k.a, &older);                        /* joins again, as who it was */
    CHECK_REFUSED(older, FK_E_NAME_TAKEN);
    CHECK_U64(older.member.incarnation, 1);
    CHECK_DONE(kit_member(k.b, FK_STORE_RENEW, "n1", 2));
    CHECK_DONE(kit_member(k.b, FK_STORE_LEAVE, "n1", 2));
    CHECK_REFUSED(kit_member(k.a, FK_STORE_RENEW, "n1", 1), FK_E_FENCED); /* not even now */
    kit_do(k.a, &older);
    CHECK_DONE(older);
    CHECK_U64(older.member.incarnation, 3);
    kit_end();
}

TEST(members_that_renew_stay)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", 300));
    fk_store_op op = kit_op(FK_STORE_RENEW);
    op.member.id = FK_STR("n1");
    op.member.incarnation = 1;
    op.ttl = FK_MILLIS(300);
    for (int i = 0; i < 6; i++) {
        kit_pass(k.a, 100);
        kit_do(k.a, &op);
        CHECK_DONE(op);
    }
    op.ttl = FK_MILLIS(1); /* one that is shorter takes nothing away */
    kit_do(k.a, &op);
    kit_pass(k.a, 20);
    kit_do(k.a, &op);
    CHECK_DONE(op);
    kit_end();
}

TEST(view_is_filled_only_when_it_is_another)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n2", KIT_TTL));
    fk_store_op joined = kit_join(k.a, "n1", KIT_TTL);
    fk_store_op op = kit_view(k.b, 0);
    CHECK_DONE(op);
    CHECK_U64(op.version, joined.version);
    CHECK_U64(op.view.version, joined.version);
    CHECK_U64(op.view.count, 2);
    const fk_member *m = op.view.members;
    CHECK_TEXT(m[0].id, "n1");
    CHECK_TEXT(m[1].id, "n2");
    CHECK_TEXT(m[0].address, "fraktor.tcp://s@127.0.0.1:1");
    CHECK_U64(m[0].kind_count, 2);
    CHECK_TEXT(m[0].kinds[0], "account");
    CHECK_TEXT(m[0].kinds[1], "bank");
    CHECK_U64(m[0].weight, 3);
    CHECK_U64(m[0].status, FK_MEMBER_UP);
    CHECK_U64(m[0].incarnation, 1);
    op = kit_view(k.b, op.version);
    CHECK_DONE(op);
    CHECK_U64(op.version, joined.version);
    CHECK(op.view.members == NULL);
    kit_end();
}

TEST(view_has_a_new_version_with_every_change)
{
    kit_begin();
    fk_store_op op = kit_join(k.a, "n1", KIT_TTL);
    uint64_t version = op.version;
    CHECK_DONE(kit_member(k.a, FK_STORE_RENEW, "n1", 1));
    CHECK_U64(kit_view(k.b, 0).version, version); /* a renewal is none */
    op.verb = FK_STORE_UPDATE;
    op.member.status = FK_MEMBER_DRAINING;
    op.member.kind_count = 0;
    kit_do(k.a, &op);
    CHECK_DONE(op);
    fk_store_op seen = kit_view(k.b, version);
    CHECK(seen.version > version);
    CHECK_U64(seen.view.members[0].status, FK_MEMBER_DRAINING);
    CHECK_U64(seen.view.members[0].kind_count, 0);
    version = seen.version;
    CHECK_DONE(kit_join(k.a, "n2", 40));
    CHECK_U64(kit_view(k.b, version).view.count, 2);
    version = kit_view(k.b, 0).version;
    kit_pass(k.a, 100);
    CHECK_DONE(kit_member(k.a, FK_STORE_RENEW, "n1", 1)); /* who finds that n2 is down */
    seen = kit_view(k.b, version);
    CHECK(seen.version > version);
    CHECK_U64(seen.view.count, 1);
    CHECK_TEXT(seen.view.members[0].id, "n1");
    version = seen.version;
    CHECK_DONE(kit_member(k.a, FK_STORE_LEAVE, "n1", 1));
    seen = kit_view(k.b, version);
    CHECK(seen.version > version);
    CHECK_U64(seen.view.count, 0);
    version = seen.version;
    CHECK_DONE(kit_member(k.a, FK_STORE_LEAVE, "n1", 1));
    CHECK_U64(kit_view(k.b, 0).version, version);
    kit_end();
}

TEST(view_has_of_one_id_only_the_newest)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    fk_store_op op = kit_view(k.b, 0);
    CHECK_U64(op.view.count, 1);
    CHECK_U64(op.view.members[0].incarnation, 2);
    CHECK_DONE(kit_member(k.a, FK_STORE_LEAVE, "n1", 2));
    CHECK_U64(kit_view(k.b, 0).view.count, 0);
    kit_end();
}

TEST(stamp_changes_with_the_members)
{
    kit_begin();
    uint64_t a = k.a->ops->stamp(k.a);
    uint64_t b = k.b->ops->stamp(k.b);
    CHECK_U64(k.a->ops->stamp(k.a), a);
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK(k.a->ops->stamp(k.a) != a);
    CHECK(k.b->ops->stamp(k.b) != b);
    a = k.a->ops->stamp(k.a);
    b = k.b->ops->stamp(k.b);
    CHECK_DONE(kit_member(k.b, FK_STORE_LEAVE, "n1", 1));
    CHECK(k.a->ops->stamp(k.a) != a);
    CHECK(k.b->ops->stamp(k.b) != b);
    b = k.b->ops->stamp(k.b);
    CHECK_U64(k.b->ops->stamp(k.b), b);
    kit_end();
}

TEST(view_without_room_is_refused)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    size_t fails = 0;
    for (size_t room = 0;; room++, fails++) {
        k.room_left = room;
        fk_store_op op = kit_view(k.a, 0);
        k.room_left = SIZE_MAX;
        if (op.verdict == FK_VERDICT_OK) break;
        CHECK_REFUSED(op, FK_E_NOMEM);
        CHECK(op.view.members == NULL);
    }
    CHECK(fails >= 3);
    kit_end();
}

TEST(members_that_make_no_sense_are_refused)
{
    kit_begin();
    fk_store_op good = kit_join(k.a, "n1", KIT_TTL);
    fk_store_op op = good;
    op.member.id.len = 0;
    kit_do(k.a, &op);
    CHECK_REFUSED(op, FK_E_INVALID);
    op = good;
    op.ttl = 0;
    kit_do(k.a, &op);
    CHECK_REFUSED(op, FK_E_INVALID);
    op = good;
    op.member.status = FK_MEMBER_DOWN;
    kit_do(k.a, &op);
    CHECK_REFUSED(op, FK_E_INVALID);
    op = good;
    op.strategy = NULL;
    kit_do(k.a, &op);
    CHECK_REFUSED(op, FK_E_INVALID);
    op = good;
    op.verb = FK_STORE_VERB_COUNT;
    kit_do(k.a, &op);
    CHECK_REFUSED(op, FK_E_INVALID);
    kit_end();
}
