// SPDX-License-Identifier: MIT OR Apache-2.0

//! The workloads on Actix. Each of its threads (an arbiter) runs the actors that were started on it
//! and never gives one away, so actors are placed by hand: neighbours together, groups in equal
//! parts over the threads, and children beside their parents.

use actix::prelude::*;
use rustbench::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

#[derive(Message)]
#[rtype(result = "()")]
struct Number(u64);

#[derive(Message)]
#[rtype(result = "()")]
struct Go;

/// The threads, and how to start the index-th of len actors on its own one.
struct Threads(Vec<Arbiter>);

impl Threads {
    fn start<A, F>(&self, index: u64, len: u64, make: F) -> Addr<A>
    where
        A: Actor<Context = Context<A>>,
        F: FnOnce(&mut Context<A>) -> A + Send + 'static,
    {
        let arbiter = index * self.0.len() as u64 / len;
        A::start_in_arbiter(&self.0[arbiter as usize].handle(), make)
    }
}

/// A struct that is an actor and nothing else.
macro_rules! actors {
    ($($name:ident),+) => { $(impl Actor for $name { type Context = Context<Self>; })+ };
}
actors!(Ping, Pong, RingMember, Counter, Producer, ForkjoinMember, ForkjoinDriver);
actors!(Creator, Once, SkynetNode, BigMember);

// Pingpong.

#[derive(Message)]
#[rtype(result = "()")]
struct Echo(u64, Addr<Ping>);

struct Pong;

impl Handler<Echo> for Pong {
    type Result = ();
    fn handle(&mut self, Echo(value, from): Echo, _: &mut Context<Self>) {
        from.do_send(Number(value));
    }
}

struct Ping {
    left: u64,
    pong: Addr<Pong>,
    done: Sender<u64>,
}

impl Handler<Number> for Ping {
    type Result = ();
    fn handle(&mut self, Number(value): Number, ctx: &mut Context<Self>) {
        if self.left > 0 {
            self.left -= 1;
            self.pong.do_send(Echo(self.left, ctx.address()));
        } else {
            self.done.send(value).unwrap();
        }
    }
}

fn pingpong(threads: &Threads, ops: u64) -> u64 {
    let rounds = share(ops, 2);
    let (done, finished) = channel();
    let pong = threads.start(0, 1, |_| Pong);
    let ping = threads.start(0, 1, move |_| Ping { left: rounds, pong, done });
    ping.do_send(Number(u64::MAX));
    check("pingpong", finished.recv().unwrap(), 0);
    rounds * 2
}

// Ring.

struct RingMember {
    index: u64,
    next: Option<Addr<RingMember>>,
    done: Sender<u64>,
}

#[derive(Message)]
#[rtype(result = "()")]
struct SetNext(Addr<RingMember>);

impl Handler<SetNext> for RingMember {
    type Result = ();
    fn handle(&mut self, SetNext(next): SetNext, _: &mut Context<Self>) {
        self.next = Some(next);
    }
}

impl Handler<Number> for RingMember {
    type Result = ();
    fn handle(&mut self, Number(hops): Number, _: &mut Context<Self>) {
        if hops == 0 {
            self.done.send(self.index).unwrap();
        } else if let Some(next) = &self.next {
            next.do_send(Number(hops - 1));
        }
    }
}

fn ring(threads: &Threads, ops: u64) -> u64 {
    let (done, finished) = channel();
    let members: Vec<_> = (0..RING_LEN)
        .map(|index| {
            let done = done.clone();
            threads.start(index, RING_LEN, move |_| RingMember { index, next: None, done })
        })
        .collect();
    for (index, member) in members.iter().enumerate() {
        member.do_send(SetNext(members[(index + 1) % members.len()].clone()));
    }
    members[0].do_send(Number(ops));
    check("ring", finished.recv().unwrap(), ops % RING_LEN);
    ops
}

// Count and fanin.

struct Counter {
    counted: u64,
    total: u64,
    done: Sender<u64>,
}

impl Handler<Number> for Counter {
    type Result = ();
    fn handle(&mut self, _: Number, _: &mut Context<Self>) {
        self.counted += 1;
        if self.counted == self.total {
            self.done.send(self.counted).unwrap();
        }
    }
}

