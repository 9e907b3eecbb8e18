/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The remote workloads on the C++ Actor Framework 0.17: actors of two processes by its middleman,
 * with the middleman's defaults. A message is a string of 64 bytes that begins with its number.
 */
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "caf/all.hpp"
#include "caf/io/all.hpp"

#include "../remote.h"

using namespace caf;

using go_atom = atom_constant<atom("go")>;
using ack_atom = atom_constant<atom("ack")>;
using hello_atom = atom_constant<atom("hello")>;

namespace
{

std::mutex mutex;
std::condition_variable cond;
bool is_done = false;

void done_set()
{
    std::lock_guard<std::mutex> guard(mutex);
    is_done = true;
    cond.notify_all();
}

void done_wait()
{
    std::unique_lock<std::mutex> guard(mutex);
    cond.wait(guard, [] { return is_done; });
}

std::string payload_make(uint64_t number)
{
    std::string payload(REMOTE_PAYLOAD, 'x');
    memcpy(&payload[0], &number, sizeof number);
    return payload;
}

uint64_t payload_number(const std::string &payload)
{
    uint64_t number = 0;
    if (payload.size() != REMOTE_PAYLOAD) bench_fail("remote", "a payload of another length");
    memcpy(&number, payload.data(), sizeof number);
    return number;
}

void configure(actor_system_config &config, unsigned threads)
{
    config.set("scheduler.max-threads", size_t{ threads });
    config.load<io::middleman>();
}

/* ---- the second process -------------------------------------------------------------------- */

struct sink_state {
    uint64_t next = 0;
};

behavior sink(stateful_actor<sink_state> *self, uint64_t ops)
{
    return {
        [=](hello_atom) { return hello_atom::value; },
        [=](const std::string &payload) {
            uint64_t &next = self->state.next;
            if (payload_number(payload) != next) bench_fail("remote-oneway", "out of order");
            next++;
            if (next % REMOTE_ACK == 0 || next == ops) {
                self->send(actor_cast<actor>(self->current_sender()), ack_atom::value, next);
            }
        },
    };
}

behavior echo(event_based_actor *)
{
    return {
        [=](hello_atom) { return hello_atom::value; },
        [=](std::string &payload) { return std::move(payload); },
    };
}

void serve(int fd, const bench_args *args)
{
    actor_system_config config;
    configure(config, args->threads);
    actor_system system{ config };
    auto actor = strcmp(args->workload, "remote-ask") == 0 ? system.spawn(echo)
                                                           : system.spawn(sink, args->ops);
    auto port = system.middleman().publish(actor, 0, "127.0.0.1");
    if (!port) _exit(1);
    remote_ready(fd, *port);
    done_wait();
}

/* ---- the first process --------------------------------------------------------------------- */

struct source_state {
    uint64_t sent = 0;
};

behavior source(stateful_actor<source_state> *self, actor to, uint64_t ops)
{
    auto send_window = [=](uint64_t acknowledged) {
        uint64_t &sent = self->state.sent;
        while (sent < ops && sent - acknowledged < REMOTE_WINDOW) {
            self->send(to, payload_make(sent++));
        }
    };
    return {
        [=](go_atom) { send_window(0); },
        [=](ack_atom, uint64_t acknowledged) {
            if (acknowledged == ops) done_set();
            send_window(acknowledged);
        },
    };
}

void run_oneway(actor_system &system, const actor &to, const bench_args &args, pid_t second)
{
    auto sender = system.spawn(source, to, args.ops);
    remote_watch begun = remote_begin(second);
    anon_send(sender, go_atom::value);
    done_wait();
    remote_report("caf", &args, begun, args.ops, nullptr);
}

void run_ask(scoped_actor &self, const actor &to, const bench_args &args, pid_t second)
{
    std::vector<uint64_t> trip_ns(args.ops);
    remote_watch begun = remote_begin(second);
    for (uint64_t i = 0; i < args.ops; i++) {
        uint64_t asked_ns = bench_now_ns();
        self->request(to, infinite, payload_make(i))
            .receive(
                [&](const std::string &payload) {
                    if (payload_number(payload) != i) bench_fail("remote-ask", "another answer");
                },
                [&](error &) { bench_fail("remote-ask", "no answer"); });
        trip_ns[i] = bench_now_ns() - asked_ns;
    }
    remote_report("caf", &args, begun, args.ops, trip_ns.data());
}

} // namespace

int main(int argc, char **argv)
{
    bench_args args = bench_args_parse(argc, argv);
    bool asks = strcmp(args.workload, "remote-ask") == 0;
    if (!asks && strcmp(args.workload, "remote-oneway") != 0) {
        bench_fail(args.workload, "unknown workload");
    }
    if (args.ops == 0) args.ops = asks ? 5000 : 200000;
    remote_second second = remote_start(serve, &args);

    actor_system_config config;
    configure(config, args.threads);
    actor_system system{ config };
    auto to = system.middleman().remote_actor("127.0.0.1", second.port);
    if (!to) bench_fail(args.workload, "not connected");
    scoped_actor self{ system };
    self->request(*to, infinite, hello_atom::value)
        .receive([](hello_atom) {}, [&](error &) { bench_fail(args.workload, "no answer"); });
    if (asks) {
        run_ask(self, *to, args, second.pid);
    } else {
        run_oneway(system, *to, args, second.pid);
    }
    _exit(0); /* the second process ends with this one */
}
