#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares fraktor's remoting with that of other runtimes: two processes on loopback.

Builds the remote programs of bench/peers/ into build/peers/, runs ours and theirs
interleaved, and prints medians: rate, round trip, and processor time of both processes.
A peer whose toolchain or package registry is missing is named and left out.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import time

from bench_peers import (BUILD, C_FLAGS, FAILURES_MAX, OUTPUT, SOURCE, BuildError, Peer, RunError,
                         build_all, build_maven, chosen, command_for, compiled, find_ours, need,
                         public_name, run_once, step)

WORKLOADS = ["remote-oneway", "remote-ask"]

EXAMPLE = """examples:
  tools/bench_remote.py
  tools/bench_remote.py --peers uv,erlang --workloads remote-ask --rounds 7
"""

# Operations per run: a second or two of each. Windows bound what is on its way, so the size does
# not matter otherwise; the fast ones simply do more.
OPS = {
    "remote-oneway": {"ours": 5_000_000, "uv": 10_000_000, "caf": 150_000, "erlang": 200_000,
                      "pekko": 150_000},
    "remote-ask": {"ours": 10_000, "uv": 20_000, "caf": 4_000, "erlang": 8_000, "pekko": 1_500},
}

FIGURES = ["ops_per_s", "p50_us", "p99_us", "cpu_ns_per_op", "peak_rss_kb"]


class RemotePeer(Peer):
    @property
    def directory(self):
        return BUILD / f"{self.name}-remote"


def build_uv(peer):
    if not pathlib.Path("/usr/include/uv.h").exists():
        raise BuildError("header uv.h missing (Debian package libuv1-dev)")
    return compiled("gcc", C_FLAGS, "uv/uv_remote.c", ["-luv"])(peer)


def build_caf(peer):
    if not pathlib.Path("/usr/include/caf/io/all.hpp").exists():
        raise BuildError("header caf/io/all.hpp missing (Debian package libcaf-dev)")
    return compiled("g++", ["-std=c++17", "-DNDEBUG"], "caf/caf_remote.cpp",
                    ["-lcaf_io", "-lcaf_core"])(peer)


def build_erlang(peer):
    need("erlc", "Debian package erlang-base")
    step(peer, ["erlc", "-o", str(peer.directory), str(SOURCE / "erlang" / "remote_bench.erl")])
    script = peer.directory / "remote.sh"
    shutil.copy2(SOURCE / "erlang" / "remote.sh", script)
    return [str(script)]


def build_pekko(peer):
    entries = build_maven(peer)[-2]
    return ["java", "-Xms512m", "-XX:+UseParallelGC", "-cp", entries, "peerbench.Remote"]


PEERS = [
    RemotePeer("uv", "limit", "libuv alone, 64 frames a write", build_uv),
    RemotePeer("caf", "actor", "C++ Actor Framework, middleman", build_caf),
    RemotePeer("erlang", "actor", "Erlang/OTP, distribution", build_erlang),
    RemotePeer("pekko", "actor", "Apache Pekko classic, Artery TCP", build_pekko),
]


class Samples:
    """The figures of every run, by (peer, workload), and what went wrong."""

    def __init__(self):
        self.runs = {}
        self.failures = {}

    def median(self, name, workload, figure):
        values = [run[figure] for run in self.runs.get((name, workload), []) if run.get(figure)]
        return statistics.median(values) if values else None

    def ratio(self, name, workload, figure):
        """Ours / the peer's."""
        ours = self.median("ours", workload, figure)
        theirs = self.median(name, workload, figure)
        return ours / theirs if ours and theirs and name != "ours" else None


def run_all(peers, args):
    """Round by round, so that a slow minute of the machine hits everybody alike."""
    samples = Samples()
    for number in range(1, args.rounds + 1):
        for workload in args.workloads:
            for peer in peers:
                key = (peer.name, workload)
                if peer.command is None or len(samples.failures.get(key, [])) == FAILURES_MAX:
                    continue
                command = command_for(peer, workload, args.threads, OPS[workload][peer.name])
                try:
                    samples.runs.setdefault(key, []).append(run_once(command, args.timeout))
                except RunError as error:
                    samples.failures.setdefault(key, []).append(str(error))
        print(f"round {number}/{args.rounds} done", flush=True)
    return samples


# Reporting. A table is a list of heads and rows of text, printed and written alike.

def shown(value, scale=1.0, digits=2):
    return "-" if value is None else f"{value * scale:,.{digits}f}"


