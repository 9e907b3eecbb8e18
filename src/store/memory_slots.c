/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Slots of a cluster in memory. Rows are never given back: their epochs must not begin again. */

#include "store/memory.h"

static memory_kind *kind_find(memory_cluster *c, fk_str name)
{
    memory_kind *kind = c->kinds;
    while (kind != NULL && !fk__str_same((fk_str){ kind->text, kind->len }, name))
        kind = kind->next;
    return kind;
}

static fk_err kind_get(memory_cluster *c, fk_str name, memory_kind **out)
{
    void *made = NULL;
    void *slots = NULL;
    size_t size = c->slots * sizeof(memory_slot);
    *out = kind_find(c, name);
    if (*out != NULL) return FK_OK;
    FK_TRY(fk__mem_alloc(&c->mem, size, FK_SITE("store: slots"), &slots));
    fk_err err =
        fk__mem_alloc(&c->mem, sizeof(memory_kind) + name.len, FK_SITE("store: kind"), &made);
    if (err != FK_OK) {
        fk__mem_free(&c->mem, slots, size);
        return err;
    }
    memory_kind *kind = made;
    *kind = (memory_kind){ .next = c->kinds, .slots = slots, .len = name.len };
    memset(slots, 0, size);
    memcpy(kind->text, name.ptr, name.len);
    c->kinds = kind;
    *out = kind;
    return FK_OK;
}

/* The member that asks, and the kind; NULL: the op is answered. */
static memory_member *slots_begin(memory_cluster *c, fk_store_op *op, memory_kind **kind)
{
    memory_member *m = fk__memory_member_live(c, op->member.id, op->member.incarnation);
    if (m == NULL) {
        fk__store_lease_over(op);
        return NULL;
    }
    for (uint32_t i = 0; i < op->claim_count; i++) {
        if (op->claims[i].slot < c->slots) continue;
        fk__store_refuse(op, FK_E_INVALID, "there is no such slot");
        return NULL;
    }
    if (kind_get(c, op->kind, kind) == FK_OK) return m;
    fk__store_refuse(op, FK_E_NOMEM, "no memory for the slots of a kind");
    return NULL;
}

static bool is_held_by(const memory_slot *slot, const memory_member *m)
{
    return slot->owner == m->name && slot->incarnation == m->incarnation;
}

static bool is_free(memory_cluster *c, const memory_slot *slot)
{
    return slot->owner == NULL ||
           fk__memory_member_live(c, fk__memory_id(slot->owner), slot->incarnation) == NULL;
}

/* Who has it. The one before is mostly the same, and needs no memory again. */
static bool claim_deny(fk_store_op *op, uint32_t index, const memory_slot *slot)
{
    fk_slot_claim *claim = &op->claims[index];
    fk_str owner = fk__memory_id(slot->owner);
    claim->holder_incarnation = slot->incarnation;
    claim->holder = index > 0 ? op->claims[index - 1].holder : (fk_str){ NULL, 0 };
    if (claim->holder.ptr != NULL && fk__str_same(claim->holder, owner)) return true;
    claim->holder = (fk_str){ NULL, 0 };
    return owner.len == 0 || fk__store_copy(op, owner, &claim->holder);
}

static void claim_clear(fk_slot_claim *claim)
{
    claim->holder = (fk_str){ NULL, 0 };
    claim->holder_incarnation = 0;
}

void fk__memory_acquire(memory_cluster *c, fk_store_op *op)
{
    memory_kind *kind = NULL;
    memory_member *m = slots_begin(c, op, &kind);
    if (m == NULL) return;
    /* First all that can fail, so that nothing is held when there is no memory. */
    for (uint32_t i = 0; i < op->claim_count; i++) {
        const memory_slot *slot = &kind->slots[op->claims[i].slot];
        claim_clear(&op->claims[i]);
        if (is_held_by(slot, m) || is_free(c, slot)) continue;
        if (!claim_deny(op, i, slot)) return;
    }
    for (uint32_t i = 0; i < op->claim_count; i++) {
        fk_slot_claim *claim = &op->claims[i];
        memory_slot *slot = &kind->slots[claim->slot];
        bool is_mine = is_held_by(slot, m);
        claim->epoch = 0;
        if (!is_mine && !is_free(c, slot)) continue;
        if (!is_mine) *slot = (memory_slot){ slot->epoch + 1, m->name, m->incarnation };
        claim->epoch = slot->epoch;
    }
}

void fk__memory_transfer(memory_cluster *c, fk_store_op *op)
{
    memory_kind *kind = NULL;
    memory_member *m = slots_begin(c, op, &kind);
    if (m == NULL) return;
    memory_member *to = fk__memory_member_live(c, op->to, op->to_incarnation);
    if (to == NULL) {
        fk__store_refuse(op, FK_E_NOT_FOUND, "the member that is to get the slots is not there");
        return;
    }
    for (uint32_t i = 0; i < op->claim_count; i++) {
        const memory_slot *slot = &kind->slots[op->claims[i].slot];
        claim_clear(&op->claims[i]);
        if (is_held_by(slot, m) && slot->epoch == op->claims[i].epoch) continue;
        if (!claim_deny(op, i, slot)) return;
    }
    for (uint32_t i = 0; i < op->claim_count; i++) {
        fk_slot_claim *claim = &op->claims[i];
        memory_slot *slot = &kind->slots[claim->slot];
        bool is_mine = is_held_by(slot, m) && slot->epoch == claim->epoch;
        claim->epoch = 0;
        if (!is_mine) continue;
        *slot = (memory_slot){ slot->epoch + 1, to->name, to->incarnation };
        claim->epoch = slot->epoch;
    }
}

/* Also of a member whose lease is over: it says nothing that is not so. */
void fk__memory_release(memory_cluster *c, fk_store_op *op)
{
    memory_kind *kind = kind_find(c, op->kind);
    for (uint32_t i = 0; i < op->claim_count; i++) {
        fk_slot_claim *claim = &op->claims[i];
        memory_slot *slot =
            kind != NULL && claim->slot < c->slots ? &kind->slots[claim->slot] : NULL;
        claim_clear(claim);
        if (slot == NULL || slot->epoch != claim->epoch ||
            slot->incarnation != op->member.incarnation ||
            !fk__str_same(fk__memory_id(slot->owner), op->member.id)) {
            claim->epoch = 0;
            continue;
        }
        slot->owner = NULL;
        slot->incarnation = 0;
    }
}

void fk__memory_slots_fini(memory_cluster *c)
{
    while (c->kinds != NULL) {
        memory_kind *kind = c->kinds;
        c->kinds = kind->next;
        fk__mem_free(&c->mem, kind->slots, c->slots * sizeof(memory_slot));
        fk__mem_free(&c->mem, kind, sizeof *kind + kind->len);
    }
}
