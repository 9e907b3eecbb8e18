/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Members of a cluster in memory. The array has those that are not down; a lease may be over in it
 * until somebody sweeps, which is when the view gets another version. */

#include "store/memory.h"

static memory_name *member_name(const memory_cluster *c, fk_str id)
{
    memory_name *name = c->names;
    while (name != NULL && !fk__str_same(fk__memory_id(name), id)) name = name->next;
    return name;
}

fk_err fk__memory_name_get(memory_cluster *c, fk_str id, memory_name **out)
{
    void *made = NULL;
    *out = member_name(c, id);
    if (*out != NULL) return FK_OK;
    FK_TRY(fk__mem_alloc(&c->mem, sizeof(memory_name) + id.len, FK_SITE("store: id"), &made));
    memory_name *name = made;
    *name = (memory_name){ .next = c->names, .len = id.len };
    memcpy(name->text, id.ptr, id.len);
    c->names = name;
    *out = name;
    return FK_OK;
}

static int id_compare(fk_str a, fk_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.ptr, b.ptr, len) : 0;
    if (order != 0) return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

static memory_member *member_find(memory_cluster *c, fk_str id, uint64_t incarnation)
{
    for (uint32_t i = 0; i < c->member_count; i++) {
        memory_member *m = &c->members[i];
        if (m->incarnation == incarnation && fk__str_same(fk__memory_id(m->name), id)) return m;
    }
    return NULL;
}

/* One that can go on: its lease lasts, and it has no successor. */
static memory_member *member_current(memory_cluster *c, fk_str id, uint64_t incarnation)
{
    memory_member *m = member_find(c, id, incarnation);
    return m != NULL && m->incarnation == m->name->incarnation ? m : NULL;
}

memory_member *fk__memory_member_live(memory_cluster *c, fk_str id, uint64_t incarnation)
{
    memory_member *m = member_find(c, id, incarnation);
    return m != NULL && m->expires_at > c->now ? m : NULL;
}

static void member_drop(memory_cluster *c, memory_member *m)
{
    uint32_t index = (uint32_t)(m - c->members);
    fk__memory_text_free(&c->mem, m->address);
    fk__memory_text_free(&c->mem, m->kinds);
    c->member_count--;
    memmove(m, m + 1, (c->member_count - index) * sizeof *m);
    c->version++;
}

static void members_sweep(memory_cluster *c)
{
    for (uint32_t i = c->member_count; i-- > 0;) {
        if (c->members[i].expires_at <= c->now) member_drop(c, &c->members[i]);
    }
}

static fk_err members_reserve(memory_cluster *c)
{
    void *made = NULL;
    if (c->member_count < c->member_room) return FK_OK;
    uint32_t room = c->member_room > 0 ? c->member_room * 2 : 8;
    FK_TRY(fk__mem_alloc(&c->mem, room * sizeof *c->members, FK_SITE("store: members"), &made));
    if (c->member_count > 0) memcpy(made, c->members, c->member_count * sizeof *c->members);
    fk__mem_free(&c->mem, c->members, c->member_room * sizeof *c->members);
    c->members = made;
    c->member_room = room;
    return FK_OK;
}

static fk_err member_make(memory_cluster *c, const fk_store_op *op, memory_member *out)
{
    char kinds[FK_STORE_KINDS_MAX];
    memory_text address;
    FK_TRY(members_reserve(c));
    FK_TRY(fk__memory_name_get(c, op->member.id, &out->name));
    if (c->slots == 0) { /* the first one decides */
        memory_text strategy;
        FK_TRY(fk__memory_text_make(&c->mem, fk_str_of(op->strategy), &strategy));
        fk__memory_text_free(&c->mem, c->strategy);
        c->strategy = strategy;
    }
    FK_TRY(fk__memory_text_make(&c->mem, op->member.address, &address));
    fk_str joined = fk__store_kinds_join(&op->member, kinds);
    fk_err err = fk__memory_text_make(&c->mem, joined, &out->kinds);
    if (err != FK_OK) fk__memory_text_free(&c->mem, address);
    out->address = address;
    return err;
}

/* The first member has decided how the cluster is. */
static bool is_as_decided(const memory_cluster *c, fk_store_op *op)
{
    if (c->slots == 0) return true;
    bool is_same =
        c->slots == op->slots && fk__str_same(fk__memory_str(c->strategy), fk_str_of(op->strategy));
    if (!is_same) fk__store_refuse(op, FK_E_MISMATCH, FK_STORE_MISMATCH_TEXT);
    return is_same;
}

