/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/watch.h"

#include "base/safeguard.h"
#include "core/box.h"
#include "core/extras.h"
#include "core/mailbox.h"

struct fk_vigil {
    fk_signal visit;        /* WATCH on its way there, NOTICE on its way back */
    fk_signal cancel;       /* UNWATCH */
    fk_vigil *next, **link; /* in the list of the one who is watched */
    uint64_t watcher;       /* as a message's sender */
    fk_terminated terminated;
    fk_half places; /* where it is; 0: nowhere */
    bool is_listed; /* the watched one's */
    /* The watcher's. */
    bool is_wanted;   /* the watch has not been ended */
    fk_node *notice;  /* carries it through the watcher's mailbox; NULL: it is there */
    fk_node *message; /* what the watcher wants to see instead; NULL: fk_terminated */
};

/* The notice's bytes are the vigil's address. It has no size: never on the short way. */
const fk_type fk__type_notice = { "fk_terminated", 0, 1 | FK_TYPE_QUIET, NULL };
/* Nor has the public one, so that FK_MSG() cannot make one. */
const fk_type fk_type_fk_terminated = { "fk_terminated", 0, _Alignof(fk_terminated) | FK_TYPE_QUIET,
                                        NULL };

/* Never 0: nobody can be watched, too. */
static uint64_t key_of(fk_ref ref)
{
    uint64_t key = fk__sender_pack(ref.slot, ref.generation);
    return key != 0 ? key : UINT64_MAX;
}

static uint64_t sender_of(fk_ref ref)
{
    return fk__sender_pack(ref.slot, ref.generation);
}

static fk_vigil *notice_vigil(const fk_node *node)
{
    fk_vigil *vigil;
    memcpy(&vigil, node->bytes, sizeof(vigil));
    return vigil;
}

/* ---- making and letting go ----------------------------------------------------------------- */

static void vigil_free(fk_cache *cache, fk_vigil *vigil)
{
    if (vigil->notice != NULL) fk__node_free(cache, vigil->notice);
    if (vigil->message != NULL) {
        fk__node_drop_contents(cache, vigil->message);
        fk__node_free(cache, vigil->message);
    }
    fk__cache_free(cache, vigil, sizeof(*vigil));
}

/* Leaves so many places. Acq_rel: who frees it has seen what the others did with it. */
static void vigil_leave(fk_cache *cache, fk_vigil *vigil, uint32_t places)
{
    if (fk__half_add(&vigil->places, -places, FK_ACQ_REL) == places) vigil_free(cache, vigil);
}

static fk_node *notice_create(fk_cache *cache, fk_vigil *vigil)
{
    fk_node *node = fk__cache_get(cache, FK_CLASS_40, FK_SITE("notice of an end"));
    if (node == NULL) return NULL;
    node->type = &fk__type_notice;
    node->sender = sender_of(vigil->terminated.actor);
    node->generation = (uint32_t)(vigil->watcher >> 32);
    node->len = sizeof(vigil);
    node->flags = FK_NODE_AUTO | FK_NODE_DROP;
    node->size_class = FK_CLASS_40;
    memcpy(node->bytes, &vigil, sizeof(vigil));
    return node;
}

static fk_err vigil_create(fk_local *local, const fk_cell *cell, fk_ref actor, const fk_out *msg,
                           fk_vigil **out)
{
    fk_cache *cache = &local->cache;
    fk_vigil *vigil = fk__cache_alloc(cache, sizeof(*vigil), FK_SITE("watch"));
    if (vigil == NULL) return cache->err;
    memset(vigil, 0, sizeof(*vigil));
    fk_ref self = fk__cell_ref(cell);
    vigil->watcher = sender_of(self);
    vigil->terminated.actor = actor;
    vigil->is_wanted = true;
    fk__half_init(&vigil->places, 1);
    vigil->notice = notice_create(cache, vigil);
    if (vigil->notice != NULL && msg != NULL) {
        vigil->message = fk__node_create(cache, *msg);
        if (vigil->message != NULL) {
            vigil->message->sender = sender_of(actor);
            vigil->message->generation = self.generation;
        }
    }
    if (vigil->notice == NULL || (msg != NULL && vigil->message == NULL)) {
        fk_err err = cache->err;
        vigil_free(cache, vigil);
        return err;
    }
    *out = vigil;
    return FK_OK;
}

/* ---- signals --------------------------------------------------------------------------------- */

static void signal_send(fk_local *local, uint32_t slot, fk_signal *signal, uint32_t kind)
{
    fk_cell *cell = fk__slots_at(&local->sys->slots, slot);
    fk__half_store(&signal->word, kind, FK_RELAXED);
    fk__mailbox_signal(cell, &signal->link);
    if (fk__mailbox_kick(cell)) fk__schedule(local, cell);
}

