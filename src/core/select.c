/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The walk of a selection, in the sender's thread. It holds the set of actors it has reached and
 * goes on with all of them, element by element: a name keeps those that have such a child, a pattern
 * takes all children that match. Until a pattern has matched more than one child there is one actor,
 * and where it has no such child is what the dead letter names. Nobody is sent anything before the
 * walk is over, so a message is copied for those who get it and for nobody else.
 */

#include "core/select.h"

#include "fraktor/select.h"

#include "base/safeguard.h"
#include "core/children.h"
#include "core/guardian.h"
#include "core/path.h"
#include "core/registry.h"
#include "core/send.h"

typedef struct fk_walk {
    fk_local *local;
    fk_ref *reached;
    uint32_t count, room;
    bool fans_out; /* a pattern has matched several: misses are silent from here on */
    const fk_cell *forbidden;
    fk_ref start;
    fk_ref base;  /* where the one actor was when a pattern was passed for the last time ... */
    size_t since; /* ... and the cursor behind that pattern */
} fk_walk;

static fk_err walk_add(fk_walk *walk, fk_ref ref)
{
    fk_cache *cache = &walk->local->cache;
    if (walk->count == walk->room) {
        uint32_t room = walk->room == 0 ? 6 : walk->room * 2;
        fk_ref *more = fk__cache_alloc(cache, room * sizeof(fk_ref), FK_SITE("selection"));
        if (more == NULL) return cache->err;
        if (walk->count != 0) memcpy(more, walk->reached, walk->count * sizeof(fk_ref));
        fk__cache_free(cache, walk->reached, walk->room * sizeof(fk_ref));
        walk->reached = more;
        walk->room = room;
    }
    walk->reached[walk->count++] = ref;
    return FK_OK;
}

static void walk_fini(fk_walk *walk)
{
    fk__cache_free(&walk->local->cache, walk->reached, walk->room * sizeof(fk_ref));
}

/* ---- steps ------------------------------------------------------------------------------------ */

static bool step_name(fk_system *sys, fk_ref *at, fk_str name, uint64_t uid)
{
    uint64_t found;
    fk_cell *cell = fk__slots_at(&sys->slots, at->slot);
    if (!fk__children_find(cell, at->generation, name, at, &found)) return false;
    return uid == 0 || uid == found;
}

/* The root is its own parent. */
static bool step_parent(fk_system *sys, fk_ref *at)
{
    const fk_cell *cell = fk__slots_at(&sys->slots, at->slot);
    if (cell == sys->top.root) return true;
    if (cell == sys->top.temp) return false; /* nobody there to ask: as in Pekko */
    const fk_cell *parent = fk__cell_parent(cell);
    if (parent == NULL) return false;
    fk_ref up = fk__cell_ref(parent);
    /* While the child lives its parent does: so that was its generation. */
    if (fk__half_load(&cell->generation, FK_ACQUIRE) != at->generation) return false;
    *at = up;
    return true;
}

static bool is_hidden(const fk_system *sys, const fk_cell *cell)
{
    return cell == sys->top.temp || cell == sys->top.dead_letters;
}

/* All living children that match, to `to`. */
static fk_err step_pattern(fk_system *sys, fk_ref at, fk_str pattern, uint64_t uid, fk_walk *to)
{
    fk_cell *parent = fk__slots_at(&sys->slots, at.slot);
    fk_err err = FK_OK;
    uint32_t cursor = 0;
    const fk_cell *child;
    if (is_hidden(sys, parent)) return FK_OK;
    fk__mem_lock(&sys->mem, &parent->children_lock);
    bool same = fk__half_load(&parent->generation, FK_ACQUIRE) == at.generation;
    while (same && err == FK_OK && (child = fk__children_next(parent, &cursor)) != NULL) {
        char generated[FK_AUTONAME_MAX];
        uint32_t generation = fk__half_load(&child->generation, FK_ACQUIRE);
        if (((generation & 1) == 0 && FK_SAFEGUARD(SELECT_ALIVE)) || is_hidden(sys, child))
            continue;
        if (uid != 0 && uid != child->uid) continue;
        if (!fk_path_match(sys->paths.rules, pattern, fk__label_text(child->label, generated)))
            continue;
        err = walk_add(to, (fk_ref){ child->slot, generation, sys->id });
    }
    fk__mem_unlock(&sys->mem, &parent->children_lock);
    return err;
}

