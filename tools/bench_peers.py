#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares fraktor with other runtimes on the same machine in the same minutes.

Builds the programs of bench/peers/ into build/peers/, runs ours and theirs
interleaved, and prints medians, ratios and which targets are met. A peer whose
toolchain or package registry is missing is named and left out.
"""

import argparse
import dataclasses
import html
import json
import math
import mmap
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "bench" / "peers"
BUILD = ROOT / "build" / "peers"
OUTPUT = ROOT / "build" / "bench"

WORKLOADS = ["pingpong", "ring", "count", "fanin", "forkjoin", "create", "skynet", "big"]

EXAMPLE = """examples:
  tools/bench_peers.py --quick
  tools/bench_peers.py --peers proto,caf,erlang --workloads pingpong,big --rounds 7
  tools/bench_peers.py --recorded --svg docs/peers.svg
"""

# Operations per run. Everybody gets the same size wherever the size matters (count, fanin,
# forkjoin, create and skynet build long queues or many actors); pingpong, ring and big hold a
# message per actor at most, so there the fast programs simply do more of the same.
OPS_FULL = {
    "pingpong": 6_000_000, "ring": 5_000_000, "count": 10_000_000, "fanin": 8_000_000,
    "forkjoin": 6_000_000, "create": 1_000_000, "skynet": 1_111_111, "big": 8_000_000,
}
OPS_FULL_FAST = {"pingpong": 40_000_000, "ring": 50_000_000, "big": 40_000_000}
OPS_QUICK = {
    "pingpong": 1_000_000, "ring": 1_000_000, "count": 2_000_000, "fanin": 1_600_000,
    "forkjoin": 1_200_000, "create": 200_000, "skynet": 111_111, "big": 1_600_000,
}
OPS_QUICK_FAST = {"pingpong": 10_000_000, "ring": 10_000_000, "big": 8_000_000}
# A full-size run of these takes tens of seconds. Single runs of create at both sizes showed no
# loss for the peer from the smaller one; for Pekko's skynet that has not been measured.
OPS_SLOW = {
    ("caf", "create"): 200_000,
    ("pekko", "create"): 100_000, ("pekko", "skynet"): 111_111,
    ("ractor", "create"): 200_000,
    ("hollywood", "create"): 200_000, ("protoactor", "create"): 200_000,
    ("protoactor", "pingpong"): 2_000_000, ("protoactor", "ring"): 2_000_000,
    ("protoactor", "big"): 2_000_000,
}
OPS_THREADS_FULL = 2_000_000_000
OPS_THREADS_QUICK = 500_000_000

# ours / best of the group, at equal thread counts.
TARGETS = {
    "actor": {"pingpong": 8, "ring": 8, "big": 5, "count": 3, "fanin": 3, "forkjoin": 2,
              "create": 2, "skynet": 3},
    "task": {"pingpong": 3, "ring": 3, "big": 2, "count": 1, "fanin": 1, "forkjoin": 0.7,
             "create": 1.2, "skynet": 1},
    "proto": {"pingpong": 0.45, "ring": 0.45, "big": 0.45, "count": 0.70, "fanin": 0.70,
              "forkjoin": 0.70, "create": 0.25, "skynet": 0.40},
}
TARGET_SCALING = 0.9  # ours with two threads / ours with one
FAILURES_MAX = 2  # so often may a program fail at one workload before it is left out there
GROUP_TITLES = {
    "actor": "best actor runtime", "task": "best of tasks + channels", "proto": "prototype",
}


class BuildError(Exception):
    """Why a peer cannot take part, in one line."""


def compiled(compiler, flags, source, libs=()):
    """A build step for one C or C++ source; the optimiser may use this machine's processor."""
    def build(peer):
        need(compiler)
        target = peer.directory / peer.name
        step(peer, [compiler, "-O3", "-march=native", *flags, "-pthread", "-o", str(target),
                    str(SOURCE / source), *libs])
        return [str(target)]
    return build


def build_caf(peer):
    if not pathlib.Path("/usr/include/caf/all.hpp").exists():
        raise BuildError("header caf/all.hpp missing (Debian package libcaf-dev)")
    return compiled("g++", ["-std=c++17", "-DNDEBUG"], "caf/caf_bench.cpp", ["-lcaf_core"])(peer)


