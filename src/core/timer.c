/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A timer is one block: a node with room for a small message, and behind it what the wheel and
 * the actor's table need. A one-shot timer that fires goes to the mailbox itself; from the moment
 * it is delivered it is an ordinary message. A periodic one stays, and a small node with its key
 * and serial number goes instead.
 *
 * The table belongs to the actor. entry, fire and is_fired are under the lock of the wheel that
 * the timer is in, or was in last.
 */

#include "core/timer.h"

#include "base/safeguard.h"
#include "core/extras.h"
#include "core/mailbox.h"
#include "core/promise.h"

enum { BUCKETS_MIN = 4, TIMER_ROOM = 24 };

/* What the node of a periodic timer carries. */
typedef struct timer_id {
    uint64_t key;
    uint32_t serial;
} timer_id;

enum { TIMER_OFFSET = FK_NODE_HEADER + TIMER_ROOM };

_Static_assert(sizeof(void *) != 8 || TIMER_OFFSET + sizeof(fk_timer) <= 128, "two cache lines");
_Static_assert(TIMER_OFFSET % _Alignof(fk_timer) == 0, "the two parts of a timer fit together");

static fk_node *timer_node(fk_timer *timer)
{
    return (fk_node *)(void *)((char *)timer - TIMER_OFFSET);
}

static fk_timer *node_timer(fk_node *node)
{
    return (fk_timer *)(void *)((char *)node + TIMER_OFFSET);
}

static unsigned timer_class(void)
{
    return fk__pool_class(TIMER_OFFSET + sizeof(fk_timer));
}

/* ---- the actor's table ------------------------------------------------------------------- */

static fk_timer **bucket_of(const fk_timers *timers, uint64_t key)
{
    return &timers->bucket[fk__mix64(key) & (timers->bucket_count - 1)];
}

static fk_timer *find(const fk_cell *cell, uint64_t key, uint8_t kind)
{
    if (cell->extras == NULL || cell->extras->timers.count == 0) return NULL;
    fk_timer *timer = *bucket_of(&cell->extras->timers, key);
    while (timer != NULL && (timer->key != key || timer->kind != kind)) timer = timer->chain;
    return timer;
}

static fk_err timers_reserve(fk_local *local, fk_timers *timers)
{
    if (timers->count < timers->bucket_count) return FK_OK;
    uint32_t old = timers->bucket_count;
    uint32_t count = old == 0 ? BUCKETS_MIN : old * 2;
    fk_timer **bucket =
        fk__cache_alloc(&local->cache, count * sizeof(*bucket), FK_SITE("table of timers"));
    if (bucket == NULL) return local->cache.err;
    memset(bucket, 0, count * sizeof(*bucket));
    fk_timers grown = *timers;
    grown.bucket = bucket;
    grown.bucket_count = count;
    for (uint32_t i = 0; i < old; i++) {
        while (timers->bucket[i] != NULL) {
            fk_timer *timer = timers->bucket[i];
            timers->bucket[i] = timer->chain;
            fk_timer **to = bucket_of(&grown, timer->key);
            timer->chain = *to;
            *to = timer;
        }
    }
    fk__cache_free(&local->cache, timers->bucket, old * sizeof(*bucket));
    *timers = grown;
    return FK_OK;
}

static void table_add(fk_cell *cell, fk_timer *timer)
{
    fk_timers *timers = &cell->extras->timers;
    fk_timer **bucket = bucket_of(timers, timer->key);
    timer->chain = *bucket;
    *bucket = timer;
    timers->count++;
}

static void table_remove(fk_worker *worker, fk_cell *cell, fk_timer *timer)
{
    fk_timers *timers = &cell->extras->timers;
    fk_timer **link = bucket_of(timers, timer->key);
    while (*link != timer) link = &(*link)->chain;
    *link = timer->chain;
    timers->count--;
    fk__stat_add(&worker->local.stats.timers_ended, 1);
}

