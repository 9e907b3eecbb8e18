/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_PEERS_RAW_WORKLOADS_H
#define FK_PEERS_RAW_WORKLOADS_H

/*
 * The workloads and main() of both plain C programs. It is included at the end of
 * a kernel and not compiled on its own, so that send() is inlined into the
 * handlers. The kernel provides RUNTIME, msg, actor, spawn(), send(), finish(),
 * kernel_start() and kernel_run().
 */

#include <stdatomic.h>

/* len actors of which each does rounds steps; what that means differs per workload. */
static uint64_t len;
static uint64_t rounds;
static actor **all;
static actor *ender;             /* the actor that called finish(), where it is not obvious */
static uint64_t result;          /* what the last actor found; checked after the run */
static _Atomic uint64_t reached; /* how many actors have done their part */

static void all_spawn(handler_fn handler)
{
    all = malloc(len * sizeof(actor *));
    if (all == NULL) bench_fail(RUNTIME, "out of memory");
    for (uint64_t i = 0; i < len; i++) all[i] = spawn(handler);
}

static void reach(memory_order order)
{
    if (atomic_fetch_add_explicit(&reached, 1, order) + 1 == len) finish();
}

/* Pingpong: one message goes back and forth between two actors. */

static bool pong(actor *self, msg *m)
{
    send(m->from, self, 1, m->val);
    return true;
}

static bool ping(actor *self, msg *m)
{
    if (self->a-- > 0) {
        send(self->peer, self, 0, self->a);
    } else {
        result = m->val; /* the number of the last ping, echoed: counted down to 0 */
        finish();
    }
    return true;
}

static uint64_t pingpong_start(uint64_t ops)
{
    rounds = bench_share(ops, 2);
    result = UINT64_MAX;
    actor *first = spawn(ping);
    first->a = rounds;
    first->peer = spawn(pong);
    send(first, NULL, 1, UINT64_MAX);
    return rounds * 2;
}

static bool pingpong_check(void)
{
    return result == 0;
}

/* Ring: one message goes round a ring of actors. */

static bool ring_member(actor *self, msg *m)
{
    if (m->val == 0) {
        ender = self;
        finish();
    } else {
        send(self->peer, self, 0, m->val - 1);
    }
    return true;
}

static uint64_t ring_start(uint64_t ops)
{
    len = BENCH_RING_LEN;
    rounds = ops;
    all_spawn(ring_member);
    for (uint64_t i = 0; i < len; i++) all[i]->peer = all[(i + 1) % len];
    send(all[0], NULL, 0, rounds);
    return rounds;
}

static bool ring_check(void)
{
    return ender == all[rounds % len];
}

/* Count and fanin: producers send to one counter. */

static bool counter(actor *self, msg *m)
{
    (void)m;
    if (++self->a == len * rounds) {
        result = self->a;
        finish();
    }
    return true;
}

static bool producer(actor *self, msg *m)
{
    (void)m;
    for (uint64_t i = 0; i < self->a; i++) send(self->peer, self, 0, i);
    return true;
}

static uint64_t producers_start(uint64_t producers, uint64_t ops)
{
    len = producers;
    rounds = bench_share(ops, producers);
    actor *sink = spawn(counter);
    for (uint64_t i = 0; i < len; i++) {
        actor *p = spawn(producer);
        p->a = rounds;
        p->peer = sink;
        send(p, NULL, 0, 0);
    }
    return len * rounds;
}

static uint64_t count_start(uint64_t ops)
{
    return producers_start(1, ops);
}

static uint64_t fanin_start(uint64_t ops)
{
    return producers_start(BENCH_PRODUCERS, ops);
}

static bool producers_check(void)
{
    return result == len * rounds;
}

/* Forkjoin: one driver sends to many actors in turn; each stops at its last. */

static bool forkjoin_member(actor *self, msg *m)
{
    (void)m;
    if (++self->a < rounds) return true;
    reach(memory_order_seq_cst);
    return false;
}

static bool forkjoin_driver(actor *self, msg *m)
{
    (void)m;
    for (uint64_t j = 0; j < rounds; j++) {
        for (uint64_t i = 0; i < len; i++) send(all[i], self, 0, 0);
    }
    return true;
}

static uint64_t forkjoin_start(uint64_t ops)
{
    len = BENCH_FORKJOIN_LEN;
    rounds = bench_share(ops, len);
    all_spawn(forkjoin_member);
    send(spawn(forkjoin_driver), NULL, 0, 0);
    return len * rounds;
}

/* forkjoin, create and big: everybody has done its part, and nobody twice. */
static bool reached_check(void)
{
    return reached == len;
}

/* Create: an actor is spawned, gets one message and stops, many times. */