def build_erlang(peer):
    need("erlc", "Debian package erlang-base")
    step(peer, ["erlc", "-o", str(peer.directory), str(SOURCE / "erlang" / "peer_bench.erl")])
    script = peer.directory / "run.sh"
    shutil.copy2(SOURCE / "erlang" / "run.sh", script)
    return [str(script)]


def build_go(peer):
    need("go")
    target = peer.directory / peer.name
    env = {"GOCACHE": str(BUILD / "go-cache"), "GOFLAGS": "-buildvcs=false -p=1", "GOWORK": "off"}
    step(peer, ["go", "build", "-o", str(target), "."], cwd=SOURCE / peer.name, env=env)
    return [str(target)]


def build_rust(peer):
    """Built from a copy, because cargo writes its lock file beside the manifest."""
    need("cargo")
    copy = copy_sources("rustbench", peer.name)
    env = {"CARGO_TARGET_DIR": str(BUILD / "cargo-target"), "RUSTFLAGS": "-C target-cpu=native"}
    command = ["cargo", "build", "--release", "-j1"]
    try:
        step(peer, command, cwd=copy, env=env)
    except BuildError as online:
        try:  # an earlier run may have left everything needed in cargo's cache
            step(peer, [*command, "--offline"], cwd=copy, env=env)
        except BuildError:
            raise online from None
    return [str(BUILD / "cargo-target" / "release" / f"peer-{peer.name}")]


def build_maven(peer):
    """Maven compiles and names the class path; the program is then started without Maven."""
    need("mvn")
    need("java")
    copy = copy_sources(peer.name)
    class_path = copy / "target" / "class-path.txt"
    plugin = "org.apache.maven.plugins:maven-dependency-plugin"
    command = ["mvn", "-B", "-q", "-Dstyle.color=never", "compile",
               f"{plugin}:build-classpath@class-path"]
    try:
        step(peer, command, cwd=copy)
    except BuildError as online:
        try:  # as for cargo
            step(peer, [*command, "-o"], cwd=copy)
        except BuildError:
            raise online from None
    entries = f"{copy / 'target' / 'classes'}:{class_path.read_text().strip()}"
    return ["java", "-Xms1g", "-XX:+UseParallelGC", "-cp", entries, "peerbench.Main"]


@dataclasses.dataclass
class Peer:
    name: str
    group: str  # actor, task, proto, limit or threads
    about: str
    build: object
    command: list = None
    skipped: str = None
    recorded: bool = False

    @property
    def directory(self):
        return BUILD / self.name

    @property
    def is_fast(self):
        return self.group in ("ours", "proto", "limit")


C_FLAGS = ["-std=gnu11", "-Wall", "-Wextra"]
PEERS = [
    Peer("proto", "proto", "plain C, thread-safe prototype of the hot path",
         compiled("gcc", C_FLAGS, "raw/proto.c")),
    Peer("limit", "limit", "plain C, one thread, no atomics",
         compiled("gcc", C_FLAGS, "raw/limit.c")),
    Peer("threads", "threads", "plain threads on independent work",
         compiled("gcc", C_FLAGS, "threads/threads.c")),
    Peer("caf", "actor", "C++ Actor Framework", build_caf),
    Peer("erlang", "actor", "Erlang/OTP", build_erlang),
    Peer("pekko", "actor", "Apache Pekko classic, JVM", build_maven),
    Peer("protoactor", "actor", "Proto.Actor, Go", build_go),
    Peer("hollywood", "actor", "Hollywood, Go", build_go),
    Peer("actix", "actor", "Actix, Rust", build_rust),
    Peer("ractor", "actor", "Ractor, Rust", build_rust),
    Peer("tokio", "task", "Tokio tasks and mpsc channels, Rust", build_rust),
    Peer("go", "task", "goroutines and channels", build_go),
]


# Building.

def need(tool, hint="toolchain missing"):
    if shutil.which(tool) is None:
        raise BuildError(f"{tool} not found ({hint})")


def copy_sources(*names):
    """Brings the named source directories up to date below build/peers/src; returns the last."""
    for name in names:
        shutil.copytree(SOURCE / name, BUILD / "src" / name, dirs_exist_ok=True)
    return BUILD / "src" / names[-1]


