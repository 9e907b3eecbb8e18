/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/station.h"

#include "core/boot.h"
#include "remote/office.h"
#include "sim/sometimes.h"
#include "sim/world.h"

fk_network fk__sim_net;
fk_station fk__station[FK_STATIONS];

static uint32_t station_count;
static fk_station *running[FK_MACHINE_THREADS_MAX]; /* whose worker a thread is */
static fk_port world_port;

static const char *const HOSTS[FK_STATIONS] = { "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4" };
static const char *const ADDRESSES[FK_STATIONS] = { "fraktor.tcp://sim@10.0.0.1:2552",
                                                    "fraktor.tcp://sim@10.0.0.2:2552",
                                                    "fraktor.tcp://sim@10.0.0.3:2552",
                                                    "fraktor.tcp://sim@10.0.0.4:2552" };

enum { INPUT_AT_ONCE = 16, QUESTIONS_MAX = 100000 };

static void on_fail(const char *invariant, const char *what)
{
    fk__world_fail(invariant, "%s", what);
}

void fk__stations_begin(uint32_t count, const fk_network_config *config)
{
    static const fk_network_world WORLD = { fk__world_now, on_fail };
    memset(fk__station, 0, sizeof(fk__station));
    memset(running, 0, sizeof(running));
    world_port = fk__world_port();
    station_count = count;
    fk__network_begin(&fk__sim_net, &WORLD, config);
    for (uint32_t i = 0; i < count; i++) {
        fk__network_host(&fk__sim_net, fk_str_of(HOSTS[i]), FK_STATION_PORT);
        fk__station[i].number = i;
        fk__station[i].port = (fk_network_port){ &fk__sim_net, i };
    }
}

uint32_t fk__stations_count(void)
{
    return station_count;
}

fk_str fk__station_address(uint32_t station)
{
    return fk_str_of(ADDRESSES[station]);
}

const char *fk__station_host(uint32_t station)
{
    return HOSTS[station];
}

fk_station *fk__station_self(void)
{
    uint32_t self = fk__world_self();
    return self < FK_MACHINE_THREADS_MAX ? running[self] : NULL;
}

bool fk__station_is_inside(const fk_station *s)
{
    return fk__station_self() == s;
}

/* ---- the port of a system ---------------------------------------------------------------- */

static void *station_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    const fk_station *s = ctx;
    fk__world_own((uint8_t)(s->number + 1));
    void *memory = world_port.alloc(NULL, ptr, old_size, new_size);
    fk__world_own(0);
    return memory;
}

static uint32_t word_of(const fk_station *s, uint32_t worker)
{
    return s->number * FK_STATION_WORKERS + worker;
}

static void station_wake(void *ctx, uint32_t worker)
{
    fk__world_worker_wake(NULL, word_of(ctx, worker));
}

static bool station_is_inside(void *ctx)
{
    return fk__station_is_inside(ctx);
}

static fk_reporting *station_reporting(void *ctx)
{
    fk_station *s = ctx;
    return &s->reporting[fk__world_self()];
}

/* ---- the driver and the network ------------------------------------------------------------ */

static void driver_wake(void *ctx)
{
    const fk_network_port *port = ctx;
    fk_station *s = &fk__station[port->host];
    /* Release pairs with the swap in drive() and the load in is_due(). */
    fk__half_store(&s->is_woken, 1, FK_RELEASE);
    station_wake(s, 0);
}

/* All of the transport but wake is for the driver's thread. */
static void check_thread(const fk_network_port *port)
{
    const fk_station *s = &fk__station[port->host];
    if (fk__world_self() != s->thread[0])
        fk__world_fail("contract", "the transport is called by another thread");
}

static fk_err transport_connect(void *ctx, fk_conn_id conn, fk_str host, uint16_t number,
                                bool is_wanted)
{
    (void)is_wanted; /* names are not looked up */
    check_thread(ctx);
    return fk__network_connect(ctx, conn, host, number);
}

static bool transport_write(void *ctx, fk_conn_id conn, const void *bytes, size_t len)
{
    check_thread(ctx);
    return fk__network_write(ctx, conn, bytes, len);
}

static void transport_close(void *ctx, fk_conn_id conn, bool gently)
{
    check_thread(ctx);
    fk__network_close(ctx, conn, gently);
}

