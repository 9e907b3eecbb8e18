/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Names are looked up by getaddrinfo(), which takes as long as it likes and cannot be told to stop. Many
 * of them are strangers' choice: whoever connects says where it is to be answered. So each lookup has a
 * thread of its own that can be left behind: it owns what it works with, and finds out at its end whether
 * somebody still waits. The end of the network does not wait for it.
 *
 * Those of strangers cannot be left until somebody here wants to send something: the answer to their
 * handshake is a connection to them. But there are only a few at a time, of which some are kept for
 * systems that a program here has named; the others wait, and not for long. One that is given up counts
 * until it is over, so that there are never more threads than that.
 *
 * What a lookup needs is plain malloc's, and not the system's, which it may outlive.
 */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/net_state.h"

enum { LOOKUPS_AT_ONCE = 4, LOOKUPS_OF_STRANGERS = 2 };

struct fk_lookup {
    fk_lookup *next;  /* of those that wait, that run, or that are done */
    fk_net *net;      /* under the lock, once it runs; NULL: gone */
    fk_conn *conn;    /* the network's; NULL: closed */
    fk_lookup_of who; /* wants it */
    bool is_running;  /* the network's */
    bool is_done;     /* under the lock */
    pthread_t thread;
    int status; /* of getaddrinfo() */
    struct addrinfo *found;
    char service[8];
    char name[FK_NET_NAME];
};

/* Between a thread that is done and the end of its network. Of all networks, because it must outlive them;
 * nothing that takes time is done under it. */
static pthread_mutex_t handover = PTHREAD_MUTEX_INITIALIZER;

static void lookup_free(fk_lookup *lookup)
{
    if (lookup->found != NULL) freeaddrinfo(lookup->found);
    free(lookup);
}

/* ---- on its thread ---------------------------------------------------------------------------- */

static void *lookup_main(void *arg)
{
    static const struct addrinfo STREAMS = { .ai_socktype = SOCK_STREAM,
                                             .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV };
    fk_lookup *lookup = arg;
    lookup->status = getaddrinfo(lookup->name, lookup->service, &STREAMS, &lookup->found);
    pthread_mutex_lock(&handover);
    fk_net *net = lookup->net;
    lookup->is_done = true;
    if (net != NULL)
        uv_async_send(&net->lookups.async); /* from here on it is the network's again */
    pthread_mutex_unlock(&handover);
    if (net == NULL) lookup_free(lookup);
    return NULL;
}