/* Back to the watcher. */
static void vigil_return(fk_local *local, fk_vigil *vigil)
{
    signal_send(local, (uint32_t)vigil->watcher, &vigil->visit, FK_SIGNAL_NOTICE);
}

static bool is_for(const fk_cell *cell, uint32_t generation)
{
    return fk__half_load(&cell->generation, FK_RELAXED) == generation;
}

/* Nobody watched the actor of a proxy, and now somebody does; or the other way round. */
static bool remote_tell(fk_local *local, const fk_cell *cell, fk_ref ref, bool is_watched)
{
    const fk_remote_ops *remote = &local->sys->remote;
    return remote->watch(remote->ctx, local, cell->state, ref, is_watched);
}

static bool is_remote(const fk_cell *cell)
{
    return cell->life == FK_LIFE_REMOTE;
}

/* A proxy that is watched stays, so it is asked for once, by the first. */
static bool may_watch(fk_worker *worker, fk_cell *cell, fk_ref actor)
{
    /* It has ended on the way; or, even, the reference is made up, and a free cell may match it. */
    if ((actor.generation & 1) == 0 || !is_for(cell, actor.generation)) return false;
    if (!is_remote(cell)) return true;
    /* An end that is to be told is not that of who is watched from now on: a quarantine may be over. */
    fk__watch_remote_stop(worker, cell);
    return cell->u.watchers != NULL || remote_tell(&worker->local, cell, actor, true);
}

static void watch_began(fk_worker *worker, fk_cell *cell, fk_vigil *vigil)
{
    if (!may_watch(worker, cell, vigil->terminated.actor)) {
        if (FK_SAFEGUARD(WATCH_DEAD)) vigil_return(&worker->local, vigil);
        return;
    }
    vigil->is_listed = true;
    vigil->terminated.existence_confirmed = !is_remote(cell); /* others know that, in the end */
    vigil->next = cell->u.watchers;
    vigil->link = &cell->u.watchers;
    if (vigil->next != NULL) vigil->next->link = &vigil->next;
    cell->u.watchers = vigil;
}

static void watch_cancelled(fk_worker *worker, const fk_cell *cell, fk_vigil *vigil)
{
    uint32_t places = 1;
    if (vigil->is_listed) {
        *vigil->link = vigil->next;
        if (vigil->next != NULL) vigil->next->link = vigil->link;
        vigil->is_listed = false;
        places = 2;
        bool was_last = is_remote(cell) && cell->u.watchers == NULL;
        if (was_last) remote_tell(&worker->local, cell, vigil->terminated.actor, false);
    }
    vigil_leave(&worker->local.cache, vigil, places);
}

/* Into the watcher's own mailbox, behind all that the dead one had sent. */
static void watch_noticed(fk_worker *worker, fk_cell *cell, fk_vigil *vigil)
{
    bool is_here = is_for(cell, (uint32_t)(vigil->watcher >> 32)) && vigil->is_wanted;
    bool is_late = is_here && cell->life == FK_LIFE_STOPPING;
    if (is_late) fk__map_remove(&cell->extras->watching, key_of(vigil->terminated.actor));
    if (!is_here || is_late) {
        vigil_leave(&worker->local.cache, vigil, 1);
        return;
    }
    fk_node *notice = vigil->notice;
    vigil->notice = NULL;
    if ((fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_BOUNDED) != 0) {
        fk__box_push_over(&worker->local, cell, notice);
    } else {
        /* We run the cell, so nobody has to be woken. */
        fk__mailbox_push(cell, &notice->link);
    }
}

void fk__watch_signal(fk_worker *worker, fk_cell *cell, fk_signal *signal, uint32_t kind)
{
    if (kind == FK_SIGNAL_UNWATCH)
        watch_cancelled(worker, cell, FK_CONTAINER(signal, fk_vigil, cancel));
    else if (kind == FK_SIGNAL_WATCH)
        watch_began(worker, cell, FK_CONTAINER(signal, fk_vigil, visit));
    else
        watch_noticed(worker, cell, FK_CONTAINER(signal, fk_vigil, visit));
}

/* ---- the end of the watched --------------------------------------------------------------------- */

fk_vigil *fk__watch_take(fk_cell *cell)
{
    fk_vigil *watchers = cell->u.watchers;
    cell->u.watchers = NULL;
    for (fk_vigil *v = watchers; v != NULL; v = v->next) v->is_listed = false;
    return watchers;
}

void fk__watch_tell(fk_local *local, fk_vigil *watchers)
{
    while (watchers != NULL) {
        fk_vigil *vigil = watchers;
        watchers = vigil->next; /* before it is gone */
        vigil_return(local, vigil);
    }
}

