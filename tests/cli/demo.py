#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""fraktor demo: its whole script in eight seconds, its end by a signal, and that nothing of it is left,
neither a process nor a file, also when it is killed."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "first_hour"))
from nodes import check, until


def start(program, folder, seconds):
    return subprocess.Popen([program, "demo", "--json"], stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "DEMO_SECONDS": str(seconds), "TMPDIR": folder})


def nodes_in(folder):
    """Processes whose command line names that folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if folder.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass  # it has ended meanwhile
    return found


def events(out):
    lines = [json.loads(line) for line in out.splitlines()]
    return lines, [line["event"] for line in lines]


def test_script(program, folder):
    with start(program, folder, 8) as demo:
        out, _ = demo.communicate(timeout=100)
    print(out)
    lines, names = events(out)
    check(demo.returncode == 0, f"exit code {demo.returncode}")
    check(names[0] == "started" and names[-1] == "summary", "its lines", str(names))
    acts = [n for n in names if n not in ("started", "progress", "summary")]
    check(acts == ["killed", "restarted", "draining", "drained", "restarted"], "its acts", str(acts))
    check(names.count("progress") >= 5, "a line each second", str(names))
    end = lines[-1]
    check(end["ok"] and end["money_found"] == end["money_expected"] == 100000, "money", str(end))
    check((end["lost"], end["double"], end["unknown"]) == (0, 0, 0), "exactly once", str(end))
    check(end["transfers"] > 0 and end["moved"] > 0, "nothing has happened", str(end))
    check(end["failover_ms"] > 0 and end["drain_ms"] > 0, "times", str(end))


def test_signal(program, folder):
    with start(program, folder, 60) as demo:
        demo.stdout.readline()
        check(len(nodes_in(folder)) == 3, "three nodes", str(nodes_in(folder)))
        demo.send_signal(signal.SIGINT)
        out, _ = demo.communicate(timeout=60)
    lines, names = events(out)
    check(demo.returncode == 0 and names[-1] == "summary" and lines[-1]["ok"], "closed early", out)


def test_killed(program, folder):
    with start(program, folder, 60) as demo:
        demo.stdout.readline()
        demo.kill()
    until("no node outlives it", lambda: not nodes_in(folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    for test in (test_script, test_signal, test_killed):
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            test(program, folder)
            print(f"{test.__name__}: {time.monotonic() - begun:.1f} s")
            check(not nodes_in(folder), "a node is left", str(nodes_in(folder)))
            if test is not test_killed:
                check(os.listdir(folder) == [], "files are left", str(os.listdir(folder)))


if __name__ == "__main__":
    main()
