/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Coordinated shutdown at SIGTERM and SIGINT. Signals belong to the process, so this is the one place
 * with state that systems share: a list of those that asked, and a thread, the watcher, that is there
 * while the list is not empty. The handler does nothing but write the signal's number to a pipe.
 *
 * The pipe stays open for good: a handler may run until the last moment, and must not write to what
 * has become somebody else's file.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/shutdown.h"
#include "host/host.h"

#define DEADLINE_DEFAULT FK_SECONDS(30)

enum { SIGNALS = 2, LINE_SIZE = 512, EXIT_SIGNAL = 128, WATCHER_LEAVES = 0 };

static const int CAUGHT[SIGNALS] = { SIGTERM, SIGINT };

static struct {
    pthread_mutex_t life; /* coming and leaving, with the watcher's start and end */
    pthread_mutex_t lock; /* inside life: the list; the watcher has it while it acts */
    fk_signals *first;
    int called;      /* the first signal, or 0 */
    bool is_in_vain; /* it found no system any more */
    bool is_handled[SIGNALS];
    struct sigaction before[SIGNALS];
    pthread_t watcher;
    int read_fd;
    fk_half write_fd; /* 0: the pipe has not been made */
} watch = { .life = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *signal_name(int number)
{
    return number == SIGTERM ? "SIGTERM" : "SIGINT";
}

/* ---- telling ------------------------------------------------------------------------------- */

/* One write, so that lines of several threads stay whole. */
__attribute__((format(printf, 2, 3))) static void say(const fk_signals *s, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list args;
    if (s->progress_fd <= 0) return;
    size_t len = (size_t)snprintf(line, sizeof(line), "shutdown %.200s: ", s->sys->name);
    va_start(args, format);
    len += (size_t)vsnprintf(line + len, sizeof(line) - len, format, args);
    va_end(args);
    if (len > sizeof(line) - 1) len = sizeof(line) - 1;
    line[len] = '\n'; /* in the place of the NUL */
    ssize_t ignored = fk__host_write(s->progress_fd, line, len + 1);
    (void)ignored; /* nobody reads it: no reason not to go down */
}

/* On a thread of the system, for all that happens in its shutdown. */
static void on_progress(void *user, const fk_event *event)
{
    const fk_signals *s = user;
    bool is_whole = event->text.len == 0;
    if (fk__half_load(&s->is_called, FK_ACQUIRE) == 0) return; /* pairs with call() */
    say(s, "%.*s%s%s%s%s", (int)event->text.len, event->text.ptr, is_whole ? "" : " ", event->to,
        event->reason != NULL ? ": " : "", event->reason != NULL ? event->reason : "");
    /* Who sends a signal wants the process to end. */
    if (is_whole && strcmp(event->to, "failed") == 0) fk_terminate(s->sys);
}

/* ---- the watcher --------------------------------------------------------------------------- */

/* Of the machine: the process has no other. */
static fk_time clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return FK_SECONDS(t.tv_sec) + t.tv_nsec;
}

/* Under the lock: the system goes down. */
static void call(fk_signals *s)
{
    char reason[32];
    snprintf(reason, sizeof(reason), "signal %s", signal_name(watch.called));
    s->due = fk__time_add(clock_now(), s->deadline);
    fk__half_store(&s->is_called, 1, FK_RELEASE); /* pairs with on_progress */
    say(s, "%s; a second one ends the process at once", reason);
    fk_err err = fk_shutdown_run(s->sys, fk_str_of(reason));
    if (err != FK_OK) fk_terminate(s->sys); /* it has been aborted before, or was never possible */
}

static void on_call(int number)
{
    pthread_mutex_lock(&watch.lock);
    if (watch.called != 0) {
        for (fk_signals *s = watch.first; s != NULL; s = s->next) {
            say(s, "signal %s again: the process ends", signal_name(number));
        }
        _exit(EXIT_SIGNAL + number);
    }
    watch.called = number;
    watch.is_in_vain = watch.first == NULL;
    for (fk_signals *s = watch.first; s != NULL; s = s->next) call(s);
    pthread_mutex_unlock(&watch.lock);
}

/* Ends the process if a system has not come to its end in time; else how long it may still take, as
 * poll() wants it. */
static int deadlines_check(void)
{
    fk_time least = FK_NEVER;
    pthread_mutex_lock(&watch.lock);
    for (fk_signals *s = watch.first; s != NULL; s = s->next) {
        if (s->due == 0 || s->due == FK_NEVER) continue;
        fk_time left = s->due - clock_now();
        if (left <= 0) {
            say(s, "not down after %.1f s: the process ends", (double)s->deadline / 1e9);
            _exit(FK_EXIT_DEADLINE);
        }
        if (left < least) least = left;
    }
    pthread_mutex_unlock(&watch.lock);
    if (least == FK_NEVER) return -1;
    return least / FK_MILLIS(1) < INT_MAX ? (int)(least / FK_MILLIS(1)) + 1 : INT_MAX;
}

