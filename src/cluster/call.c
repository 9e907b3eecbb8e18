/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The desk has one map, for tickets and for numbers: a ticket has the highest bit set. A call has a
 * ticket as long as it is in the desk's hands, and a new one for each try. That is how we know, after
 * a function of the user's has returned, whether the call is still there and still as we left it.
 *
 * Room in map and heap is made when a call is submitted; nothing that happens to it later can fail for
 * want of memory. While a call is with deliver() or send(), which may give it back, its room is kept:
 * desk->count goes down only when it is gone for good.
 */

#include "cluster/call.h"

#include "base/map.h"
#include "base/safeguard.h"

#define DESK_TICKET ((uint64_t)1 << 63)

struct fk_desk {
    fk_mem *mem;
    fk_desk_config config;
    fk_pool pool; /* of the map */
    fk_cache cache;
    fk_map map;
    fk_deadlines dues;
    fk_call *first, *last; /* numbered, by seq */
    uint64_t seq;          /* of the next */
    uint64_t tickets;
    uint32_t count;
    fk_err over; /* not FK_OK: nothing is taken on any more */
};

bool fk__call_may_retry(fk_err err)
{
    switch (err) {
    case FK_E_NOT_READY:
    case FK_E_LOCK_DENIED:
    case FK_E_STORAGE:
    case FK_E_FENCED:
    case FK_E_CONFLICT:
    case FK_E_STOPPING:
    case FK_E_UNRESOLVED:
    case FK_E_FULL:
    case FK_E_QUARANTINED:
    case FK_E_DEAD: return true;
    default: return false;
    }
}

static fk_time desk_or(fk_time given, fk_time otherwise)
{
    return given > 0 ? given : otherwise;
}

fk_err fk__desk_create(fk_mem *mem, const fk_desk_config *config, fk_desk **out)
{
    FK_ASSERT(config->origin != 0);
    void *made;
    FK_TRY(fk__mem_alloc(mem, sizeof(fk_desk), FK_SITE("desk"), &made));
    fk_desk *desk = made;
    *desk = (fk_desk){ .mem = mem, .config = *config, .seq = 1 };
    fk_desk_config *c = &desk->config;
    c->resend_after = desk_or(c->resend_after, FK_SECONDS(1));
    c->resend_max = desk_or(c->resend_max, FK_SECONDS(5));
    c->retry_min = desk_or(c->retry_min, FK_MILLIS(10));
    c->retry_max = desk_or(c->retry_max, FK_MILLIS(500));
    if (c->calls_max == 0) c->calls_max = 1048576;
    fk__pool_init(&desk->pool, mem, true);
    fk__cache_init(&desk->cache, &desk->pool);
    *out = desk;
    return FK_OK;
}

void fk__desk_destroy(fk_desk *desk)
{
    fk__desk_give_up(desk, FK_E_STOPPING);
    FK_ASSERT(desk->count == 0);
    fk__map_fini(&desk->cache, &desk->map);
    fk__cache_fini(&desk->cache);
    fk__pool_fini(&desk->pool);
    fk__mem_free(desk->mem, desk->dues.heap, desk->dues.capacity * sizeof(*desk->dues.heap));
    fk__mem_free(desk->mem, desk, sizeof(*desk));
}

/* For one more call: a place in the heap, and two in the map. */
static fk_err desk_reserve(fk_desk *desk)
{
    FK_TRY(fk__map_room(&desk->cache, &desk->map, 2 * (desk->count + 1), FK_SITE("desk.map")));
    fk_deadlines *dues = &desk->dues;
    if (desk->count < dues->capacity) return FK_OK;
    uint32_t capacity = dues->capacity != 0 ? dues->capacity * 2 : 16;
    void *grown;
    FK_TRY(fk__mem_alloc(desk->mem, capacity * sizeof(*dues->heap), FK_SITE("desk.dues"), &grown));
    if (dues->count != 0) memcpy(grown, dues->heap, dues->count * sizeof(*dues->heap));
    fk__mem_free(desk->mem, dues->heap, dues->capacity * sizeof(*dues->heap));
    dues->heap = grown;
    dues->capacity = capacity;
    return FK_OK;
}