/* ---- making and ending ------------------------------------------------------------------- */

static void timer_free(fk_cache *cache, fk_timer *timer)
{
    if (timer->fire != NULL) fk__node_free(cache, timer->fire);
    fk__node_drop_contents(cache, timer_node(timer));
    fk__node_free(cache, timer_node(timer));
}

static void end(fk_worker *worker, fk_cell *cell, fk_timer *timer)
{
    fk_mem *mem = &worker->sys->mem;
    fk_cache *cache = &worker->local.cache;
    fk__mem_lock(mem, &timer->owner->wheel_lock);
    if (fk__wheel_has(&timer->entry)) fk__wheel_remove(&timer->owner->wheel, &timer->entry);
    bool is_fired = timer->is_fired;
    fk__mem_unlock(mem, &timer->owner->wheel_lock);

    table_remove(worker, cell, timer);
    if (is_fired) { /* the mailbox has it, and will find it ended */
        timer->is_ended = true;
        fk__node_drop_contents(cache, timer_node(timer));
    } else if (timer == worker->ctx.timer) { /* its message is lent to receive just now */
        worker->ctx.timer_ended = true;
    } else {
        timer_free(cache, timer);
    }
}

void fk__timers_reset(fk_worker *worker, fk_cell *cell)
{
    const fk_timers *timers = &cell->extras->timers;
    for (uint32_t i = 0; i < timers->bucket_count; i++) {
        fk_timer *timer = timers->bucket[i];
        while (timer != NULL) {
            fk_timer *next = timer->chain;
            if (timer->kind != FK_TIMER_KIND_IDLE) end(worker, cell, timer);
            timer = next;
        }
    }
}

void fk__timers_fini(fk_worker *worker, fk_cell *cell)
{
    fk_timers *timers = &cell->extras->timers;
    if (!FK_SAFEGUARD(TIMERS_END)) return;
    for (uint32_t i = 0; i < timers->bucket_count; i++) {
        while (timers->bucket[i] != NULL) end(worker, cell, timers->bucket[i]);
    }
    fk__cache_free(&worker->local.cache, timers->bucket,
                   timers->bucket_count * sizeof(*timers->bucket));
    timers->bucket = NULL;
    timers->bucket_count = 0;
}

/* ---- the wheel --------------------------------------------------------------------------- */

static fk_node *fire_create(fk_cache *cache, fk_timer *timer)
{
    const fk_node *own = timer_node(timer);
    fk_node *node = fk__cache_get(cache, FK_CLASS_48, FK_SITE("fired timer"));
    if (node == NULL) return NULL;
    node->type = own->type;
    node->sender = own->sender;
    node->generation = own->generation;
    node->len = sizeof(timer_id);
    node->flags = FK_NODE_TIMER;
    node->size_class = FK_CLASS_48;
    timer_id id = { timer->key, timer->serial };
    memcpy(node->bytes, &id, sizeof(id));
    return node;
}

static void arm(fk_worker *worker, fk_timer *timer, fk_time due)
{
    fk_mem *mem = &worker->sys->mem;
    const fk_time tick = (fk_time)1 << FK_TICK_SHIFT;
    timer->owner = worker;
    fk__mem_lock(mem, &worker->wheel_lock);
    fk__wheel_add(&worker->wheel, &timer->entry, due);
    fk__mem_unlock(mem, &worker->wheel_lock);
    fk_time at = fk__time_add(due, tick - 1) & ~(tick - 1);
    if (at < worker->wheel_next) worker->wheel_next = at;
}

/* What goes to the mailbox, or NULL for lack of memory; under the wheel's lock. */
static fk_node *fire(fk_worker *worker, fk_timer *timer)
{
    if (timer->mode == FK_TIMER_ONCE) {
        timer->is_fired = true;
        return timer_node(timer);
    }
    fk_node *node = timer->fire;
    if (node == NULL) node = fire_create(&worker->local.cache, timer);
    timer->fire = NULL;
    return node;
}

