#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs an example: it must exit with 0 and, when the expected file exists, print just that."""

import argparse
import difflib
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
import common


def check(command, expected):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    problems = []
    if done.returncode != 0:
        problems.append(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    if expected.is_file() and done.stdout != expected.read_text():
        diff = difflib.unified_diff(expected.read_text().splitlines(True),
                                    done.stdout.splitlines(True), expected.name, "printed")
        problems.append("the output differs from what is expected:\n" + "".join(diff))
    return problems


def self_test():
    with common.Sandbox({"hello.expected": "hello\n"}) as root:
        expected, absent = root / "hello.expected", root / "none"
        common.self_test("example", [
            ("right output", check(["echo", "hello"], expected), None),
            ("wrong output", check(["echo", "hallo"], expected), "-hello"),
            ("no output", check(["true"], expected), "-hello"),
            ("exit code without expected file", check(["false"], absent), "exit code 1"),
            ("no expected file", check(["echo", "x"], absent), None),
        ])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--expected", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("command", nargs="*")
    args = parser.parse_args()
    if args.self_test:
        self_test()
    common.report("example", check(args.command, args.expected), "Correct the example, or its"
                  " .expected file if the new output is right.", args.command[0])


main()
