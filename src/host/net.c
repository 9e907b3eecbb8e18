/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The loop of worker 0: actors, driver, sockets, in turn, on one thread; so a request is read, handled
 * and answered without a hop.
 *
 * Asleep or not. The thread blocks in uv_run() only right after fk__worker_run() has said that the
 * worker is parked, and nothing has happened since. Whatever is done to the driver may send with the
 * worker's local, which puts cells into queues that only an awake worker looks at: so every callback
 * of the loop and every run of the driver begins with fk__worker_rouse(), which takes the worker out
 * of the count of the parked and the sentinel's mark from it, and is followed by fk__worker_run(),
 * which may park again. Wakers that come in between find the worker running, which is true.
 *
 * Calling. One word says whether the thread is (about to be) in uv_run() and whether somebody has
 * called. Both sides only read-modify-write it, so of a caller and a thread that lies down one sees
 * the other: the caller sends the async, or the thread does not block. A call costs a system call
 * only if it is the first one to a sleeping thread.
 *
 *   NET_WOKEN    the worker has work; seen by fk__worker_run(), which comes before the next sleep
 *   NET_CALLED   the driver has work; stays until it runs
 *
 * Lending. While the thread sleeps and nobody has called, another one may take its place for a write
 * (remote/transport.h). NET_LENT says so; callers then leave it to that one to send the async, and
 * whoever gets up waits for it (NET_AWAITED). libuv's loop is nobody's but the thread's: what it has to
 * know of a write that is not done, it finds out when it gets up.
 */

#include <limits.h>
#include <unistd.h>

#include "host/net_state.h"

enum { NET_ASLEEP = 1, NET_WOKEN = 2, NET_CALLED = 4, NET_LENT = 8, NET_AWAITED = 16 };

enum {
    WINDOWS = 4,         /* of 64 turns, between looks at the driver */
    POLL_NS = 50000,     /* with work at hand sockets are looked at so often */
    ROUNDS_AT_ONCE = 16, /* of the caller's loop */
    SWEEP_MS = 1000
};

/* ---- waking -------------------------------------------------------------------------------- */

static void net_call(fk_net *net, uint32_t why)
{
    /* Release: what it is called for; acquire: see above. Pairs with lie_down() and get_up(). */
    uint32_t before = fk__half_or(&net->state, why, FK_ACQ_REL);
    if (before == NET_ASLEEP) uv_async_send(&net->async);
}

void fk__net_wake(fk_net *net)
{
    net_call(net, NET_WOKEN);
}

static void transport_wake(void *ctx)
{
    net_call(ctx, NET_CALLED);
}

/* False: somebody has called before. From now on callers send the async. */
static bool lie_down(fk_net *net)
{
    net->is_down = true;
    return (fk__half_or(&net->state, NET_ASLEEP, FK_ACQ_REL) & (NET_WOKEN | NET_CALLED)) == 0;
}

/* Until nobody has borrowed it; from then on nobody can. Pairs with the borrower's two. */
static void get_back(fk_net *net)
{
    const fk_port *port = &net->sys->mem.port;
    uint32_t state = fk__half_load(&net->state, FK_RELAXED);
    for (;;) {
        uint32_t up = state & ~(uint32_t)(NET_ASLEEP | NET_WOKEN | NET_AWAITED);
        if ((state & NET_LENT) == 0) {
            if (fk__half_cas(&net->state, &state, up, FK_ACQ_REL)) return;
            continue;
        }
        state = fk__half_or(&net->state, NET_AWAITED, FK_ACQ_REL) | NET_AWAITED;
        if ((state & NET_LENT) == 0) continue;
        port->wait(port->ctx, (uint32_t *)(void *)&net->state, state, FK_NEVER);
        state = fk__half_load(&net->state, FK_RELAXED);
    }
}

static void get_up(fk_net *net)
{
    if (!net->is_down) return;
    get_back(net);
    net->is_down = false;
    if (net->unwatched != NULL) fk__conn_stall(net->unwatched);
    net->unwatched = NULL;
}

static bool transport_borrow(void *ctx)
{
    fk_net *net = ctx;
    uint32_t asleep = NET_ASLEEP;
    if (fk__half_load(&net->state, FK_RELAXED) != NET_ASLEEP) return false;
    /* Acquire: what the thread did before it lay down. */
    return fk__half_cas(&net->state, &asleep, NET_ASLEEP | NET_LENT, FK_ACQ_REL);
}