void fk__timers_run(fk_worker *worker, fk_worker *owner)
{
    fk_system *sys = worker->sys;
    fk_link *first = NULL, *last = NULL; /* in the order of their time */
    fk_wheel_entry *entry;
    fk_promise *expired = NULL, **expired_end = &expired;
    fk_wheel_link *refused = NULL;
    fk__mem_lock(&sys->mem, &owner->wheel_lock);
    fk__promises_arm(worker, owner);
    while ((entry = fk__wheel_take(&owner->wheel, worker->now)) != NULL) {
        fk_timer *timer = FK_CONTAINER(entry, fk_timer, entry);
        if (timer->kind == FK_TIMER_KIND_PROMISE) {
            *expired_end = FK_CONTAINER(timer, fk_promise, timer);
            expired_end = &(*expired_end)->next;
            continue;
        }
        fk_node *node = fire(worker, timer);
        if (node == NULL) {
            entry->link.next = refused;
            refused = &entry->link;
            continue;
        }
        fk__word_store(&node->link.next, 0, FK_RELAXED);
        if (last != NULL)
            fk__word_store(&last->next, (uintptr_t)&node->link, FK_RELAXED);
        else
            first = &node->link;
        last = &node->link;
    }
    *expired_end = NULL;
    while (refused != NULL) { /* no memory: a tick from now, but on the old grid */
        entry = FK_CONTAINER(refused, fk_wheel_entry, link);
        refused = refused->next;
        entry->link.next = NULL;
        fk__wheel_add(&owner->wheel, entry, entry->deadline);
    }
    fk_time next = fk__wheel_next(&owner->wheel);
    fk__mem_unlock(&sys->mem, &owner->wheel_lock);
    if (owner == worker) worker->wheel_next = next;

    while (first != NULL) {
        fk_node *node = FK_CONTAINER(first, fk_node, link);
        first = fk__word_ptr(&first->next, FK_RELAXED);
        /* Pushed even if the actor has ended meanwhile: a one-shot timer is the mailbox's now, and
         * the slot's next turn throws it away. */
        fk_cell *cell = fk__slots_at(&sys->slots, (uint32_t)node->sender);
        if (fk__mailbox_push(cell, &node->link)) fk__schedule(&worker->local, cell);
    }
    fk__promises_expire(worker, owner, expired);
}

/* ---- delivery ---------------------------------------------------------------------------- */

static fk_timer *periodic_of(const fk_cell *cell, const fk_node *node)
{
    timer_id id;
    memcpy(&id, node->bytes, sizeof(id));
    uint8_t kind = node->type == &fk_type_receive_timeout ? FK_TIMER_KIND_IDLE : 0;
    fk_timer *timer = find(cell, id.key, kind);
    if (timer == NULL) return NULL;
    if (FK_SAFEGUARD(TIMER_SERIAL) && timer->serial != id.serial) return NULL;
    return timer;
}

static void rearm(fk_worker *worker, fk_timer *timer, fk_time due)
{
    timer->fire = fire_create(&worker->local.cache, timer); /* NULL: made when it fires */
    arm(worker, timer, due);
}

/* The next moment on the grid that is still to come: periods that were missed are skipped. */
static fk_time next_due(const fk_timer *timer, fk_time now)
{
    if (timer->mode == FK_TIMER_FIXED_DELAY) return fk__time_add(now, timer->period);
    fk_time due = timer->entry.deadline;
    fk_time next = fk__time_add(due, timer->period);
    if (next > now) return next;
    fk_time missed = (now - due) / timer->period;
    return fk__time_add(due, (missed + 1) * timer->period);
}

