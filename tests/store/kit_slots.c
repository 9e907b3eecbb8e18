/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases of every store: who holds a slot, and under which epoch. */

#include <string.h>

#include "store/kit.h"

TEST(i1_epochs_increase_for_ever)
{
    kit_begin();
    uint64_t last = 0;
    for (int round = 0; round < 3; round++) {
        uint64_t inc = kit_join(k.a, "n1", KIT_TTL).member.incarnation;
        fk_slot_claim claim = { .slot = 5 };
        claim.epoch = kit_acquire(k.a, "n1", inc, 5);
        CHECK(claim.epoch > last);
        last = claim.epoch;
        CHECK_DONE(kit_claim(k.a, FK_STORE_RELEASE, "n1", inc, &claim)); /* by release */
        CHECK_U64(claim.epoch, last);
        uint64_t next = kit_acquire(k.a, "n1", inc, 5);
        CHECK(next > last);
        last = next;
        CHECK_DONE(kit_member(k.a, FK_STORE_LEAVE, "n1", inc)); /* by leaving */
        inc = kit_join(k.a, "n2", 30).member.incarnation;
        next = kit_acquire(k.a, "n2", inc, 5);
        CHECK(next > last);
        last = next;
        kit_pass(k.a, 80); /* by the end of a lease */
        kit_reopen();
    }
    CHECK_DONE(kit_join(k.a, "n3", KIT_TTL));
    CHECK(kit_acquire(k.b, "n3", 1, 5) > last);
    CHECK_U64(kit_acquire(k.b, "n3", 1, 6), 1); /* each slot counts by itself */
    kit_end();
}

TEST(i2_a_slot_has_one_holder)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", 60));
    CHECK_DONE(kit_join(k.a, "n2", KIT_TTL));
    uint64_t epoch = kit_acquire(k.a, "n1", 1, 9);
    CHECK(epoch > 0);
    CHECK_U64(kit_acquire(k.a, "n1", 1, 9), epoch); /* again: the same */
    fk_slot_claim claim = { .slot = 9, .epoch = 99 };
    CHECK_DONE(kit_claim(k.b, FK_STORE_ACQUIRE, "n2", 1, &claim));
    CHECK_U64(claim.epoch, 0);
    CHECK_TEXT(claim.holder, "n1");
    CHECK_U64(claim.holder_incarnation, 1);
    kit_pass(k.a, 120);
    CHECK(kit_acquire(k.b, "n2", 1, 9) > epoch);
    claim = (fk_slot_claim){ .slot = 9 };
    CHECK_REFUSED(kit_claim(k.a, FK_STORE_ACQUIRE, "n1", 1, &claim), FK_E_FENCED);
    kit_end();
}

TEST(slots_of_an_earlier_incarnation_are_held_until_its_lease_is_over)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", 150));
    uint64_t epoch = kit_acquire(k.a, "n1", 1, 3);
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    fk_slot_claim claim = { .slot = 3 };
    CHECK_DONE(kit_claim(k.a, FK_STORE_ACQUIRE, "n1", 2, &claim));
    CHECK_U64(claim.epoch, 0);
    CHECK_U64(claim.holder_incarnation, 1);
    kit_pass(k.a, 250);
    CHECK_U64(kit_acquire(k.a, "n1", 2, 3), epoch + 1);
    kit_end();
}

TEST(slots_of_kinds_are_apart)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_DONE(kit_join(k.a, "n2", KIT_TTL));
    CHECK_U64(kit_acquire(k.a, "n1", 1, 3), 1);
    fk_slot_claim claim = { .slot = 3 };
    fk_store_op op = kit_op(FK_STORE_ACQUIRE);
    op.member.id = FK_STR("n2");
    op.member.incarnation = 1;
    op.kind = FK_STR("bank");
    op.claims = &claim;
    op.claim_count = 1;
    kit_do(k.b, &op);
    CHECK_DONE(op);
    CHECK_U64(claim.epoch, 1);
    kit_end();
}

