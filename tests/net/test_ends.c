/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How connections end: by the peer, by us, by the time, or never having been. */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/fake_driver.h"

enum { MODES = 3, LARGE = 30000000 };
static const uint32_t WORKERS[MODES] = { 0, 1, 3 };

static uint16_t target;

static void do_connect(fake *f, void *arg)
{
    CHECK_OK(fake_connect(f, *(fk_conn_id *)arg, "127.0.0.1", target));
}

static void connect_one(world *w, fk_conn_id id)
{
    world_do(w, do_connect, &id);
}

static void close_hard(fake *f, void *arg)
{
    fake_close(f, *(fk_conn_id *)arg, false);
}

static void close_gently(fake *f, void *arg)
{
    fake_close(f, *(fk_conn_id *)arg, true);
}

static unsigned char large[LARGE];

/* Before there is a loop that making it would hold up. */
__attribute__((constructor)) static void large_make(void)
{
    for (size_t i = 0; i < LARGE; i++) large[i] = fake_byte(i);
}

static void write_large(fake *f, fake_conn *c)
{
    CHECK(!fake_write(f, c->id, large, LARGE));
}

/* ---- by the peer ------------------------------------------------------------------------------- */

TEST(net_end_by_the_peer_is_told_with_its_kind)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        fake *f = fake_reset();
        world_start(&w, WORKERS[mode]);
        int fd = peer_connect(world_port(&w));
        peer_send(&w, fd, 0, 1000);
        close(fd);
        WORLD_UNTIL(&w, atomic_load(&f->closed) == 1);
        fake_conn c = world_last();
        CHECK_U64(c.received, 1000); /* first the bytes */
        CHECK_ERR(c.err, FK_OK);
        fd = peer_connect(world_port(&w));
        WORLD_UNTIL(&w, atomic_load(&f->accepted) == 2);
        peer_reset(fd);
        WORLD_UNTIL(&w, atomic_load(&f->closed) == 2);
        c = world_last();
        CHECK_ERR(c.err, FK_E_OS);
        CHECK_STR(c.why, "connection reset by peer");
        world_stop(&w);
    }
}

TEST(net_end_by_the_peer_of_a_connection_of_ours)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        fake *f = fake_reset();
        f->on_connected = write_large;
        world_start(&w, WORKERS[mode]);
        int listener = peer_listen(5, &target);
        connect_one(&w, 1);
        int fd = peer_accept(&w, listener);
        WORLD_UNTIL(&w, world_conn(1).is_lent);
        peer_reset(fd); /* with a write under way */
        WORLD_UNTIL(&w, world_conn(1).is_closed);
        CHECK_ERR(world_conn(1).err, FK_E_OS);
        close(listener);
        world_stop(&w);
    }
}

/* The first write after that learns of the reset, the next one would bring the signal. */
static void reset_and_write(fake *f, void *arg)
{
    peer_reset(*(int *)arg);
    CHECK(!fake_write(f, 1, "x", 1));
}

TEST(net_end_while_writing_raises_no_signal)
{
    world w;
    fake_reset();
    world_start(&w, 0); /* on this thread, which would be killed */
    int listener = peer_listen(5, &target);
    connect_one(&w, 1);
    int fd = peer_accept(&w, listener);
    WORLD_UNTIL(&w, world_conn(1).is_connected);
    world_do(&w, reset_and_write, &fd);
    WORLD_UNTIL(&w, world_conn(1).is_closed);
    close(listener);
    world_stop(&w);
}

TEST(net_read_that_says_no_closes_and_tells_nothing_more)
{
    world w;
    fake *f = fake_reset();
    f->read_result = false;
    world_start(&w, 1);
    int fd = peer_connect(world_port(&w));
    peer_send(&w, fd, 0, 10);
    WORLD_UNTIL(&w, atomic_load(&f->bytes) == 10);
    WORLD_UNTIL(&w, peer_read(fd, 0) != -1);
    close(fd);
    world_pass_ms(&w, 20);
    CHECK_U64(atomic_load(&f->closed), 0);
    /* On a connection of ours, too. */
    int listener = peer_listen(5, &target);
    connect_one(&w, 1);
    fd = peer_accept(&w, listener);
    peer_send(&w, fd, 0, 1);
    WORLD_UNTIL(&w, peer_read(fd, 0) != -1);
    CHECK_U64(world_conn(1).received, 1);
    close(fd);
    close(listener);
    world_stop(&w);
}

