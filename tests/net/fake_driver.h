/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_NET_FAKE_DRIVER_H
#define FK_TESTS_NET_FAKE_DRIVER_H

/*
 * A driver that writes down what the network tells it, and does what the test says; and a system
 * whose network has it. It checks what holds of every call: one thread, not from within a call of its
 * own, nothing of a connection that was closed, bytes in order.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "host/net_state.h"
#include "support/test.h"

enum { FAKE_CONNS = 4096 };

/* The bytes of every stream are the same. */
static inline unsigned char fake_byte(size_t at)
{
    return (unsigned char)(at * 31 + (at >> 8) * 7 + (at >> 16));
}

typedef struct fake_conn {
    fk_conn_id id;                                      /* 0: not used */
    bool is_accepted, is_connected, is_closed, is_over; /* is_over: closed by us, or told */
    bool is_lent;
    fk_err err;
    char why[96];
    char from[64];
    size_t received;
    size_t reads;
    size_t writables;
} fake_conn;

typedef struct fake fake;
typedef void (*fake_fn)(fake *f, void *arg);

struct fake {
    /* Set by the test before the system starts. */
    fk_time stall, leave, lookup; /* 0: as they are */
    bool refuses;                 /* whoever connects */
    void (*on_read)(fake *f, fake_conn *c, fk_str bytes);
    void (*on_connected)(fake *f, fake_conn *c);
    void (*on_writable)(fake *f, fake_conn *c);
    void (*on_closed)(fake *f, fake_conn *c);
    void (*on_run)(fake *f, fk_time now);
    bool read_result;
    bool is_any_byte; /* bytes are not looked at */

    const fk_transport *transport;
    fk_worker *worker;
    pthread_t thread;
    pid_t tid;
    bool has_thread;
    bool is_calling; /* the transport, just now */
    _Atomic bool is_started, is_stopped;
    _Atomic size_t runs, accepted, connected, closed, bytes;
    _Atomic int64_t next; /* what run returns; FK_NEVER */

    pthread_mutex_t lock; /* of what follows */
    fake_conn conn[FAKE_CONNS];
    uint32_t conn_count;
    fake_fn task; /* to be done by the driver's thread */
    void *task_arg;
};

extern fake the_fake;

/* What the network asks for names. Those that begin with "slow" are 127.0.0.1's, and take until they are
 * released. */
typedef struct fake_names {
    _Atomic size_t calls, running, most; /* running, most: of the slow ones */
    _Atomic bool is_released;
} fake_names;

extern fake_names the_names;

/* ---- on the driver's thread ------------------------------------------------------------------- */

fake_conn *fake_find(fake *f, fk_conn_id id);
fk_err fake_connect(fake *f, fk_conn_id id, const char *host, uint16_t port);
fk_err fake_connect_as(fake *f, fk_conn_id id, const char *host, uint16_t port, bool is_wanted);
bool fake_write(fake *f, fk_conn_id id, const void *bytes, size_t len);
void fake_close(fake *f, fk_conn_id id, bool gently);

/* ---- the test's --------------------------------------------------------------------------------- */

typedef struct world {
    fk_system *sys;
    bool is_driven; /* no threads */
    size_t fds, threads;
} world;

/* All that the test has not said about the fake is forgotten. */
fake *fake_reset(void);
/* At any free port of 127.0.0.1. */
void world_start(world *w, uint32_t workers);
/* Also checks that no descriptor and no thread is left. */
void world_stop(world *w);
uint16_t world_port(const world *w);
/* Lets time pass until it holds, at most 20 s. */
#define WORLD_UNTIL(w, condition)                                                                  \
    do {                                                                                           \
        bool world_holds;                                                                          \
        int64_t world_end = test_clock() + FK_SECONDS(20);                                         \
        while (!(world_holds = (condition)) && test_clock() < world_end) world_pass(w);            \
        if (!world_holds) test_failed(__FILE__, __LINE__, "never true: %s", #condition);           \
    } while (0)
void world_pass(world *w);
void world_pass_ms(world *w, unsigned ms);
/* Does it on the driver's thread and comes back when it is done. */
void world_do(world *w, fake_fn fn, void *arg);
/* A copy of what is known of a connection. */
fake_conn world_conn(fk_conn_id id);
/* Of the last one that was accepted. */
fake_conn world_last(void);
size_t world_fds(void);

/* ---- the other side: plain sockets ---------------------------------------------------------------- */

int peer_connect(uint16_t port);
/* Listens at a free port; backlog as listen(2) has it. */
int peer_listen(int backlog, uint16_t *port);
int peer_accept(world *w, int listener);
void peer_send(world *w, int fd, size_t from, size_t len);
/* Reads and checks what there is; returns how many bytes, 0 at the end, -1 when there is nothing yet,
 * -2 after a reset. */
long peer_read(int fd, size_t from);
void peer_reset(int fd);

#endif /* FK_TESTS_NET_FAKE_DRIVER_H */