static void *watcher_main(void *arg)
{
    (void)arg;
    for (;;) {
        unsigned char number;
        struct pollfd p = { watch.read_fd, POLLIN, 0 };
        if (poll(&p, 1, deadlines_check()) != 1) continue;
        if (read(watch.read_fd, &number, 1) != 1) continue;
        if (number == WATCHER_LEAVES) return NULL;
        on_call(number);
    }
}

/* ---- handlers ------------------------------------------------------------------------------ */

static void pipe_write(unsigned char byte)
{
    int saved = errno;
    ssize_t ignored = write((int)fk__half_load(&watch.write_fd, FK_ACQUIRE), &byte, 1);
    (void)ignored; /* full: there are signals enough in it */
    errno = saved;
}

static void on_signal(int number)
{
    pipe_write((unsigned char)number);
}

static fk_err pipe_need(void)
{
    int fd[2];
    if (fk__half_load(&watch.write_fd, FK_ACQUIRE) != 0) return FK_OK;
    if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) != 0) return FK_E_OS;
    watch.read_fd = fd[0];
    fk__half_store(&watch.write_fd, (uint32_t)fd[1], FK_RELEASE); /* pairs with pipe_write */
    return FK_OK;
}

static void handlers_install(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(CAUGHT[i], NULL, &watch.before[i]);
        watch.is_handled[i] = watch.before[i].sa_handler != SIG_IGN;
        if (watch.is_handled[i]) sigaction(CAUGHT[i], &action, NULL);
    }
}

/* Unless somebody else has put theirs in the place of ours. */
static void handlers_restore(void)
{
    struct sigaction now;
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(CAUGHT[i], NULL, &now);
        if (watch.is_handled[i] && now.sa_handler == on_signal) {
            sigaction(CAUGHT[i], &watch.before[i], NULL);
        }
    }
}

/* Its thread takes the two signals, so that they arrive even if the program blocks them. */
static fk_err watcher_start(void)
{
    sigset_t mask, before;
    FK_TRY(pipe_need());
    watch.called = 0;
    watch.is_in_vain = false;
    handlers_install();
    sigfillset(&mask);
    for (int i = 0; i < SIGNALS; i++) sigdelset(&mask, CAUGHT[i]);
    pthread_sigmask(SIG_SETMASK, &mask, &before);
    int failed = pthread_create(&watch.watcher, NULL, watcher_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        handlers_restore();
        return FK_E_OS;
    }
    pthread_setname_np(watch.watcher, "fk-signals");
    return FK_OK;
}

static void watcher_stop(void)
{
    handlers_restore();
    pipe_write(WATCHER_LEAVES);
    pthread_join(watch.watcher, NULL);
    if (watch.is_in_vain) kill(getpid(), watch.called); /* it is the program's, then */
}

/* ---- coming and leaving -------------------------------------------------------------------- */

static void list_add(fk_signals *s)
{
    pthread_mutex_lock(&watch.lock);
    s->is_listed = true;
    s->next = watch.first;
    watch.first = s;
    if (watch.called != 0) call(s); /* the process is going down already */
    pthread_mutex_unlock(&watch.lock);
}

fk_err fk_host_shutdown_on_signal(fk_system *sys, const fk_signal_config *config)
{
    static const fk_signal_config DEFAULTS = { 0 };
    fk_shutdown *sd;
    if (config == NULL) config = &DEFAULTS;
    if (sys == NULL || config->deadline < 0) return FK_E_INVALID;
    if (config->size != 0 && config->size < sizeof(*config)) return FK_E_INVALID;
    FK_TRY(fk__shutdown_need(sys, &sd));
    fk_signals *s = &fk__host_of(sys)->signals;
    pthread_mutex_lock(&watch.life);
    fk_err err = s->is_listed ? FK_E_STATE : FK_OK;
    if (err == FK_OK && watch.first == NULL) err = watcher_start();
    if (err == FK_OK) {
        s->sys = sys;
        s->progress_fd = config->progress_fd;
        s->deadline = config->deadline != 0 ? config->deadline : DEADLINE_DEFAULT;
        fk__shutdown_observe(sd, on_progress, s);
        list_add(s);
    }
    pthread_mutex_unlock(&watch.life);
    return err;
}

void fk__host_leave_signals(fk_host *host)
{
    fk_signals *s = &host->signals;
    pthread_mutex_lock(&watch.life);
    if (s->is_listed) {
        pthread_mutex_lock(&watch.lock);
        fk_signals **link = &watch.first;
        while (*link != s) link = &(*link)->next;
        *link = s->next;
        s->is_listed = false;
        bool is_last = watch.first == NULL;
        pthread_mutex_unlock(&watch.lock);
        if (is_last) watcher_stop();
    }
    pthread_mutex_unlock(&watch.life);
}