def oneway_table(peers, samples):
    rows = [["runtime", "M messages/s", "ours / peer", "CPU ns/message"]]
    for peer in peers:
        at = (peer.name, "remote-oneway")
        rows.append([public_name(peer), shown(samples.median(*at, "ops_per_s"), 1e-6, 3),
                     shown(samples.ratio(*at, "ops_per_s")),
                     shown(samples.median(*at, "cpu_ns_per_op"), 1, 0)])
    return rows


def ask_table(peers, samples):
    rows = [["runtime", "asks/s", "p50 us", "p99 us", "p50 ours / peer", "CPU us/ask"]]
    for peer in peers:
        at = (peer.name, "remote-ask")
        rows.append([public_name(peer), shown(samples.median(*at, "ops_per_s"), 1, 0),
                     shown(samples.median(*at, "p50_us"), 1, 1),
                     shown(samples.median(*at, "p99_us"), 1, 1),
                     shown(samples.ratio(*at, "p50_us")),
                     shown(samples.median(*at, "cpu_ns_per_op"), 1e-3, 1)])
    return rows


TABLES = {"remote-oneway": oneway_table, "remote-ask": ask_table}


def print_table(title, rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    print(f"\n{title}")
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}"] + [f"{c:>{w}}" for c, w in zip(row[1:], widths[1:])]
        print("  " + "   ".join(cells))


def notes(peers, samples):
    lines = [f"skipped: {p.name}: {p.skipped}" for p in peers if p.skipped]
    for (name, workload), why in samples.failures.items():
        lines.append(f"failed {len(why)} times: {name} {workload}: {why[0]}")
    return lines


def write_json(path, peers, samples, args, load):
    cells = [{"runtime": name, "workload": workload, "threads": args.threads,
              "median": {f: samples.median(name, workload, f) for f in FIGURES}, "runs": runs}
             for (name, workload), runs in sorted(samples.runs.items())]
    report = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "processors": os.cpu_count(), "rounds": args.rounds, "load": load,
        "skipped": {p.name: p.skipped for p in peers if p.skipped},
        "failed": [{"runtime": k[0], "workload": k[1], "why": why}
                   for k, why in samples.failures.items()],
        "results": cells,
    }
    path.write_text(json.dumps(report, indent=1) + "\n")


def write_markdown(path, tables, remarks, args):
    lines = [f"Medians of {args.rounds} interleaved runs on {os.cpu_count()} processors, "
             f"{args.threads} thread(s) in each of two processes."]
    for workload, rows in tables.items():
        lines += ["", f"{workload}:", "", "| " + " | ".join(rows[0]) + " |",
                  "|---" * len(rows[0]) + "|"]
        lines += ["| " + " | ".join(row) + " |" for row in rows[1:]]
    for remark in remarks:
        lines += ["", remark]
    path.write_text("\n".join(lines) + "\n")


# Command line.

def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0], epilog=EXAMPLE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [p.name for p in PEERS]
    parser.add_argument("--rounds", type=int, default=3, metavar="N",
                        help="runs of everything (default 3)")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), metavar="A,B",
                        help="default: " + ",".join(WORKLOADS))
    parser.add_argument("--peers", default=",".join(names), metavar="A,B",
                        help="default: all of " + ",".join(names))
    parser.add_argument("--threads", type=int, default=1, metavar="N",
                        help="scheduler threads of each process (default 1)")
    parser.add_argument("--timeout", type=float, default=60, metavar="S",
                        help="seconds that one run may take (default 60)")
    parser.add_argument("--ours", default="build/release/bin/fraktor", metavar="PATH",
                        help="our program (default build/release/bin/fraktor)")
    parser.add_argument("--build-only", action="store_true", help="build the peers and stop")
    args = parser.parse_args()
    if args.rounds < 1 or args.threads < 1:
        parser.error("--rounds and --threads start at 1")
    args.workloads = chosen(parser, "--workloads", args.workloads, WORKLOADS)
    args.peers = chosen(parser, "--peers", args.peers, names)
    return args


def main():
    args = parse_args()
    peers = [p for p in PEERS if p.name in args.peers]
    build_all(peers)
    if args.build_only:
        return 0
    peers.insert(0, find_ours(args.ours))

    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"warning: the machine is busy (load {load:.1f}); ratios suffer less than rates")
    samples = run_all(peers, args)
    tables = {w: TABLES[w]([p for p in peers if p.command], samples) for w in args.workloads}
    remarks = notes(peers, samples)
    for workload, rows in tables.items():
        print_table(workload, rows)
    print("\n" + "\n".join(remarks) if remarks else "")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    write_json(OUTPUT / "remote.json", peers, samples, args, load)
    write_markdown(OUTPUT / "remote.md", tables, remarks, args)
    print("wrote build/bench/remote.json and build/bench/remote.md")
    if any(key[0] == "ours" for key in samples.failures):
        print("our own program failed, see above", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