struct Producer {
    rounds: u64,
    sink: Addr<Counter>,
}

impl Handler<Go> for Producer {
    type Result = ();
    fn handle(&mut self, _: Go, ctx: &mut Context<Self>) {
        for i in 0..self.rounds {
            self.sink.do_send(Number(i));
        }
        ctx.stop();
    }
}

fn produce(threads: &Threads, producers: u64, rounds: u64) -> u64 {
    let total = producers * rounds;
    let (done, finished) = channel();
    let sink = threads.start(0, 1, move |_| Counter { counted: 0, total, done });
    for index in 0..producers {
        let sink = sink.clone();
        threads.start(index, producers, move |_| Producer { rounds, sink }).do_send(Go);
    }
    check("producers", finished.recv().unwrap(), total);
    total
}

// Forkjoin.

struct ForkjoinMember {
    counted: u64,
    rounds: u64,
    done: Sender<u64>,
}

impl Handler<Go> for ForkjoinMember {
    type Result = ();
    fn handle(&mut self, _: Go, ctx: &mut Context<Self>) {
        self.counted += 1;
        if self.counted == self.rounds {
            self.done.send(self.counted).unwrap();
            ctx.stop();
        }
    }
}

struct ForkjoinDriver {
    rounds: u64,
    members: Vec<Addr<ForkjoinMember>>,
}

impl Handler<Go> for ForkjoinDriver {
    type Result = ();
    fn handle(&mut self, _: Go, ctx: &mut Context<Self>) {
        for _ in 0..self.rounds {
            for member in &self.members {
                member.do_send(Go);
            }
        }
        ctx.stop();
    }
}

fn forkjoin(threads: &Threads, ops: u64) -> u64 {
    let rounds = share(ops, FORKJOIN_LEN);
    let (done, finished) = channel();
    let members = (0..FORKJOIN_LEN)
        .map(|index| {
            let done = done.clone();
            threads.start(index, FORKJOIN_LEN, move |_| ForkjoinMember { counted: 0, rounds, done })
        })
        .collect();
    threads.start(0, 1, move |_| ForkjoinDriver { rounds, members }).do_send(Go);
    for _ in 0..FORKJOIN_LEN {
        check("forkjoin", finished.recv().unwrap(), rounds);
    }
    FORKJOIN_LEN * rounds
}

// Create.

struct Creator {
    total: u64,
    reached: Arc<AtomicU64>,
    done: Sender<u64>,
}

struct Once {
    total: u64,
    reached: Arc<AtomicU64>,
    done: Sender<u64>,
}

impl Handler<Go> for Once {
    type Result = ();
    fn handle(&mut self, _: Go, ctx: &mut Context<Self>) {
        let count = self.reached.fetch_add(1, Relaxed) + 1;
        if count == self.total {
            self.done.send(count).unwrap();
        }
        ctx.stop();
    }
}

impl Handler<Number> for Creator {
    type Result = ();
    fn handle(&mut self, Number(rounds): Number, _: &mut Context<Self>) {
        for _ in 0..rounds {
            let (reached, done) = (self.reached.clone(), self.done.clone());
            Once { total: self.total, reached, done }.start().do_send(Go);
        }
    }
}

/// One creator per thread, because an actor starts others on its own thread.
fn create(threads: &Threads, ops: u64) -> u64 {
    let (done, finished) = channel();
    let reached = Arc::new(AtomicU64::new(0));
    let creators = threads.0.len() as u64;
    for index in 0..creators {
        let (reached, done) = (reached.clone(), done.clone());
        let rounds = ops / creators + u64::from(index < ops % creators);
        threads
            .start(index, creators, move |_| Creator { total: ops, reached, done })
            .do_send(Number(rounds));
    }
    check("create", finished.recv().unwrap(), ops);
    ops
}

// Skynet.

struct SkynetNode {
    parent: Option<Addr<SkynetNode>>,
    done: Option<Sender<u64>>, // the root's only
    left: u64,
    sum: u64,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Grow {
    first: u64,
    size: u64,
    threads: Option<Arc<Threads>>, // for the root, which spreads its children
}

impl SkynetNode {
    fn child(parent: Addr<SkynetNode>) -> SkynetNode {
        SkynetNode { parent: Some(parent), done: None, left: SKYNET_FANOUT, sum: 0 }
    }

