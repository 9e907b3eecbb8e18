/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names that take their time: nobody waits for them but whoever wants to go there. */

#include <stdio.h>
#include <unistd.h>

#include "net/fake_driver.h"

enum { MODES = 3 };
static const uint32_t WORKERS[MODES] = { 0, 1, 3 };

typedef struct calls {
    fk_conn_id first;
    uint32_t count;
    const char *host;
    uint16_t port;
    bool is_wanted;
} calls;

static void do_calls(fake *f, void *arg)
{
    const calls *c = arg;
    for (uint32_t i = 0; i < c->count; i++) {
        CHECK_OK(fake_connect_as(f, c->first + i, c->host, c->port, c->is_wanted));
    }
}

static void call(world *w, calls c)
{
    world_do(w, do_calls, &c);
}

static void do_close(fake *f, void *arg)
{
    fake_close(f, *(const fk_conn_id *)arg, false);
}

static fake *begin(void)
{
    the_names = (fake_names){ .is_released = false };
    return fake_reset();
}

/* Of a system that has stopped, those that were left behind. */
static void release(const world *w)
{
    int64_t end = test_clock() + FK_SECONDS(10);
    atomic_store(&the_names.is_released, true);
    while (test_thread_count() != w->threads && test_clock() < end) test_sleep_ms(1);
    CHECK_U64(test_thread_count(), w->threads);
    CHECK_U64(atomic_load(&the_names.running), 0);
}

TEST(net_stop_does_not_wait_for_names)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        begin();
        world_start(&w, WORKERS[mode]);
        call(&w, (calls){ 1, 6, "slow.example", 1, true }); /* some of them wait for their turn */
        call(&w, (calls){ 7, 3, "slow.example", 1, false });
        WORLD_UNTIL(&w, atomic_load(&the_names.running) == 4);
        int64_t before = test_clock();
        CHECK_OK(fk_system_stop(w.sys));
        CHECK(test_clock() - before < FK_SECONDS(5));
        CHECK_U64(atomic_load(&the_names.running), 4);
        CHECK_U64(world_fds(), w.fds);
        release(&w);
    }
}

TEST(net_stop_while_names_are_found)
{
    for (int i = 0; i < 50; i++) {
        world w;
        begin();
        world_start(&w, 1);
        call(&w, (calls){ 1, 4, "slow.example", 1, true });
        atomic_store(&the_names.is_released, true);
        if (i % 2 == 0) test_sleep_ms(1);
        CHECK_OK(fk_system_stop(w.sys));
        release(&w);
    }
}

TEST(net_names_of_strangers_keep_nobody_waiting)
{
    world w;
    uint16_t port;
    fake *f = begin();
    world_start(&w, 1);
    int listener = peer_listen(64, &port);
    call(&w, (calls){ 1, 8, "slow.example", port, false });
    WORLD_UNTIL(&w, atomic_load(&the_names.running) == 2);
    call(&w, (calls){ 21, 1, "localhost", port, true });
    WORLD_UNTIL(&w, world_conn(21).is_connected);
    CHECK_U64(atomic_load(&f->connected), 1);
    call(&w, (calls){ 31, 4, "slow.example", port, true });
    WORLD_UNTIL(&w, atomic_load(&the_names.running) == 4);
    world_pass_ms(&w, 50);
    CHECK_U64(atomic_load(&the_names.most), 4);
    atomic_store(&the_names.is_released, true);
    WORLD_UNTIL(&w, atomic_load(&f->connected) == 13); /* each in its turn */
    CHECK_U64(atomic_load(&the_names.most), 4);
    close(listener);
    world_stop(&w);
}

TEST(net_names_that_are_not_found_in_time_are_given_up)
{
    world w;
    fake *f = begin();
    f->lookup = FK_MILLIS(100);
    world_start(&w, 1);
    call(&w, (calls){ 1, 4, "slow.example", 1, false }); /* two of them wait for their turn */
    WORLD_UNTIL(&w, atomic_load(&f->closed) == 4);
    for (fk_conn_id id = 1; id <= 4; id++) {
        CHECK_STR(world_conn(id).why, "its name was not found in time");
    }
    call(&w, (calls){ 11, 1, "slow.example", 1, false }); /* those that are given up still count */
    world_pass_ms(&w, 50);
    CHECK_U64(atomic_load(&the_names.running), 2);
    CHECK_U64(atomic_load(&the_names.calls), 2);
    atomic_store(&the_names.is_released, true);
    WORLD_UNTIL(&w, atomic_load(&f->closed) == 5);
    world_stop(&w);
}

TEST(net_connections_are_closed_while_their_names_are_looked_up)
{
    world w;
    fk_conn_id id;
    fake *f = begin();
    world_start(&w, 1);
    call(&w, (calls){ 1, 3, "slow.example", 1, false });
    WORLD_UNTIL(&w, atomic_load(&the_names.running) == 2);
    for (id = 1; id <= 3; id++) world_do(&w, do_close, &id); /* also one that waits */
    atomic_store(&the_names.is_released, true);
    WORLD_UNTIL(&w, atomic_load(&the_names.running) == 0);
    world_pass_ms(&w, 50);
    CHECK_U64(atomic_load(&the_names.calls), 2);
    CHECK_U64(atomic_load(&f->closed) + atomic_load(&f->connected), 0);
    world_stop(&w);
}

TEST(net_addresses_are_not_looked_up)
{
    world w;
    uint16_t port;
    fake *f = begin();
    world_start(&w, 1);
    int listener = peer_listen(64, &port);
    call(&w, (calls){ 1, 1, "127.0.0.1", port, false });
    call(&w, (calls){ 2, 1, "::1", port, false });
    WORLD_UNTIL(&w, atomic_load(&f->connected) + atomic_load(&f->closed) == 2);
    CHECK_U64(atomic_load(&the_names.calls), 0);
    close(listener);
    world_stop(&w);
}
