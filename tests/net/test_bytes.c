/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes through real sockets, in both directions and in pieces of every size; without threads and
 * with them. */

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/fake_driver.h"

enum { MODES = 3 };
static const uint32_t WORKERS[MODES] = { 0, 1, 3 };

static size_t received(fk_conn_id id)
{
    return world_conn(id).received;
}

TEST(net_bytes_come_in_pieces_of_every_size)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        fake *f = fake_reset();
        world_start(&w, WORKERS[mode]);
        int fd = peer_connect(world_port(&w));
        WORLD_UNTIL(&w, atomic_load(&f->accepted) == 1);
        fake_conn c = world_last();
        CHECK(strncmp(c.from, "127.0.0.1:", 10) == 0);
        size_t at = 0;
        /* Waiting after each small one, so that they come as they were sent. */
        for (size_t size = 1; size <= 70; size++) {
            peer_send(&w, fd, at, size);
            at += size;
            WORLD_UNTIL(&w, received(c.id) == at);
        }
        for (size_t size = 1; size < 3000000; size = size * 3 + 1) {
            peer_send(&w, fd, at, size);
            at += size;
        }
        WORLD_UNTIL(&w, received(c.id) == at);
        CHECK(world_conn(c.id).reads >= 70);
        close(fd);
        WORLD_UNTIL(&w, atomic_load(&f->closed) == 1);
        world_stop(&w);
    }
}

/* ---- writing ----------------------------------------------------------------------------------- */

typedef struct sending {
    uint16_t port;
    const char *host;
    int send_buffer; /* bytes; 0: as it is */
    unsigned char *bytes;
    size_t len, sent, piece;
} sending;

static sending job;

/* Writes pieces until one is lent, or all are gone. */
static void go_on(fake *f, fake_conn *c)
{
    while (job.sent < job.len) {
        size_t n = job.len - job.sent < job.piece ? job.len - job.sent : job.piece;
        const unsigned char *from = job.bytes + job.sent;
        job.sent += n;
        if (!fake_write(f, c->id, from, n)) return;
    }
}

static void begin_sending(fake *f, fake_conn *c)
{
    if (job.send_buffer != 0) {
        int fd = fk__conn_find(f->transport->ctx, c->id)->fd;
        CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &job.send_buffer, sizeof(int)) == 0);
    }
    go_on(f, c);
}

static void do_connect(fake *f, void *arg)
{
    const sending *s = arg;
    CHECK_OK(fake_connect(f, 1, s->host != NULL ? s->host : "127.0.0.1", s->port));
}

static void job_make(size_t len, size_t piece)
{
    job = (sending){ .bytes = malloc(len), .len = len, .piece = piece };
    CHECK(job.bytes != NULL);
    for (size_t i = 0; i < len; i++) job.bytes[i] = fake_byte(i);
}

static void send_and_read(uint32_t workers, size_t len, size_t piece, int send_buffer)
{
    world w;
    fake *f = fake_reset();
    f->on_connected = begin_sending;
    f->on_writable = go_on;
    world_start(&w, workers);
    job_make(len, piece);
    job.send_buffer = send_buffer;
    int listener = peer_listen(5, &job.port);
    world_do(&w, do_connect, &job);
    int fd = peer_accept(&w, listener);
    size_t at = 0;
    while (at < len) {
        long n = peer_read(fd, at);
        CHECK(n > 0 || n == -1);
        if (n > 0)
            at += (size_t)n;
        else
            world_pass(&w);
    }
    WORLD_UNTIL(&w, !world_conn(1).is_lent);
    CHECK(world_conn(1).is_connected);
    if (send_buffer != 0) CHECK(world_conn(1).writables > 0); /* or it was not tried */
    close(fd);
    close(listener);
    world_stop(&w);
    free(job.bytes);
}

TEST(net_bytes_go_out_in_pieces_of_every_size)
{
    for (int mode = 0; mode < MODES; mode++) {
        send_and_read(WORKERS[mode], 5000, 1, 0);
        send_and_read(WORKERS[mode], 3000000, 4097, 0);
        send_and_read(WORKERS[mode], 30000000, 30000000, 0);
        send_and_read(WORKERS[mode], 300000, 70001, 1); /* the smallest buffer there is */
    }
}

