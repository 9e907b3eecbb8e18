/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/spawn.h"

#include "base/safeguard.h"
#include "core/box.h"
#include "core/children.h"
#include "core/event.h"
#include "core/extras.h"
#include "core/mailbox.h"
#include "core/path.h"
#include "core/supervise.h"

enum { AUTONAME_MOST = 12 }; /* bytes of a generated name */

static fk_err props_check(const fk_props *props)
{
    if (props->receive == NULL) return FK_E_INVALID;
    if (props->size != 0 && props->size < sizeof(fk_props)) return FK_E_INVALID;
    if ((unsigned)props->mailbox > FK_MAILBOX_CONTROL) return FK_E_INVALID;
    if ((unsigned)props->overflow > FK_OVERFLOW_BLOCK) return FK_E_INVALID;
    if ((unsigned)props->dispatcher > FK_DISPATCHER_PINNED) return FK_E_INVALID;
    if (props->mailbox == FK_MAILBOX_BOUNDED && props->capacity == 0) return FK_E_INVALID;
    if (props->mailbox >= FK_MAILBOX_PRIORITY && props->priority == NULL) return FK_E_INVALID;
    if (props->init != NULL && props->state_size == 0) return FK_E_INVALID;
    return fk__strategy_check(&props->strategy);
}

/* Checks them and finds the system's copy. Those of the last spawn have been through this. */
static fk_err props_take(fk_local *local, const fk_props *props, const fk_props **out)
{
    if (props == NULL) return FK_E_INVALID;
    if (props->state != NULL && (props->state_size != 0 || props->init != NULL)) {
        return FK_E_INVALID;
    }
    *out = local->props_last;
    if (fk__props_are_last(local, props)) return FK_OK;
    FK_TRY(props_check(props));
    return fk__props_intern(local, props, out);
}

/* Twice, when there is something to begin with: a restart needs it again. */
static void state_init(void *state, const fk_props *props)
{
    if (props->init == NULL) {
        memset(state, 0, props->state_size);
        return;
    }
    memcpy(state, props->init, props->state_size);
    memcpy((char *)state + props->state_size, props->init, props->state_size);
}

/* Everything that can fail, on a cell that nobody knows yet. */
static fk_err equip(fk_local *local, fk_cell *cell, const fk_props *props, uint32_t *gate)
{
    fk_err err = FK_OK;
    cell->flags = FK_CELL_HALTED;
    cell->state = props->state;
    if (props->state_size != 0) {
        cell->state =
            fk__cache_alloc(&local->cache, fk__state_size(props), FK_SITE("actor's state"));
        if (cell->state == NULL) return local->cache.err;
        cell->flags |= FK_CELL_OWNED;
        state_init(cell->state, props);
    }
    bool has_heap = props->mailbox >= FK_MAILBOX_PRIORITY;
    /* Who keeps children at a restart counts those that go: restart.c. */
    if (has_heap || props->before_restart != NULL) FK_TRY(fk__extras_need(local, cell));
    if (has_heap) cell->flags |= FK_CELL_FRONT;
    if (props->mailbox == FK_MAILBOX_BOUNDED) {
        fk_box *box;
        uint32_t generation = fk__half_load(&cell->generation, FK_RELAXED) + 1;
        FK_TRY(fk__box_get(local, cell, generation, props, &box));
        /* Release pairs with the acquire in box.c: a sender with a ref of the last generation may
         * find this box, and must find it initialised. */
        fk__word_store(&cell->box, (uintptr_t)box, FK_RELEASE);
        *gate |= FK_GATE_BOUNDED;
        cell->flags |= FK_CELL_BOXED;
    }
    if (props->dispatcher == FK_DISPATCHER_PINNED) {
        fk_worker *pinned;
        err = fk__worker_pin(local->sys, &pinned);
        if (err != FK_OK) return err;
        fk__word_store(&cell->pinned, (uintptr_t)pinned, FK_RELAXED);
        *gate |= FK_GATE_PINNED;
    }
    return err;
}

/* Undoes equip and gives the cell back. */
static void strip(fk_local *local, fk_cell *cell, uint32_t gate)
{
    if ((gate & FK_GATE_PINNED) != 0) {
        fk__worker_unpin(fk__word_ptr(&cell->pinned, FK_RELAXED));
    }
    if ((gate & FK_GATE_BOUNDED) != 0) {
        fk__box_close(local, fk__word_ptr(&cell->box, FK_RELAXED));
        fk__word_store(&cell->box, 0, FK_RELAXED);
    }
    if (cell->extras != NULL) {
        fk__cache_free(&local->cache, cell->extras, sizeof(fk_extras));
        cell->extras = NULL;
    }
    if ((cell->flags & FK_CELL_OWNED) != 0) {
        fk__cache_free(&local->cache, cell->state, fk__state_size(cell->props));
    }
    cell->state = NULL;
    cell->flags = FK_CELL_HALTED;
}