static fk_err walk_pattern(fk_walk *walk, fk_str pattern, uint64_t uid, size_t cursor)
{
    fk_system *sys = walk->local->sys;
    fk_walk next = *walk;
    next.reached = NULL;
    next.count = next.room = 0;
    fk_err err = FK_OK;
    for (uint32_t i = 0; i < walk->count && err == FK_OK; i++) {
        err = step_pattern(sys, walk->reached[i], pattern, uid, &next);
    }
    if (err != FK_OK || next.count == 0) {
        walk_fini(&next);
        walk->count = 0;
        return err;
    }
    if (next.count > 1) next.fans_out = true;
    next.base = next.reached[0];
    next.since = cursor;
    walk_fini(walk);
    *walk = next;
    return FK_OK;
}

/* Goes one element further; who does not get there is dropped from the set. */
static fk_err walk_step(fk_walk *walk, const fk_element *element, uint64_t uid, size_t cursor)
{
    fk_system *sys = walk->local->sys;
    if (element->kind == FK_ELEMENT_PATTERN) {
        return walk_pattern(walk, element->text, uid, cursor);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < walk->count; i++) {
        fk_ref at = walk->reached[i];
        bool there = element->kind == FK_ELEMENT_PARENT ? step_parent(sys, &at)
                                                        : step_name(sys, &at, element->text, uid);
        if (there) walk->reached[kept++] = at;
    }
    walk->count = kept;
    return FK_OK;
}

static bool is_dead_letters(const fk_walk *walk)
{
    const fk_cell *dead = walk->local->sys->top.dead_letters;
    return walk->count == 1 && walk->reached[0].slot == dead->slot;
}

static fk_err walk_all(fk_walk *walk, const fk_expression *e)
{
    fk_element element;
    size_t cursor = 0;
    uint32_t left = e->count;
    while (walk->count != 0 && fk_expression_next(e, &cursor, &element)) {
        left--;
        FK_TRY(walk_step(walk, &element, left == 0 ? e->uid : 0, cursor));
        if (is_dead_letters(walk)) break; /* whatever comes behind ends there, too */
    }
    return FK_OK;
}

/* ---- the end of the walk ----------------------------------------------------------------------- */

static void text_drop_segment(fk_text *text, size_t at_least)
{
    size_t len = text->len < text->size ? text->len : text->size;
    while (len > at_least && text->buf[--len] != '/') continue;
    text->len = len;
}

/* The path that was asked for: the base, and what came behind it. */
static void miss_text(fk_walk *walk, const fk_expression *e, fk_text *text)
{
    fk_system *sys = walk->local->sys;
    fk_element element;
    size_t cursor = walk->since;
    text->len = fk__path_of(walk->local, walk->base, text->buf, text->size);
    if (text->len >= text->size) return;
    if (text->len == 0) { /* from nowhere: as it was asked */
        fk__text_put(text, e->elements);
        return;
    }
    fk_path base;
    if (fk_path_parse(&sys->paths, (fk_str){ text->buf, text->len }, &base, NULL) == FK_OK) {
        text->len = fk_path_format(&base, FK_FORM_NO_UID, text->buf, text->size);
    }
    if (text->len != 0 && text->buf[text->len - 1] == '/') text->len--; /* the root */
    while (fk_expression_next(e, &cursor, &element)) {
        if (element.kind == FK_ELEMENT_PARENT && !sys->ruleset->dot_names) {
            text_drop_segment(text, sys->address_len);
            continue;
        }
        fk__text_put(text, FK_STR("/"));
        fk__text_put(text, element.text);
    }
    bool shows_uid = sys->paths.rules == FK_RULES_FRAKTOR; /* Pekko leaves it out here */
    if (shows_uid) fk__text_uid(text, &(fk_path){ .uid = e->uid });
}