TEST(slots_are_transferred_by_compare_and_swap)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_DONE(kit_join(k.a, "n2", KIT_TTL));
    uint64_t epoch = kit_acquire(k.a, "n1", 1, 7);
    fk_slot_claim claims[] = { { .slot = 7, .epoch = epoch },
                               { .slot = 8, .epoch = 1 },
                               { .slot = 7, .epoch = epoch + 9 } };
    fk_store_op op = kit_op(FK_STORE_TRANSFER);
    op.member.id = FK_STR("n1");
    op.member.incarnation = 1;
    op.kind = FK_STR("account");
    op.claims = claims + 2;
    op.claim_count = 1;
    op.to = FK_STR("n2");
    op.to_incarnation = 1;
    kit_do(k.a, &op);
    CHECK_DONE(op);
    CHECK_U64(claims[2].epoch, 0); /* another epoch */
    CHECK_TEXT(claims[2].holder, "n1");
    op.claims = claims;
    op.claim_count = 2;
    op.to_incarnation = 2;
    kit_do(k.a, &op);
    CHECK_REFUSED(op, FK_E_NOT_FOUND);
    CHECK_U64(claims[0].epoch, epoch); /* to be asked for again */
    op.to_incarnation = 1;
    kit_do(k.a, &op);
    CHECK_DONE(op);
    CHECK_U64(claims[0].epoch, epoch + 1);
    CHECK_U64(claims[1].epoch, 0); /* not held */
    CHECK_U64(kit_acquire(k.b, "n2", 1, 7), epoch + 1);
    CHECK_U64(kit_acquire(k.b, "n1", 1, 7), 0);
    CHECK_DONE(kit_member(k.a, FK_STORE_LEAVE, "n1", 1));
    claims[0].epoch = epoch + 1;
    kit_do(k.a, &op);
    CHECK_REFUSED(op, FK_E_FENCED);
    kit_end();
}

TEST(slots_are_released_by_their_holder_only)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_DONE(kit_join(k.a, "n2", KIT_TTL));
    uint64_t epoch = kit_acquire(k.a, "n1", 1, 7);
    fk_slot_claim claim = { .slot = 7, .epoch = epoch };
    CHECK_DONE(kit_claim(k.b, FK_STORE_RELEASE, "n2", 1, &claim));
    CHECK_U64(claim.epoch, 0);
    claim.epoch = epoch + 1;
    CHECK_DONE(kit_claim(k.b, FK_STORE_RELEASE, "n1", 1, &claim));
    CHECK_U64(claim.epoch, 0);
    CHECK_U64(kit_acquire(k.b, "n2", 1, 7), 0);
    claim.epoch = epoch;
    CHECK_DONE(kit_claim(k.b, FK_STORE_RELEASE, "n1", 1, &claim));
    CHECK_U64(kit_acquire(k.b, "n2", 1, 7), epoch + 1);
    kit_end();
}

TEST(slots_without_room_nothing_is_acquired)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_DONE(kit_join(k.a, "n2", KIT_TTL));
    CHECK_U64(kit_acquire(k.a, "n1", 1, 1), 1);
    fk_slot_claim claims[] = { { .slot = 0 }, { .slot = 1 }, { .slot = 2 } };
    fk_store_op op = kit_op(FK_STORE_ACQUIRE);
    op.member.id = FK_STR("n2");
    op.member.incarnation = 1;
    op.kind = FK_STR("account");
    op.claims = claims;
    op.claim_count = 3;
    k.room_left = 0;
    kit_do(k.a, &op);
    k.room_left = SIZE_MAX;
    CHECK_REFUSED(op, FK_E_NOMEM);
    CHECK_U64(kit_acquire(k.a, "n1", 1, 0), 1); /* nobody had it */
    kit_do(k.a, &op);
    CHECK_DONE(op);
    CHECK_U64(claims[0].epoch, 0);
    CHECK_U64(claims[1].epoch, 0);
    CHECK_U64(claims[2].epoch, 1);
    kit_end();
}

TEST(slots_that_do_not_exist_are_refused)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    fk_slot_claim claim = { .slot = 1024 };
    CHECK_REFUSED(kit_claim(k.a, FK_STORE_ACQUIRE, "n1", 1, &claim), FK_E_INVALID);
    claim.slot = UINT32_MAX;
    CHECK_REFUSED(kit_claim(k.a, FK_STORE_ACQUIRE, "n1", 1, &claim), FK_E_INVALID);
    CHECK_REFUSED(kit_claim(k.a, FK_STORE_ACQUIRE, "n1", 1, NULL), FK_E_INVALID);
    kit_end();
}