/* R10: as many connections of others as are allowed, and few who have not said who they are. */
static void check_guests(const fk_driver *driver)
{
    const fk_network_port *port = driver->transport.ctx;
    uint32_t count = fk__network_met(&fk__sim_net, port->host);
    if (count > driver->config.connections_max)
        fk__world_fail("R10", "station %u has %u connections of others", port->host, count);
    if (driver->half_open_count > driver->config.half_open_max)
        fk__world_fail("R10", "station %u: %u connections are half open", port->host,
                       driver->half_open_count);
    if (driver->half_open_count == driver->config.half_open_max) FK_SOMETIMES_HIT(HALF_OPEN_FULL);
}

/* R10: as many connections of ours as may be under way. */
static void check_streams(const fk_driver *driver)
{
    const fk_network_port *port = driver->transport.ctx;
    if (driver->half_count > driver->config.connecting_max)
        fk__world_fail("R10", "station %u: %u connections are being made", port->host,
                       driver->half_count);
    if (driver->queued_count != 0) FK_SOMETIMES_HIT(CONNECTING_FULL);
}

static bool tell_accepted(void *ctx, fk_conn_id conn, fk_str from, fk_time now)
{
    if (!fk__driver_accepted(ctx, conn, from, now)) return false;
    check_guests(ctx);
    return true;
}

static void tell_connected(void *ctx, fk_conn_id conn, fk_time now)
{
    check_streams(ctx);
    fk__driver_connected(ctx, conn, now);
}

static void tell_writable(void *ctx, fk_conn_id conn, fk_time now)
{
    fk__driver_writable(ctx, conn, now);
}

static bool tell_read(void *ctx, fk_conn_id conn, fk_str bytes, fk_time now)
{
    return fk__driver_read(ctx, conn, bytes, now);
}

static void tell_closed(void *ctx, fk_conn_id conn, fk_err err, fk_str why, fk_time now)
{
    fk__driver_closed(ctx, conn, err, why, now);
}

/* ---- threads ------------------------------------------------------------------------------- */

static fk_time network_next(void *arg)
{
    const fk_station *s = arg;
    return fk__network_next(&fk__sim_net, s->number);
}

static bool is_due(fk_station *s)
{
    fk_time now = fk__world_now();
    bool has_input = fk__network_next(&fk__sim_net, s->number) <= now;
    return has_input || s->due_at <= now || fk__half_load(&s->is_woken, FK_ACQUIRE) != 0;
}

/* Input, if there is any, and the driver's turn. */
static void drive(fk_station *s)
{
    s->is_in_driver = true;
    fk__worker_rouse(s->sys->dispatch.worker[0]);
    for (int i = 0; i < INPUT_AT_ONCE && fk__network_deliver(&fk__sim_net, s->number); i++) {
        s->delivered++;
    }
    /* Before it looks: whoever comes later wakes again. Acquire pairs with driver_wake(). */
    fk__half_swap(&s->is_woken, 0, FK_ACQ_REL);
    s->due_at = fk__driver_run(s->driver, fk__world_now());
    s->is_in_driver = false;
}

static void first_worker(void *arg, uint32_t thread)
{
    fk_station *s = arg;
    fk_worker *worker = s->sys->dispatch.worker[0];
    running[thread] = s;
    for (;;) {
        uint32_t seen = fk__world_word(word_of(s, 0));
        fk_time wait = fk__worker_run(worker, 1 + fk__world_below(2));
        if (wait == FK_WORKER_EXIT) break;
        bool must_drive = is_due(s);
        if (must_drive) drive(s);
        if (wait == 0 || must_drive) continue; /* after the driver the worker must run */
        fk_time left = s->due_at == FK_NEVER ? FK_NEVER : s->due_at - fk__world_now();
        if (left < wait) wait = left;
        if (wait > 0) fk__world_worker_wait_input(word_of(s, 0), seen, wait, network_next, s);
    }
    s->is_in_driver = true;
    fk__driver_stop(s->driver);
    s->is_in_driver = false;
    s->has_thread[0] = false;
    running[thread] = NULL;
}

