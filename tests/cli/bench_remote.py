#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""fraktor bench remote-oneway and remote-ask: two processes that find each other, the figures that
scripts rely on, no process left behind, and memory that does not grow with the messages."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

COMMON = ["workload", "threads", "ops", "seconds", "ops_per_s", "peak_rss_kb", "cpu_ns_per_op",
          "rss_begin_kb", "rss_end_kb", "second_rss_begin_kb", "second_rss_end_kb"]

PROGRAM = ""
problems = []


def run(*args):
    done = subprocess.run([PROGRAM, "bench", *args], capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout, done.stderr


def expect(what, condition, shown=""):
    if not condition:
        problems.append(f"{what}\n{shown}")


def figures(*args):
    """What a run printed, or None after saying why there is nothing."""
    status, out, err = run(*args, "--json")
    expect(f"{args}: exit 0, nothing to complain about", (status, err) == (0, ""), err)
    try:
        return json.loads(out)
    except ValueError:
        expect(f"{args}: one object", False, out)
        return None


def has_all(result, workload, threads, ops):
    missing = [name for name in COMMON if name not in result]
    expect(f"{workload}: all figures", not missing, f"missing {missing}")
    got = (result.get("workload"), result.get("threads"), result.get("ops"))
    expect(f"{workload}: what was asked for", got == (workload, threads, ops), result)
    expect(f"{workload}: both processes worked", result.get("cpu_ns_per_op", 0) > 0, result)


def test_oneway(flat_kb):
    result = figures("remote-oneway", "--ops", "400k")
    if result is None:
        return
    has_all(result, "remote-oneway", 1, 400_000)
    for process in ("", "second_"):
        grown = result[f"{process}rss_end_kb"] - result[f"{process}rss_tenth_kb"]
        expect(f"remote-oneway: {process}memory grew by {grown} kB", grown <= flat_kb, result)


def test_oneway_other_sizes():
    for ops, payload, threads in ((1, 8, 1), (5000, 3000, 2)):
        result = figures("remote-oneway", "--ops", str(ops), "--payload", str(payload),
                         "--threads", str(threads))
        if result is not None:
            has_all(result, "remote-oneway", threads, ops)
            expect("the payload is said", result.get("payload") == payload, result)


def test_ask():
    result = figures("remote-ask", "--ops", "300", "--rounds", "3")
    if result is None:
        return
    has_all(result, "remote-ask", 1, 300)
    expect("p50 is not more than p99", 0 < result["p50_us"] <= result["p99_us"], result)


def test_usage():
    status, out, err = run("remote-oneway", "--payload", "7")
    expect("no room for a number", (status, out) == (2, ""), err)


def children(pid):
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def is_running(pid):
    """A zombie that nobody has waited for yet has ended, too."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text[text.rindex(")") + 2] != "Z"


def within(seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_second_follows_first():
    """Also when the first has no time to say goodbye."""
    first = subprocess.Popen([PROGRAM, "bench", "remote-oneway", "--ops", "1G"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    begun = within(20, lambda: children(first.pid))
    expect("there is a second process", begun)
    seconds = children(first.pid)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    for pid in seconds:
        expect("the second process ends", within(30, lambda pid=pid: not is_running(pid)))


def main():
    global PROGRAM
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--flat-kb", type=int, default=4096,
                        help="how much memory may grow after a tenth of the messages")
    args = parser.parse_args()
    PROGRAM = args.program
    test_oneway(args.flat_kb)
    test_oneway_other_sizes()
    test_ask()
    test_usage()
    test_second_follows_first()
    for problem in problems:
        print(f"FAIL {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