# Any of these in a build's output means that a registry is to blame and not our program.
REGISTRY_SIGNS = ("could not resolve host", "failed to download", "dial tcp", "spurious network",
                  "could not transfer", "forbidden", "connection refused", "connection timed out",
                  "unknown host", "failed to fetch", "unable to update registry", "no such host",
                  "temporary failure in name resolution", "unresolveable", "proxyconnect",
                  "not available", "could not resolve dependencies", "download of config.json",
                  "could not be resolved", "no plugin found")


def step(peer, command, cwd=None, env=None, timeout=900):
    """Runs one build command at low priority, keeping its output in build/peers/PEER/build.log."""
    log = peer.directory / "build.log"
    if shutil.which("nice"):
        command = ["nice", *command]
    try:
        done = subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise BuildError(f"build did not end within {timeout} s") from None
    with log.open("a") as file:
        file.write(f"$ {' '.join(command)}\n{done.stdout}")
    if done.returncode == 0:
        return
    plain = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    blamed = [line for line in lines if any(sign in line.lower() for sign in REGISTRY_SIGNS)]
    errors = [line for line in lines if "error" in line.lower()]
    text = (blamed or errors or lines or ["no output"])[0][:160]
    reason = "registry does not answer" if blamed else "build failed"
    raise BuildError(f"{reason}: {text} (see {log.relative_to(ROOT)})")


def build_all(peers):
    for peer in peers:
        peer.directory.mkdir(parents=True, exist_ok=True)
        (peer.directory / "build.log").unlink(missing_ok=True)
        print(f"build {peer.name} ...", end="", flush=True)
        start = time.monotonic()
        try:
            peer.command = peer.build(peer)
            print(f" {time.monotonic() - start:.1f} s")
        except BuildError as error:
            peer.skipped = str(error)
            print(f" skipped: {peer.name}: {error}")


# Running.

class RunError(Exception):
    pass


