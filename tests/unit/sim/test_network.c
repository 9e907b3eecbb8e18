/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The simulated network, with toy users: each writes a known stream of bytes into every link it has,
 * and whoever is at the other end must see a beginning of that stream, in order, whatever happens.
 */

#include "sim/network.h"

#include <string.h>

#include "support/test.h"

enum { HOSTS = 3, CONNS = 64, SEEDS = 300, STEPS = 400, CHUNK = 3000 };

/* One end, as its user knows it. */
typedef struct toy_end {
    bool is_open, is_connected, is_lent;
    size_t bytes; /* written, or read */
    uint32_t peer_key;
} toy_end;

typedef struct toy {
    uint32_t host;
    fk_network_port port;
    fk_conn_id next;
    toy_end made[CONNS], met[1024];
    unsigned char chunk[CONNS][CHUNK];
    uint32_t opened, accepted, closed, refused;
    uint64_t read;
    bool is_rude; /* refuses whoever comes */
} toy;

static fk_network net;
static toy toys[HOSTS];
static fk_time now;
static uint64_t history;
static const char *failure;

static fk_time clock_now(void)
{
    return now;
}

static void on_fail(const char *invariant, const char *what)
{
    (void)invariant;
    failure = what;
}

static void note(uint64_t what)
{
    history = fk__mix64(history ^ what ^ (uint64_t)now);
}

/* The n-th byte of every stream. */
static unsigned char byte_at(size_t n)
{
    return (unsigned char)(fk__mix64(n / 8) >> (n % 8 * 8));
}

static bool on_accepted(void *ctx, fk_conn_id conn, fk_str from, fk_time at)
{
    toy *t = ctx;
    uint32_t index = conn & ~FK_CONN_ACCEPTED;
    CHECK((conn & FK_CONN_ACCEPTED) != 0);
    CHECK(from.len > 0);
    CHECK_U64(at, now);
    CHECK(!t->met[index].is_open);
    note(conn);
    t->accepted++;
    t->met[index] = (toy_end){ .is_open = !t->is_rude };
    return !t->is_rude;
}

static void write_some(toy *t, fk_conn_id conn)
{
    toy_end *end = &t->made[conn];
    while (end->is_connected && !end->is_lent && end->bytes < 40000) {
        size_t len = 1 + (size_t)fk__mix64(end->bytes + conn) % CHUNK;
        for (size_t i = 0; i < len; i++) t->chunk[conn][i] = byte_at(end->bytes + i);
        end->bytes += len;
        end->is_lent = !fk__network_write(&t->port, conn, t->chunk[conn], len);
    }
}

static void on_connected(void *ctx, fk_conn_id conn, fk_time at)
{
    toy *t = ctx;
    (void)at;
    CHECK(t->made[conn].is_open);
    CHECK(!t->made[conn].is_connected);
    note(conn);
    t->made[conn].is_connected = true;
    t->opened++;
    write_some(t, conn);
}

static void on_writable(void *ctx, fk_conn_id conn, fk_time at)
{
    toy *t = ctx;
    (void)at;
    CHECK(t->made[conn].is_lent);
    note(conn);
    t->made[conn].is_lent = false;
    write_some(t, conn);
}

static bool on_read(void *ctx, fk_conn_id conn, fk_str bytes, fk_time at)
{
    toy *t = ctx;
    toy_end *end = &t->met[conn & ~FK_CONN_ACCEPTED];
    (void)at;
    CHECK(end->is_open);
    CHECK(bytes.len > 0);
    for (size_t i = 0; i < bytes.len; i++) {
        CHECK_U64((unsigned char)bytes.ptr[i], byte_at(end->bytes + i));
    }
    end->bytes += bytes.len;
    t->read += bytes.len;
    note(bytes.len);
    return true;
}

static void on_closed(void *ctx, fk_conn_id conn, fk_err err, fk_str why, fk_time at)
{
    toy *t = ctx;
    bool is_met = (conn & FK_CONN_ACCEPTED) != 0;
    toy_end *end = is_met ? &t->met[conn & ~FK_CONN_ACCEPTED] : &t->made[conn];
    (void)at;
    CHECK(end->is_open);
    CHECK(err == FK_OK || why.len > 0);
    if (!is_met && !end->is_connected) t->refused++;
    note(conn + (uint64_t)err);
    t->closed++;
    end->is_open = end->is_connected = end->is_lent = false;
}

