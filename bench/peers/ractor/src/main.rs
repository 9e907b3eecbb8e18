// SPDX-License-Identifier: MIT OR Apache-2.0

//! The workloads on Ractor: every actor is a Tokio task with its own ports. One actor type with one
//! message type plays all roles, which is as cheap as Ractor gets: the message is boxed either way.

use ractor::{Actor, ActorProcessingErr, ActorRef};
use rustbench::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

type Ref = ActorRef<Message>;

enum Message {
    Go,
    Number(u64),
    Ping(u64, Ref),
    Next(Ref),
    Grow { first: u64, size: u64 },
}

/// What an actor is and remembers.
enum Role {
    Pong,
    Ping { left: u64, pong: Ref, done: Sender<u64> },
    RingMember { index: u64, next: Option<Ref>, done: Sender<u64> },
    Counter { counted: u64, total: u64, done: Sender<u64> },
    Producer { rounds: u64, sink: Ref },
    ForkjoinMember { counted: u64, rounds: u64, done: Sender<u64> },
    ForkjoinDriver { rounds: u64, members: Vec<Ref> },
    Creator { total: u64, done: Sender<u64> },
    Once { total: u64, reached: Arc<AtomicU64>, done: Sender<u64> },
    SkynetNode { parent: Option<Ref>, left: u64, sum: u64, done: Option<Sender<u64>> },
    BigMember { left: u64, random: Random, done: Sender<u64> },
}

static BIG: OnceLock<Vec<Ref>> = OnceLock::new();

fn tell(to: &Ref, message: Message) {
    let _ = to.send_message(message); // fails only when the receiver has stopped
}

async fn spawn(role: Role) -> Ref {
    match Player::spawn(None, Player, role).await {
        Ok((actor, _)) => actor,
        Err(error) => fail(&format!("spawn: {error}")),
    }
}

struct Player;

impl Actor for Player {
    type Msg = Message;
    type State = Role;
    type Arguments = Role;

    async fn pre_start(&self, _: Ref, role: Role) -> Result<Role, ActorProcessingErr> {
        Ok(role)
    }

    async fn handle(
        &self,
        me: Ref,
        message: Message,
        role: &mut Role,
    ) -> Result<(), ActorProcessingErr> {
        match (role, message) {
            (Role::Pong, Message::Ping(value, from)) => tell(&from, Message::Number(value)),
            (Role::Ping { left, pong, done }, Message::Number(value)) => {
                if *left > 0 {
                    *left -= 1;
                    tell(pong, Message::Ping(*left, me));
                } else {
                    done.send(value)?;
                }
            }
            (Role::RingMember { next, .. }, Message::Next(actor)) => *next = Some(actor),
            (Role::RingMember { index, next, done }, Message::Number(hops)) => match next {
                Some(next) if hops > 0 => tell(next, Message::Number(hops - 1)),
                _ => done.send(*index)?,
            },
            (Role::Counter { counted, total, done }, Message::Number(_)) => {
                *counted += 1;
                if counted == total {
                    done.send(*counted)?;
                }
            }
            (Role::Producer { rounds, sink }, Message::Go) => {
                for i in 0..*rounds {
                    tell(sink, Message::Number(i));
                }
                me.stop(None);
            }
            (Role::ForkjoinMember { counted, rounds, done }, Message::Go) => {
                *counted += 1;
                if counted == rounds {
                    done.send(*counted)?;
                    me.stop(None);
                }
            }
            (Role::ForkjoinDriver { rounds, members }, Message::Go) => {
                for _ in 0..*rounds {
                    members.iter().for_each(|member| tell(member, Message::Go));
                }
                me.stop(None);
            }
            (Role::Creator { total, done }, Message::Go) => {
                let reached = Arc::new(AtomicU64::new(0));
                for _ in 0..*total {
                    let (reached, done) = (reached.clone(), done.clone());
                    tell(&spawn(Role::Once { total: *total, reached, done }).await, Message::Go);
                }
                me.stop(None);
            }
            (Role::Once { total, reached, done }, Message::Go) => {
                let count = reached.fetch_add(1, Relaxed) + 1;
                if count == *total {
                    done.send(count)?;
                }
                me.stop(None);
            }
            (node @ Role::SkynetNode { .. }, Message::Grow { first, size: 1 }) => {
                skynet_up(&me, node, first)?;
            }
            (Role::SkynetNode { .. }, Message::Grow { first, size }) => {
                let size = size / SKYNET_FANOUT;
                for i in 0..SKYNET_FANOUT {
                    // Boxed, because the future of a spawn would otherwise contain itself.
                    let child = Box::pin(spawn(skynet_node(Some(me.clone()), None))).await;
                    tell(&child, Message::Grow { first: first + i * size, size });
                }
            }
            (node @ Role::SkynetNode { .. }, Message::Number(part)) => {
                let Role::SkynetNode { left, sum, .. } = node else { unreachable!() };
                *sum += part;
                *left -= 1;
                if *left == 0 {
                    let sum = *sum;
                    skynet_up(&me, node, sum)?;
                }
            }
            (Role::BigMember { .. }, Message::Ping(_, from)) => tell(&from, Message::Go),
            (Role::BigMember { left, random, done }, Message::Go) => {
                if *left > 0 {
                    *left -= 1;
                    let all = BIG.get().unwrap();
                    tell(&all[random.below(BIG_LEN) as usize], Message::Ping(0, me));
                } else {
                    done.send(*left)?;
                }
            }
            _ => fail("a message that its receiver does not know"),
        }
        Ok(())
    }
}