def run_once(command, timeout):
    """Runs one program in its own process group and returns the object it printed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise RunError(f"no result within {timeout} s") from None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    if process.returncode != 0:
        lines = (err or out).strip().splitlines() or ["no output"]
        raise RunError(f"exit code {process.returncode}: {lines[-1][:160]}")
    try:
        result = json.loads(out.strip().splitlines()[-1])
        result["ops_per_s"] = float(result["ops_per_s"])
    except (IndexError, KeyError, TypeError, ValueError):
        raise RunError(f"no JSON result, but: {out.strip()[:160]!r}") from None
    if not (result["ops_per_s"] > 0 and math.isfinite(result["ops_per_s"])):
        raise RunError(f"not a rate: {result['ops_per_s']}")
    return result


def ops_for(peer, workload, quick):
    if workload == "independent":
        return OPS_THREADS_QUICK if quick else OPS_THREADS_FULL
    ops = (OPS_QUICK if quick else OPS_FULL)[workload]
    if peer.is_fast:
        return (OPS_QUICK_FAST if quick else OPS_FULL_FAST).get(workload, ops)
    slow = OPS_SLOW.get((peer.name, workload))
    if slow is None:
        return ops
    if quick and workload != "skynet":  # a skynet has to keep its depth
        slow //= 4
    return min(ops, slow)


def command_for(peer, workload, threads, ops):
    if peer.group == "ours":
        return [*peer.command, "bench", workload, "--threads", str(threads), "--ops", str(ops),
                "--json"]
    return [*peer.command, workload, str(threads), "--ops", str(ops)]


def warm_memory(limit=1 << 30):
    """Touches memory once, in large pages, and gives it back.

    In a virtual machine a page that was never used has to come from the host first, which takes
    ten times as long as getting it from the guest's own free list. Whoever touches fresh memory
    first in a run would pay for all.
    """
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            limit = min(limit, int(line.split()[1]) * 1024 // 4)
    size = limit - limit % mmap.PAGESIZE
    with mmap.mmap(-1, size) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, size, mmap.PAGESIZE):
            memory[at] = 1


class Samples:
    """ops per second of every run, by (peer, workload, threads), and what went wrong."""

    def __init__(self):
        self.rates = {}
        self.ops = {}
        self.rss_kb = {}
        self.failures = {}

    def add(self, key, result):
        self.rates.setdefault(key, []).append(result["ops_per_s"])
        self.ops[key] = result.get("ops")
        if result.get("peak_rss_kb"):
            self.rss_kb.setdefault(key, []).append(result["peak_rss_kb"])

    def median(self, name, workload, threads):
        rates = self.rates.get((name, workload, threads))
        return statistics.median(rates) if rates else None

    def ratio(self, above, below, workload, threads):
        a = self.median(above, workload, threads)
        b = self.median(below, workload, threads)
        return a / b if a and b else None


def run_all(peers, args):
    """Round by round, so that a slow minute of the machine hits everybody alike."""
    samples = Samples()
    for number in range(1, args.rounds + 1):
        warm_memory()
        for workload in args.workloads + ["independent"]:
            for threads in args.threads:
                if sys.stdout.isatty():
                    print(f"\rround {number}/{args.rounds} {workload} x{threads}".ljust(60), end="",
                          flush=True)
                for peer in peers:
                    key = (peer.name, workload, threads)
                    if not takes_part(peer, workload, threads):
                        continue
                    if len(samples.failures.get(key, [])) == FAILURES_MAX:
                        continue
                    ops = ops_for(peer, workload, args.quick)
                    try:
                        samples.add(key, run_once(command_for(peer, workload, threads, ops),
                                                  args.timeout))
                    except RunError as error:
                        samples.failures.setdefault(key, []).append(str(error))
        if not sys.stdout.isatty():
            print(f"round {number}/{args.rounds} done", flush=True)
    if sys.stdout.isatty():
        print("\r" + " " * 60 + "\r", end="")
    return samples


def takes_part(peer, workload, threads):
    if peer.command is None:
        return False
    if peer.group == "limit" and threads > 1:
        return False
    if workload == "independent":
        return peer.group == "threads"
    return peer.group != "threads"


def add_recorded(peers, samples, args):
    """A peer that could not be built takes its recorded share of the prototype's rate."""
    recorded = json.loads((SOURCE / "recorded.json").read_text())["ratio_to_prototype"]
    for peer in peers:
        if peer.skipped is None or peer.name not in recorded:
            continue
        for workload in args.workloads:
            for threads in args.threads:
                ratio = recorded[peer.name].get(workload, {}).get(str(threads))
                proto = samples.median("proto", workload, threads)
                if ratio is None or proto is None:
                    continue
                samples.rates[(peer.name, workload, threads)] = [ratio * proto]
                peer.recorded = True


# Judging.

def best_of(group, peers, samples, workload, threads):
    found = [(samples.median(p.name, workload, threads), p) for p in peers if p.group == group]
    found = [(rate, p) for rate, p in found if rate]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def judge(peers, samples, args):
    """One row per target: what was compared, the ratio, and whether it suffices (or None)."""
    rows = []
    for workload in args.workloads:
        for threads in args.threads:
            for group in TARGETS:
                peer = best_of(group, peers, samples, workload, threads)
                ratio = samples.ratio("ours", peer.name, workload, threads) if peer else None
                target = TARGETS[group][workload]
                rows.append({"workload": workload, "threads": threads, "against": group,
                             "peer": label(peer) if peer else None, "target": target,
                             "ratio": ratio, "pass": None if ratio is None else ratio >= target})
        one, two = (samples.median("ours", workload, n) for n in (1, 2))
        if 1 in args.threads and 2 in args.threads:
            ratio = two / one if one and two else None
            rows.append({"workload": workload, "threads": 2, "against": "ours x1", "peer": "ours",
                         "target": TARGET_SCALING, "ratio": ratio,
                         "pass": None if ratio is None else ratio >= TARGET_SCALING})
    return rows


def label(peer):
    return f"{peer.name} (recorded)" if peer.recorded else peer.name


# Reporting.

def public_name(peer):
    return "fraktor" if peer.group == "ours" else peer.name


def million(rate):
    return "-" if rate is None else f"{rate / 1e6:.2f}" if rate >= 1e5 else f"{rate / 1e6:.4f}"


def times(ratio):
    return "-" if ratio is None else f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"


def measured(peers):
    return [p for p in peers if p.group != "threads" and (p.command or p.recorded)]