void fk__memory_join(memory_cluster *c, fk_store_op *op)
{
    memory_member m = { .weight = op->member.weight, .status = op->member.status };
    if (!is_as_decided(c, op)) return;
    members_sweep(c);
    const memory_name *name = member_name(c, op->member.id);
    uint64_t last = name != NULL ? name->incarnation : 0;
    fk__store_join_next(op, last, member_find(c, op->member.id, last) != NULL);
    if (op->verdict != FK_VERDICT_OK) return;
    if (member_make(c, op, &m) != FK_OK) {
        fk__store_refuse(op, FK_E_NOMEM, "no memory for another member");
        return;
    }
    c->slots = op->slots;
    fk__memory_purge(c);
    m.incarnation = m.name->incarnation = op->member.incarnation;
    m.expires_at = fk__time_add(c->now, op->ttl);
    uint32_t at = c->member_count;
    while (at > 0 && id_compare(fk__memory_id(c->members[at - 1].name), op->member.id) > 0) at--;
    memmove(&c->members[at + 1], &c->members[at], (c->member_count - at) * sizeof m);
    c->members[at] = m;
    c->member_count++;
    op->version = ++c->version;
}

void fk__memory_renew(memory_cluster *c, fk_store_op *op)
{
    members_sweep(c);
    memory_member *m = member_current(c, op->member.id, op->member.incarnation);
    if (m == NULL) {
        fk__store_lease_over(op);
        return;
    }
    fk_time until = fk__time_add(c->now, op->ttl);
    if (until > m->expires_at) m->expires_at = until;
}

void fk__memory_update(memory_cluster *c, fk_store_op *op)
{
    char text[FK_STORE_KINDS_MAX];
    memory_text kinds;
    members_sweep(c);
    memory_member *m = member_current(c, op->member.id, op->member.incarnation);
    if (m == NULL) {
        fk__store_lease_over(op);
        return;
    }
    if (fk__memory_text_make(&c->mem, fk__store_kinds_join(&op->member, text), &kinds) != FK_OK) {
        fk__store_refuse(op, FK_E_NOMEM, "no memory for the kinds of a member");
        return;
    }
    fk__memory_text_free(&c->mem, m->kinds);
    m->kinds = kinds;
    m->weight = op->member.weight;
    m->status = op->member.status;
    c->version++;
}

void fk__memory_leave(memory_cluster *c, fk_store_op *op)
{
    members_sweep(c);
    memory_member *m = member_find(c, op->member.id, op->member.incarnation);
    if (m != NULL) member_drop(c, m);
}

static bool is_newest(const memory_member *m)
{
    return m->incarnation == m->name->incarnation;
}

static bool member_show(fk_store_op *op, const memory_member *m, fk_member *to)
{
    *to = (fk_member){ .incarnation = m->incarnation, .weight = m->weight, .status = m->status };
    return fk__store_copy(op, fk__memory_id(m->name), &to->id) &&
           fk__store_copy(op, fk__memory_str(m->address), &to->address) &&
           fk__store_kinds_split(op, fk__memory_str(m->kinds), to);
}

void fk__memory_view(memory_cluster *c, fk_store_op *op)
{
    uint32_t count = 0;
    if (op->strategy != NULL && !is_as_decided(c, op)) return;
    if (op->version != c->version) {
        fk_member *to = fk__store_room(op, (c->member_count + 1) * sizeof *to);
        if (to == NULL) return;
        for (uint32_t i = 0; i < c->member_count; i++) {
            if (!is_newest(&c->members[i])) continue;
            if (!member_show(op, &c->members[i], &to[count++])) return;
        }
        op->view.members = to;
        op->view.count = count;
    }
    op->view.version = op->version = c->version;
}

void fk__memory_members_fini(memory_cluster *c)
{
    while (c->member_count > 0) member_drop(c, &c->members[c->member_count - 1]);
    fk__mem_free(&c->mem, c->members, c->member_room * sizeof *c->members);
    while (c->names != NULL) {
        memory_name *name = c->names;
        c->names = name->next;
        fk__mem_free(&c->mem, name, sizeof *name + name->len);
    }
}