static void sit_down(uint32_t host)
{
    toy *t = &toys[host];
    bool is_rude = t->is_rude;
    memset(t, 0, sizeof(*t));
    t->is_rude = is_rude;
    t->host = host;
    t->port = (fk_network_port){ &net, host };
    fk__network_up(
        &net, host,
        &(fk_network_user){ t, on_accepted, on_connected, on_writable, on_read, on_closed });
}

static void begin(const fk_network_config *config)
{
    static const fk_network_world WORLD = { clock_now, on_fail };
    static const char *const NAMES[HOSTS] = { "10.0.0.1", "10.0.0.2", "10.0.0.3" };
    now = FK_SECONDS(1);
    history = 0;
    failure = NULL;
    memset(toys, 0, sizeof(toys));
    fk__network_begin(&net, &WORLD, config);
    for (uint32_t i = 0; i < HOSTS; i++) {
        CHECK_U64(fk__network_host(&net, fk_str_of(NAMES[i]), 2552), i);
        sit_down(i);
    }
}

static fk_conn_id open_link(uint32_t from, uint32_t to)
{
    toy *t = &toys[from];
    fk_conn_id conn = ++t->next;
    CHECK(conn < CONNS);
    t->made[conn] = (toy_end){ .is_open = true };
    if (fk__network_connect(&t->port, conn, net.host[to].address, 2552) != FK_OK) {
        t->made[conn].is_open = false;
    }
    return conn;
}

/* Time goes to the next thing that happens, and all of it happens. False: nothing will. */
static bool go_on(fk_time until)
{
    fk_time next = FK_NEVER;
    for (uint32_t i = 0; i < HOSTS; i++) {
        fk_time at = net.host[i].is_up ? fk__network_next(&net, i) : FK_NEVER;
        if (at < next) next = at;
    }
    if (next > until) {
        now = until;
        return false;
    }
    if (next > now) now = next;
    for (uint32_t i = 0; i < HOSTS; i++) {
        while (net.host[i].is_up && fk__network_deliver(&net, i)) {
        }
    }
    fk__network_check(&net);
    return true;
}

static void run(fk_time span)
{
    fk_time end = now + span;
    for (uint32_t i = 0; go_on(end); i++) CHECK(i < 1000000); /* things happen, or time passes */
}

static const fk_network_config PLAIN = { .seed = 1,
                                         .delay_min = FK_MICROS(50),
                                         .delay_max = FK_MILLIS(2) };

/* ---- one thing at a time ------------------------------------------------------------------- */

TEST(network_delivers_all_in_order)
{
    fk_network_config config = PLAIN;
    config.window = 1000;
    config.piece_max = 7;
    begin(&config);
    fk_conn_id conn = open_link(0, 1);
    run(FK_SECONDS(100));
    CHECK(toys[0].made[conn].bytes >= 40000);
    CHECK_U64(toys[1].read, toys[0].made[conn].bytes);
    CHECK(net.count.lent > 0);
    CHECK(net.lost_at[0][1] == -1);
}

TEST(network_has_a_window)
{
    fk_network_config config = PLAIN;
    config.window = 1000;
    begin(&config);
    fk_conn_id conn = open_link(0, 1);
    run(FK_MILLIS(5));
    fk__network_cut(&net, 1, 0, true); /* acknowledgements do not come back */
    uint64_t before = toys[1].read;
    run(FK_SECONDS(10));
    CHECK(toys[0].made[conn].is_lent);
    CHECK(toys[1].read - before <= 1000);
    fk__network_cut(&net, 1, 0, false);
    run(FK_SECONDS(100));
    CHECK_U64(toys[1].read, toys[0].made[conn].bytes);
}