static void miss(fk_walk *walk, const fk_expression *e, fk_reason reason, fk_ref sender, fk_out msg)
{
    fk_local *local = walk->local;
    size_t size = local->sys->paths.path_max + e->elements.len + 24; /* and a uid */
    char *buf = fk__cache_alloc(&local->cache, size, FK_SITE("path that was missed"));
    fk_str path = e->elements; /* without memory at least that much */
    if (buf != NULL) {
        fk_text text = { buf, size, 0 };
        miss_text(walk, e, &text);
        path = (fk_str){ buf, text.len < size ? text.len : size };
    }
    fk__dead_path(local, reason, path, sender, msg);
    fk__cache_free(&local->cache, buf, size);
}

bool fk__is_below(const fk_system *sys, fk_ref ref, const fk_cell *above)
{
    const fk_cell *cell = fk__slots_at(&sys->slots, ref.slot);
    /* Of one that has just ended the way up may be another's by now, and lead anywhere; then no ref
     * to it is of any use, and all that matters is an end. */
    for (uint32_t level = 0; cell != NULL && level < UINT16_MAX; level++) {
        if (cell == above) return true;
        cell = fk__cell_parent(cell);
    }
    return false;
}

static bool reaches_forbidden(const fk_walk *walk)
{
    for (uint32_t i = 0; walk->forbidden != NULL && i < walk->count; i++) {
        if (fk__is_below(walk->local->sys, walk->reached[i], walk->forbidden)) return true;
    }
    return false;
}

static fk_err send_to_all(fk_walk *walk, fk_ref sender, fk_out msg)
{
    fk_err worst = FK_OK;
    for (uint32_t i = 0; i < walk->count; i++) {
        if (i + 1 < walk->count) fk__out_double(msg);
        fk_err err = fk__send(walk->local, walk->reached[i], sender, msg, NULL);
        if (err != FK_OK) worst = err;
    }
    return worst;
}

static fk_err walk_end(fk_walk *walk, const fk_expression *e, fk_ref sender, fk_out msg)
{
    fk_local *local = walk->local;
    if (walk->count == 0 && walk->fans_out) { /* silent; only fk_resolve_one() wants to know */
        fk__out_drop(&local->cache, msg);
        return FK_E_PID_UNKNOWN;
    }
    if (walk->count == 0) {
        miss(walk, e, FK_REASON_NO_RECEIVER, sender, msg);
        return FK_OK;
    }
    if (reaches_forbidden(walk)) {
        walk->base = walk->start;
        walk->since = 0;
        miss(walk, e, FK_REASON_FORBIDDEN, sender, msg);
        return FK_E_FORBIDDEN;
    }
    if (walk->count > 1 && !fk__out_can_double(msg)) {
        walk->base = walk->start; /* what was asked for, from the beginning */
        walk->since = 0;
        miss(walk, e, FK_REASON_SEVERAL, sender, msg);
        return FK_E_INVALID;
    }
    return send_to_all(walk, sender, msg);
}

/* ---- other systems -------------------------------------------------------------------------------- */

/* It is a path, and leads to one actor. */
static bool is_path(const fk_expression *e)
{
    fk_element element;
    size_t cursor = 0;
    while (fk_expression_next(e, &cursor, &element)) {
        if (element.kind != FK_ELEMENT_NAME) return false;
    }
    return true;
}