TEST(net_bytes_stay_lent_while_the_peer_does_not_read)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        fake *f = fake_reset();
        f->on_connected = begin_sending;
        world_start(&w, WORKERS[mode]);
        job_make(30000000, 30000000);
        int listener = peer_listen(5, &job.port);
        world_do(&w, do_connect, &job);
        int fd = peer_accept(&w, listener);
        WORLD_UNTIL(&w, world_conn(1).is_lent);
        world_pass_ms(&w, 50);
        CHECK(world_conn(1).is_lent);
        CHECK_U64(world_conn(1).writables, 0);
        for (size_t at = 0; at < job.len;) {
            long n = peer_read(fd, at);
            CHECK(n > 0 || n == -1);
            if (n > 0) at += (size_t)n;
            if (n < 0) world_pass(&w);
        }
        WORLD_UNTIL(&w, !world_conn(1).is_lent);
        CHECK_U64(world_conn(1).writables, 1);
        close(fd);
        close(listener);
        world_stop(&w);
        free(job.bytes);
    }
}

/* In place of the thread that sleeps: it stays out of everything until its place is given back, and
 * then goes on with what the peer has not taken. */
TEST(net_bytes_of_a_borrower_go_out)
{
    for (int mode = 1; mode < MODES; mode++) {
        world w;
        fake *f = fake_reset();
        world_start(&w, WORKERS[mode]);
        const fk_transport *transport = f->transport;
        job_make(30000000, 0);
        int listener = peer_listen(5, &job.port);
        world_do(&w, do_connect, &job);
        int fd = peer_accept(&w, listener);
        WORLD_UNTIL(&w, world_conn(1).is_connected);
        while (!transport->borrow(transport->ctx)) world_pass(&w);
        CHECK(!transport->borrow(transport->ctx));
        size_t runs = atomic_load(&f->runs);
        CHECK(!transport->write(transport->ctx, 1, job.bytes, job.len));
        fake_find(f, 1)->is_lent = true;
        transport->wake(transport->ctx);
        test_sleep_ms(20);
        CHECK_U64(atomic_load(&f->runs), runs);
        transport->give_back(transport->ctx);
        WORLD_UNTIL(&w, atomic_load(&f->runs) > runs);
        for (size_t at = 0; at < job.len;) {
            long n = peer_read(fd, at);
            CHECK(n > 0 || n == -1);
            if (n > 0) at += (size_t)n;
        }
        WORLD_UNTIL(&w, !world_conn(1).is_lent);
        CHECK_U64(world_conn(1).writables, 1);
        close(fd);
        close(listener);
        world_stop(&w);
        free(job.bytes);
    }
}

TEST(net_bytes_of_many_connections_take_turns)
{
    enum { PEERS = 8, EACH = 3 << 20 };
    world w;
    int fd[PEERS];
    fake *f = fake_reset();
    world_start(&w, 0);
    for (int i = 0; i < PEERS; i++) fd[i] = peer_connect(world_port(&w));
    WORLD_UNTIL(&w, atomic_load(&f->accepted) == PEERS);
    for (size_t at = 0; at < EACH; at += 1 << 16) {
        for (int i = 0; i < PEERS; i++) peer_send(&w, fd[i], at, 1 << 16);
    }
    WORLD_UNTIL(&w, atomic_load(&f->bytes) == (size_t)PEERS * EACH);
    for (int i = 0; i < PEERS; i++) close(fd[i]);
    world_stop(&w);
}

/* ---- names and addresses ------------------------------------------------------------------------ */

TEST(net_connect_looks_up_names)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        fake *f = fake_reset();
        world_start(&w, WORKERS[mode]);
        job = (sending){ .host = "localhost" };
        int listener = peer_listen(5, &job.port); /* at 127.0.0.1 only */
        world_do(&w, do_connect, &job);
        WORLD_UNTIL(&w, atomic_load(&f->connected) == 1);
        close(peer_accept(&w, listener));
        WORLD_UNTIL(&w, atomic_load(&f->closed) == 1);
        close(listener);
        world_stop(&w);
    }
}

TEST(net_connect_tells_of_names_that_are_none)
{
    world w;
    fake *f = fake_reset();
    char name[101];
    memset(name, 'x', 100); /* a label has 63 letters at most */
    name[100] = '\0';
    world_start(&w, 1);
    job = (sending){ .host = name, .port = 1 };
    world_do(&w, do_connect, &job);
    WORLD_UNTIL(&w, atomic_load(&f->closed) == 1);
    CHECK_ERR(world_conn(1).err, FK_E_OS);
    CHECK(world_conn(1).why[0] != '\0');
    world_stop(&w);
}

static void connect_badly(fake *f, void *arg)
{
    char name[300];
    (void)arg;
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    CHECK_ERR(fake_connect(f, 1, name, 1), FK_E_AUTHORITY);
    CHECK_ERR(fake_connect(f, 1, "", 1), FK_E_AUTHORITY);
}

TEST(net_connect_refuses_what_is_no_name)
{
    world w;
    fake_reset();
    world_start(&w, 1);
    world_do(&w, connect_badly, NULL);
    world_stop(&w);
}