def print_tables(peers, samples, args):
    for workload in args.workloads:
        heads = "".join(f"   x{n}: M ops/s  ours/peer" for n in args.threads)
        print(f"\n{workload:<22}{heads}")
        for peer in measured(peers):
            cells = ""
            for threads in args.threads:
                ratio = None if peer.group == "ours" else samples.ratio("ours", peer.name, workload,
                                                                        threads)
                cells += f"{million(samples.median(peer.name, workload, threads)):>14}"
                cells += f"{times(ratio):>11}"
            print(f"  {label(peer):<20}{cells}")


def print_targets(rows, args):
    columns = [(group, n) for group in TARGETS for n in args.threads]
    if 1 in args.threads and 2 in args.threads:
        columns.append(("ours x1", 2))
    print("\ntargets: ratio of medians, ours / " + ", ".join(
        f"{group} = {title}" for group, title in GROUP_TITLES.items()))
    print(f"{'':<10}" + "".join(f"{f'{group} x{n}':>21}" for group, n in columns))
    for workload in args.workloads:
        line = f"{workload:<10}"
        for group, threads in columns:
            row = next(r for r in rows if (r["workload"], r["against"], r["threads"])
                       == (workload, group, threads))
            line += f"{cell(row):>21}"
        print(line)


def cell(row):
    verdict = {True: "pass", False: "FAIL", None: "?"}[row["pass"]]
    return f"{times(row['ratio'])} >= {row['target']:g} {verdict}"


def print_notes(peers, samples, args):
    for peer in peers:
        if peer.skipped:
            extra = "; its recorded ratios are used" if peer.recorded else ""
            print(f"skipped: {peer.name}: {peer.skipped}{extra}")
    for (name, workload, threads), why in samples.failures.items():
        print(f"failed {len(why)} times: {name} {workload} x{threads}: {why[0]}")
    speedup = threads_speedup(samples)
    if speedup:
        print(f"independent work: two plain threads reach {speedup:.2f} x one plain thread here")
    if args.quick:
        print("quick run: small sizes and few rounds; use it to see that everything works")


def threads_speedup(samples):
    one, two = (samples.median("threads", "independent", n) for n in (1, 2))
    return two / one if one and two else None


def write_json(path, peers, samples, rows, args):
    cells = []
    for (name, workload, threads), rates in sorted(samples.rates.items()):
        peer = next(p for p in peers if p.name == name)
        key = (name, workload, threads)
        cells.append({"runtime": name, "group": peer.group, "workload": workload,
                      "threads": threads, "recorded": peer.recorded,
                      "ops": samples.ops.get(key), "median_ops_per_s": statistics.median(rates),
                      "runs_ops_per_s": [] if peer.recorded else rates,
                      "peak_rss_kb": max(samples.rss_kb.get(key, [0])) or None})
    report = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "processors": os.cpu_count(), "rounds": args.rounds, "quick": args.quick,
        "skipped": {p.name: p.skipped for p in peers if p.skipped},
        "failed": [{"runtime": k[0], "workload": k[1], "threads": k[2], "why": why}
                   for k, why in samples.failures.items()],
        "threads_speedup": threads_speedup(samples),
        "medians": cells, "targets": rows,
    }
    path.write_text(json.dumps(report, indent=1) + "\n")


def write_markdown(path, peers, samples, rows, args):
    lines = ["# fraktor and its peers", "",
             f"Millions of messages (create, skynet: actors) per second; medians of {args.rounds} "
             f"interleaved runs on {os.cpu_count()} processors.", ""]
    lines += ["| runtime | threads | " + " | ".join(args.workloads) + " |",
              "|---|---|" + "---|" * len(args.workloads)]
    for peer in measured(peers):
        for threads in args.threads:
            rates = [samples.median(peer.name, w, threads) for w in args.workloads]
            if any(rates):
                name = f"**{public_name(peer)}**" if peer.group == "ours" else label(peer)
                lines.append(f"| {name} | {threads} | " + " | ".join(map(million, rates)) + " |")
    lines += ["", "## Targets", "", "| workload | threads | against | peer | ratio | target | |",
              "|---|---|---|---|---|---|---|"]
    for row in rows:
        verdict = {True: "pass", False: "**fail**", None: "not measured"}[row["pass"]]
        lines.append(f"| {row['workload']} | {row['threads']} | "
                     f"{GROUP_TITLES.get(row['against'], 'ours with one thread')} | "
                     f"{row['peer'] or '-'} | {times(row['ratio'])} | {row['target']:g} | "
                     f"{verdict} |")
    speedup = threads_speedup(samples)
    if speedup:
        lines += ["", f"Two plain threads on independent work reach {speedup:.2f} times one."]
    for peer in peers:
        if peer.skipped:
            lines += ["", f"Left out: {peer.name}: {peer.skipped}"]
    path.write_text("\n".join(lines) + "\n")