static fk_reason foreign_reason(fk_err err)
{
    switch (err) {
    case FK_E_QUARANTINED: return FK_REASON_QUARANTINED;
    case FK_E_INVALID: return FK_REASON_BAD_TYPE;
    case FK_E_NOMEM:
    case FK_E_LIMIT: return FK_REASON_NO_MEMORY;
    default: return FK_REASON_NO_RECEIVER;
    }
}

/* A message to another system that does not go there. */
static void foreign_dead(fk_local *local, const fk_path *path, fk_err err, fk_ref sender,
                         fk_out msg)
{
    fk_system *sys = local->sys;
    bool is_out = err == FK_E_QUARANTINED;
    fk_path_form form = sys->paths.rules == FK_RULES_FRAKTOR ? FK_FORM_FULL : FK_FORM_NO_UID;
    size_t size = fk_path_format(path, form, NULL, 0) + 1;
    char *text = fk__cache_alloc(&local->cache, size, FK_SITE("path of another system"));
    fk_str shown = path->segments; /* without memory at least that much */
    if (text != NULL) shown = (fk_str){ text, fk_path_format(path, form, text, size) };
    if (is_out) {
        char address[FK_PATH_MAX];
        size_t len = fk_path_format(path, FK_FORM_ADDRESS, address, sizeof(address));
        fk__invalid_association(local, (fk_str){ address, len });
    }
    fk__dead_path(local, foreign_reason(err), shown, sender, msg);
    fk__cache_free(&local->cache, text, size);
}

/* The other system is to find out who is meant. */
static fk_err select_there(fk_local *local, const fk_expression *e, const fk_path *path,
                           fk_ref sender, fk_out msg)
{
    const fk_remote_ops *remote = &local->sys->remote;
    fk_node *node = fk__node_create(&local->cache, msg);
    if (node == NULL) {
        fk_err err = local->cache.err;
        foreign_dead(local, path, err, sender, msg);
        return err;
    }
    node->sender = fk__sender_pack(sender.slot, sender.generation);
    node->generation = 0;
    return remote->select(remote->ctx, local, e, node);
}

/* A plain path is sent to as such. By Pekko's rules it is a selection still, and reaches a system that is
 * quarantined; only the root is not. */
static bool goes_to_one(const fk_system *sys, const fk_expression *e)
{
    if (e->count == 0) return true;
    return sys->paths.rules == FK_RULES_FRAKTOR && is_path(e);
}

/* The expression is a complete path of a system that is not this one. */
static fk_err select_foreign(fk_local *local, const fk_expression *e, fk_ref sender, fk_out msg)
{
    fk_system *sys = local->sys;
    fk_path path = e->address;
    fk_ref ref;
    path.segments = e->elements;
    path.depth = e->count;
    path.uid = e->uid;
    /* A system without an address is nobody, and so are all others to one that knows no others. */
    bool is_nobody = path.host.len == 0 || sys->remote.resolve == NULL;
    fk_err err = FK_OK;
    if (!is_nobody && !goes_to_one(sys, e)) return select_there(local, e, &path, sender, msg);
    if (!is_nobody) err = sys->remote.resolve(sys->remote.ctx, local, &path, false, &ref);
    if (!is_nobody && err == FK_OK) return fk__send(local, ref, sender, msg, NULL);
    foreign_dead(local, &path, err, sender, msg);
    return err;
}

/* ---- selecting ------------------------------------------------------------------------------------ */