/* ---- what the desk knows of a call ------------------------------------------------------------ */

static bool desk_is_numbered(const fk_desk *desk, const fk_call *call)
{
    return call->is_ours && call->request.origin == desk->config.origin;
}

/* Numbers mostly go up, so the place is looked for from the end. */
static void desk_list(fk_desk *desk, fk_call *call)
{
    fk_call *before = desk->last;
    while (before != NULL && before->request.seq > call->request.seq) before = before->prev;
    call->prev = before;
    call->next = before != NULL ? before->next : desk->first;
    *(before != NULL ? &before->next : &desk->first) = call;
    *(call->next != NULL ? &call->next->prev : &desk->last) = call;
    FK_ASSERT(fk__map_get(&desk->map, call->request.seq) == NULL);
    fk__map_put(&desk->map, call->request.seq, call);
}

static void desk_unlist(fk_desk *desk, fk_call *call)
{
    *(call->prev != NULL ? &call->prev->next : &desk->first) = call->next;
    *(call->next != NULL ? &call->next->prev : &desk->last) = call->prev;
    call->next = call->prev = NULL;
    fk__map_remove(&desk->map, call->request.seq);
}

static void desk_give_ticket(fk_desk *desk, fk_call *call)
{
    if (call->ticket != 0) fk__map_remove(&desk->map, call->ticket);
    call->ticket = DESK_TICKET | ++desk->tickets;
    fk__map_put(&desk->map, call->ticket, call);
}

/* Whoever attaches it gives it a ticket, too. */
static void desk_attach(fk_desk *desk, fk_call *call)
{
    call->ticket = 0;
    call->due = FK_DEADLINE_INIT;
    call->next = call->prev = NULL;
    if (desk_is_numbered(desk, call)) desk_list(desk, call);
}

static void desk_detach(fk_desk *desk, fk_call *call)
{
    fk__deadline_set(&desk->dues, &call->due, FK_NEVER);
    fk__map_remove(&desk->map, call->ticket);
    call->ticket = 0;
    if (desk_is_numbered(desk, call)) desk_unlist(desk, call);
}

/* False: it has ended, or has gone on, while somebody else was at work. The call itself must not be
 * looked at before. */
static bool desk_is_at(const fk_desk *desk, const fk_call *call, uint64_t ticket)
{
    return fk__map_get(&desk->map, ticket) == call;
}

static void desk_set_due(fk_desk *desk, fk_call *call, fk_time at)
{
    fk__deadline_set(&desk->dues, &call->due, at < call->deadline ? at : call->deadline);
}

static void desk_end(fk_desk *desk, fk_call *call, fk_err err, void *answer)
{
    desk_detach(desk, call);
    desk->count--;
    desk->config.ops.finish(desk->config.ops.ctx, call, err, answer);
}

static void desk_end_late(fk_desk *desk, fk_call *call)
{
    fk_err err = call->cause != FK_OK ? call->cause : FK_E_TIMEOUT;
    desk_end(desk, call, err == FK_E_FULL ? FK_E_OVERLOADED : err, NULL);
}

static fk_time desk_backoff(fk_time least, fk_time most, uint16_t times)
{
    fk_time delay = least;
    for (uint16_t i = 0; i < times && delay < most; i++) delay = fk__time_add(delay, delay);
    return delay < most ? delay : most;
}

static void desk_count(uint16_t *times)
{
    if (*times < UINT16_MAX) (*times)++;
}

/* ---- tries ------------------------------------------------------------------------------------ */

