#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Item 21 of the first hour: a test with virtual time takes milliseconds; broken on purpose, it shows
expected and actual, the last 20 events with their time, the tree, and the line that replays it, which
gives the same output byte for byte."""

import argparse
import os
import re
import subprocess
import sys
import time


def run(program, *args, seed=None):
    environment = {name: value for name, value in os.environ.items() if name != "FK_SEED"}
    if seed:
        environment["FK_SEED"] = seed
    begun = time.monotonic()
    done = subprocess.run([program, *args], capture_output=True, text=True, env=environment,
                          timeout=60)
    return done.returncode, done.stderr, time.monotonic() - begun


def check(condition, what, output):
    if not condition:
        sys.exit(f"{what}\n{output}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long the good test may take")
    args = parser.parse_args()

    code, output, seconds = run(args.program)
    check(code == 0 and not output, "the good test fails or has something to say", output)
    check(seconds < args.seconds, f"it took {seconds:.3f} s", output)
    print(f"the good test took {seconds * 1000:.0f} ms")

    code, output, _ = run(args.program, "broken")
    print(output)
    check(code == 1, f"exit code {code}", output)
    check(re.search(r"^  expected daily to /user/reader within 2400\.000000 s\n"
                    r"  actual   nothing came\n", output, re.M), "no expected and actual", output)
    check(re.search(r"^  at       .*21_testing\.c:\d+$", output, re.M), "no place", output)
    events = re.findall(r"^    \+(\d+\.\d{6}) +\S.*$", output, re.M)
    check(len(events) == 20 and "last 20 of " in output, f"{len(events)} events", output)
    check(sorted(events, key=float) == events, "events not in their order", output)
    check("/user/station <- reading from /user/$" in output, "no message among them", output)
    check(re.search(r"^      user \w+ children=6$", output, re.M), "no tree", output)
    line = re.search(r"^  replay: FK_SEED=(0x[0-9a-f]+) ctest -R first_hour_21$", output, re.M)
    check(line, "no line to replay it", output)

    for _ in range(3):
        again = run(args.program, "broken", seed=line.group(1))
        check(again[:2] == (1, output), "the replay differs", again[1])
    other = run(args.program, "broken")
    check(other[0] == 1 and other[1] != output, "a new run is no new order", other[1])


if __name__ == "__main__":
    main()
