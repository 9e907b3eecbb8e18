// SPDX-License-Identifier: MIT OR Apache-2.0

//! The workloads on Tokio without an actor library: an actor is a task that owns the receiving end
//! of an unbounded mpsc channel.

use rustbench::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{unbounded_channel, UnboundedSender};

type Mailbox = UnboundedSender<Message>;

enum Message {
    Ping(u64, Mailbox),
    Pong(u64),
    Number(u64),
    Go,
}

fn tell(to: &Mailbox, message: Message) {
    let _ = to.send(message); // fails only when the receiver has ended, as at the end of a run
}

/// One mailbox per index: all senders, and the receivers in the same order.
fn mailboxes(len: u64) -> (Vec<Mailbox>, Vec<tokio::sync::mpsc::UnboundedReceiver<Message>>) {
    (0..len).map(|_| unbounded_channel()).unzip()
}

fn pingpong(runtime: &Runtime, ops: u64) -> u64 {
    let rounds = share(ops, 2);
    let (pong, mut pong_box) = unbounded_channel();
    let (ping, mut ping_box) = unbounded_channel();
    let (done, finished) = channel();
    runtime.spawn(async move {
        while let Some(Message::Ping(value, from)) = pong_box.recv().await {
            tell(&from, Message::Pong(value));
        }
    });
    runtime.spawn(async move {
        let mut echoed = 0;
        for i in 0..rounds {
            tell(&pong, Message::Ping(i, ping.clone()));
            match ping_box.recv().await {
                Some(Message::Pong(value)) if value == i => echoed += 1,
                _ => break,
            }
        }
        done.send(echoed).unwrap();
    });
    check("pingpong", finished.recv().unwrap(), rounds);
    rounds * 2
}

fn ring(runtime: &Runtime, ops: u64) -> u64 {
    let (senders, receivers) = mailboxes(RING_LEN);
    let (done, finished) = channel();
    for (index, mut mailbox) in receivers.into_iter().enumerate() {
        let next = senders[(index + 1) % senders.len()].clone();
        let done = done.clone();
        runtime.spawn(async move {
            while let Some(Message::Number(hops)) = mailbox.recv().await {
                if hops == 0 {
                    done.send(index as u64).unwrap();
                } else {
                    tell(&next, Message::Number(hops - 1));
                }
            }
        });
    }
    tell(&senders[0], Message::Number(ops));
    check("ring", finished.recv().unwrap(), ops % RING_LEN);
    ops
}

fn produce(runtime: &Runtime, producers: u64, rounds: u64) -> u64 {
    let total = producers * rounds;
    let (sink, mut mailbox) = unbounded_channel();
    let (done, finished) = channel();
    runtime.spawn(async move {
        let mut counted = 0;
        while let Some(Message::Number(_)) = mailbox.recv().await {
            counted += 1;
            if counted == total {
                done.send(counted).unwrap();
            }
        }
    });
    for _ in 0..producers {
        let sink = sink.clone();
        runtime.spawn(async move {
            for i in 0..rounds {
                tell(&sink, Message::Number(i));
            }
        });
    }
    check("producers", finished.recv().unwrap(), total);
    total
}

fn forkjoin(runtime: &Runtime, ops: u64) -> u64 {
    let rounds = share(ops, FORKJOIN_LEN);
    let (senders, receivers) = mailboxes(FORKJOIN_LEN);
    let (done, finished) = channel();
    for mut mailbox in receivers {
        let done = done.clone();
        runtime.spawn(async move {
            let mut counted = 0;
            while counted < rounds && mailbox.recv().await.is_some() {
                counted += 1;
            }
            done.send(counted).unwrap();
        });
    }
    runtime.spawn(async move {
        for _ in 0..rounds {
            for member in &senders {
                tell(member, Message::Go);
            }
        }
    });
    for _ in 0..FORKJOIN_LEN {
        check("forkjoin", finished.recv().unwrap(), rounds);
    }
    FORKJOIN_LEN * rounds
}