# The picture brings its own background, so that it is readable on a page of either kind.
SVG_STYLE = """
  .page { fill: #ffffff; }
  text { font: 12px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; font-size: 14px; }
  .small { font-size: 10px; fill: #57606a; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .actor { fill: #8c959f; } .task { fill: #bf8700; } .proto, .limit { fill: #2da44e; }
  .ours { fill: #0969da; } .second { opacity: 0.55; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; }
    text { fill: #e6edf3; } .small { fill: #9198a1; } .grid { stroke: #3d444d; }
    .actor { fill: #848d97; } .task { fill: #d29922; } .proto, .limit { fill: #3fb950; }
    .ours { fill: #4493f8; }
  }
"""


SVG_LEGEND = {"ours": "fraktor", "proto": "plain C: prototype, limit",
              "actor": "actor runtimes", "task": "tasks + channels"}


def write_svg(path, peers, samples, args):
    """A panel of horizontal bars per workload on one logarithmic scale for all of them."""
    shown = measured(peers)
    every = [rate for w in args.workloads for p in shown for n in args.threads
             if (rate := samples.median(p.name, w, n))]
    if not every:
        return
    low = math.floor(math.log10(min(every)))
    high = math.ceil(math.log10(max(every)))
    high = max(high, low + 1)
    head, bar, names, plot, gap, value = 64, 8, 92, 270, 26, 58
    row = bar * len(args.threads) + 6
    panel_width = names + plot + value
    panel_height = 26 + row * len(shown) + 26
    columns = min(2, len(args.workloads))
    width = columns * panel_width + (columns - 1) * gap + 20
    height = head + math.ceil(len(args.workloads) / columns) * panel_height + 8

    def scale(rate):
        return plot * (math.log10(rate) - low) / (high - low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'width="{width}" height="{height}" role="img" '
             f'aria-label="Operations per second of fraktor and its peers">',
             f"<style>{SVG_STYLE}</style>",
             f'<rect class="page" width="{width}" height="{height}" rx="6"/>',
             '<text class="title" x="10" y="20">Messages (create, skynet: actors) per second, '
             "logarithmic scale</text>",
             '<text class="small" x="10" y="36">medians; for each runtime from above: '
             + ", ".join(f"{n} thread{'s' if n > 1 else ''}" for n in args.threads) + "</text>"]
    for index, (group, text) in enumerate(SVG_LEGEND.items()):
        x = 10 + index * 150
        parts.append(f'<rect class="{group}" x="{x}" y="44" width="10" height="10"/>'
                     f'<text class="small" x="{x + 15}" y="53">{text}</text>')
    for index, workload in enumerate(args.workloads):
        left = 10 + (index % columns) * (panel_width + gap)
        top = head + (index // columns) * panel_height
        base = top + 26 + row * len(shown)
        parts.append(f'<text class="title" x="{left}" y="{top + 16}">{workload}</text>')
        for power in range(low, high + 1):
            x = left + names + scale(10 ** power)
            text = f"{10 ** power:g}" if power < 3 else f"{10 ** (power % 3)}{' kMG'[power // 3]}"
            parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top + 22}" x2="{x:.1f}" '
                         f'y2="{base}"/><text class="small" x="{x:.1f}" y="{base + 12}" '
                         f'text-anchor="middle">{text}</text>')
        for line, peer in enumerate(shown):
            y = top + 26 + line * row
            parts.append(f'<text x="{left + names - 6}" y="{y + row / 2 + 2:.1f}" '
                         f'text-anchor="end">{html.escape(public_name(peer))}'
                         f'{"*" if peer.recorded else ""}</text>')
            for order, threads in enumerate(args.threads):
                rate = samples.median(peer.name, workload, threads)
                if not rate:
                    continue
                extent = max(scale(rate), 1)
                bar_top = y + order * bar
                shade = " second" if order else ""
                parts.append(f'<rect class="{peer.group}{shade}" x="{left + names}" '
                             f'y="{bar_top}" width="{extent:.1f}" height="{bar - 1}"/>'
                             f'<text class="small" x="{left + names + extent + 4:.1f}" '
                             f'y="{bar_top + 7}" style="font-size:8px">{million(rate)} M</text>')
    if any(p.recorded for p in shown):
        parts.append(f'<text class="small" x="{width - 10}" y="36" text-anchor="end">'
                     "* recorded earlier, scaled by the prototype</text>")
    parts.append("</svg>")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts) + "\n")


