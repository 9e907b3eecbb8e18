// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the Rust programs of this directory share: the command line, the sizes of the workloads
//! and the one line of JSON at the end.

use std::time::Instant;

pub const RING_LEN: u64 = 503;
pub const PRODUCERS: u64 = 8;
pub const FORKJOIN_LEN: u64 = 60;
pub const BIG_LEN: u64 = 200;
pub const SKYNET_FANOUT: u64 = 10;

pub struct Args {
    pub workload: String,
    pub threads: usize,
    ops: Option<u64>,
}

fn usage() -> ! {
    eprintln!("usage: PROGRAM WORKLOAD THREADS [--ops N]");
    std::process::exit(2);
}

pub fn fail(why: &str) -> ! {
    eprintln!("FAIL {why}");
    std::process::exit(1);
}

/// Ends the program unless the workload found what it must find.
pub fn check(what: &str, got: u64, want: u64) {
    if got != want {
        fail(&format!("{what}: got {got}, want {want}"));
    }
}

impl Args {
    pub fn parse() -> Args {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let ops = match words.len() {
            2 => None,
            4 if words[2] == "--ops" => match words[3].parse() {
                Ok(ops) if ops > 0 => Some(ops),
                _ => usage(),
            },
            _ => usage(),
        };
        match words[1].parse() {
            Ok(threads) if threads > 0 => Args { workload: words[0].clone(), threads, ops },
            _ => usage(),
        }
    }

    pub fn ops(&self) -> u64 {
        self.ops.unwrap_or(match self.workload.as_str() {
            "pingpong" => 6_000_000,
            "ring" => 5_000_000,
            "count" => 10_000_000,
            "fanin" | "big" => 8_000_000,
            "forkjoin" => 6_000_000,
            "create" => 1_000_000,
            "skynet" => 1_111_111,
            other => fail(&format!("{other}: unknown workload")),
        })
    }

    /// Prints the result of `ops` operations since `start` and ends the program.
    pub fn report(&self, runtime: &str, ops: u64, start: Instant) -> ! {
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{{\"runtime\":\"{}\",\"workload\":\"{}\",\"threads\":{},\"ops\":{},\
             \"seconds\":{:.6},\"ops_per_s\":{:.0}}}",
            runtime,
            self.workload,
            self.threads,
            ops,
            seconds,
            ops as f64 / seconds
        );
        std::process::exit(0);
    }
}

/// How often one of `parts` actors repeats its step; never 0.
pub fn share(ops: u64, parts: u64) -> u64 {
    (ops / parts).max(1)
}

/// The nodes of a tree: 1 + 10 + 100 + ... + leaves.
pub fn skynet_actors(mut leaves: u64) -> u64 {
    let mut actors = 0;
    while leaves > 0 {
        actors += leaves;
        leaves /= SKYNET_FANOUT;
    }
    actors
}

/// The largest tree with no more than `ops` actors, but at least one level.
pub fn skynet_leaves(ops: u64) -> u64 {
    let mut leaves = SKYNET_FANOUT;
    while skynet_actors(leaves * SKYNET_FANOUT) <= ops {
        leaves *= SKYNET_FANOUT;
    }
    leaves
}

/// The random sequence of one actor of big; all programs use the same ones.
pub struct Random(u64);

impl Random {
    pub fn new(index: u64) -> Random {
        Random(88172645463325252 ^ (index + 1).wrapping_mul(0x9E3779B97F4A7C15))
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
