/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/rig.h"

#include <string.h>

/* ---- the port ---------------------------------------------------------------------------- */

static void *rig_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    rig *r = ctx;
    CHECK((old_size == 0) != (new_size == 0)); /* the port's contract: never a resize */
    void *result = r->host.alloc(r->host.ctx, ptr, old_size, new_size);
    if (new_size == 0) {
        CHECK(atomic_fetch_sub(&r->bytes, old_size) >= old_size);
        CHECK(atomic_fetch_sub(&r->blocks, 1) >= 1);
    } else if (result != NULL) {
        uint64_t bytes = atomic_fetch_add(&r->bytes, new_size) + new_size;
        atomic_fetch_add(&r->blocks, 1);
        atomic_fetch_add(&r->allocations, 1);
        uint64_t peak = atomic_load(&r->bytes_peak);
        while (bytes > peak && !atomic_compare_exchange_weak(&r->bytes_peak, &peak, bytes)) {
        }
    }
    return result;
}

static bool rig_admit(void *ctx, const fk_site *site, size_t size)
{
    rig *r = ctx;
    CHECK(size > 0);
    uint64_t asked = atomic_fetch_add(&r->asked, 1) + 1;
    uint64_t at = atomic_load(&r->fault_at);
    bool refuse = at != 0 && (asked == at || (atomic_load(&r->fault_stays) && asked > at));
    if (refuse) atomic_fetch_add(&r->refused, 1);
    if (r->on_admit != NULL) r->on_admit(r->on_admit_user, site, refuse);
    return !refuse;
}

static fk_time rig_now(void *ctx)
{
    rig *r = ctx;
    return r->is_real_time ? r->host.now(r->host.ctx) : atomic_load(&r->now);
}

static uint64_t rig_cycles(void *ctx)
{
    rig *r = ctx;
    return r->is_real_time ? r->host.cycles(r->host.ctx) : (uint64_t)atomic_load(&r->now);
}

void rig_init(rig *r)
{
    memset(r, 0, sizeof(*r));
    pthread_mutex_init(&r->lock, NULL);
    r->host = fk_host_port();
    r->port = r->host;
    r->port.ctx = r;
    r->port.alloc = rig_alloc;
    r->port.now = rig_now;
    if (r->host.cycles != NULL) r->port.cycles = rig_cycles;
    r->port.admit = rig_admit;
    atomic_store(&r->now, FK_SECONDS(1000));
}

/* ---- what the system reports ------------------------------------------------------------- */

static void on_dead_letter(void *user, const fk_dead_letter *letter)
{
    rig *r = user;
    pthread_mutex_lock(&r->lock);
    rig_letters *letters = &r->letters;
    letters->count++;
    letters->of[letter->reason]++;
    letters->last = *letter;
    size_t len = letter->len < sizeof(letters->bytes) ? letter->len : sizeof(letters->bytes);
    if (len != 0) memcpy(letters->bytes, letter->data, len);
    letters->last.data = letters->bytes;
    pthread_mutex_unlock(&r->lock);
}

static void on_failure(void *user, const fk_failure *failure)
{
    rig *r = user;
    pthread_mutex_lock(&r->lock);
    rig_failures *failures = &r->failures;
    failures->count++;
    failures->last = *failure;
    strncpy(failures->text, failure->detail, sizeof(failures->text) - 1);
    failures->last.detail = failures->text;
    pthread_mutex_unlock(&r->lock);
}

/* ---- the system -------------------------------------------------------------------------- */

fk_err rig_try_start(rig *r, const fk_system_config *config)
{
    fk_system_config own = *config;
    if (own.workers == 0) own.workers = FK_WORKERS_NONE;
    if (own.workers != FK_WORKERS_NONE) r->is_real_time = true;
    own.user = r;
    if (own.on_dead_letter == NULL) own.on_dead_letter = on_dead_letter;
    if (own.on_failure == NULL) own.on_failure = on_failure;
    own.port = &r->port;
    return fk_system_start(&own, &r->sys);
}

void rig_start_with(rig *r, fk_system_config config)
{
    rig_init(r);
    CHECK_OK(rig_try_start(r, &config));
}

