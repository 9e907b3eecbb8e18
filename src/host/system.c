/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Starting and stopping a system with threads. */

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/boot.h"
#include "core/guardian.h"
#include "fraktor/boot.h"
#include "fraktor/remote.h"
#include "host/host.h"
#include "remote/remote.h"

_Thread_local fk_system *fk__host_inside;

fk_host *fk__host_of(fk_system *sys)
{
    return sys->host.ctx;
}

/* ---- threads ----------------------------------------------------------------------------- */

static void *thread_main(void *arg)
{
    fk_thread *thread = arg;
    fk_worker *worker = thread->worker;
    fk_half *word = &thread->host->word[worker->id];
    fk__host_inside = thread->host->sys;
    fk__host_worker = worker;
    if (worker->id == 0 && thread->host->net != NULL) {
        fk__net_run(thread->host->net);
        return NULL;
    }
    for (;;) {
        /* Read before running: a wake that comes in between changes it, and we do not sleep. */
        uint32_t seen = fk__half_load(word, FK_ACQUIRE);
        fk_time wait = fk__worker_run(worker, UINT32_MAX);
        if (wait == FK_WORKER_EXIT) return NULL;
        if (wait != 0) fk__host_wait(NULL, (uint32_t *)(void *)word, seen, wait);
    }
}

static void thread_wake(void *ctx, uint32_t worker)
{
    fk_host *host = ctx;
    if (worker == 0 && host->net != NULL) {
        fk__net_wake(host->net);
        return;
    }
    fk__half_add(&host->word[worker], 1, FK_ACQ_REL); /* pairs with the load in thread_main */
    fk__host_notify(NULL, (uint32_t *)(void *)&host->word[worker]);
}

static bool host_is_inside(void *ctx)
{
    const fk_host *host = ctx;
    if (fk__host_inside == host->sys) return true;
    /* The thread that drives a loop must not wait for it. */
    return host->fd >= 0 && fk__half_load(&host->driver, FK_RELAXED) == (uint32_t)gettid();
}

static fk_reporting *host_reporting(void *ctx)
{
    static _Thread_local fk_reporting reporting;
    (void)ctx; /* one for all systems: a report is a report */
    return &reporting;
}

static fk_err thread_start(void *ctx, fk_worker *worker)
{
    fk_host *host = ctx;
    fk_system *sys = host->sys;
    void *memory;
    sigset_t all, before;
    char name[16];
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_thread), FK_SITE("thread"), &memory));
    fk_thread *thread = memory;
    *thread = (fk_thread){ .host = host, .worker = worker };
    /* Signals are the program's business: its own threads get them. */
    sigfillset(&all);
    /* But those that a thread brings upon itself kill the process unheard when they are blocked. */
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread->id, NULL, thread_main, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        fk__mem_free(&sys->mem, thread, sizeof(*thread));
        return FK_E_OS;
    }
    snprintf(name, sizeof(name), "%.9s-%c%u", sys->name, worker->is_pinned ? 'p' : 'w',
             worker->id % 1000);
    pthread_setname_np(thread->id, name);
    fk__mem_lock(&sys->mem, &host->lock);
    thread->next = host->threads;
    host->threads = thread;
    fk__mem_unlock(&sys->mem, &host->lock);
    return FK_OK;
}

static void threads_join(fk_host *host)
{
    while (host->threads != NULL) {
        fk_thread *thread = host->threads;
        host->threads = thread->next;
        pthread_join(thread->id, NULL);
        fk__mem_free(&host->sys->mem, thread, sizeof(*thread));
    }
}

/* ---- start and stop ---------------------------------------------------------------------- */

static uint32_t cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
    int n = CPU_COUNT(&set);
    return n < 1 ? 1 : (uint32_t)n;
}

static void host_destroy(fk_host *host)
{
    fk_system *sys = host->sys;
    fk__dispatch_shutdown(sys);
    threads_join(host);
    fk__system_close_cluster(sys); /* its threads wake workers by this host */
    fk__host_leave_signals(host);
    fk__host_close_loop(host);
    fk__net_destroy(host->net);
    fk__mem_free(&sys->mem, host, sizeof(*host));
    fk__system_destroy(sys);
}

static fk_err host_start(fk_host *host, bool threads)
{
    fk_system *sys = host->sys;
    if (!threads) return fk__host_open_loop(host);
    sys->host.wake = thread_wake;
    sys->host.pin = thread_start;
    for (uint32_t i = 0; i < sys->dispatch.workers; i++) {
        FK_TRY(thread_start(host, sys->dispatch.worker[i]));
    }
    return FK_OK;
}

/* The listening socket, if it is not -1, is taken. */
static fk_err host_create(fk_system *sys, bool threads, int listener)
{
    void *memory;
    fk_err err = fk__mem_alloc(&sys->mem, sizeof(fk_host), FK_SITE("host"), &memory);
    if (err != FK_OK) {
        if (listener >= 0) close(listener);
        fk__system_destroy(sys);
        return err;
    }
    fk_host *host = memory;
    memset(host, 0, sizeof(*host));
    host->sys = sys;
    host->fd = -1;
    sys->host.ctx = host;
    sys->host.is_inside = host_is_inside;
    sys->host.reporting = host_reporting;
    if (listener >= 0) {
        host->port = fk__net_port(listener);
        err = fk__net_create(sys, listener, !threads, &host->net);
    }
    if (err == FK_OK) err = host_start(host, threads);
    if (err != FK_OK) host_destroy(host);
    return err;
}