fn create(runtime: &Runtime, ops: u64) -> u64 {
    let reached = Arc::new(AtomicU64::new(0));
    let (done, finished) = channel();
    runtime.spawn(async move {
        for _ in 0..ops {
            let (once, mut mailbox) = unbounded_channel();
            let reached = reached.clone();
            let done = done.clone();
            tokio::spawn(async move {
                mailbox.recv().await;
                let count = reached.fetch_add(1, Relaxed) + 1;
                if count == ops {
                    done.send(count).unwrap();
                }
            });
            tell(&once, Message::Go);
        }
    });
    check("create", finished.recv().unwrap(), ops);
    ops
}

fn skynet_node(parent: Mailbox, first: u64, size: u64) {
    tokio::spawn(async move {
        if size == 1 {
            tell(&parent, Message::Number(first));
            return;
        }
        let (me, mut mailbox) = unbounded_channel();
        let part = size / SKYNET_FANOUT;
        for i in 0..SKYNET_FANOUT {
            skynet_node(me.clone(), first + i * part, part);
        }
        let mut sum = 0;
        for _ in 0..SKYNET_FANOUT {
            if let Some(Message::Number(value)) = mailbox.recv().await {
                sum += value;
            }
        }
        tell(&parent, Message::Number(sum));
    });
}

fn skynet(runtime: &Runtime, ops: u64) -> u64 {
    let leaves = skynet_leaves(ops);
    let (done, finished) = channel();
    runtime.spawn(async move {
        let (me, mut mailbox) = unbounded_channel();
        skynet_node(me, 0, leaves);
        if let Some(Message::Number(sum)) = mailbox.recv().await {
            done.send(sum).unwrap();
        }
    });
    check("skynet", finished.recv().unwrap(), leaves * (leaves - 1) / 2);
    skynet_actors(leaves)
}

async fn big_member(
    index: u64,
    rounds: u64,
    all: Arc<Vec<Mailbox>>,
    mut mailbox: tokio::sync::mpsc::UnboundedReceiver<Message>,
    done: Sender<u64>,
) {
    let me = all[index as usize].clone();
    let mut random = Random::new(index);
    let mut left = rounds;
    while let Some(message) = mailbox.recv().await {
        match message {
            Message::Ping(value, from) => tell(&from, Message::Pong(value)),
            _ if left > 0 => {
                left -= 1;
                let other = &all[random.below(BIG_LEN) as usize];
                tell(other, Message::Ping(0, me.clone()));
            }
            _ => done.send(left).unwrap(),
        }
    }
}

fn big(runtime: &Runtime, ops: u64) -> u64 {
    let rounds = share(ops, BIG_LEN * 2);
    let (senders, receivers) = mailboxes(BIG_LEN);
    let all = Arc::new(senders);
    let (done, finished) = channel();
    for (index, mailbox) in receivers.into_iter().enumerate() {
        runtime.spawn(big_member(index as u64, rounds, all.clone(), mailbox, done.clone()));
    }
    for member in all.iter() {
        tell(member, Message::Go);
    }
    for _ in 0..BIG_LEN {
        check("big", finished.recv().unwrap(), 0);
    }
    BIG_LEN * rounds * 2
}

fn main() {
    let args = Args::parse();
    let ops = args.ops();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(args.threads).build().unwrap();
    let start = Instant::now();
    let done = match args.workload.as_str() {
        "pingpong" => pingpong(&runtime, ops),
        "ring" => ring(&runtime, ops),
        "count" => produce(&runtime, 1, ops),
        "fanin" => produce(&runtime, PRODUCERS, share(ops, PRODUCERS)),
        "forkjoin" => forkjoin(&runtime, ops),
        "create" => create(&runtime, ops),
        "skynet" => skynet(&runtime, ops),
        _ => big(&runtime, ops),
    };
    args.report("tokio", done, start);
}