fn skynet_node(parent: Option<Ref>, done: Option<Sender<u64>>) -> Role {
    Role::SkynetNode { parent, left: SKYNET_FANOUT, sum: 0, done }
}

fn skynet_up(me: &Ref, node: &Role, sum: u64) -> Result<(), ActorProcessingErr> {
    match node {
        Role::SkynetNode { parent: Some(parent), .. } => tell(parent, Message::Number(sum)),
        Role::SkynetNode { done: Some(done), .. } => done.send(sum)?,
        _ => fail("skynet: a node without parent"),
    }
    me.stop(None);
    Ok(())
}

/// Starts one workload. Returns the ops it does, how many results to wait for, and their value.
async fn start(workload: &str, ops: u64, done: Sender<u64>) -> (u64, u64, u64) {
    match workload {
        "pingpong" => {
            let rounds = share(ops, 2);
            let pong = spawn(Role::Pong).await;
            let ping = spawn(Role::Ping { left: rounds, pong, done }).await;
            tell(&ping, Message::Number(u64::MAX));
            (rounds * 2, 1, 0)
        }
        "ring" => {
            let mut members = Vec::new();
            for index in 0..RING_LEN {
                let done = done.clone();
                members.push(spawn(Role::RingMember { index, next: None, done }).await);
            }
            for (index, member) in members.iter().enumerate() {
                tell(member, Message::Next(members[(index + 1) % members.len()].clone()));
            }
            tell(&members[0], Message::Number(ops));
            (ops, 1, ops % RING_LEN)
        }
        "count" | "fanin" => {
            let producers = if workload == "count" { 1 } else { PRODUCERS };
            let rounds = share(ops, producers);
            let total = producers * rounds;
            let sink = spawn(Role::Counter { counted: 0, total, done }).await;
            for _ in 0..producers {
                let sink = sink.clone();
                tell(&spawn(Role::Producer { rounds, sink }).await, Message::Go);
            }
            (total, 1, total)
        }
        "forkjoin" => {
            let rounds = share(ops, FORKJOIN_LEN);
            let mut members = Vec::new();
            for _ in 0..FORKJOIN_LEN {
                let done = done.clone();
                members.push(spawn(Role::ForkjoinMember { counted: 0, rounds, done }).await);
            }
            tell(&spawn(Role::ForkjoinDriver { rounds, members }).await, Message::Go);
            (FORKJOIN_LEN * rounds, FORKJOIN_LEN, rounds)
        }
        "create" => {
            tell(&spawn(Role::Creator { total: ops, done }).await, Message::Go);
            (ops, 1, ops)
        }
        "skynet" => {
            let leaves = skynet_leaves(ops);
            let root = spawn(skynet_node(None, Some(done))).await;
            tell(&root, Message::Grow { first: 0, size: leaves });
            (skynet_actors(leaves), 1, leaves * (leaves - 1) / 2)
        }
        _ => {
            let rounds = share(ops, BIG_LEN * 2);
            let mut members = Vec::new();
            for index in 0..BIG_LEN {
                let (random, done) = (Random::new(index), done.clone());
                members.push(spawn(Role::BigMember { left: rounds, random, done }).await);
            }
            for member in BIG.get_or_init(|| members) {
                tell(member, Message::Go);
            }
            (BIG_LEN * rounds * 2, BIG_LEN, 0)
        }
    }
}

fn main() {
    let args = Args::parse();
    let ops = args.ops();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(args.threads)
        .enable_time()
        .build()
        .unwrap();
    let (done, finished) = channel();
    let begin = Instant::now();
    let workload = args.workload.clone();
    let started = runtime.spawn(async move { start(&workload, ops, done).await });
    let (really_done, results, want) = runtime.block_on(started).unwrap();
    for _ in 0..results {
        check(&args.workload, finished.recv().unwrap(), want);
    }
    args.report("ractor", really_done, begin);
}