/* It could not be done. is_transient: it may be later. */
static void desk_refused(fk_desk *desk, fk_call *call, fk_err err, bool is_transient, fk_time now)
{
    /* Who waited at an activation already is not sent away because all of those want to wait for the next
     * at once. That it may try again its origin knows by FK_E_FULL. */
    if (err == FK_E_OVERLOADED && call->returns > 0) {
        err = FK_E_FULL;
        is_transient = true;
    }
    if (!call->is_ours || !is_transient) {
        desk_end(desk, call, err, NULL);
        return;
    }
    const fk_desk_config *c = &desk->config;
    call->state = FK_CALL_WAITING;
    call->cause = err;
    call->authority = (fk_str){ NULL, 0 };
    fk_time delay = desk_backoff(c->retry_min, c->retry_max, call->refusals);
    desk_count(&call->refusals);
    desk_set_due(desk, call, fk__time_add(now, delay));
}

static bool desk_may_retry_out(fk_err err)
{
    return err == FK_E_NOMEM || fk__call_may_retry(err);
}

static void desk_number(fk_desk *desk, fk_call *call)
{
    if (desk_is_numbered(desk, call)) {
        if (FK_SAFEGUARD(CALL_SAME_NUMBER)) return;
        desk_unlist(desk, call);
    } else if (call->earlier.origin == 0) {
        call->earlier = call->request;
    }
    call->request = (fk_request){ desk->config.origin, desk->seq++ };
    desk_list(desk, call);
}

/* The call goes to somebody, and comes back only if it is refused. */
static void desk_part(fk_desk *desk, fk_call *call, const fk_resolution *to, fk_time now)
{
    const fk_desk_ops *ops = &desk->config.ops;
    fk_str authority = { NULL, 0 };
    desk_detach(desk, call);
    fk_err err = to->locality == FK_LOCALITY_LOCAL ? ops->deliver(ops->ctx, call, to)
                                                   : ops->send(ops->ctx, call, to, &authority);
    if (err == FK_OK) {
        desk->count--;
        return;
    }
    desk_attach(desk, call);
    desk_give_ticket(desk, call);
    if (desk->over != FK_OK) {
        desk_end(desk, call, desk->over, NULL);
        return;
    }
    desk_refused(desk, call, err, desk_may_retry_out(err), now);
}

/* A copy of the call, which is numbered, goes to somebody. */
static void desk_post(fk_desk *desk, fk_call *call, const fk_resolution *to, fk_time now)
{
    const fk_desk_config *c = &desk->config;
    const fk_desk_ops *ops = &c->ops;
    uint64_t ticket = call->ticket;
    bool is_local = to->locality == FK_LOCALITY_LOCAL;
    fk_str authority = { NULL, 0 };
    call->state = FK_CALL_SENT;
    call->low = fk__desk_low(desk);
    call->authority = authority;
    call->incarnation = is_local ? 0 : to->incarnation;
    fk_time delay = desk_backoff(c->resend_after, c->resend_max, call->attempts);
    desk_set_due(desk, call, fk__time_add(now, delay));
    fk_err err =
        is_local ? ops->deliver(ops->ctx, call, to) : ops->send(ops->ctx, call, to, &authority);
    if (!desk_is_at(desk, call, ticket)) return;
    if (call->state != FK_CALL_SENT) return;
    if (err != FK_OK) {
        desk_refused(desk, call, err, desk_may_retry_out(err), now);
        return;
    }
    /* From now on nobody knows whether it had its effect; an earlier refusal says nothing. */
    call->cause = FK_OK;
    call->authority = is_local ? (fk_str){ NULL, 0 } : authority;
    desk_count(&call->attempts);
}

static void desk_resolved(fk_desk *desk, fk_call *call, const fk_resolution *to, fk_time now)
{
    if (to->locality == FK_LOCALITY_LOCAL) {
        if (desk_is_numbered(desk, call)) {
            desk_post(desk, call, to, now);
        } else {
            desk_part(desk, call, to, now);
        }
        return;
    }
    if (call->is_ours) {
        desk_number(desk, call);
        desk_post(desk, call, to, now);
        return;
    }
    if (call->hops >= FK_CALL_HOPS_MAX) {
        desk_end(desk, call, FK_E_NOT_READY, NULL);
        return;
    }
    call->hops++;
    desk_part(desk, call, to, now);
}

