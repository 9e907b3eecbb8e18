/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/timer.h"

#include "base/safeguard.h"
#include "core/extras.h"
#include "core/mailbox.h"

enum { BUCKETS_MIN = 4, TIMER_RECEIVE_TIMEOUT = 1 };

struct fk_timer {
    fk_wheel_entry entry; /* under the wheel's lock, like fire */
    fk_worker *owner;     /* whose wheel it is in, or was last */
    fk_node *fire;        /* goes to the mailbox; NULL while it is there */
    uint32_t slot, generation;
    fk_timer *chain; /* in its bucket */
    fk_timer_id id;
    fk_time period;
    fk_time due;
    uint8_t mode; /* fk_timer_mode */
    uint8_t kind; /* 0, or TIMER_RECEIVE_TIMEOUT */
    fk_node *message; /* NULL for a receive timeout */
};

/* ---- the actor's table ------------------------------------------------------------------- */

static fk_timer **bucket_of(const fk_timers *timers, uint64_t key)
{
    return &timers->bucket[fk__mix64(key) & (timers->bucket_count - 1)];
}

static fk_timer *find(const fk_cell *cell, uint64_t key, uint8_t kind)
{
    if (cell->extras == NULL || cell->extras->timers.count == 0) return NULL;
    fk_timer *timer = *bucket_of(&cell->extras->timers, key);
    while (timer != NULL && (timer->id.key != key || timer->kind != kind)) timer = timer->chain;
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
            fk_timer **to = bucket_of(&grown, timer->id.key);
            timer->chain = *to;
            *to = timer;
        }
    }
    fk__cache_free(&local->cache, timers->bucket, old * sizeof(*bucket));
    *timers = grown;
    return FK_OK;
}

/* Takes it out of its wheel if it is in one; a node that is in the mailbox already will find
 * nobody. Then forgets it. */
static void end(fk_worker *worker, fk_cell *cell, fk_timer *timer)
{
    fk_timers *timers = &cell->extras->timers;
    fk_cache *cache = &worker->local.cache;
    fk_mem *mem = &worker->sys->mem;
    fk__mem_lock(mem, &timer->owner->wheel_lock);
    if (fk__wheel_has(&timer->entry)) fk__wheel_remove(&timer->owner->wheel, &timer->entry);
    fk__mem_unlock(mem, &timer->owner->wheel_lock);

    fk_timer **link = bucket_of(timers, timer->id.key);
    while (*link != timer) link = &(*link)->chain;
    *link = timer->chain;
    timers->count--;
    fk__stat_add(&worker->local.stats.timers_ended, 1);
    if (timer->fire != NULL) fk__node_free(cache, timer->fire);
    if (timer->message != NULL) {
        fk__node_drop_contents(cache, timer->message);
        fk__node_free(cache, timer->message);
    }
    fk__cache_free(cache, timer, sizeof(*timer));
}

void fk__timers_fini(fk_worker *worker, fk_cell *cell)
{
    fk_timers *timers = &cell->extras->timers;
    for (uint32_t i = 0; i < timers->bucket_count; i++) {
        while (timers->bucket[i] != NULL) end(worker, cell, timers->bucket[i]);
    }
    fk__cache_free(&worker->local.cache, timers->bucket,
                   timers->bucket_count * sizeof(*timers->bucket));
    timers->bucket = NULL;
    timers->bucket_count = 0;
}

/* ---- the wheel --------------------------------------------------------------------------- */

static fk_node *fire_create(fk_cache *cache, const fk_timer *timer)
{
    fk_node *node = fk__cache_get(cache, FK_CLASS_48, FK_SITE("fired timer"));
    if (node == NULL) return NULL;
    node->type = timer->message != NULL ? timer->message->type : &fk_type_receive_timeout;
    node->sender = fk__sender_pack(timer->slot, timer->generation);
    node->generation = timer->generation;
    node->len = sizeof(fk_timer_id);
    node->flags = FK_NODE_TIMER;
    node->size_class = FK_CLASS_48;
    memcpy(node->bytes, &timer->id, sizeof(timer->id));
    return node;
}

static void arm(fk_worker *worker, fk_timer *timer)
{
    fk_mem *mem = &worker->sys->mem;
    timer->owner = worker;
    fk__mem_lock(mem, &worker->wheel_lock);
    fk__wheel_add(&worker->wheel, &timer->entry, timer->due);
    fk__mem_unlock(mem, &worker->wheel_lock);
    const fk_time tick = (fk_time)1 << FK_TICK_SHIFT;
    fk_time at = fk__time_add(timer->due, tick - 1) & ~(tick - 1);
    if (at < worker->wheel_next) worker->wheel_next = at;
}

