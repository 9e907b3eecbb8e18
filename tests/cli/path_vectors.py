#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Asks one `fraktor path batch` all rows of the conformance vectors that it can answer, and
compares every field they state."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)", re.S)
FIELDS = {  # exactly these, besides "ok"
    "parse": {"scheme", "system", "host", "port", "segments", "uid", "canonical",
              "canonical_no_uid"},
    "name": set(), "sysname": set(), "resolve": {"canonical"}, "equal": {"equal", "same_hash"},
    "match": {"match"}, "autoname": {"name"},
}
FAULT = {"ok", "error", "at", "segment", "message"}
TWO_ARGUMENTS = {"resolve", "equal", "match"}


def value(field):
    """A field of the vectors as JSON would have it."""
    if field == r"\N":
        return None
    named = {"e": "", "t": "\t", "n": "\n", "r": "\r", "\\": "\\"}
    return ESCAPE.sub(lambda m: named.get(m[1]) if m[1] in named else chr(int(m[1][1:], 16)), field)


def rows(file):
    for line in file.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")


def ask(program, rules, questions):
    """One line each, all at once."""
    text = "".join(question + "\n" for question in questions)
    done = subprocess.run([program, "path", "batch", "--rules", rules], input=text.encode(),
                          capture_output=True, timeout=60)
    lines = done.stdout.decode("ascii").splitlines()
    if done.returncode != 0 or done.stderr or len(lines) != len(questions):
        sys.exit(f"batch: exit {done.returncode}, {len(lines)} lines for {len(questions)} questions"
                 f"\n{done.stderr.decode(errors='replace')}")
    return [json.loads(line) for line in lines]


def expectations(expect):
    """"a=1 ; b=2" as a dictionary of JSON values."""
    wanted = {}
    for pair in [] if expect == r"\N" else expect.split(" ; "):
        key, _, field = pair.partition("=")
        if key == "segments":
            wanted[key] = [] if field == "[]" else [value(part) for part in field.split("|")]
        elif key in ("port", "at", "segment"):
            wanted[key] = None if field == r"\N" else int(field)
        elif key == "equal":
            wanted[key] = field == "yes"
            if wanted[key]:
                wanted["same_hash"] = True
        else:
            wanted[key] = value(field)
    return wanted


def check(case, op, result, wanted, answer):
    """The differences, in words."""
    problems = []
    if answer["ok"] != (result == "ok"):
        return [f"{case}: wanted {result}, got {answer}"]
    keys = set(answer)
    if answer["ok"] and keys != FIELDS[op] | {"ok"}:
        problems.append(f"{case}: fields {sorted(keys)}")
    if not answer["ok"]:
        if keys != FAULT | ({"arg"} if op in TWO_ARGUMENTS else set()):
            problems.append(f"{case}: fields {sorted(keys)}")
        if answer["error"] != result:
            problems.append(f"{case}: error {answer['error']}, wanted {result}")
    for key, expected in wanted.items():
        if answer.get(key) != expected:
            problems.append(f"{case}: {key} is {answer.get(key)!r}, wanted {expected!r}")
    return problems


def run(program, rules, cases):
    """cases: (id, op, escaped arguments, result, wanted fields)."""
    questions = ["\t".join([op, *args]) for _, op, args, _, _ in cases]
    problems = []
    for (case, op, _, result, wanted), answer in zip(cases, ask(program, rules, questions)):
        problems += check(f"{case} ({rules} rules)", op, result, wanted, answer)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--vectors", type=pathlib.Path, required=True)
    args = parser.parse_args()

    own = [(case, op, [first, second], result, expectations(expect))
           for case, op, first, second, result, expect in rows(args.vectors / "fraktor_rules.tsv")]
    either = [(row[0], "match", row[1:3], "ok", {"match": row[3] == "yes"})
              for row in rows(args.vectors / "glob_match.tsv")]
    either += [(row[0], "autoname", [row[3]], "ok", {"name": value(row[4])})
               for row in rows(args.vectors / "auto_names.tsv") if row[1] == "child"]
    systems = list(rows(args.vectors / "system_name.tsv"))
    either += [(row[0], "sysname", [row[1]], "ok", {}) for row in systems if row[2] == "yes"]
    either += [(row[0], "sysname", [row[1]], "empty" if row[1] == r"\e" else "invalid_system", {})
               for row in systems if row[2] == "no"]

    problems = run(args.program, "fraktor", own + either) + run(args.program, "pekko", either)
    print("\n".join(problems))
    print(f"{len(own)} rows of our own rules, {len(either)} of either: {len(problems)} problems")
    sys.exit(1 if problems or len(own) < 100 or len(either) < 50 else 0)


if __name__ == "__main__":
    main()