static void desk_try(fk_desk *desk, fk_call *call, fk_time now)
{
    const fk_desk_ops *ops = &desk->config.ops;
    desk_give_ticket(desk, call);
    if (now >= call->deadline) {
        desk_end_late(desk, call);
        return;
    }
    call->state = FK_CALL_RESOLVING;
    call->authority = (fk_str){ NULL, 0 };
    uint64_t ticket = call->ticket;
    fk_resolution to = { .err = FK_OK };
    fk_err err = ops->resolve(ops->ctx, call, now, &to);
    /* It may have been settled, or ended, meanwhile. */
    if (!desk_is_at(desk, call, ticket)) return;
    if (call->state != FK_CALL_RESOLVING) return;
    if (err == FK_E_PENDING) {
        desk_set_due(desk, call, FK_NEVER);
        return;
    }
    if (err != FK_OK) {
        desk_refused(desk, call, err, fk__call_may_retry(err), now);
        return;
    }
    desk_resolved(desk, call, &to, now);
}

/* ---- what happens to the desk ----------------------------------------------------------------- */

void fk__desk_submit(fk_desk *desk, fk_call *call, fk_time now)
{
    const fk_desk_ops *ops = &desk->config.ops;
    fk_err err = desk->over;
    /* Those that come back were taken on already. */
    bool is_new = call->returns == 0;
    if (err == FK_OK && is_new && desk->count >= desk->config.calls_max) err = FK_E_OVERLOADED;
    if (err == FK_OK) err = desk_reserve(desk);
    if (err != FK_OK) {
        ops->finish(ops->ctx, call, err, NULL);
        return;
    }
    desk->count++;
    call->attempts = call->refusals = 0;
    if (desk_is_numbered(desk, call) && call->request.seq >= desk->seq) {
        desk->seq = call->request.seq + 1;
    }
    desk_attach(desk, call);
    if (!call->is_ours || call->returns < 2) {
        desk_try(desk, call, now);
        return;
    }
    const fk_desk_config *c = &desk->config;
    desk_give_ticket(desk, call);
    call->state = FK_CALL_WAITING;
    call->authority = (fk_str){ NULL, 0 };
    fk_time delay = desk_backoff(c->retry_min, c->retry_max, (uint16_t)(call->returns - 2));
    desk_set_due(desk, call, fk__time_add(now, delay));
}

void fk__desk_settled(fk_desk *desk, uint64_t ticket, const fk_resolution *resolution, fk_time now)
{
    if ((ticket & DESK_TICKET) == 0) return;
    fk_call *call = fk__map_get(&desk->map, ticket);
    if (call == NULL || call->state != FK_CALL_RESOLVING) return;
    if (now >= call->deadline) {
        desk_end_late(desk, call);
    } else if (resolution->err != FK_OK) {
        desk_refused(desk, call, resolution->err, fk__call_may_retry(resolution->err), now);
    } else {
        desk_resolved(desk, call, resolution, now);
    }
}

fk_call *fk__desk_find(const fk_desk *desk, fk_request request)
{
    if (request.origin != desk->config.origin || (request.seq & DESK_TICKET) != 0) return NULL;
    return fk__map_get(&desk->map, request.seq);
}

bool fk__desk_answered(fk_desk *desk, fk_request request, fk_err err, void *answer, fk_time now)
{
    fk_call *call = fk__desk_find(desk, request);
    if (call == NULL) return false;
    if (answer != NULL || !fk__call_may_retry(err)) {
        desk_end(desk, call, err, answer);
    } else if (call->state == FK_CALL_SENT) {
        desk_refused(desk, call, err, true, now);
    } else {
        /* It is being tried again already. */
        call->cause = err;
    }
    return true;
}

