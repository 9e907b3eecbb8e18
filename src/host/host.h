/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_HOST_HOST_H
#define FK_HOST_HOST_H

/* What drives a system on Linux: threads and the words they sleep on, or one eventfd; with remoting,
 * worker 0 by a loop of its own (host/net.h). */

#include <pthread.h>
#include <sys/types.h>

#include "core/system.h"
#include "fraktor/host.h"
#include "host/net.h"

typedef struct fk_thread {
    struct fk_thread *next;
    struct fk_host *host;
    fk_worker *worker;
    pthread_t id;
} fk_thread;

/* A system that goes down at a signal: see signals.c. */
typedef struct fk_signals {
    struct fk_signals *next;
    fk_system *sys;
    int progress_fd;
    fk_time deadline;  /* how long it may take ... */
    fk_time due;       /* ... and when that is; 0: no signal has come. The watcher's */
    fk_half is_called; /* a signal has come */
    bool is_listed;
} fk_signals;

typedef struct fk_host {
    fk_system *sys;
    fk_thread *threads; /* under lock once the system runs */
    fk_lock lock;
    fk_net *net;   /* NULL without remoting */
    uint16_t port; /* where it listens, or 0 */
    int fd;        /* of a system without threads, or -1 */
    fk_half has_cluster;
    fk_half driver; /* of such a system: the thread that ran it last */
    fk_signals signals;
    fk_half word[FK_WORKERS_MAX];
} fk_host;

/* The host of a system that fk_system_start() made. */
fk_host *fk__host_of(fk_system *sys);
/* Sleeps until *word differs from seen, the time is up, or for no reason. */
void fk__host_wait(void *ctx, uint32_t *word, uint32_t seen, fk_time timeout);
void fk__host_notify(void *ctx, uint32_t *word);
/* As write(), but with no SIGPIPE and no EINTR. */
ssize_t fk__host_write(int fd, const char *text, size_t len);

/* The system whose actor runs on this thread, or NULL. */
extern _Thread_local fk_system *fk__host_inside;
/* The worker that this thread is, or runs. */
extern _Thread_local fk_worker *fk__host_worker;

FK_MUST_USE fk_err fk__host_open_loop(fk_host *host);
void fk__host_close_loop(fk_host *host);
/* With the system: its threads are gone. */
void fk__host_leave_signals(fk_host *host);

#endif /* FK_HOST_HOST_H */