TEST(network_holds_back_what_is_cut)
{
    begin(&PLAIN);
    fk__network_cut(&net, 0, 1, true);
    open_link(0, 1);
    run(FK_SECONDS(2));
    CHECK_U64(toys[0].opened, 0);
    fk__network_cut(&net, 0, 1, false);
    run(FK_SECONDS(1));
    CHECK_U64(toys[0].opened, 1);
    fk__network_cut(&net, 0, 2, true);
    open_link(0, 2);
    run(FK_SECONDS(10)); /* the attempt is given up */
    CHECK_U64(toys[0].refused, 1);
    CHECK_U64(net.count.timeouts, 1);
}

TEST(network_close_gently_brings_all)
{
    begin(&PLAIN);
    fk_conn_id conn = open_link(0, 1);
    while (!toys[0].made[conn].is_connected) go_on(now + FK_SECONDS(1));
    fk__network_close(&toys[0].port, conn, true);
    run(FK_SECONDS(1));
    CHECK_U64(toys[1].read, toys[0].made[conn].bytes);
    CHECK_U64(toys[1].closed, 1);
    CHECK_U64(toys[0].closed, 0);
    CHECK_U64(fk__network_ends(&net, 0) + fk__network_ends(&net, 1), 0);
    CHECK(net.lost_at[0][1] == -1);
}

TEST(network_close_abruptly_loses)
{
    begin(&PLAIN);
    fk_conn_id conn = open_link(0, 1);
    while (!toys[0].made[conn].is_connected) go_on(now + FK_SECONDS(1));
    fk__network_close(&toys[0].port, conn, false);
    run(FK_SECONDS(1));
    CHECK(toys[1].read < toys[0].made[conn].bytes);
    CHECK(net.lost_at[0][1] >= 0);
}

TEST(network_refuses_for_the_rude)
{
    begin(&PLAIN);
    toys[1].is_rude = true;
    open_link(0, 1);
    run(FK_SECONDS(1));
    CHECK_U64(toys[0].opened, 1);
    CHECK_U64(toys[0].closed, 1);
    CHECK_U64(fk__network_ends(&net, 1), 0);
}

TEST(network_crash_is_heard_or_not)
{
    for (int is_silent = 0; is_silent < 2; is_silent++) {
        begin(&PLAIN);
        open_link(0, 1);
        open_link(1, 0);
        run(FK_SECONDS(1));
        fk__network_crash(&net, 1, is_silent);
        run(FK_SECONDS(10));
        CHECK_U64(toys[0].closed, is_silent ? 0 : 2);
        open_link(0, 1);
        run(FK_SECONDS(1));
        CHECK_U64(toys[0].refused, is_silent ? 0 : 1);
        sit_down(1);
        run(FK_SECONDS(10)); /* somebody else sits there: the old link is none of his */
        CHECK_U64(toys[0].opened, is_silent ? 2 : 1);
        CHECK_U64(toys[0].closed, is_silent ? 1 : 3);
    }
}

TEST(network_judges_its_users)
{
    begin(&PLAIN);
    fk_conn_id conn = open_link(0, 1);
    (void)fk__network_write(&toys[0].port, conn, "x", 1);
    CHECK_STR(failure, "a write to what is not connected");
    run(FK_SECONDS(1));
    failure = NULL;
    CHECK_ERR(fk__network_connect(&toys[0].port, conn, net.host[1].address, 2552), FK_OK);
    CHECK_STR(failure, "a connection with a number that it cannot have");
    fk__network_close(&toys[0].port, 17, true);
    CHECK_STR(failure, "a close of what is closed");
    fk__network_down(&net, 0);
    CHECK_STR(failure, "a system that has ended leaves connections");
}

TEST(network_notices_lent_bytes_that_change)
{
    fk_network_config config = PLAIN;
    config.window = 100;
    begin(&config);
    fk_conn_id conn = open_link(0, 1);
    while (!toys[0].made[conn].is_lent) go_on(now + FK_SECONDS(1));
    toys[0].chunk[conn][0] ^= 1;
    run(FK_SECONDS(10));
    CHECK_STR(failure, "bytes that were lent to the transport have changed");
}

/* ---- everything at once -------------------------------------------------------------------- */