    fn report_up(&mut self, sum: u64, ctx: &mut Context<Self>) {
        match (&self.parent, &self.done) {
            (Some(parent), _) => parent.do_send(Number(sum)),
            (None, Some(done)) => done.send(sum).unwrap(),
            _ => fail("skynet: a node without parent"),
        }
        ctx.stop();
    }
}

impl Handler<Grow> for SkynetNode {
    type Result = ();
    fn handle(&mut self, grow: Grow, ctx: &mut Context<Self>) {
        if grow.size == 1 {
            return self.report_up(grow.first, ctx);
        }
        let size = grow.size / SKYNET_FANOUT;
        for i in 0..SKYNET_FANOUT {
            let me = ctx.address();
            let child = match &grow.threads {
                Some(threads) => threads.start(i, SKYNET_FANOUT, |_| SkynetNode::child(me)),
                None => SkynetNode::child(me).start(),
            };
            child.do_send(Grow { first: grow.first + i * size, size, threads: None });
        }
    }
}

impl Handler<Number> for SkynetNode {
    type Result = ();
    fn handle(&mut self, Number(sum): Number, ctx: &mut Context<Self>) {
        self.sum += sum;
        self.left -= 1;
        if self.left == 0 {
            self.report_up(self.sum, ctx);
        }
    }
}

fn skynet(threads: Arc<Threads>, ops: u64) -> u64 {
    let leaves = skynet_leaves(ops);
    let (done, finished) = channel();
    let root = threads.start(0, 1, move |_| SkynetNode {
        parent: None,
        done: Some(done),
        left: SKYNET_FANOUT,
        sum: 0,
    });
    root.do_send(Grow { first: 0, size: leaves, threads: Some(threads) });
    check("skynet", finished.recv().unwrap(), leaves * (leaves - 1) / 2);
    skynet_actors(leaves)
}

// Big.

static BIG: OnceLock<Vec<Addr<BigMember>>> = OnceLock::new();

struct BigMember {
    left: u64,
    random: Random,
    done: Sender<u64>,
}

#[derive(Message)]
#[rtype(result = "()")]
struct BigPing(Addr<BigMember>);

impl Handler<BigPing> for BigMember {
    type Result = ();
    fn handle(&mut self, BigPing(from): BigPing, _: &mut Context<Self>) {
        from.do_send(Go);
    }
}

/// Both the start and every answer.
impl Handler<Go> for BigMember {
    type Result = ();
    fn handle(&mut self, _: Go, ctx: &mut Context<Self>) {
        if self.left == 0 {
            self.done.send(self.left).unwrap();
            return;
        }
        self.left -= 1;
        let all = BIG.get().unwrap();
        all[self.random.below(BIG_LEN) as usize].do_send(BigPing(ctx.address()));
    }
}

fn big(threads: &Threads, ops: u64) -> u64 {
    let rounds = share(ops, BIG_LEN * 2);
    let (done, finished) = channel();
    let members = (0..BIG_LEN)
        .map(|index| {
            let done = done.clone();
            threads.start(index, BIG_LEN, move |_| BigMember {
                left: rounds,
                random: Random::new(index),
                done,
            })
        })
        .collect();
    for member in BIG.get_or_init(|| members) {
        member.do_send(Go);
    }
    for _ in 0..BIG_LEN {
        check("big", finished.recv().unwrap(), 0);
    }
    BIG_LEN * rounds * 2
}

fn main() {
    let args = Args::parse();
    let ops = args.ops();
    let _system = System::new();
    let threads = Arc::new(Threads((0..args.threads).map(|_| Arbiter::new()).collect()));
    let start = Instant::now();
    let done = match args.workload.as_str() {
        "pingpong" => pingpong(&threads, ops),
        "ring" => ring(&threads, ops),
        "count" => produce(&threads, 1, ops),
        "fanin" => produce(&threads, PRODUCERS, share(ops, PRODUCERS)),
        "forkjoin" => forkjoin(&threads, ops),
        "create" => create(&threads, ops),
        "skynet" => skynet(threads, ops),
        _ => big(&threads, ops),
    };
    args.report("actix", done, start);
}
