/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The workloads on the C++ Actor Framework 0.17 as Debian packages it: function
 * based event actors, the default work-stealing scheduler, untyped messages.
 */
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "caf/all.hpp"

#include "../bench.h"

using namespace caf;

using go_atom = atom_constant<atom("go")>;
using ping_atom = atom_constant<atom("ping")>;
using pong_atom = atom_constant<atom("pong")>;
using inc_atom = atom_constant<atom("inc")>;

namespace
{

/* len actors of which each does rounds steps; what that means differs per workload. */
uint64_t len;
uint64_t rounds;
std::vector<actor> all;
uint64_t result;                    /* what the last actor found; checked after the run */
std::atomic<uint64_t> reached{ 0 }; /* how many actors have done their part */

class latch
{
  public:
    void set()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        is_set_ = true;
        cond_.notify_all();
    }

    void wait()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        cond_.wait(guard, [this] { return is_set_; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable cond_;
    bool is_set_ = false;
};

latch finished;

void reach()
{
    if (reached.fetch_add(1) + 1 == len) finished.set();
}

struct counter_state {
    uint64_t count = 0;
};

/* Pingpong. */

behavior pong(event_based_actor *self)
{
    return { [=](ping_atom, uint64_t value) {
        self->send(actor_cast<actor>(self->current_sender()), pong_atom::value, value);
    } };
}

struct ping_state {
    uint64_t left = 0;
    actor peer;
};

behavior ping(stateful_actor<ping_state> *self, actor peer)
{
    self->state.peer = std::move(peer);
    self->state.left = rounds;
    return {
        [=](go_atom) { self->send(self->state.peer, ping_atom::value, self->state.left); },
        [=](pong_atom, uint64_t value) {
            if (--self->state.left > 0) {
                self->send(self->state.peer, ping_atom::value, self->state.left);
            } else {
                result = value;
                finished.set();
            }
        },
    };
}

uint64_t pingpong_start(actor_system &system, uint64_t ops)
{
    rounds = bench_share(ops, 2);
    anon_send(system.spawn(ping, system.spawn(pong)), go_atom::value);
    return rounds * 2;
}

bool pingpong_check()
{
    return result == 1; /* the last ping carried a 1, and it came back */
}

/* Ring. */

struct ring_state {
    actor next;
};

behavior ring_member(stateful_actor<ring_state> *self, uint64_t index)
{
    return {
        [=](const actor &next) { self->state.next = next; },
        [=](ping_atom, uint64_t hops) {
            if (hops > 0) {
                self->send(self->state.next, ping_atom::value, hops - 1);
            } else {
                result = index;
                finished.set();
            }
        },
    };
}

uint64_t ring_start(actor_system &system, uint64_t ops)
{
    len = BENCH_RING_LEN;
    rounds = ops;
    for (uint64_t i = 0; i < len; i++) all.push_back(system.spawn(ring_member, i));
    for (uint64_t i = 0; i < len; i++) anon_send(all[i], all[(i + 1) % len]);
    anon_send(all[0], ping_atom::value, rounds);
    return rounds;
}

bool ring_check()
{
    return result == rounds % len;
}

/* Count and fanin. */

behavior counter(stateful_actor<counter_state> *self)
{
    return { [=](inc_atom, uint64_t) {
        if (++self->state.count == len * rounds) {
            result = self->state.count;
            finished.set();
        }
    } };
}

behavior producer(event_based_actor *self, actor sink)
{
    return { [=](go_atom) {
        for (uint64_t i = 0; i < rounds; i++) self->send(sink, inc_atom::value, i);
        self->quit();
    } };
}

uint64_t producers_start(actor_system &system, uint64_t producers, uint64_t ops)
{
    len = producers;
    rounds = bench_share(ops, producers);
    auto sink = system.spawn(counter);
    for (uint64_t i = 0; i < len; i++) anon_send(system.spawn(producer, sink), go_atom::value);
    return len * rounds;
}

uint64_t count_start(actor_system &system, uint64_t ops)
{
    return producers_start(system, 1, ops);
}

uint64_t fanin_start(actor_system &system, uint64_t ops)
{
    return producers_start(system, BENCH_PRODUCERS, ops);
}

bool producers_check()
{
    return result == len * rounds;
}

/* Forkjoin. */

behavior forkjoin_member(stateful_actor<counter_state> *self)
{
    return { [=](inc_atom) {
        if (++self->state.count < rounds) return;
        reach();
        self->quit();
    } };
}

behavior forkjoin_driver(event_based_actor *self)
{
    return { [=](go_atom) {
        for (uint64_t j = 0; j < rounds; j++) {
            for (auto &member : all) self->send(member, inc_atom::value);
        }
        self->quit();
    } };
}

uint64_t forkjoin_start(actor_system &system, uint64_t ops)
{
    len = BENCH_FORKJOIN_LEN;
    rounds = bench_share(ops, len);
    for (uint64_t i = 0; i < len; i++) all.push_back(system.spawn(forkjoin_member));
    anon_send(system.spawn(forkjoin_driver), go_atom::value);
    return len * rounds;
}

bool reached_check()
{
    return reached == len;
}

/* Create. */

behavior create_once(event_based_actor *self)
{
    return { [=](go_atom) {
        self->quit();
        reach();
    } };
}

behavior creator(event_based_actor *self)
{
    return { [=](go_atom) {
        for (uint64_t i = 0; i < len; i++) self->send(self->spawn(create_once), go_atom::value);
        self->quit();
    } };
}

uint64_t create_start(actor_system &system, uint64_t ops)
{
    len = ops;
    anon_send(system.spawn(creator), go_atom::value);
    return len;
}

/* Skynet. */

struct skynet_state {
    uint64_t sum = 0;
    unsigned left = BENCH_SKYNET_FANOUT;
    actor parent;
};

behavior skynet_node(stateful_actor<skynet_state> *self, actor parent, uint64_t first,
                     uint64_t size)
{
    auto report_up = [=](uint64_t sum) {
        if (self->state.parent) {
            self->send(self->state.parent, pong_atom::value, sum);
        } else {
            result = sum;
            finished.set();
        }
        self->state.parent = actor{};
        self->quit();
    };

    self->state.parent = std::move(parent);
    if (size == 1) {
        report_up(first);
        return {};
    }
    uint64_t part = size / BENCH_SKYNET_FANOUT;
    for (uint64_t i = 0; i < BENCH_SKYNET_FANOUT; i++) {
        self->spawn(skynet_node, actor_cast<actor>(self), first + i * part, part);
    }
    return { [=](pong_atom, uint64_t sum) {
        self->state.sum += sum;
        if (--self->state.left == 0) report_up(self->state.sum);
    } };
}

uint64_t skynet_start(actor_system &system, uint64_t ops)
{
    len = bench_skynet_leaves(ops);
    system.spawn(skynet_node, actor{}, uint64_t{ 0 }, len);
    return bench_skynet_actors(len);
}

bool skynet_check()
{
    return result == len * (len - 1) / 2;
}

/* Big. */

struct big_state {
    uint64_t left = 0;
    uint64_t random = 0;
};

behavior big_member(stateful_actor<big_state> *self, uint64_t index)
{
    self->state.left = rounds;
    self->state.random = bench_seed(index);
    auto next = [=] {
        if (self->state.left-- > 0) {
            self->send(all[bench_xorshift(&self->state.random) % len], ping_atom::value);
        } else {
            reach();
        }
    };
    return {
        [=](go_atom) { next(); },
        [=](ping_atom) { self->send(actor_cast<actor>(self->current_sender()), pong_atom::value); },
        [=](pong_atom) { next(); },
    };
}

uint64_t big_start(actor_system &system, uint64_t ops)
{
    len = BENCH_BIG_LEN;
    rounds = bench_share(ops, len * 2);
    for (uint64_t i = 0; i < len; i++) all.push_back(system.spawn(big_member, i));
    for (auto &member : all) anon_send(member, go_atom::value);
    return len * rounds * 2;
}

/* The table of workloads, and main. */

const struct workload {
    const char *name;
    uint64_t ops_default;
    uint64_t (*start)(actor_system &system, uint64_t ops); /* returns the ops it really does */
    bool (*check)();
} WORKLOADS[] = {
    { "pingpong", 6000000, pingpong_start, pingpong_check },
    { "ring", 5000000, ring_start, ring_check },
    { "count", 10000000, count_start, producers_check },
    { "fanin", 8000000, fanin_start, producers_check },
    { "forkjoin", 6000000, forkjoin_start, reached_check },
    { "create", 1000000, create_start, reached_check },
    { "skynet", 1111111, skynet_start, skynet_check },
    { "big", 8000000, big_start, reached_check },
};

} // namespace

int main(int argc, char **argv)
{
    bench_args args = bench_args_parse(argc, argv);
    actor_system_config config;
    config.set("scheduler.max-threads", size_t{ args.threads });
    actor_system system{ config };

    for (auto &w : WORKLOADS) {
        if (strcmp(w.name, args.workload) != 0) continue;
        uint64_t start_ns = bench_now_ns();
        uint64_t ops = w.start(system, args.ops > 0 ? args.ops : w.ops_default);
        finished.wait();
        uint64_t elapsed_ns = bench_now_ns() - start_ns;
        if (!w.check()) bench_fail(w.name, "wrong result");
        bench_report("caf", w.name, args.threads, ops, elapsed_ns);
        _exit(0); /* some actors stay alive on purpose; the system would wait for them */
    }
    bench_fail(args.workload, "unknown workload");
}