/* Gives the token of a cell away: to whoever sends first, or to a worker if there is something
 * to do now. */
static void token_release(fk_local *local, fk_cell *cell, bool run_now)
{
    uintptr_t tail = fk__word_load(&cell->tail, FK_ACQUIRE) & ~FK_TAIL_IDLE;
    bool is_quiet = !run_now && tail == (uintptr_t)cell->head;
    if (!is_quiet || !fk__mailbox_idle(cell, tail)) fk__schedule(local, cell);
}

static uint16_t add_up(uint32_t a, uint32_t b)
{
    return a + b < UINT16_MAX ? (uint16_t)(a + b) : UINT16_MAX;
}

/* A child must not have a path that nobody could read. What is too long to be counted is not
 * limited: only a config that raises the limits so far comes there. */
static fk_err place_check(const fk_system *sys, const fk_cell *parent, size_t name_len)
{
    uint32_t depth_max = sys->paths.depth_max, path_max = sys->paths.path_max;
    if (parent->ended.depth >= depth_max && parent->ended.depth < UINT16_MAX) return FK_E_LIMIT;
    /* "#" and the longest uid come behind. */
    size_t len = sys->address_len + parent->ended.path_len + 1 + name_len + 21;
    return len > path_max && path_max < UINT16_MAX ? FK_E_LIMIT : FK_OK;
}

/* Children of such a parent are told apart by their age, and their uids tell that. */
static bool is_ordered(const fk_cell *parent)
{
    return parent != NULL && parent->props->strategy.kind == FK_REST_FOR_ONE;
}

/* Where in the tree the cell is, when it has its name. */
static void place_note(fk_cell *cell, const fk_cell *parent, size_t name_len)
{
    if (name_len == 0) name_len = fk__autoname_len(fk__label_number(cell->label));
    cell->ended.depth = parent != NULL ? add_up(parent->ended.depth, 1) : 0;
    cell->ended.path_len =
        parent != NULL ? add_up(parent->ended.path_len, 1 + (uint32_t)name_len) : 0;
}

/* Seq_cst: the child is in its parent's table already, so either we see this, or the parent, which
 * sets it first and then looks at its children, sees the child (supervise.c). */
static bool is_held(const fk_cell *parent)
{
    return (fk__half_load(&parent->gate, FK_SEQ_CST) & FK_GATE_HELD) != 0;
}

fk_err fk__spawn(fk_local *local, fk_cell *parent, fk_str name, const uint64_t *uid,
                 const fk_props *props, fk_ref *out)
{
    fk_system *sys = local->sys;
    fk_cell *cell;
    const fk_props *interned;
    uint32_t gate = 0;
    FK_TRY(props_take(local, props, &interned));
    if (parent != NULL) FK_TRY(place_check(sys, parent, name.len != 0 ? name.len : AUTONAME_MOST));
    bool is_guardian = uid != NULL && *uid == 0;
    uint32_t closed = fk__half_load(&sys->stopping, FK_ACQUIRE);
    if (closed == FK_SPAWN_STOPPING && FK_SAFEGUARD(SPAWN_CLOSED)) return FK_E_STOPPING;
    if (closed == FK_SPAWN_BOOTING && !is_guardian) return FK_E_NOT_BOOTSTRAPPED;
    if (!is_guardian) FK_TRY(fk__actor_count(sys));
    fk_err err = fk__cell_get(local, &cell);
    if (err != FK_OK) {
        if (!is_guardian) fk__actor_uncount(sys);
        return err;
    }
    FK_ASSERT(cell->life == FK_LIFE_FREE);
    FK_ASSERT(cell->extras == NULL);
    cell->props = interned;
    err = equip(local, cell, props, &gate);
    if (err == FK_OK && parent != NULL) err = fk__children_add(local, parent, cell, name);
    if (err != FK_OK) {
        strip(local, cell, gate);
        fk__cell_put(local, cell);
        token_release(local, cell, false);
        if (!is_guardian) fk__actor_uncount(sys);
        return err;
    }
    cell->receive = props->receive;
    fk__word_store(&cell->parent, (uintptr_t)parent, FK_RELAXED);
    cell->u.watchers = NULL;
    fk__half_store(&cell->ended.word, 0, FK_RELAXED);
    cell->suspended = 0;
    cell->closed = 0;
    cell->child_counter = 0;
    cell->home = local->worker != NULL ? (uint16_t)local->worker->id : 0;
    cell->uid = uid != NULL          ? *uid
                : is_ordered(parent) ? fk__local_uid_fresh(local)
                                     : fk__local_uid(local);
    place_note(cell, parent, name.len);
    bool has_start = props->start != NULL;
    cell->life = has_start ? FK_LIFE_STARTING : FK_LIFE_RUNNING;
    if (!has_start) cell->flags &= (uint8_t)~FK_CELL_HALTED;
    if (parent != NULL && is_held(parent)) { /* then it will be told when that is over */
        cell->suspended = FK_HELD_PARENT;
        cell->flags |= FK_CELL_HALTED;
        gate |= FK_GATE_HELD;
    }
    if (props->throughput != 0) cell->flags |= FK_CELL_LIMITED;
    uint32_t generation = fk__half_load(&cell->generation, FK_RELAXED) + 1;
    FK_ASSERT((generation & 1) == 1);
    fk__half_store(&cell->gate, gate, FK_RELAXED);
    /* Release pairs with fk__cell_resolve: the actor exists from here on. */
    fk__half_store(&cell->generation, generation, FK_RELEASE);
    fk__stat_add(&local->stats.spawned, 1);
    *out = (fk_ref){ cell->slot, generation, sys->id };
    if (!has_start) fk__publish_life(local, FK_EVENT_STARTED, *out, FK_OK);
    token_release(local, cell, has_start);
    return FK_OK;
}

