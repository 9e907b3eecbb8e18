#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Item 20 of the first hour: a cluster is cut in two. The log says who keeps serving and who refuses with
FK_E_NOT_READY; there is one activation of each grain at most; the same seed gives the same log."""

import argparse
import re
import subprocess
import sys


def run(program, seed):
    done = subprocess.run([program, "split-brain", "--seed", str(seed)], capture_output=True,
                          timeout=60)
    if done.returncode != 0:
        sys.exit(f"seed {seed} ends with {done.returncode}\n{done.stdout.decode()[-2000:]}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, help="fraktor-sim")
    program = parser.parse_args().program
    log = run(program, 7)
    if log != run(program, 7):
        sys.exit("the same seed gives another log")
    if log == run(program, 8):
        sys.exit("another seed gives the same log: it says nothing")
    text = log.decode()
    cut_off = re.search(r"\(cut\) +cut +0 ", text)
    if not cut_off:
        sys.exit(f"who is cut off served, or is not named\n{text[-2000:]}")
    for wanted in ("FK_E_NOT_READY", "one activation of each grain at most, all along and after healing: yes"):
        if wanted not in text:
            sys.exit(f"the log does not say: {wanted}\n{text[-2000:]}")
    print("who is cut off refuses, the others go on, and the log is the same again")


main()