static void transport_give_back(void *ctx)
{
    fk_net *net = ctx;
    const fk_port *port = &net->sys->mem.port;
    if (net->unwatched != NULL) fk__half_or(&net->state, NET_CALLED, FK_RELAXED);
    /* Release: all that was done in its place. */
    uint32_t before = fk__half_and(&net->state, ~(uint32_t)(NET_LENT | NET_AWAITED), FK_ACQ_REL);
    if ((before & NET_AWAITED) != 0)
        port->notify(port->ctx, (uint32_t *)(void *)&net->state);
    else if ((before & (NET_WOKEN | NET_CALLED)) != 0)
        uv_async_send(&net->async);
}

void fk__net_enter(fk_net *net)
{
    get_up(net); /* what we ourselves call for needs no system call */
    fk__worker_rouse(net->worker);
    if (!net->is_fresh) net->now = fk__system_now(net->sys);
    net->is_fresh = true;
    net->is_touched = true;
}

/* ---- the driver ---------------------------------------------------------------------------- */

static bool is_due(const fk_net *net)
{
    bool is_called = (fk__half_load(&net->state, FK_RELAXED) & NET_CALLED) != 0;
    return is_called || net->is_touched || net->now >= net->next;
}

static void drive(fk_net *net)
{
    /* Before it looks: whoever comes later calls again. Acquire pairs with net_call(). */
    fk__half_and(&net->state, ~(uint32_t)NET_CALLED, FK_ACQ_REL);
    net->is_touched = false;
    fk__worker_rouse(net->worker);
    net->next = fk__driver_run(net->driver, net->now);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static uint64_t to_ms(fk_time time)
{
    return (uint64_t)(time / FK_MILLIS(1)) + (time % FK_MILLIS(1) != 0);
}

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* it has ended the wait */
}

static void on_async(uv_async_t *async)
{
    (void)async; /* the word says what for */
}

static void timer_set(fk_net *net, fk_time wait)
{
    fk_time left = net->next == FK_NEVER ? FK_NEVER : net->next - net->now;
    if (left < wait) wait = left > 0 ? left : 1;
    if (wait == FK_NEVER) {
        uv_timer_stop(&net->timer);
        return;
    }
    uv_update_time(&net->loop); /* or it would begin when the loop last looked at the clock */
    uv_timer_start(&net->timer, on_timer, to_ms(wait), 0);
}