fk_err fk__proxy_open(fk_local *local, fk_proxy *proxy, fk_ref *out)
{
    fk_cell *cell;
    FK_TRY(fk__cell_get(local, &cell));
    FK_ASSERT(cell->life == FK_LIFE_FREE);
    uint32_t generation = fk__half_load(&cell->generation, FK_RELAXED) + 1;
    cell->life = FK_LIFE_REMOTE;
    cell->state = proxy;
    cell->u.watchers = NULL;
    cell->ended.depth = cell->ended.path_len = 0; /* of no place here: nothing is above it */
    fk__word_store(&cell->parent, 0, FK_RELAXED);
    fk__half_store(&cell->ended.word, 0, FK_RELAXED);
    fk__half_store(&cell->gate, FK_GATE_REMOTE, FK_RELAXED);
    /* Release pairs with fk__cell_resolve, as for an actor: the gate and the proxy. */
    fk__half_store(&cell->generation, generation, FK_RELEASE);
    *out = (fk_ref){ cell->slot, generation, local->sys->id };
    token_release(local, cell, false);
    return FK_OK;
}

/* Without the run token, because nothing that its holder does with a proxy that is not watched hangs
 * on the generation: what is for a former tenant is a dead letter or answered as dead. */
bool fk__proxy_reopen(const fk_system *sys, fk_ref *ref)
{
    const uint32_t last = 0xfffffffd; /* see fk__cell_is_used_up() */
    fk_cell *cell = fk__cell_resolve(sys, *ref);
    FK_ASSERT(cell != NULL);
    FK_ASSERT((fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_REMOTE) != 0);
    if (ref->generation >= last) return false;
    ref->generation += 2; /* one as a free cell, for a moment */
    fk__half_store(&cell->ended.word, 0, FK_RELAXED);
    /* Release pairs with fk__cell_resolve: who has the new ref finds the proxy as it is now. */
    fk__half_store(&cell->generation, ref->generation, FK_RELEASE);
    return true;
}

fk_err fk__props_check(const fk_props *props)
{
    return props != NULL ? props_check(props) : FK_E_INVALID;
}

/* What both public functions check of their arguments. */
static fk_err name_check(const fk_system *sys, fk_str name, const fk_ref *out)
{
    if (out == NULL || (name.len != 0 && name.ptr == NULL)) return FK_E_INVALID;
    return name.len != 0 ? fk_path_check_name(&sys->paths, name, NULL) : FK_OK;
}

fk_err fk_spawn(fk_system *sys, fk_str name, const fk_props *props, fk_ref *out)
{
    if (sys == NULL) return FK_E_INVALID;
    FK_TRY(name_check(sys, name, out));
    if (sys->top.user == NULL) return FK_E_NOT_BOOTSTRAPPED;
    fk_local *local = fk__local_enter(sys);
    fk_err err = fk__spawn(local, sys->top.user, name, NULL, props, out);
    fk__local_leave(local);
    return err;
}

fk_err fk_spawn_child(fk_ctx *ctx, fk_str name, const fk_props *props, fk_ref *out)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    FK_TRY(name_check(local->sys, name, out));
    return fk__spawn(local, ctx->cell, name, NULL, props, out);
}