void fk__timers_run(fk_worker *worker, fk_worker *owner)
{
    fk_system *sys = worker->sys;
    fk_link *first = NULL;
    fk_wheel_entry *entry;
    fk__mem_lock(&sys->mem, &owner->wheel_lock);
    while ((entry = fk__wheel_take(&owner->wheel, worker->now)) != NULL) {
        fk_timer *timer = FK_CONTAINER(entry, fk_timer, entry);
        fk_node *node = timer->fire;
        if (node == NULL) node = fire_create(&worker->local.cache, timer);
        if (node == NULL) { /* no memory: a tick later, then */
            fk__wheel_add(&owner->wheel, entry, worker->now + ((fk_time)1 << FK_TICK_SHIFT));
            break;
        }
        timer->fire = NULL;
        fk__word_store(&node->link.next, (uintptr_t)first, FK_RELAXED);
        first = &node->link;
    }
    fk_time next = fk__wheel_next(&owner->wheel);
    fk__mem_unlock(&sys->mem, &owner->wheel_lock);
    if (owner == worker) worker->wheel_next = next;

    /* The list is newest first; turn it round, so that timers fire in the order of their time. */
    fk_link *oldest = NULL;
    while (first != NULL) {
        fk_link *link = first;
        first = fk__word_ptr(&link->next, FK_RELAXED);
        fk__word_store(&link->next, (uintptr_t)oldest, FK_RELAXED);
        oldest = link;
    }
    while (oldest != NULL) {
        fk_node *node = FK_CONTAINER(oldest, fk_node, link);
        oldest = fk__word_ptr(&oldest->next, FK_RELAXED);
        fk_ref to = fk__sender_ref(node->sender, sys->id);
        fk_cell *cell = fk__cell_resolve(sys, to);
        if (cell == NULL) fk__node_free(&worker->local.cache, node); /* cancelled by its end */
        else if (fk__mailbox_push(cell, &node->link)) fk__schedule(&worker->local, cell);
    }
}

/* ---- delivery ---------------------------------------------------------------------------- */

static void rearm(fk_worker *worker, fk_timer *timer, fk_time due)
{
    timer->due = due;
    timer->fire = fire_create(&worker->local.cache, timer); /* NULL: made when it fires */
    arm(worker, timer);
}

static fk_timer *timer_of(const fk_cell *cell, const fk_node *node)
{
    fk_timer_id id;
    memcpy(&id, node->bytes, sizeof(id));
    uint8_t kind = node->type == &fk_type_receive_timeout ? TIMER_RECEIVE_TIMEOUT : 0;
    fk_timer *timer = find(cell, id.key, kind);
    if (timer == NULL) return NULL;
    if (FK_SAFEGUARD(TIMER_SERIAL) && timer->id.serial != id.serial) return NULL;
    return timer;
}

fk_timer *fk__timer_arrived(fk_worker *worker, fk_cell *cell, const fk_node *node, fk_msg *out)
{
    fk_timer *timer = timer_of(cell, node);
    if (timer == NULL) return NULL;
    if (timer->kind == TIMER_RECEIVE_TIMEOUT) {
        fk_time due = fk__time_add(cell->extras->timers.last_message, timer->period);
        if (fk__system_now(worker->sys) < due) {
            rearm(worker, timer, due);
            return NULL;
        }
        *out = (fk_msg){ &fk_type_receive_timeout, NULL, 0, FK_REF_NONE };
    } else {
        fk__node_view(timer->message, cell->sys->id, out);
    }
    return timer;
}

fk_err fk__timer_detach(fk_worker *worker, fk_cell *cell, const fk_node *node, fk_node **out)
{
    fk_cache *cache = &worker->local.cache;
    fk_timer *timer = timer_of(cell, node);
    if (timer == NULL || timer->message == NULL) return FK_E_STATE;
    if (timer->mode == FK_TIMER_ONCE) {
        *out = timer->message;
        timer->message = NULL;
        return FK_OK;
    }
    fk_node *original = timer->message;
    if ((original->flags & FK_NODE_DROP) != 0) return FK_E_STATE;
    fk_node *copy = fk__node_copy(cache, original);
    if (copy == NULL) return cache->err;
    if ((original->flags & FK_NODE_PAYLOAD) != 0) fk__node_share(original);
    *out = copy;
    return FK_OK;
}

void fk__timer_reattach(fk_worker *worker, fk_cell *cell, const fk_node *node, fk_node *message)
{
    fk_timer *timer = timer_of(cell, node);
    FK_ASSERT(timer != NULL);
    if (timer->message == NULL) {
        timer->message = message;
        return;
    }
    fk__node_drop_contents(&worker->local.cache, message);
    fk__node_free(&worker->local.cache, message);
}

/* The next moment on the grid that is still to come: periods that were missed are skipped. */
static fk_time next_due(const fk_timer *timer, fk_time now)
{
    if (timer->mode == FK_TIMER_FIXED_DELAY) return fk__time_add(now, timer->period);
    fk_time next = fk__time_add(timer->due, timer->period);
    if (next > now) return next;
    fk_time missed = (now - timer->due) / timer->period;
    return fk__time_add(timer->due, (missed + 1) * timer->period);
}