/* ---- the end of an actor of another system ----------------------------------------------------- */

/* What its watchers are to be told is in the word of the proxy's cell, and the upper half of that says
 * which generation it is about. The way to the cell is that of a stop, which knows its generation, too:
 * neither needs memory, and both can be there already. */
enum { REMOTE_ENDED = 1, REMOTE_CONFIRMED = 2, REMOTE_ADDRESS = 4, REMOTE_BITS = 7 };

static uint32_t remote_tag(uint32_t generation)
{
    return generation >> 1 << 16;
}

void fk__watch_remote_ended(fk_local *local, fk_ref ref, bool existence_confirmed,
                            bool address_terminated)
{
    fk_cell *cell = fk__cell_resolve(local->sys, ref);
    uint32_t tag = remote_tag(ref.generation), next;
    if (cell == NULL) return; /* it has given way: nobody watched it */
    FK_ASSERT((fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_REMOTE) != 0);
    uint32_t bits = REMOTE_ENDED | (existence_confirmed ? REMOTE_CONFIRMED : 0u) |
                    (address_terminated ? REMOTE_ADDRESS : 0u);
    uint32_t word = fk__half_load(&cell->ended.word, FK_RELAXED);
    do {
        /* Whatever another generation has left there is over, unless it is ours that is. */
        bool is_same = (word & ~(uint32_t)REMOTE_BITS) == tag;
        if (!is_same && fk__cell_resolve(local->sys, ref) == NULL) return;
        next = is_same ? word | bits : tag | bits;
        /* For the cell it is the stop behind it that counts. */
    } while (!fk__half_cas(&cell->ended.word, &word, next, FK_ACQ_REL));
    fk__cell_ask_stop(local, cell, ref.generation);
}

void fk__watch_remote_stop(fk_worker *worker, fk_cell *cell)
{
    uint32_t generation = fk__half_load(&cell->generation, FK_RELAXED);
    uint32_t word = fk__half_load(&cell->ended.word, FK_RELAXED);
    /* Else it was fk_stop(), which nobody can do to the actors of others. */
    if ((word & REMOTE_ENDED) == 0 || (word & ~(uint32_t)REMOTE_BITS) != remote_tag(generation)) {
        return;
    }
    word = fk__half_swap(&cell->ended.word, 0, FK_RELAXED);
    fk_vigil *watchers = fk__watch_take(cell);
    if (watchers == NULL) return;
    for (fk_vigil *v = watchers; v != NULL; v = v->next) {
        v->terminated.existence_confirmed = (word & REMOTE_CONFIRMED) != 0;
        v->terminated.address_terminated = (word & REMOTE_ADDRESS) != 0;
    }
    remote_tell(&worker->local, cell, watchers->terminated.actor, false);
    fk__watch_tell(&worker->local, watchers);
}

/* ---- the end of the watcher --------------------------------------------------------------------- */

static void vigil_end(fk_local *local, fk_vigil *vigil)
{
    vigil->is_wanted = !FK_SAFEGUARD(UNWATCH);
    /* A slot that never was: the vigil is on its way back, and nowhere else. */
    if (fk__slots_at(&local->sys->slots, vigil->terminated.actor.slot) == NULL) return;
    fk__half_add(&vigil->places, 1, FK_RELAXED);
    signal_send(local, vigil->terminated.actor.slot, &vigil->cancel, FK_SIGNAL_UNWATCH);
}

void fk__watch_promise(fk_local *local, fk_cell *cell)
{
    uintptr_t marks; /* a stop that was meant for an actor that had this slot */
    uint32_t kind, ended = fk__half_load(&cell->generation, FK_RELAXED) - 1;
    fk_signal *signal;
    fk_link *list = fk__mailbox_take_signals(cell, &marks);
    while ((signal = fk__signals_pop(&list, &kind)) != NULL) {
        if (kind == FK_SIGNAL_UNWATCH) {
            vigil_leave(&local->cache, FK_CONTAINER(signal, fk_vigil, cancel), 1);
            continue;
        }
        fk_vigil *vigil = FK_CONTAINER(signal, fk_vigil, visit);
        vigil->terminated.existence_confirmed = vigil->terminated.actor.generation == ended;
        vigil_return(local, vigil);
    }
}