void rig_start(rig *r)
{
    rig_start_with(r, (fk_system_config){ .name = "test" });
}

size_t rig_run(rig *r)
{
    size_t all = 0, turns;
    while ((turns = fk_host_run_once(r->sys, 0)) != 0) all += turns;
    return all;
}

void rig_advance(rig *r, fk_time by)
{
    atomic_fetch_add(&r->now, by);
    rig_run(r);
}

void rig_pass(rig *r, fk_time by)
{
    for (fk_time step; by > 0; by -= step) {
        step = by < FK_MILLIS(1) ? by : FK_MILLIS(1);
        rig_advance(r, step);
    }
}

void rig_check_empty(rig *r)
{
    CHECK_U64(atomic_load(&r->bytes), 0);
    CHECK_U64(atomic_load(&r->blocks), 0);
}

void rig_stop(rig *r)
{
    CHECK_OK(fk_system_stop(r->sys));
    r->sys = NULL;
    rig_check_empty(r);
    pthread_mutex_destroy(&r->lock);
}

void rig_fault(rig *r, uint64_t at, bool stays)
{
    atomic_store(&r->fault_at, 0);
    atomic_store(&r->asked, 0);
    atomic_store(&r->refused, 0);
    atomic_store(&r->fault_stays, stays);
    atomic_store(&r->fault_at, at);
}

/* ---- actors and messages ----------------------------------------------------------------- */

static fk_err probe_start(fk_ctx *ctx, void *state)
{
    probe *p = state;
    (void)ctx;
    CHECK(!p->started);
    p->started = true;
    return FK_OK;
}

fk_err probe_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    probe *p = state;
    const num *value = FK_AS(num, msg);
    (void)ctx;
    CHECK(!p->stopped);
    if (p->count < sizeof(p->n) / sizeof(p->n[0])) {
        p->n[p->count] = value != NULL ? value->n : PROBE_OTHER;
    }
    p->count++;
    p->type = msg->type;
    p->sender = msg->sender;
    p->len = msg->len;
    size_t len = msg->len < sizeof(p->bytes) ? msg->len : sizeof(p->bytes);
    if (len != 0 && msg->data != NULL) memcpy(p->bytes, msg->data, len);
    return FK_OK;
}

void probe_stop(fk_ctx *ctx, void *state)
{
    probe *p = state;
    (void)ctx;
    CHECK(!p->stopped);
    p->stopped = true;
}

fk_props probe_props(probe *p)
{
    memset(p, 0, sizeof(*p));
    return (
        fk_props){ .receive = probe_receive, .start = probe_start, .stop = probe_stop, .state = p };
}

fk_ref probe_spawn(rig *r, probe *p)
{
    fk_props props = probe_props(p);
    fk_ref ref = FK_REF_NONE;
    CHECK_OK(fk_spawn(r->sys, FK_STR(""), &props, &ref));
    return ref;
}

fk_err doer_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const rig_call *call = FK_AS(rig_call, msg);
    (void)state;
    return call != NULL ? call->fn(ctx, call->arg) : fk_unhandled(ctx, msg);
}

fk_ref doer_spawn(rig *r)
{
    fk_ref ref = FK_REF_NONE;
    CHECK_OK(fk_spawn(r->sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &ref));
    return ref;
}

void rig_do(rig *r, fk_ref doer, rig_call_fn fn, void *arg)
{
    CHECK_OK(fk_send(r->sys, doer, FK_MSG(rig_call, fn, arg)));
    rig_run(r);
}

static void owned_drop(void *message)
{
    owned *m = message;
    atomic_fetch_add(m->drops, 1);
}

static void owned_large_drop(void *message)
{
    owned_large *m = message;
    CHECK_U64(m->filling[0], m->n & 0xff);
    CHECK_U64(m->filling[199], m->n & 0xff);
    atomic_fetch_add(m->drops, 1);
}

const fk_type fk_type_owned = { "owned", sizeof(owned), _Alignof(owned), owned_drop };
const fk_type fk_type_owned_large = { "owned_large", sizeof(owned_large), _Alignof(owned_large),
                                      owned_large_drop };
