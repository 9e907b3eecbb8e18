/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Members that are known beforehand, for tests: "static:NAME?a,b,c" is a store in memory in which only
 * those ids can join, and from which nobody goes by being silent. Who joins again takes the place of its
 * former life at once. So nothing depends on time, and nothing is safe from one who only seemed dead.
 */

#include "store/store.h"

typedef struct static_store {
    fk_store base;
    fk_store *inner;
    fk_mem mem;
    size_t len;
    char ids[]; /* with commas */
} static_store;

static bool is_listed(const static_store *s, fk_str id)
{
    for (size_t from = 0, at = 0; at <= s->len; at++) {
        if (at < s->len && s->ids[at] != ',') continue;
        if (fk__str_same(id, (fk_str){ s->ids + from, at - from })) return true;
        from = at + 1;
    }
    return false;
}

/* Its former life, if there is one. */
static void static_leave(const static_store *s, fk_store_op *join)
{
    const fk_store_op asked = *join; /* the same op: its memory is known by it */
    join->verb = FK_STORE_VIEW;
    join->version = 0;
    fk_store_apply(s->inner, &join, 1);
    fk_view view = join->view;
    *join = asked;
    join->verb = FK_STORE_LEAVE;
    for (uint32_t i = 0; i < view.count; i++) {
        const fk_member *m = &view.members[i];
        if (!fk__str_same(m->id, asked.member.id)) continue;
        join->member.incarnation = m->incarnation;
        fk_store_apply(s->inner, &join, 1);
    }
    *join = asked;
}

static void static_do(const static_store *s, fk_store_op *op)
{
    fk_time ttl = op->ttl;
    if (op->verb == FK_STORE_JOIN && !is_listed(s, op->member.id)) {
        fk__store_refuse(op, FK_E_FORBIDDEN, "that id is not among the members that are known");
        return;
    }
    if (op->verb == FK_STORE_JOIN) static_leave(s, op);
    if (ttl > 0) op->ttl = FK_NEVER;
    fk_store_apply(s->inner, &op, 1);
    op->ttl = ttl;
}

static void static_apply(fk_store *store, fk_store_op *const *ops, size_t count)
{
    const static_store *s = FK_CONTAINER(store, static_store, base);
    for (size_t i = 0; i < count; i++) static_do(s, ops[i]);
}

static uint64_t static_stamp(fk_store *store)
{
    const static_store *s = FK_CONTAINER(store, static_store, base);
    return s->inner->ops->stamp(s->inner);
}

static void static_close(fk_store *store)
{
    static_store *s = FK_CONTAINER(store, static_store, base);
    fk_mem mem = s->mem;
    s->inner->ops->close(s->inner);
    fk__mem_free(&mem, s, sizeof *s + s->len);
}

static fk_err static_open(void *user, fk_str rest, bool is_state, const fk_port *port,
                          fk_store **out, const char **why)
{
    static const fk_store_ops ops = { static_apply, static_stamp, static_close };
    size_t mark = 0;
    fk_mem mem;
    void *made = NULL;
    while (mark < rest.len && rest.ptr[mark] != '?') mark++;
    if (mark + 1 >= rest.len) {
        *why = "a static cluster has a name and members: static:NAME?a,b,c";
        return FK_E_INVALID;
    }
    size_t len = rest.len - mark - 1;
    fk__mem_init(&mem, port, 0);
    FK_TRY(fk__mem_alloc(&mem, sizeof(static_store) + len, FK_SITE("store: handle"), &made));
    static_store *s = made;
    *s = (static_store){ .base = { &ops }, .mem = mem, .len = len };
    memcpy(s->ids, rest.ptr + mark + 1, len);
    /* By all of it: those who know other members are in another cluster. */
    fk_err err = fk_store_memory.open(user, rest, is_state, port, &s->inner, why);
    if (err == FK_OK)
        *out = &s->base;
    else
        fk__mem_free(&mem, s, sizeof *s + len);
    return err;
}

const fk_store_provider fk_store_static = { "static", NULL, static_open };