# Command line.

def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0], epilog=EXAMPLE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [p.name for p in PEERS]
    parser.add_argument("--rounds", type=int, metavar="N", help="runs of everything (default 5)")
    parser.add_argument("--quick", action="store_true", help="small sizes, 3 rounds")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), metavar="A,B",
                        help="default: all of " + ",".join(WORKLOADS))
    parser.add_argument("--peers", default=",".join(names), metavar="A,B",
                        help="default: all of " + ",".join(names))
    parser.add_argument("--threads", default="1,2", metavar="A,B", help="default 1,2")
    parser.add_argument("--timeout", type=float, default=60, metavar="S",
                        help="seconds that one run may take (default 60)")
    parser.add_argument("--ours", default="build/release/bin/fraktor", metavar="PATH",
                        help="our program (default build/release/bin/fraktor)")
    parser.add_argument("--recorded", action="store_true",
                        help="use recorded ratios for peers that cannot be built here")
    parser.add_argument("--svg", default="build/bench/peers.svg", metavar="PATH",
                        help="where the picture goes (default build/bench/peers.svg)")
    parser.add_argument("--build-only", action="store_true", help="build the peers and stop")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    args = parser.parse_args()

    args.rounds = args.rounds or (3 if args.quick else 5)
    args.workloads = chosen(parser, "--workloads", args.workloads, WORKLOADS)
    args.peers = chosen(parser, "--peers", args.peers, names)
    try:
        args.threads = sorted({int(n) for n in args.threads.split(",")})
    except ValueError:
        parser.error("--threads takes numbers, as in --threads 1,2")
    if args.rounds < 1 or args.threads[0] < 1:
        parser.error("--rounds and --threads start at 1")
    return args


def chosen(parser, option, text, known):
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            parser.error(f"{option}: {name} is not one of {', '.join(known)}")
    return [name for name in known if name in wanted]


def find_ours(text):
    path = pathlib.Path(text)
    path = path if path.is_absolute() or path.exists() else ROOT / path
    if not os.access(path, os.X_OK):
        sys.exit(f"bench_peers.py: {text} does not exist: build it first, for example with\n"
                 "  cmake --preset release && cmake --build --preset release\n"
                 "or name another program with --ours PATH")
    return Peer("ours", "ours", "fraktor", None, command=[str(path.resolve())])


def main():
    args = parse_args()
    peers = [p for p in PEERS if p.name in args.peers]
    if not args.build_only:
        peers.insert(0, find_ours(args.ours))
    build_all([p for p in peers if p.build])
    if args.build_only:
        return 0

    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"warning: the machine is busy (load {load:.1f}); ratios suffer less than rates")
    samples = run_all(peers, args)
    if args.recorded:
        add_recorded(peers, samples, args)
    rows = judge(peers, samples, args)

    print_tables(peers, samples, args)
    print_targets(rows, args)
    print_notes(peers, samples, args)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    write_json(OUTPUT / "peers.json", peers, samples, rows, args)
    write_markdown(OUTPUT / "peers.md", peers, samples, rows, args)
    svg = pathlib.Path(args.svg)
    svg = svg if svg.is_absolute() else ROOT / svg
    write_svg(svg, peers, samples, args)
    print(f"wrote build/bench/peers.json, build/bench/peers.md and {args.svg}")

    if any(key[0] == "ours" for key in samples.failures):
        print("our own program failed, see above", file=sys.stderr)
        return 1
    return 1 if args.strict and any(row["pass"] is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