static bool lookup_run(fk_lookup *lookup)
{
    sigset_t all, before;
    sigfillset(&all); /* signals are for the program's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&lookup->thread, NULL, lookup_main, lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

/* ---- the network's ---------------------------------------------------------------------------- */

static void list_remove(fk_lookup **list, const fk_lookup *lookup)
{
    while (*list != lookup) list = &(*list)->next;
    *list = lookup->next;
}

static bool may_run(const fk_net *net, fk_lookup_of who)
{
    const uint32_t *running = net->lookups.running_count;
    uint32_t all = running[FK_LOOKUP_WANTED] + running[FK_LOOKUP_STRANGER];
    if (net->lookups.waiting[who] == NULL || all >= LOOKUPS_AT_ONCE) return false;
    return who == FK_LOOKUP_WANTED || running[who] < LOOKUPS_OF_STRANGERS;
}

void fk__lookups_run(fk_net *net)
{
    for (fk_lookup_of who = FK_LOOKUP_WANTED; who < FK_LOOKUP_WHO; who++) {
        while (may_run(net, who)) {
            fk_lookup *lookup = net->lookups.waiting[who];
            fk_lookup *next = lookup->next; /* no thread: tried again at the next sweep */
            if (!lookup_run(lookup)) return;
            lookup->is_running = true;
            net->lookups.running_count[who]++;
            net->lookups.waiting[who] = next;
            lookup->next = net->lookups.running;
            net->lookups.running = lookup;
        }
    }
}

fk_err fk__lookup_begin(fk_conn *conn, const char *name, uint16_t port, fk_lookup_of who)
{
    fk_net *net = conn->net;
    fk_lookup *lookup = malloc(sizeof(*lookup));
    fk_lookup **last = &net->lookups.waiting[who];
    if (lookup == NULL) return FK_E_NOMEM;
    memset(lookup, 0, sizeof(*lookup));
    lookup->net = net;
    lookup->conn = conn;
    lookup->who = who;
    snprintf(lookup->service, sizeof(lookup->service), "%u", port);
    snprintf(lookup->name, sizeof(lookup->name), "%s", name);
    while (*last != NULL) last = &(*last)->next;
    *last = lookup;
    conn->lookup = lookup;
    conn->state = FK_CONN_LOOKUP;
    fk__conn_deadline(conn, fk__time_add(net->now, net->lookup));
    fk__lookups_run(net);
    return FK_OK;
}

void fk__lookup_leave(fk_conn *conn)
{
    fk_lookup *lookup = conn->lookup;
    if (lookup == NULL) return;
    conn->lookup = NULL;
    lookup->conn = NULL;
    if (lookup->is_running) return;
    list_remove(&conn->net->lookups.waiting[lookup->who], lookup);
    lookup_free(lookup);
}

/* One that is done, taken from those that run; NULL: there is none. */
static fk_lookup *lookup_take(fk_net *net)
{
    fk_lookup *lookup = net->lookups.running;
    pthread_mutex_lock(&handover);
    while (lookup != NULL && !lookup->is_done) lookup = lookup->next;
    pthread_mutex_unlock(&handover);
    if (lookup == NULL) return NULL;
    pthread_join(lookup->thread, NULL); /* it has nothing left to do */
    list_remove(&net->lookups.running, lookup);
    net->lookups.running_count[lookup->who]--;
    return lookup;
}

static void lookup_end(fk_lookup *lookup)
{
    fk_conn *conn = lookup->conn;
    int status = lookup->status;
    if (conn != NULL) {
        conn->found = lookup->found;
        conn->lookup = NULL;
        lookup->found = NULL;
    }
    lookup_free(lookup);
    if (conn == NULL) return;
    fk__conn_deadline(conn, FK_NEVER);
    if (status != 0 || conn->found == NULL) {
        fk__conn_fail_with(conn, FK_E_OS, gai_strerror(status));
        return;
    }
    conn->candidate = conn->found;
    fk__conn_try_next(conn, 0);
}

static void on_lookups(uv_async_t *async)
{
    fk_net *net = async->data;
    fk_lookup *lookup;
    fk__net_enter(net);
    while ((lookup = lookup_take(net)) != NULL) lookup_end(lookup);
    fk__lookups_run(net);
}

fk_err fk__lookups_init(fk_net *net)
{
    net->lookups.async.data = net;
    return uv_async_init(&net->loop, &net->lookups.async, on_lookups) == 0 ? FK_OK : FK_E_OS;
}

void fk__lookups_fini(fk_net *net)
{
    fk_lookup *lookup;
    FK_ASSERT(net->lookups.waiting[FK_LOOKUP_WANTED] == NULL);
    FK_ASSERT(net->lookups.waiting[FK_LOOKUP_STRANGER] == NULL);
    while ((lookup = lookup_take(net)) != NULL) lookup_free(lookup);
    while ((lookup = net->lookups.running) != NULL) {
        net->lookups.running = lookup->next;
        pthread_t thread = lookup->thread; /* afterwards it may be gone */
        pthread_mutex_lock(&handover);
        bool is_done = lookup->is_done; /* meanwhile */
        lookup->net = NULL;
        pthread_mutex_unlock(&handover);
        if (is_done) {
            pthread_join(thread, NULL);
            lookup_free(lookup);
        } else {
            pthread_detach(thread);
        }
    }
    uv_close((uv_handle_t *)&net->lookups.async, NULL);
}