struct fk_boot {
    fk_system *sys;
    fk_system_config config;
    bool threads;
    int listener; /* or -1 */
};

fk_err fk_boot_create(const fk_system_config *config, fk_boot **out)
{
    if (config == NULL || out == NULL) return FK_E_INVALID;
    fk_system_config own = *config;
    fk_port port = config->port != NULL ? *config->port : fk_host_port();
    const char *pools = getenv("FK_POOLS");
    if (pools != NULL && strcmp(pools, "malloc") == 0) own.pools_malloc = true;
    bool threads = config->workers != FK_WORKERS_NONE;
    if (threads && port.wait == NULL) return FK_E_INVALID; /* stopping has to wait for them */
    uint32_t workers = !threads ? 1 : config->workers != 0 ? config->workers : cores();
    fk_system *sys = NULL;
    void *memory = NULL;
    int listener = -1;
    /* First: only then the port, and with it the system's address, is known. */
    if (own.remoting.enabled) FK_TRY(fk__net_listen(&own, &port, &listener));
    fk_err err = fk__system_make(&own, &port, workers, &sys);
    if (err == FK_OK) err = fk__mem_alloc(&sys->mem, sizeof(fk_boot), FK_SITE("boot"), &memory);
    if (err != FK_OK) {
        if (sys != NULL) fk__system_destroy(sys);
        if (listener >= 0) close(listener);
        return err;
    }
    *out = memory;
    **out = (fk_boot){ sys, own, threads, listener };
    return FK_OK;
}

/* The block goes, the system stays. */
static fk_system *boot_end(fk_boot *boot)
{
    fk_system *sys = boot->sys;
    fk__mem_free(&sys->mem, boot, sizeof(*boot));
    return sys;
}

fk_err fk_boot_guardian(fk_boot *boot, fk_guardian_kind kind, const fk_props *props,
                        const fk_strategy *strategy)
{
    if (boot == NULL) return FK_E_INVALID;
    bool is_plain = props == NULL && strategy == NULL && kind == FK_GUARDIAN_USER;
    if (is_plain) props = boot->config.user_guardian;
    if (is_plain) strategy = boot->config.user_strategy;
    return fk__guardian_create(boot->sys, kind, props, strategy);
}

fk_err fk_boot_extra(fk_boot *boot, fk_str name, const fk_props *props, fk_ref *out)
{
    return boot != NULL ? fk__boot_extra(boot->sys, name, props, out) : FK_E_INVALID;
}

void fk_boot_abandon(fk_boot *boot)
{
    if (boot == NULL) return;
    if (boot->listener >= 0) close(boot->listener);
    fk__system_destroy(boot_end(boot));
}

fk_err fk_boot_finish(fk_boot *boot, fk_system **out, fk_guardian_kind *missing)
{
    if (out == NULL) fk_boot_abandon(boot);
    if (boot == NULL || out == NULL) return FK_E_INVALID;
    fk_system_config config = boot->config;
    bool threads = boot->threads;
    int listener = boot->listener;
    fk_system *sys = boot_end(boot);
    fk_err err = fk__boot_finish(sys, missing);
    if (err == FK_OK) err = fk__remote_attach(sys, &config);
    if (err != FK_OK) {
        if (listener >= 0) close(listener);
        fk__system_destroy(sys);
        return err;
    }
    FK_TRY(host_create(sys, threads, listener));
    *out = sys;
    return FK_OK;
}

fk_err fk_system_start(const fk_system_config *config, fk_system **out)
{
    fk_boot *boot = NULL;
    if (out == NULL) return FK_E_INVALID;
    FK_TRY(fk_boot_create(config, &boot));
    fk_err err = fk_boot_guardian(boot, FK_GUARDIAN_USER, NULL, NULL);
    if (err == FK_OK) err = fk_boot_guardian(boot, FK_GUARDIAN_SYSTEM, NULL, NULL);
    if (err == FK_OK)
        err = fk_boot_finish(boot, out, NULL);
    else
        fk_boot_abandon(boot);
    return fk__boot_error(config, err);
}

fk_err fk_system_stop(fk_system *sys)
{
    if (sys == NULL) return FK_E_INVALID;
    if (sys->host.is_inside != host_is_inside) return FK_E_UNSUPPORTED; /* a testkit's: not ours */
    fk_host *host = fk__host_of(sys);
    if (fk__host_inside == sys || fk__is_reporting(host_reporting(host))) return FK_E_STATE;
    fk_terminate(sys);
    if (host->fd >= 0) {
        while (!fk__system_is_down(sys)) fk_host_run_once(sys, FK_NEVER);
    } else {
        fk_err err = fk_await_termination(sys, FK_NEVER);
        if (err != FK_OK) return err;
    }
    host_destroy(host);
    return FK_OK;
}

uint16_t fk_remoting_port(fk_system *sys)
{
    if (sys->host.is_inside != host_is_inside) return 0; /* a testkit's has no sockets */
    return fk__host_of(sys)->port;
}