/* Sockets and timers of the loop; blocks for up to `wait`. */
static void net_poll(fk_net *net, fk_time wait)
{
    net->is_fresh = false;
    if (wait != 0 && !lie_down(net)) wait = 0;
    if (wait != 0) timer_set(net, wait);
    uv_run(&net->loop, wait != 0 ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    get_up(net);
    if (wait != 0 && !net->is_fresh) net->now = fk__system_now(net->sys);
    net->polled = net->now;
}

void fk__net_run(fk_net *net)
{
    for (;;) {
        fk_time wait = fk__worker_run(net->worker, WINDOWS);
        if (wait == FK_WORKER_EXIT) return;
        net->now = net->worker->now;
        bool is_busy = wait == 0;
        if (is_due(net)) {
            drive(net);
            is_busy = true; /* it may have sent, and the worker does not count as parked */
        }
        if (is_busy && net->now - net->polled < POLL_NS) continue;
        net_poll(net, is_busy ? 0 : wait);
        if (is_due(net)) drive(net);
    }
}

/* ---- in the caller's loop ------------------------------------------------------------------ */

int fk__net_fd(const fk_net *net)
{
    return uv_backend_fd(&net->loop);
}

fk_time fk__net_left(fk_net *net)
{
    fk_time left = net->next == FK_NEVER ? FK_NEVER : net->next - fk__system_now(net->sys);
    uv_update_time(&net->loop);
    int ms = uv_backend_timeout(&net->loop);
    if (ms >= 0 && FK_MILLIS(ms) < left) left = FK_MILLIS(ms);
    return left > 0 ? left : 0;
}

void fk__net_turn(fk_net *net, uint32_t windows)
{
    bool is_busy = true;
    get_up(net);
    for (int round = 0; round < ROUNDS_AT_ONCE && is_busy; round++) {
        /* Also for what the driver has begun: libuv tells the kernel only when it runs. */
        net_poll(net, 0);
        if (!net->is_fresh) net->now = fk__system_now(net->sys);
        bool is_driven = is_due(net);
        if (is_driven) drive(net);
        fk_time wait = fk__worker_run(net->worker, windows);
        net->now = net->worker->now;
        if (wait == 0) break; /* a long time is over already */
        is_busy = is_driven || is_due(net);
    }
    /* What is left makes the descriptor readable; and so does who calls from now on. */
    bool is_called = !lie_down(net);
    if (is_busy || is_called) uv_async_send(&net->async);
}

/* ---- deadlines ----------------------------------------------------------------------------- */

static void on_sweep(uv_timer_t *timer)
{
    fk_net *net = timer->data;
    fk__net_enter(net);
    fk__net_resume_listener(net);
    fk__conns_sweep(net);
    fk__lookups_run(net);
    fk__net_sweep(net);
}

void fk__net_sweep(fk_net *net)
{
    bool wanted = net->timed > 0 || net->listener.is_paused;
    bool is_active = uv_is_active((uv_handle_t *)&net->sweep) != 0;
    if (wanted && !is_active) uv_timer_start(&net->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    if (!wanted && is_active) uv_timer_stop(&net->sweep);
}

/* ---- beginning and end --------------------------------------------------------------------- */

static fk_err loop_open(fk_net *net)
{
    if (uv_loop_init(&net->loop) != 0) return FK_E_OS;
    if (uv_async_init(&net->loop, &net->async, on_async) != 0) {
        uv_loop_close(&net->loop);
        return FK_E_OS;
    }
    if (fk__lookups_init(net) != FK_OK) {
        uv_close((uv_handle_t *)&net->async, NULL);
        uv_run(&net->loop, UV_RUN_DEFAULT);
        uv_loop_close(&net->loop);
        return FK_E_OS;
    }
    uv_timer_init(&net->loop, &net->timer);
    uv_timer_init(&net->loop, &net->sweep);
    net->sweep.data = net;
    net->has_loop = true;
    /* libuv tells the kernel what it waits for only when it runs, and the async must make the loop's
     * descriptor readable from the start. */
    uv_run(&net->loop, UV_RUN_NOWAIT);
    return FK_OK;
}

static void loop_close(fk_net *net)
{
    fk_conn *next;
    for (fk_conn *conn = net->conns; conn != NULL; conn = next) {
        next = conn->next;
        /* What was taken is the kernel's, which goes on sending after a plain close. */
        fk__conn_drop(conn, false);
    }
    fk__net_close_listener(net);
    fk__lookups_fini(net);
    uv_close((uv_handle_t *)&net->async, NULL);
    uv_close((uv_handle_t *)&net->timer, NULL);
    uv_close((uv_handle_t *)&net->sweep, NULL);
    /* Until the last handle is closed. */
    while (uv_run(&net->loop, UV_RUN_DEFAULT) != 0) {
    }
    FK_ASSERT(net->conns == NULL);
    int left = uv_loop_close(&net->loop);
    FK_ASSERT(left == 0);
}

fk_err fk__net_create(fk_system *sys, int listener, bool is_driven, fk_net **out)
{
    void *memory;
    fk_err err = fk__mem_alloc(&sys->mem, sizeof(fk_net), FK_SITE("network"), &memory);
    if (err != FK_OK) {
        close(listener);
        return err;
    }
    fk_net *net = memory;
    memset(net, 0, offsetof(fk_net, buffer));
    net->sys = sys;
    net->worker = sys->dispatch.worker[0];
    net->driver = fk__driver_of(sys);
    net->next = net->now = fk__system_now(sys); /* the driver has not run yet */
    net->stall = FK_NET_STALL;
    net->leave = FK_NET_LEAVE;
    net->lookup = FK_NET_LOOKUP;
    net->listener.fd = net->listener.spare = -1;
    net->transport = (fk_transport){
        net,
        fk__net_connect,
        fk__net_write,
        fk__net_close,
        transport_wake,
        transport_borrow,
        transport_give_back,
    };
    err = loop_open(net);
    if (err == FK_OK)
        err = fk__net_open_listener(net, listener);
    else
        close(listener);
    if (err != FK_OK) {
        fk__net_destroy(net);
        return err;
    }
    fk__driver_start(net->driver, &net->transport, net->worker);
    net->has_driver = true;
    if (is_driven && lie_down(net)) uv_async_send(&net->async); /* nothing has run yet */
    *out = net;
    return FK_OK;
}

void fk__net_destroy(fk_net *net)
{
    if (net == NULL) return;
    get_up(net); /* nobody needs to be woken any more */
    if (net->has_driver) fk__driver_stop(net->driver);
    if (net->has_loop) loop_close(net);
    fk__mem_free(&net->sys->mem, net, sizeof(*net));
}