static fk_network_config draw(uint64_t seed)
{
    fk_rng rng = { fk__mix64(seed) | 1 };
    fk_network_config config = { .seed = seed, .connect_timeout = FK_MILLIS(200) };
    config.delay_max = (fk_time)(fk__rng_next(&rng) % (uint64_t)FK_MILLIS(50));
    config.accept_max = fk__rng_next(&rng) % 2 ? FK_MILLIS(100) : 0;
    config.window = 1 + (uint32_t)(fk__rng_next(&rng) % 5000);
    config.piece_max = fk__rng_next(&rng) % 2 ? 0 : 100;
    config.refuse_in = fk__rng_next(&rng) % 2 ? 4 : 0;
    config.reset_in = fk__rng_next(&rng) % 2 ? 20 : 0;
    config.lazy_in = fk__rng_next(&rng) % 2 ? 3 : 0;
    config.spare_in = fk__rng_next(&rng) % 2 ? 2 : 0;
    return config;
}

static void disturb(fk_rng *rng)
{
    uint32_t a = (uint32_t)(fk__rng_next(rng) % HOSTS), b = (uint32_t)(fk__rng_next(rng) % HOSTS);
    if (a == b) b = (a + 1) % HOSTS;
    switch (fk__rng_next(rng) % 8) {
    case 0:
    case 1:
        if (net.host[a].is_up && toys[a].next + 1 < CONNS) open_link(a, b);
        break;
    case 2: fk__network_cut(&net, a, b, true); break;
    case 3: fk__network_cut(&net, a, b, false); break;
    case 4: fk__network_reset_any(&net); break;
    case 5:
        if (fk__rng_next(rng) % 4 == 0) fk__network_reset(&net, a, b);
        break;
    case 6:
        for (fk_conn_id i = 1; net.host[a].is_up && i < CONNS; i++) {
            if (!toys[a].made[i].is_open) continue;
            toys[a].made[i].is_open = toys[a].made[i].is_connected = toys[a].made[i].is_lent =
                false;
            fk__network_close(&toys[a].port, i, fk__rng_next(rng) % 2 == 0);
            break;
        }
        break;
    default:
        if (fk__rng_next(rng) % 8 != 0) break;
        if (net.host[a].is_up)
            fk__network_crash(&net, a, fk__rng_next(rng) % 2 == 0);
        else
            sit_down(a);
        break;
    }
}

static uint64_t wild_run(uint64_t seed)
{
    fk_network_config config = draw(seed);
    fk_rng rng = { fk__mix64(seed + 77) | 1 };
    begin(&config);
    for (int i = 0; i < STEPS; i++) {
        disturb(&rng);
        run((fk_time)(fk__rng_next(&rng) % (uint64_t)FK_MILLIS(20)));
    }
    fk__network_heal(&net);
    for (uint32_t i = 0; i < HOSTS; i++) {
        if (!net.host[i].is_up) sit_down(i);
    }
    run(FK_SECONDS(1000));
    CHECK(failure == NULL);
    /* What is still open carries all there is, one way or the other. */
    for (uint32_t i = 0; i < net.link_end; i++) {
        const fk_net_link *link = &net.link[i];
        if (!link->is_used || link->maker_end != FK_LINK_END_OPEN) continue;
        CHECK_U64(link->other_end, FK_LINK_END_OPEN);
        CHECK_U64(toys[link->other].met[link->other_id & ~FK_CONN_ACCEPTED].bytes,
                  toys[link->maker].made[link->maker_id].bytes);
    }
    return history;
}

TEST(network_wild_runs)
{
    fk_network_count sum = { 0 };
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t first = wild_run(seed);
        sum.refused += net.count.refused;
        sum.timeouts += net.count.timeouts;
        sum.resets += net.count.resets;
        sum.held += net.count.held;
        sum.lent += net.count.lent;
        sum.cut_frames += net.count.cut_frames;
        sum.lost += net.count.lost;
        if (seed % 10 == 0) CHECK(wild_run(seed) == first);
    }
    CHECK(sum.refused > 0 && sum.timeouts > 0 && sum.resets > 0 && sum.held > 0);
    CHECK(sum.lent > 0 && sum.cut_frames > 0 && sum.lost > 0);
}