/* Whatever place a vigil has in the cell of a system that is given up. */
void fk__watch_sweep(fk_local *local, fk_cell *cell)
{
    uintptr_t marks;
    uint32_t kind;
    fk_signal *signal;
    fk_link *list = fk__mailbox_take_signals(cell, &marks);
    while ((signal = fk__signals_pop(&list, &kind)) != NULL) {
        if (kind == FK_SIGNAL_UNWATCH)
            vigil_leave(&local->cache, FK_CONTAINER(signal, fk_vigil, cancel), 1);
        else if (kind != FK_SIGNAL_CHILD)
            vigil_leave(&local->cache, FK_CONTAINER(signal, fk_vigil, visit), 1);
    }
    bool is_actor = cell->life >= FK_LIFE_STARTING && cell->life <= FK_LIFE_STOPPING;
    if (!is_actor && !is_remote(cell)) return;
    fk_vigil *watchers = fk__watch_take(cell);
    while (watchers != NULL) {
        fk_vigil *vigil = watchers;
        watchers = vigil->next;
        vigil_leave(&local->cache, vigil, 1);
    }
}

void fk__watch_end(fk_worker *worker, fk_cell *cell)
{
    fk_map *watching = &cell->extras->watching;
    uint32_t cursor = 0;
    fk_vigil *vigil;
    while ((vigil = fk__map_next(watching, &cursor)) != NULL) vigil_end(&worker->local, vigil);
    fk__map_fini(&worker->local.cache, watching);
}

/* ---- delivery ------------------------------------------------------------------------------------ */

bool fk__watch_arrived(fk_worker *worker, fk_cell *cell, fk_node *node, fk_node **from, fk_msg *out)
{
    fk_vigil *vigil = notice_vigil(node);
    uint32_t system = worker->sys->id;
    if (!vigil->is_wanted) return false;
    uint64_t key = key_of(vigil->terminated.actor);
    /* Not there when it comes out of the stash: then it has been seen before. */
    if (fk__map_get(&cell->extras->watching, key) == vigil) {
        fk__map_remove(&cell->extras->watching, key);
    }
    *from = node;
    if (vigil->message == NULL) {
        *out = (fk_msg){ &fk_type_fk_terminated, &vigil->terminated, sizeof(fk_terminated),
                         vigil->terminated.actor };
        return true;
    }
    *from = vigil->message; /* a message like any other from here on */
    vigil->message = NULL;
    fk__node_view(*from, system, out);
    return true;
}

void fk__watch_drop(fk_cache *cache, fk_node *node)
{
    vigil_leave(cache, notice_vigil(node), 1);
}

const fk_terminated *fk__watch_terminated(const fk_node *node)
{
    return &notice_vigil(node)->terminated;
}

/* ---- the public functions ------------------------------------------------------------------------ */

fk_err fk__watch(fk_local *local, fk_cell *cell, fk_ref actor, const fk_out *msg)
{
    fk_vigil *vigil = NULL;
    FK_TRY(fk__extras_need(local, cell));
    fk_map *watching = &cell->extras->watching;
    const fk_vigil *old = fk__map_get(watching, key_of(actor));
    if (old != NULL) return msg == NULL && old->message == NULL ? FK_OK : FK_E_STATE;
    FK_TRY(fk__map_reserve(&local->cache, watching, FK_SITE("table of watches")));
    FK_TRY(vigil_create(local, cell, actor, msg, &vigil));
    FK_ASSERT(vigil != NULL);
    fk__map_put(watching, key_of(actor), vigil);
    /* It may be dead: then its cell says so. A ref that never had one is answered from here. */
    if (actor.system == local->sys->id && fk__slots_at(&local->sys->slots, actor.slot) != NULL)
        signal_send(local, actor.slot, &vigil->visit, FK_SIGNAL_WATCH);
    else
        vigil_return(local, vigil);
    return FK_OK;
}

static fk_err watch_any(fk_ctx *ctx, fk_ref actor, const fk_out *msg)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    const fk_cell *cell = fk__cell_resolve(local->sys, actor);
    if (!fk_ref_is_none(actor) && actor.system != local->sys->id) return FK_E_FOREIGN;
    if (cell == ctx->cell) return FK_OK;
    return fk__watch(local, ctx->cell, actor, msg);
}

fk_err fk_watch(fk_ctx *ctx, fk_ref actor)
{
    return watch_any(ctx, actor, NULL);
}

fk_err fk_watch_with(fk_ctx *ctx, fk_ref actor, fk_out msg)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    bool is_self = fk_ref_equal(actor, fk_self(ctx));
    fk_err err = is_self ? FK_OK : watch_any(ctx, actor, &msg);
    if (err != FK_OK || is_self) fk__out_drop(&local->cache, msg);
    return err;
}

fk_err fk_unwatch(fk_ctx *ctx, fk_ref actor)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_extras *extras = ctx->cell->extras;
    fk_vigil *vigil = extras != NULL ? fk__map_remove(&extras->watching, key_of(actor)) : NULL;
    if (vigil == NULL) return FK_E_NOT_FOUND;
    vigil_end(local, vigil);
    return FK_OK;
}