/* ---- never made ---------------------------------------------------------------------------------- */

TEST(net_connect_refused_is_told)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        fake_reset();
        world_start(&w, WORKERS[mode]);
        close(peer_listen(5, &target));
        for (fk_conn_id id = 1; id <= 20; id++) {
            connect_one(&w, id);
            WORLD_UNTIL(&w, world_conn(id).is_closed);
            CHECK_ERR(world_conn(id).err, FK_E_OS);
            CHECK_STR(world_conn(id).why, "connection refused");
            CHECK(!world_conn(id).is_connected);
        }
        world_stop(&w);
    }
}

/* A listener whose queue is full does not answer. */
static int black_hole(int filler[4])
{
    int listener = peer_listen(0, &target);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(target),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    for (int i = 0; i < 4; i++) {
        filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        CHECK(filler[i] >= 0);
        int done = connect(filler[i], (struct sockaddr *)&to, sizeof(to));
        CHECK(done == 0 || errno == EINPROGRESS);
    }
    test_sleep_ms(20);
    return listener;
}

TEST(net_connect_to_a_black_hole_can_be_given_up)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        int filler[4];
        fake *f = fake_reset();
        world_start(&w, WORKERS[mode]);
        int listener = black_hole(filler);
        fk_conn_id id = 1;
        connect_one(&w, id);
        world_pass_ms(&w, 100);
        CHECK_U64(atomic_load(&f->connected), 0);
        CHECK_U64(atomic_load(&f->closed), 0);
        world_do(&w, mode == 0 ? close_gently : close_hard, &id);
        connect_one(&w, id); /* its number is free again */
        world_pass_ms(&w, 20);
        CHECK_U64(atomic_load(&f->closed), 0);
        for (int i = 0; i < 4; i++) close(filler[i]);
        close(listener);
        world_stop(&w);
    }
}

/* ---- by us ----------------------------------------------------------------------------------------- */

static void write_and_leave(fake *f, fake_conn *c)
{
    static unsigned char bytes[200000];
    size_t len = sizeof(bytes);
    for (size_t i = 0; i < len; i++) bytes[i] = fake_byte(i);
    bool taken = fake_write(f, c->id, bytes, len);
    CHECK(taken);
    fake_close(f, c->id, true);
    memset(bytes, 0, len); /* they were ours again */
}

TEST(net_close_gently_sends_what_was_taken)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        fake *f = fake_reset();
        f->on_connected = write_and_leave;
        world_start(&w, WORKERS[mode]);
        int listener = peer_listen(5, &target);
        connect_one(&w, 1);
        int fd = peer_accept(&w, listener);
        WORLD_UNTIL(&w, atomic_load(&f->connected) == 1);
        CHECK(send(fd, "late", 4, MSG_NOSIGNAL) ==
              4); /* must not make the kernel forget the rest */
        world_pass_ms(&w, 20);
        size_t at = 0;
        long n = -1;
        while (n != 0) {
            n = peer_read(fd, at);
            CHECK(n >= -1);
            if (n > 0) at += (size_t)n;
            if (n < 0) world_pass(&w);
        }
        CHECK_U64(at, 200000);
        CHECK_U64(atomic_load(&f->closed), 0);
        close(fd);
        close(listener);
        world_stop(&w);
    }
}

TEST(net_close_gently_ends_when_the_peer_does_not)
{
    world w;
    fake *f = fake_reset();
    f->leave = FK_MILLIS(100);
    f->on_connected = write_and_leave;
    world_start(&w, 2);
    int listener = peer_listen(5, &target);
    size_t before = world_fds();
    connect_one(&w, 1);
    int fd = peer_accept(&w, listener);
    WORLD_UNTIL(&w, atomic_load(&f->connected) == 1);
    CHECK_U64(world_fds(), before + 2);
    WORLD_UNTIL(&w, world_fds() == before + 1); /* the peer's */
    close(fd);
    close(listener);
    world_stop(&w);
}

