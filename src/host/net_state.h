/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_HOST_NET_STATE_H
#define FK_HOST_NET_STATE_H

/*
 * What the files of the network share.
 *
 * Sockets are ours and libuv polls them; its streams are not used. The bytes of a write are lent, so
 * a request object that outlives the connection has no place here; a write to a connection that is
 * gone must not raise SIGPIPE in somebody else's thread; and how much is read at once, and what
 * happens when there are no descriptors left, is decided here.
 */

#include <netdb.h>
#include <uv.h>

#include "host/net.h"
#include "remote/driver.h"

enum {
    FK_NET_READ = 256 << 10, /* bytes at once */
    FK_NET_BUCKETS = 1024,
    FK_NET_NAME = 256, /* bytes of a host's name, with the zero */
};

#define FK_NET_STALL  FK_SECONDS(30) /* a lent write without progress for so long */
#define FK_NET_LEAVE  FK_SECONDS(3)  /* for the peer to end what we have ended */
#define FK_NET_LOOKUP FK_SECONDS(10) /* for a name, with the time that it waits for its turn */

typedef enum fk_conn_state {
    FK_CONN_LOOKUP = 0, /* the name is being looked up */
    FK_CONN_CONNECTING,
    FK_CONN_OPEN,
    FK_CONN_LEAVING, /* gently closed: nobody knows it any more */
    FK_CONN_CLOSED,  /* waits for libuv to let go of it */
} fk_conn_state;

/* Who wants a name to be looked up, the most important one first. */
typedef enum fk_lookup_of { FK_LOOKUP_WANTED = 0, FK_LOOKUP_STRANGER, FK_LOOKUP_WHO } fk_lookup_of;

typedef struct fk_lookup fk_lookup;
typedef struct fk_conn fk_conn;
struct fk_conn {
    fk_net *net;
    fk_conn *bucket_next; /* of the same bucket, while somebody knows it */
    fk_conn *prev, *next; /* of all there are */
    fk_conn_id id;
    fk_conn_state state;
    int fd;           /* or -1 */
    bool has_handle;  /* libuv knows `poll` */
    fk_time deadline; /* FK_NEVER: none */
    const char *lent; /* what is left of a write; NULL: nothing */
    size_t lent_len;
    uv_poll_t poll;
    fk_lookup *lookup;                /* of its name; NULL: none */
    struct addrinfo *found;           /* all addresses of a name ... */
    const struct addrinfo *candidate; /* ... and the one to try next */
};

struct fk_net {
    fk_system *sys;
    fk_worker *worker;
    fk_driver *driver;
    fk_transport transport;
    fk_half state; /* NET_*: net.c */

    /* All else belongs to the thread of worker 0. */
    uv_loop_t loop;
    uv_async_t async;
    uv_timer_t timer; /* ends a wait */
    uv_timer_t sweep; /* looks for deadlines, while there are any */
    bool has_loop, has_driver;
    bool is_down;    /* NET_ASLEEP is set; who writes then has borrowed the thread's place */
    bool is_fresh;   /* `now` was read since the loop was entered */
    bool is_touched; /* the driver was told something, and has not run since */
    fk_time now;
    fk_time next;   /* when the driver wants to run */
    fk_time polled; /* when the loop ran last */

    fk_conn *unwatched; /* a borrower's write to it is not done; NULL: none */
    fk_conn *conns;
    fk_conn *bucket[FK_NET_BUCKETS];
    uint32_t accepted;   /* number of the last one */
    uint32_t timed;      /* connections with a deadline */
    fk_conn *sweep_next; /* the next one to be looked at, while that is done */
    fk_time stall, leave, lookup;

    struct {
        uv_async_t async; /* one is done */
        fk_lookup *waiting[FK_LOOKUP_WHO], *running;
        uint32_t running_count[FK_LOOKUP_WHO];
    } lookups;

    struct {
        int fd;    /* -1: none */
        int spare; /* a descriptor to give up when there are none left */
        uv_poll_t poll;
        bool has_handle, is_paused;
        uint32_t turned_away; /* since it was logged */
        fk_time logged;
    } listener;

    char buffer[FK_NET_READ]; /* bytes read are lent to the driver */
};

/* net.c: each callback of the loop begins with this. */
void fk__net_enter(fk_net *net);
/* net.c: starts or stops looking for deadlines. */
void fk__net_sweep(fk_net *net);

/* net_listen.c: takes the socket. */
FK_MUST_USE fk_err fk__net_open_listener(fk_net *net, int fd);
void fk__net_close_listener(fk_net *net);
void fk__net_resume_listener(fk_net *net);

/* net_connect.c: the transport's connect. */
fk_err fk__net_connect(void *ctx, fk_conn_id id, fk_str host, uint16_t port, bool is_wanted);
/* The socket says that it is connected, or not. */
void fk__conn_connected(fk_conn *conn);
/* One address has failed: the next one, or the end. */
void fk__conn_try_next(fk_conn *conn, int error);

/* net_lookup.c: its end is fk__conn_try_next(), or the connection's. */
FK_MUST_USE fk_err fk__lookup_begin(fk_conn *conn, const char *name, uint16_t port,
                                    fk_lookup_of who);
/* The connection does not wait any more. */
void fk__lookup_leave(fk_conn *conn);
/* Begins those that wait, if they may. */
void fk__lookups_run(fk_net *net);
FK_MUST_USE fk_err fk__lookups_init(fk_net *net);
/* When no connection is left. What is being looked up is left to itself. */
void fk__lookups_fini(fk_net *net);

/* net_conn.c */
FK_MUST_USE fk_err fk__conn_create(fk_net *net, fk_conn_id id, fk_conn **out);
fk_conn *fk__conn_find(const fk_net *net, fk_conn_id id);
/* Takes the socket, even on failure. */
FK_MUST_USE fk_err fk__conn_attach(fk_conn *conn, int fd);
/* What the socket is polled for, by the state of the connection. */
void fk__conn_watch(fk_conn *conn);
/* It has lent bytes: they are to go on when they can, and soon. */
void fk__conn_stall(fk_conn *conn);
/* Without a word to the driver; by a reset, if what the peer has not got yet is not for it. */
void fk__conn_drop(fk_conn *conn, bool by_reset);
/* The driver is told. `error` is of errno, 0: the peer closed it. */
void fk__conn_fail(fk_conn *conn, int error);
void fk__conn_fail_with(fk_conn *conn, fk_err err, const char *why);
/* Its socket goes, the connection itself stays for another one. */
void fk__conn_detach(fk_conn *conn);
/* FK_NEVER: none any more. */
void fk__conn_deadline(fk_conn *conn, fk_time at);
/* Once it is closed; does nothing while libuv still knows it. */
void fk__conn_free(fk_conn *conn);
/* Closes what is past its deadline. */
void fk__conns_sweep(fk_net *net);
/* The transport's. */
bool fk__net_write(void *ctx, fk_conn_id id, const void *bytes, size_t len);
void fk__net_close(void *ctx, fk_conn_id id, bool gently);

#endif /* FK_HOST_NET_STATE_H */