void fk__desk_members_changed(fk_desk *desk, bool (*has_member)(void *ctx, fk_str id, uint64_t inc),
                              void *ctx, fk_time now)
{
    for (fk_call *call = desk->first; call != NULL; call = call->next) {
        if (call->state != FK_CALL_SENT || call->authority.len == 0) continue;
        if (has_member(ctx, call->authority, call->incarnation)) continue;
        call->state = FK_CALL_WAITING;
        call->authority = (fk_str){ NULL, 0 };
        desk_set_due(desk, call, now);
    }
}

void fk__desk_cancel(fk_desk *desk, fk_request request, fk_time now)
{
    (void)now;
    fk_call *call = fk__desk_find(desk, request);
    if (call != NULL) desk_end(desk, call, FK_E_DEAD, NULL);
}

void fk__desk_tick(fk_desk *desk, fk_time now)
{
    for (;;) {
        fk_deadline *due = fk__deadlines_first(&desk->dues);
        if (due == NULL || due->at > now) return;
        /* Whatever becomes of it, it is not due again before a later time. */
        desk_try(desk, FK_CONTAINER(due, fk_call, due), now);
    }
}

fk_time fk__desk_next(const fk_desk *desk)
{
    const fk_deadline *due = fk__deadlines_first(&desk->dues);
    return due != NULL ? due->at : FK_NEVER;
}

uint64_t fk__desk_low(const fk_desk *desk)
{
    return FK_SAFEGUARD(DEDUP_LOW) && desk->first != NULL ? desk->first->request.seq : desk->seq;
}

uint32_t fk__desk_count(const fk_desk *desk)
{
    return desk->count;
}

void fk__desk_give_up(fk_desk *desk, fk_err err)
{
    FK_ASSERT(err != FK_OK);
    if (desk->over == FK_OK) desk->over = err;
    uint32_t cursor = 0;
    while (desk->map.count != 0) {
        fk_call *call = fk__map_next(&desk->map, &cursor);
        if (call != NULL) {
            desk_end(desk, call, err, NULL);
            cursor--; /* another one may have moved to its place */
        } else {
            cursor = 0;
        }
    }
}

static void desk_check_call(const fk_desk *desk, const fk_call *call)
{
    FK_ASSERT(call->state != FK_CALL_NEW);
    FK_ASSERT(fk__map_get(&desk->map, call->ticket) == call);
    FK_ASSERT(call->due.at <= call->deadline);
    FK_ASSERT(call->state != FK_CALL_SENT || desk_is_numbered(desk, call));
    FK_ASSERT(call->state != FK_CALL_WAITING || call->is_ours);
    FK_ASSERT(!desk_is_numbered(desk, call) || fk__map_get(&desk->map, call->request.seq) == call);
}

void fk__desk_check(const fk_desk *desk)
{
    fk__deadlines_check(&desk->dues);
    uint32_t numbered = 0;
    for (const fk_call *call = desk->first; call != NULL; call = call->next) {
        FK_ASSERT(desk_is_numbered(desk, call));
        FK_ASSERT(call->request.seq < desk->seq);
        FK_ASSERT(call->next != NULL || desk->last == call);
        FK_ASSERT(call->next == NULL || call->next->prev == call);
        FK_ASSERT(call->next == NULL || call->next->request.seq > call->request.seq);
        numbered++;
    }
    /* Each has a ticket, and those with a number are there twice. */
    uint32_t cursor = 0;
    uint32_t seen = 0;
    for (const fk_call *call; (call = fk__map_next(&desk->map, &cursor)) != NULL; seen++) {
        desk_check_call(desk, call);
    }
    FK_ASSERT(seen == desk->count + numbered);
    FK_ASSERT(desk->count <= desk->config.calls_max);
}