bool fk__timer_arrived(fk_worker *worker, fk_cell *cell, fk_node *node, fk_msg *out)
{
    if ((node->flags & FK_NODE_ONCE) != 0) {
        fk_timer *timer = node_timer(node);
        if (timer->is_ended) {
            if (FK_SAFEGUARD(TIMER_SERIAL)) return false;
        } else {
            table_remove(worker, cell, timer);
        }
        node->flags &= (uint8_t) ~(FK_NODE_TIMER | FK_NODE_ONCE); /* a message like any other */
        fk__node_view(node, cell->sys->id, out);
        return true;
    }
    fk_timer *timer = periodic_of(cell, node);
    if (timer == NULL) return false;
    if (timer->kind == FK_TIMER_KIND_IDLE) {
        fk_time due = fk__time_add(cell->extras->timers.last_message, timer->period);
        if (fk__system_now(worker->sys) < due) {
            rearm(worker, timer, due);
            return false;
        }
    }
    worker->ctx.timer = timer;
    fk__node_view(timer_node(timer), cell->sys->id, out);
    return true;
}

void fk__timer_delivered(fk_worker *worker)
{
    fk_timer *timer = worker->ctx.timer;
    if (timer == NULL) return;
    if (worker->ctx.timer_ended)
        timer_free(&worker->local.cache, timer);
    else
        rearm(worker, timer, next_due(timer, fk__system_now(worker->sys)));
    worker->ctx.timer = NULL;
    worker->ctx.timer_ended = false;
}

fk_err fk__timer_copy(fk_worker *worker, fk_node **out)
{
    fk_cache *cache = &worker->local.cache;
    fk_timer *timer = worker->ctx.timer;
    if (timer == NULL || timer->kind == FK_TIMER_KIND_IDLE) return FK_E_STATE;
    fk_node *original = timer_node(timer);
    if ((original->flags & FK_NODE_DROP) != 0) return FK_E_STATE;
    fk_node *copy = fk__node_copy(cache, original);
    if (copy == NULL) return cache->err;
    if ((original->flags & FK_NODE_PAYLOAD) != 0) fk__node_share(original);
    *out = copy;
    return FK_OK;
}

void fk__timers_touch(fk_worker *worker, fk_cell *cell)
{
    cell->extras->timers.last_message = fk__system_now(worker->sys);
}

/* ---- starting ------------------------------------------------------------------------- */

/* Makes a timer and its message, which is still the caller's when that fails. */
static fk_err timer_create(fk_local *local, const fk_cell *cell, const fk_timer *what, fk_out msg,
                           fk_timer **out)
{
    fk_cache *cache = &local->cache;
    unsigned size_class = timer_class();
    fk_node *node = fk__cache_get(cache, size_class, FK_SITE("timer"));
    if (node == NULL) return cache->err;
    node->size_class = (uint8_t)size_class;
    fk_timer *timer = node_timer(node);
    *timer = *what;
    fk_err err = fk__node_fill(cache, node, TIMER_ROOM, msg);
    if (err != FK_OK) {
        fk__cache_put(cache, size_class, node);
        return err;
    }
    uint32_t generation = fk__half_load(&cell->generation, FK_RELAXED);
    node->sender = fk__sender_pack(cell->slot, generation);
    node->generation = generation;
    if (timer->mode == FK_TIMER_ONCE) {
        node->flags |= FK_NODE_TIMER | FK_NODE_ONCE;
    } else if ((timer->fire = fire_create(cache, timer)) == NULL) {
        fk__node_unmake(cache, node, msg);
        return cache->err;
    }
    *out = timer;
    return FK_OK;
}

static fk_err start(fk_worker *worker, fk_cell *cell, fk_timer *what, fk_out msg)
{
    fk_timer *timer = NULL;
    fk_time due = fk__time_add(fk__system_now(worker->sys), what->period);
    FK_TRY(fk__extras_need(&worker->local, cell));
    fk_timers *timers = &cell->extras->timers;
    FK_TRY(timers_reserve(&worker->local, timers));
    what->serial = timers->serial + 1;
    FK_TRY(timer_create(&worker->local, cell, what, msg, &timer));
    FK_ASSERT(timer != NULL);
    timers->serial++;
    fk_timer *old = find(cell, timer->key, timer->kind);
    if (old != NULL) end(worker, cell, old);
    table_add(cell, timer);
    fk__stat_add(&worker->local.stats.timers_started, 1);
    arm(worker, timer, due);
    return FK_OK;
}