void fk__timer_delivered(fk_worker *worker, fk_cell *cell, const fk_node *node)
{
    fk_timer *timer = timer_of(cell, node);
    if (timer == NULL) return; /* cancelled by its own message */
    /* Started again under the same key while its node was on its way: that one is armed. */
    if (timer->fire != NULL) return;
    fk_time now = fk__system_now(worker->sys);
    if (timer->kind == TIMER_RECEIVE_TIMEOUT) rearm(worker, timer, fk__time_add(now, timer->period));
    else if (timer->mode == FK_TIMER_ONCE) end(worker, cell, timer);
    else rearm(worker, timer, next_due(timer, now));
}

/* ---- receive timeout --------------------------------------------------------------------- */

void fk__timers_touch(fk_worker *worker, fk_cell *cell)
{
    cell->extras->timers.last_message = fk__system_now(worker->sys);
}

/* ---- the public functions ---------------------------------------------------------------- */

static fk_err start(fk_ctx *ctx, fk_timer *made, fk_out *msg)
{
    fk_worker *worker = ctx->worker;
    fk_cell *cell = ctx->cell;
    fk_local *local = &worker->local;
    FK_TRY(fk__extras_need(local, cell));
    fk_timers *timers = &cell->extras->timers;
    FK_TRY(timers_reserve(local, timers));
    fk_timer *timer = fk__cache_alloc(&local->cache, sizeof(*timer), FK_SITE("timer"));
    if (timer == NULL) return local->cache.err;
    *timer = *made;
    timer->slot = cell->slot;
    timer->generation = fk__half_load(&cell->generation, FK_RELAXED);
    if (msg != NULL) timer->message = fk__node_create(&local->cache, *msg);
    if (timer->message != NULL) {
        timer->message->sender = fk__sender_pack(timer->slot, timer->generation);
    }
    if (msg == NULL || timer->message != NULL) {
        timer->id.serial = timers->serial + 1;
        timer->fire = fire_create(&local->cache, timer);
    }
    if (timer->fire == NULL) {
        fk_err err = local->cache.err;
        if (timer->message != NULL) fk__node_free(&local->cache, timer->message);
        fk__cache_free(&local->cache, timer, sizeof(*timer));
        return err; /* msg is still the caller's */
    }
    fk_timer *old = find(cell, timer->id.key, timer->kind);
    if (old != NULL) end(worker, cell, old);
    timers->serial++;
    fk_timer **bucket = bucket_of(timers, timer->id.key);
    timer->chain = *bucket;
    *bucket = timer;
    timers->count++;
    fk__stat_add(&local->stats.timers_started, 1);
    arm(worker, timer);
    return FK_OK;
}

fk_err fk_timer_start(fk_ctx *ctx, uint64_t key, fk_timer_mode mode, fk_time period, fk_out msg)
{
    fk_err err = FK_E_INVALID;
    if (period >= 0 && (unsigned)mode <= FK_TIMER_FIXED_RATE &&
        (period > 0 || mode == FK_TIMER_ONCE)) {
        fk_timer timer = { .id = { .key = key }, .period = period, .mode = (uint8_t)mode };
        timer.due = fk__time_add(fk__system_now(ctx->worker->sys), period);
        err = start(ctx, &timer, &msg);
    }
    if (err != FK_OK) fk__out_drop(&ctx->worker->local.cache, msg);
    return err;
}

fk_err fk_timer_cancel(fk_ctx *ctx, uint64_t key)
{
    fk_timer *timer = find(ctx->cell, key, 0);
    if (timer == NULL) return FK_E_NOT_FOUND;
    end(ctx->worker, ctx->cell, timer);
    return FK_OK;
}

bool fk_timer_is_active(const fk_ctx *ctx, uint64_t key)
{
    return find(ctx->cell, key, 0) != NULL;
}

fk_err fk_receive_timeout_set(fk_ctx *ctx, fk_time timeout)
{
    fk_cell *cell = ctx->cell;
    if (timeout < 0) return FK_E_INVALID;
    fk_timer *old = find(cell, 0, TIMER_RECEIVE_TIMEOUT);
    if (timeout == 0) {
        if (old != NULL) end(ctx->worker, cell, old);
        cell->flags &= (uint8_t)~FK_CELL_TIMED;
        return FK_OK;
    }
    fk_timer timer = { .period = timeout, .kind = TIMER_RECEIVE_TIMEOUT };
    fk_time now = fk__system_now(ctx->worker->sys);
    timer.due = fk__time_add(now, timeout);
    FK_TRY(start(ctx, &timer, NULL));
    cell->flags |= FK_CELL_TIMED;
    cell->extras->timers.last_message = now;
    return FK_OK;
}
