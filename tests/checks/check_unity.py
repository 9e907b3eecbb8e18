#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compiles all freestanding sources as one file: two static names that clash, or a macro that
leaks from one file into the next, are found here. This keeps an amalgamated release possible."""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
import common


# clang takes a .c file that is included for a header and so warns of an inline function with
# an external definition that calls static ones; in a file of its own that is correct C.
ARTEFACTS = ["-Wno-static-in-inline"]


def sources(root):
    return [file for part in common.FREESTANDING_PARTS
            for file in sorted((root / "src" / part).glob("*.c"))]


def check(root):
    problems = []
    text = "".join(f'#include "{file.relative_to(root / "src").as_posix()}"\n'
                   for file in sources(root))
    for compiler in common.compilers("gcc", "clang", "cc"):
        with common.Sandbox({"unity.c": text}) as folder:
            code, output = common.run([compiler, "-std=c11", "-O1", *common.WARNINGS, *ARTEFACTS,
                                       "-ffreestanding", "-fno-stack-protector", "-c",
                                       "-I", root / "include", "-I", root / "src",
                                       folder / "unity.c", "-o", folder / "unity.o"])
        if code != 0:
            telling = [line for line in output.splitlines()
                       if ": error:" in line or "previous definition" in line]
            problems.append("\n  ".join([f"unity build with {compiler}:", *telling]))
    return problems


def self_test():
    one = "static int x(void);\nint fk_a(void);\nstatic int x(void) { return 1; }\n" \
          "int fk_a(void) { return x(); }\n"
    cases = []
    with common.Sandbox({"src/base/a.c": one,
                         "src/core/b.c": one.replace("x(", "y(").replace("fk_a", "fk_b")}) as root:
        cases.append(("two files that get along", check(root), None))
    with common.Sandbox({"src/base/a.c": one, "src/core/b.c": one.replace("fk_a", "fk_b")}) as root:
        cases.append(("two statics of one name", check(root), "redefinition"))
    with common.Sandbox({"src/base/a.c": "#define N 1\n", "src/core/b.c": "#define N 2\n"}) as root:
        cases.append(("a macro that leaks", check(root), "redefined"))
    with common.Sandbox({"src/base/a.c": "int fk_a(long x);\nint fk_a(long x) { return x; }\n"}) as root:
        cases.append(("a warning", check(root), "conver"))
    common.self_test("unity", cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        self_test()
    common.report("unity", check(args.root), "Prefix the clashing static with its file's noun;"
                  " #undef a file's own macros or give them a longer name.",
                  f"{len(sources(args.root))} files compiled as one")


main()