TEST(net_close_at_once_with_a_write_under_way)
{
    for (int mode = 0; mode < MODES; mode++) {
        for (int gently = 0; gently <= 1; gently++) {
            world w;
            fake *f = fake_reset();
            f->on_connected = write_large;
            world_start(&w, WORKERS[mode]);
            int listener = peer_listen(5, &target);
            fk_conn_id id = 1;
            connect_one(&w, id);
            int fd = peer_accept(&w, listener);
            WORLD_UNTIL(&w, world_conn(1).is_lent);
            world_do(&w, gently != 0 ? close_gently : close_hard, &id);
            long n = -1;
            for (size_t at = 0; n == -1 || n > 0; at += n > 0 ? (size_t)n : 0) {
                n = peer_read(fd, at);
                if (n == -1) world_pass(&w);
                CHECK(at < LARGE);
            }
            CHECK_U64(atomic_load(&f->closed), 0);
            close(fd);
            close(listener);
            world_stop(&w);
        }
    }
}

TEST(net_write_that_stalls_ends_the_connection)
{
    world w;
    fake *f = fake_reset();
    f->stall = FK_MILLIS(300);
    f->on_connected = write_large;
    world_start(&w, 1);
    int listener = peer_listen(5, &target);
    int64_t began = test_clock();
    connect_one(&w, 1);
    int fd = peer_accept(&w, listener);
    WORLD_UNTIL(&w, world_conn(1).is_lent);
    WORLD_UNTIL(&w, world_conn(1).is_closed);
    CHECK(test_clock() - began >= FK_MILLIS(300));
    CHECK_ERR(world_conn(1).err, FK_E_OS);
    CHECK_STR(world_conn(1).why, "the peer has not read for too long");
    close(fd);
    close(listener);
    world_stop(&w);
}

TEST(net_write_that_makes_progress_does_not_stall)
{
    world w;
    fake *f = fake_reset();
    f->stall = FK_MILLIS(1200); /* looked at every second */
    f->on_connected = write_large;
    world_start(&w, 1);
    int listener = peer_listen(5, &target);
    connect_one(&w, 1);
    int fd = peer_accept(&w, listener);
    WORLD_UNTIL(&w, world_conn(1).is_lent);
    size_t at = 0;
    int64_t end = test_clock() + FK_MILLIS(3500);
    while (test_clock() < end) {
        for (int i = 0; i < 40; i++) {
            long n = peer_read(fd, at);
            CHECK(n > 0 || n == -1);
            if (n > 0) at += (size_t)n;
        }
        test_sleep_ms(400);
    }
    CHECK(at < LARGE);
    CHECK(world_conn(1).is_lent);
    CHECK(!world_conn(1).is_closed);
    close(fd);
    close(listener);
    world_stop(&w);
}

/* ---- from within a call --------------------------------------------------------------------------- */

static void close_all(fake *f)
{
    for (uint32_t i = 0; i < f->conn_count; i++) {
        if (!f->conn[i].is_over) fake_close(f, f->conn[i].id, i % 2 == 0);
    }
}

static void read_closes_all(fake *f, fake_conn *c, fk_str bytes)
{
    (void)c;
    (void)bytes;
    close_all(f);
}

static void told_closes_all(fake *f, fake_conn *c)
{
    (void)c;
    close_all(f);
}

static void told_connects_again(fake *f, fake_conn *c)
{
    if (c->id < 10) CHECK_OK(fake_connect(f, c->id + 1, "127.0.0.1", target));
}

