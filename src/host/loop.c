/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A system without threads, in somebody else's event loop: one worker, and one eventfd or, with
 * remoting, the descriptor of libuv's loop. */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "host/host.h"

enum { WINDOWS_AT_ONCE = 16 };

static void loop_wake(void *ctx, uint32_t worker)
{
    fk_host *host = ctx;
    uint64_t one = 1;
    (void)worker;
    if (host->net != NULL) {
        fk__net_wake(host->net);
        return;
    }
    while (write(host->fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

fk_err fk__host_open_loop(fk_host *host)
{
    host->sys->host.wake = loop_wake;
    if (host->net != NULL) {
        host->fd = fk__net_fd(host->net);
        return FK_OK;
    }
    host->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (host->fd < 0) return FK_E_OS;
    loop_wake(host, 0); /* the worker has not run yet */
    return FK_OK;
}

void fk__host_close_loop(fk_host *host)
{
    if (host->fd >= 0 && host->net == NULL) close(host->fd);
}

int fk_host_fd(fk_system *sys)
{
    return fk__host_of(sys)->fd;
}

static fk_time time_left(fk_host *host)
{
    fk_system *sys = host->sys;
    fk_worker *worker = sys->dispatch.worker[0];
    fk_time left = host->net != NULL ? fk__net_left(host->net) : FK_NEVER;
    if (worker->wheel_next != FK_NEVER) {
        fk_time timer = worker->wheel_next - fk__system_now(sys);
        if (timer < left) left = timer;
    }
    return left > 0 ? left : 0;
}

/* Rounded up: never early. As poll() wants it. */
static int to_ms(fk_time timeout)
{
    if (timeout == FK_NEVER) return -1;
    if (timeout <= 0) return 0;
    fk_time ms = timeout / FK_MILLIS(1) + (timeout % FK_MILLIS(1) != 0);
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

int fk_host_timeout_ms(fk_system *sys)
{
    fk_host *host = fk__host_of(sys);
    if (host->fd < 0) return -1;
    return to_ms(time_left(host));
}

static void drain(int fd)
{
    uint64_t count;
    while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR) {
    }
}

/* What is left over makes the descriptor readable again. */
static void loop_turn(fk_host *host, fk_worker *worker)
{
    if (host->net != NULL)
        fk__net_turn(host->net, WINDOWS_AT_ONCE);
    else if (fk__worker_run(worker, WINDOWS_AT_ONCE) == 0)
        loop_wake(host, 0);
}

size_t fk_host_run_once(fk_system *sys, fk_time timeout)
{
    fk_host *host = fk__host_of(sys);
    if (host->fd < 0 || fk__host_inside == sys) return 0; /* not from within its own actors */
    fk__half_store(&host->driver, (uint32_t)gettid(), FK_RELAXED);
    fk_worker *worker = sys->dispatch.worker[0];
    if (timeout > 0) {
        fk_time left = time_left(host);
        if (left < timeout) timeout = left;
        struct pollfd p = { host->fd, POLLIN, 0 };
        poll(&p, 1, to_ms(timeout));
    }
    /* Before running: what comes now makes it readable again. */
    if (host->net == NULL) drain(host->fd);
    uint32_t before = fk__half_load(&worker->turns, FK_RELAXED);
    fk_system *outer = fk__host_inside;
    fk__host_inside = sys;
    fk__host_worker = worker;
    loop_turn(host, worker);
    fk__host_inside = outer;
    fk__host_worker = NULL;
    return fk__half_load(&worker->turns, FK_RELAXED) - before;
}
