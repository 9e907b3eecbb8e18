#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Item 12 of the first hour, at the command line: a bad path shows a caret under the offending byte
and a sentence. (12_names.c does the same with names given to fk_spawn.)"""

import argparse
import subprocess
import sys


def refusal(program, *args):
    done = subprocess.run([program, "path", *args], capture_output=True, text=True, timeout=60)
    print(f"$ fraktor path {' '.join(args)}\n{done.stdout}{done.stderr}")
    if done.returncode != 1 or done.stdout:
        sys.exit(f"exit code {done.returncode} instead of 1, or data on stdout")
    return done.stderr.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program

    uri = "fraktor://s@h:70000/user/a"
    text, caret, sentence = refusal(program, uri)
    ok = text == uri and uri[len(caret) - 1:].partition("/")[0] in "70000" and caret.endswith("^")
    ok = ok and "65535" in sentence
    text, caret, sentence = refusal(program, "resolve", "fraktor://s/user/a", "../../..")
    ok = ok and text == "../../.." and caret == "   ^" and "climbs above" in sentence
    text, caret, sentence = refusal(program, "name", "a/b")
    ok = ok and caret == " ^"
    sys.exit(0 if ok else "the caret or the sentence is not as promised")


if __name__ == "__main__":
    main()