static fk_err select_walk(fk_local *local, fk_ref anchor, const fk_expression *e, fk_ref sender,
                          fk_out msg, fk_select_terms terms)
{
    fk_system *sys = local->sys;
    if (e->anchor == FK_ANCHOR_ADDRESS && !fk__registry_is_own(sys, &e->address)) {
        return select_foreign(local, e, sender, msg);
    }
    fk_ref start = e->anchor == FK_ANCHOR_SELF ? anchor : fk__cell_ref(sys->top.root);
    fk_walk walk = { .local = local,
                     .start = start,
                     .base = start,
                     .fans_out = terms.fans_out,
                     .forbidden = terms.forbidden };
    /* An anchor may be anything; one that is not alive here leads nowhere. */
    bool leads = e->count == 0 || fk__cell_resolve(sys, start) != NULL;
    fk_err err = leads ? walk_add(&walk, start) : FK_OK;
    if (err == FK_OK) err = walk_all(&walk, e);
    if (err == FK_OK)
        err = walk_end(&walk, e, sender, msg);
    else
        fk__dead_path(local, FK_REASON_NO_MEMORY, e->elements, sender, msg);
    walk_fini(&walk);
    return err;
}

static fk_err or_silent(fk_err err)
{
    return err == FK_E_PID_UNKNOWN ? FK_OK : err;
}

fk_err fk__select(fk_local *local, fk_ref anchor, const fk_expression *e, fk_ref sender, fk_out msg,
                  fk_select_terms terms)
{
    return or_silent(select_walk(local, anchor, e, sender, msg, terms));
}

/* How deep an actor is, for ".." not to climb too high. */
static uint32_t depth_of(const fk_system *sys, fk_ref ref)
{
    const fk_cell *cell = fk__cell_resolve(sys, ref);
    if (cell == NULL || cell->ended.depth == UINT16_MAX) return FK_LEVEL_UNKNOWN;
    return cell->ended.depth;
}

static fk_err read_expression(const fk_system *sys, fk_ref anchor, fk_str text, fk_expression *out,
                              fk_path_fault *fault)
{
    fk_reader reader;
    *out = (fk_expression){ .rules = sys->paths.rules };
    fk__reader_init(&reader, sys->paths.rules, &sys->paths, text);
    fk_err err =
        fk__take_expression(&reader, out, depth_of(sys, anchor), FK_SEGMENT_NAME | FK_SEGMENT_WILD);
    return fk__reader_finish(&reader, err, fault);
}

/* Text that is no selection. Pekko sends what is meant for it to /deadLetters and says nothing. */
static fk_err refuse(fk_local *local, fk_str text, const fk_path_fault *fault, fk_ref sender,
                     fk_out msg)
{
    fk_system *sys = local->sys;
    char buf[FK_SHOWN_MAX];
    fk__path_fault(sys, local, text, fault);
    fk__dead_path(local, FK_REASON_BAD_PATH, fk__text_shown(text, buf), sender, msg);
    bool is_silent = sys->paths.rules == FK_RULES_PEKKO && fault->err != FK_E_UID;
    return is_silent ? FK_OK : fault->err;
}

fk_err fk__select_text(fk_local *local, fk_ref anchor, fk_str text, fk_ref sender, fk_out msg)
{
    fk_expression expression;
    fk_path_fault fault;
    fk_err err = read_expression(local->sys, anchor, text, &expression, &fault);
    if (err != FK_OK) return refuse(local, text, &fault, sender, msg);
    return select_walk(local, anchor, &expression, sender, msg, (fk_select_terms){ NULL, false });
}

fk_err fk_select_tell(fk_ctx *ctx, fk_str expression, fk_out msg)
{
    fk_ref self = fk_self(ctx);
    return or_silent(fk__select_text(&fk__ctx_worker(ctx)->local, self, expression, self, msg));
}

fk_err fk_select_send_from(fk_system *sys, fk_ref anchor, fk_str expression, fk_ref sender,
                           fk_out msg)
{
    if (sender.system != sys->id) sender = FK_REF_NONE; /* as fk_send_from() */
    fk_local *local = fk__local_enter(sys);
    fk_err err = fk__select_text(local, anchor, expression, sender, msg);
    fk__local_leave(local);
    return or_silent(err);
}

fk_err fk_select_send(fk_system *sys, fk_str expression, fk_out msg)
{
    return fk_select_send_from(sys, fk__cell_ref(sys->top.root), expression, FK_REF_NONE, msg);
}