static bool create_once(actor *self, msg *m)
{
    (void)self;
    (void)m;
    reach(memory_order_relaxed);
    return false;
}

static bool creator(actor *self, msg *m)
{
    (void)m;
    for (uint64_t i = 0; i < len; i++) send(spawn(create_once), self, 0, 0);
    return true;
}

static uint64_t create_start(uint64_t ops)
{
    len = ops;
    send(spawn(creator), NULL, 0, 0);
    return len;
}

/* Skynet: a ten-ary tree whose leaves send their number up to be added. */

#define SKYNET_SUM 0 /* tag of a sum on its way up; any other tag is the size of a subtree */

static bool skynet_up(actor *self, uint64_t sum)
{
    if (self->peer != NULL) {
        send(self->peer, self, SKYNET_SUM, sum);
    } else {
        result = sum;
        finish();
    }
    return false;
}

static bool skynet_node(actor *self, msg *m)
{
    if (m->tag == SKYNET_SUM) {
        self->a += m->val;
        return --self->b == 0 ? skynet_up(self, self->a) : true;
    }
    if (m->tag == 1) return skynet_up(self, m->val);

    uint64_t size = m->tag / BENCH_SKYNET_FANOUT;
    self->b = BENCH_SKYNET_FANOUT;
    for (uint64_t i = 0; i < BENCH_SKYNET_FANOUT; i++) {
        actor *child = spawn(skynet_node);
        child->peer = self;
        send(child, self, size, m->val + i * size);
    }
    return true;
}

static uint64_t skynet_start(uint64_t ops)
{
    len = bench_skynet_leaves(ops);
    send(spawn(skynet_node), NULL, len, 0);
    return bench_skynet_actors(len);
}

static bool skynet_check(void)
{
    return result == len * (len - 1) / 2;
}

/* Big: every actor pings random others, one ping at a time. */

#define BIG_PING 0
#define BIG_PONG 1 /* also starts the actor */

static bool big_member(actor *self, msg *m)
{
    if (m->tag == BIG_PING) {
        send(m->from, self, BIG_PONG, 0);
    } else if (self->a-- > 0) {
        send(all[bench_xorshift(&self->b) % len], self, BIG_PING, 0);
    } else {
        reach(memory_order_seq_cst);
    }
    return true;
}

static uint64_t big_start(uint64_t ops)
{
    len = BENCH_BIG_LEN;
    rounds = bench_share(ops, len * 2);
    all_spawn(big_member);
    for (uint64_t i = 0; i < len; i++) {
        all[i]->a = rounds;
        all[i]->b = bench_seed(i);
    }
    for (uint64_t i = 0; i < len; i++) send(all[i], NULL, BIG_PONG, 0);
    return len * rounds * 2;
}

static bool big_check(void)
{
    for (uint64_t i = 0; i < len; i++) {
        if (all[i]->a != UINT64_MAX) return false; /* one below 0: the step after the last */
    }
    return reached_check();
}

/* The table of workloads, and main. */

static const struct workload {
    const char *name;
    uint64_t ops_default;
    uint64_t (*start)(uint64_t ops); /* returns the ops it really does */
    bool (*check)(void);
} WORKLOADS[] = {
    { "pingpong", 40000000, pingpong_start, pingpong_check },
    { "ring", 50000000, ring_start, ring_check },
    { "count", 10000000, count_start, producers_check },
    { "fanin", 8000000, fanin_start, producers_check },
    { "forkjoin", 6000000, forkjoin_start, reached_check },
    { "create", 1000000, create_start, reached_check },
    { "skynet", 1111111, skynet_start, skynet_check },
    { "big", 8000000, big_start, big_check },
};

int main(int argc, char **argv)
{
    bench_args args = bench_args_parse(argc, argv);
    for (size_t i = 0; i < sizeof WORKLOADS / sizeof WORKLOADS[0]; i++) {
        const struct workload *w = &WORKLOADS[i];
        if (strcmp(w->name, args.workload) != 0) continue;

        kernel_start(args.threads);
        uint64_t start_ns = bench_now_ns();
        uint64_t ops = w->start(args.ops > 0 ? args.ops : w->ops_default);
        if (!kernel_run()) bench_fail(w->name, "did not complete");
        uint64_t elapsed_ns = bench_now_ns() - start_ns;
        if (!w->check()) bench_fail(w->name, "wrong result");
        bench_report(RUNTIME, w->name, args.threads, ops, elapsed_ns);
        _exit(0); /* idle workers need no farewell */
    }
    bench_fail(args.workload, "unknown workload");
    return 1;
}

#endif /* FK_PEERS_RAW_WORKLOADS_H */