fk_err fk__timer_start(fk_worker *worker, fk_cell *cell, uint64_t key, fk_time delay, fk_out msg)
{
    fk_timer timer = { .key = key, .period = delay, .kind = FK_TIMER_KIND_RUNTIME };
    return start(worker, cell, &timer, msg);
}

void fk__timer_cancel(fk_worker *worker, fk_cell *cell, uint64_t key)
{
    fk_timer *timer = find(cell, key, FK_TIMER_KIND_RUNTIME);
    if (timer != NULL) end(worker, cell, timer);
}

bool fk__timer_is_active(const fk_cell *cell, uint64_t key)
{
    return find(cell, key, FK_TIMER_KIND_RUNTIME) != NULL;
}

/* ---- the public functions ---------------------------------------------------------------- */

fk_err fk_timer_start(fk_ctx *ctx, uint64_t key, fk_timer_mode mode, fk_time period, fk_out msg)
{
    fk_err err = FK_E_INVALID;
    if (period >= 0 && (unsigned)mode <= FK_TIMER_FIXED_RATE &&
        (period > 0 || mode == FK_TIMER_ONCE)) {
        fk_timer timer = { .key = key, .period = period, .mode = (uint8_t)mode };
        err = start(fk__ctx_worker(ctx), ctx->cell, &timer, msg);
    }
    if (err != FK_OK) fk__out_drop(&fk__ctx_worker(ctx)->local.cache, msg);
    return err;
}

fk_err fk_timer_cancel(fk_ctx *ctx, uint64_t key)
{
    fk_timer *timer = find(ctx->cell, key, 0);
    if (timer == NULL) return FK_E_NOT_FOUND;
    end(fk__ctx_worker(ctx), ctx->cell, timer);
    return FK_OK;
}

bool fk__timer_move(fk_ctx *ctx, uint64_t key, fk_time period)
{
    fk_worker *worker = fk__ctx_worker(ctx);
    fk_mem *mem = &worker->sys->mem;
    fk_timer *timer = find(ctx->cell, key, 0);
    if (timer == NULL || timer->mode != FK_TIMER_FIXED_DELAY) return false;
    timer->period = period;
    fk__mem_lock(mem, &timer->owner->wheel_lock);
    bool is_waiting = fk__wheel_has(&timer->entry);
    if (is_waiting) fk__wheel_remove(&timer->owner->wheel, &timer->entry);
    fk__mem_unlock(mem, &timer->owner->wheel_lock);
    if (is_waiting) arm(worker, timer, fk__time_add(fk__system_now(worker->sys), period));
    return true;
}

bool fk_timer_is_active(const fk_ctx *ctx, uint64_t key)
{
    return find(ctx->cell, key, 0) != NULL;
}

fk_err fk_receive_timeout_set(fk_ctx *ctx, fk_time timeout)
{
    fk_cell *cell = ctx->cell;
    if (timeout < 0) return FK_E_INVALID;
    if (timeout == 0) {
        fk_timer *old = find(cell, 0, FK_TIMER_KIND_IDLE);
        if (old != NULL) end(fk__ctx_worker(ctx), cell, old);
        cell->flags &= (uint8_t)~FK_CELL_TIMED;
        return FK_OK;
    }
    fk_timer timer = { .period = timeout,
                       .mode = FK_TIMER_FIXED_DELAY,
                       .kind = FK_TIMER_KIND_IDLE };
    fk_worker *worker = fk__ctx_worker(ctx);
    FK_TRY(start(worker, cell, &timer, (fk_out){ &fk_type_receive_timeout, "" }));
    cell->flags |= FK_CELL_TIMED;
    fk__timers_touch(worker, cell);
    return FK_OK;
}