static void other_worker(void *arg, uint32_t thread)
{
    fk_worker *worker = arg;
    fk_station *s = worker->sys->host.ctx;
    running[thread] = s;
    for (;;) {
        uint32_t seen = fk__world_word(word_of(s, worker->id));
        fk_time wait = fk__worker_run(worker, UINT32_MAX);
        if (wait == FK_WORKER_EXIT) break;
        if (wait != 0) fk__world_worker_wait(word_of(s, worker->id), seen, wait);
    }
    s->has_thread[worker->id] = false;
    running[thread] = NULL;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void start_threads(fk_station *s)
{
    fk_transport transport = {
        &s->port, transport_connect, transport_write, transport_close, driver_wake, NULL, NULL
    };
    fk_network_user user = { s->driver,     tell_accepted, tell_connected,
                             tell_writable, tell_read,     tell_closed };
    fk__driver_start(s->driver, &transport, s->sys->dispatch.worker[0]);
    fk__network_up(&fk__sim_net, s->number, &user);
    for (uint32_t i = 0; i < s->workers; i++) {
        s->thread[i] = i == 0 ? fk__world_start(first_worker, s)
                              : fk__world_start(other_worker, s->sys->dispatch.worker[i]);
        FK_ASSERT(s->thread[i] != FK_MACHINE_NOBODY);
        s->has_thread[i] = true;
    }
}

void fk__station_boot(fk_station *s, const fk_system_config *config, uint32_t workers)
{
    fk_system_config own = *config;
    fk_port port = world_port;
    fk_system *sys;
    port.ctx = s;
    port.alloc = station_alloc;
    port.wake = station_wake;
    own.name = "sim";
    own.scheme = FK_SCHEME_TCP;
    own.remoting.enabled = true;
    own.remoting.host = HOSTS[s->number];
    own.remoting.port = FK_STATION_PORT;
    fk_err err = fk__system_make(&own, &port, workers, &sys);
    if (err == FK_OK) err = fk__boot_all(sys, &own);
    if (err == FK_OK) err = fk__remote_attach(sys, &own);
    if (err != FK_OK) fk__world_fail("A14", "a system cannot be created: %s", fk_err_name(err));
    sys->host = (fk_host_ops){ .ctx = s,
                               .wake = station_wake,
                               .is_inside = station_is_inside,
                               .reporting = station_reporting };
    memset(s->reporting, 0, sizeof(s->reporting));
    s->sys = sys;
    /* An answer to the former one must not find a question of this one. */
    bool is_same = s->incarnation > 0 && sys->temps.next - s->questions < QUESTIONS_MAX;
    if (is_same) fk__world_fail("R1", "two systems give the same names to questions");
    s->questions = sys->temps.next;
    s->driver = fk__driver_of(sys);
    if (s->driver == NULL) fk__world_fail("A14", "a system without a driver");
    s->workers = workers;
    s->incarnation++;
    s->state = FK_STATION_RUNNING;
    s->is_paused = s->is_in_driver = false;
    s->due_at = 0;
    fk__half_init(&s->is_woken, 1);
    start_threads(s);
}

void fk__station_end(fk_station *s)
{
    s->state = FK_STATION_ENDING;
    (void)fk_terminate(s->sys);
}

bool fk__station_tend(fk_station *s)
{
    if (s->is_paused) return false;
    if (s->state == FK_STATION_ENDING && fk__system_is_down(s->sys)) {
        fk__dispatch_shutdown(s->sys);
        s->state = FK_STATION_LEAVING;
    }
    if (s->state != FK_STATION_LEAVING) return false;
    for (uint32_t i = 0; i < s->workers; i++) {
        if (s->has_thread[i]) return false;
    }
    fk__network_down(&fk__sim_net, s->number);
    fk_system *sys = s->sys;
    s->sys = NULL;
    s->state = FK_STATION_EMPTY;
    fk__system_destroy(sys);
    return true;
}

void fk__station_crash(fk_station *s, bool is_silent)
{
    fk__world_fence(); /* what this thread has stored there does not arrive after the end */
    for (uint32_t i = 0; i < s->workers; i++) {
        if (!s->has_thread[i]) continue;
        s->has_thread[i] = false;
        running[s->thread[i]] = NULL;
        fk__world_kill(s->thread[i]);
    }
    fk__network_crash(&fk__sim_net, s->number, is_silent);
    fk__world_abandon((uint8_t)(s->number + 1));
    s->sys = NULL;
    s->driver = NULL;
    s->is_paused = false;
    s->state = FK_STATION_EMPTY;
}

void fk__station_pause(fk_station *s, bool is_paused)
{
    s->is_paused = is_paused;
    for (uint32_t i = 0; i < s->workers; i++) {
        if (s->has_thread[i]) fk__world_freeze(s->thread[i], is_paused);
    }
}