TEST(net_close_from_within_every_call)
{
    enum { PEERS = 6 };
    for (int mode = 0; mode < MODES; mode++) {
        for (int way = 0; way < 3; way++) {
            world w;
            int fd[PEERS];
            fake *f = fake_reset();
            if (way == 0) f->on_read = read_closes_all;
            if (way == 1) f->on_closed = told_closes_all;
            if (way == 2) f->on_connected = told_closes_all;
            world_start(&w, WORKERS[mode]);
            int listener = peer_listen(5, &target);
            for (int i = 0; i < PEERS; i++) fd[i] = peer_connect(world_port(&w));
            WORLD_UNTIL(&w, atomic_load(&f->accepted) == PEERS);
            connect_one(&w, 1);
            for (int i = 0; i < PEERS; i++) {
                if (way == 0) send(fd[i], "\0", 1, MSG_NOSIGNAL); /* byte 0 of every stream is 0 */
                if (way == 1) shutdown(fd[i], SHUT_WR);
            }
            for (int i = 0; i < PEERS; i++) {
                WORLD_UNTIL(&w, peer_read(fd[i], 0) != -1);
                close(fd[i]);
            }
            close(listener);
            world_stop(&w);
        }
    }
}

TEST(net_connect_from_within_the_end_of_another)
{
    world w;
    fake *f = fake_reset();
    f->on_closed = told_connects_again;
    world_start(&w, 2);
    close(peer_listen(5, &target));
    connect_one(&w, 1);
    WORLD_UNTIL(&w, atomic_load(&f->closed) == 10);
    world_stop(&w);
}

/* ---- the end of everything ------------------------------------------------------------------------- */

static void open_everything(fake *f, void *arg)
{
    uint16_t *port = arg;
    CHECK_OK(fake_connect(f, 1, "127.0.0.1", port[0])); /* will be written to */
    CHECK_OK(fake_connect(f, 2, "127.0.0.1", port[0]));
    CHECK_OK(fake_connect(f, 3, "127.0.0.1", port[1])); /* a black hole */
    CHECK_OK(fake_connect(f, 4, "localhost", port[0])); /* being looked up */
    CHECK_OK(fake_connect(f, 5, "localhost", port[1]));
}

static void first_writes(fake *f, fake_conn *c)
{
    if (c->id == 1) write_large(f, c);
}

TEST(net_stop_with_everything_open_leaves_nothing)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        int filler[4], fd[5];
        uint16_t port[2];
        size_t before = world_fds();
        fake *f = fake_reset();
        f->on_connected = first_writes;
        world_start(&w, WORKERS[mode]);
        int hole = black_hole(filler);
        port[1] = target;
        int listener = peer_listen(5, &port[0]);
        for (int i = 0; i < 5; i++) fd[i] = peer_connect(world_port(&w));
        WORLD_UNTIL(&w, atomic_load(&f->accepted) == 5);
        peer_send(&w, fd[0], 0, 100000);
        world_do(&w, open_everything, port);
        if (mode != 1) WORLD_UNTIL(&w, world_conn(1).is_lent);
        /* What is still the peer's is not ours to count. */
        for (int i = 0; i < 5; i++) close(fd[i]);
        for (int i = 0; i < 4; i++) close(filler[i]);
        close(hole);
        close(listener);
        world_stop(&w);
        CHECK(world_fds() <= before + 2);
    }
}

TEST(net_thousand_connections_come_and_go)
{
    world w;
    fake *f = fake_reset();
    enum { ROUNDS = 20, AT_ONCE = 50 };
    int fd[AT_ONCE];
    size_t rss = 0, fds = 0;
    world_start(&w, 2);
    for (int round = 0; round < ROUNDS; round++) {
        if (round == 4) rss = test_rss();
        if (round == 1) fds = world_fds();
        for (int i = 0; i < AT_ONCE; i++) fd[i] = peer_connect(world_port(&w));
        for (int i = 0; i < AT_ONCE; i++) peer_send(&w, fd[i], 0, 1000);
        size_t total = (size_t)(round + 1) * AT_ONCE;
        WORLD_UNTIL(&w, atomic_load(&f->bytes) == total * 1000);
        for (int i = 0; i < AT_ONCE; i++) {
            if (i % 2 == 0) close(fd[i]);
            if (i % 2 != 0) peer_reset(fd[i]);
        }
        WORLD_UNTIL(&w, atomic_load(&f->closed) == total);
        if (round >= 1) WORLD_UNTIL(&w, world_fds() == fds);
    }
    CHECK(test_rss() < rss + (test_is_sanitized() ? 8u << 20 : 1u << 20));
    world_stop(&w);
}
