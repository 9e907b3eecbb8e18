#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks that every public header compiles by itself, as C11 and as C++17, with each compiler
this machine has. The header is included twice, which also proves its guard."""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
import common

LANGUAGES = {  # source file: (compilers, flags)
    "alone.c": (("gcc", "clang", "cc"), ["-std=c11"]),
    "alone.cpp": (("g++", "clang++", "c++"), ["-std=c++17"]),
}
# Headers for users of another library: looked at only where that is installed.
OPTIONAL = {"fraktor/nanopb.h": "pb_decode.h"}
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def is_there(compiler, header):
    """Whether the compiler finds a header of another library."""
    if header is None:
        return True
    with common.Sandbox({"there.c": f"#include <{header}>\n"}) as folder:
        return common.run([compiler, "-fsyntax-only", folder / "there.c"])[0] == 0


def check(root, only=None):
    problems, ways = [], set()
    include = root / "include"
    for header in sorted(include.rglob("*.h")):
        name = header.relative_to(include).as_posix()
        text = f'#include "{name}"\n#include "{name}"\nint fk_alone(void);\n'
        for source, (candidates, flags) in LANGUAGES.items():
            for compiler in common.compilers(*candidates):
                if not is_there(compiler, OPTIONAL.get(name)):
                    continue
                ways.add(f"{compiler} {flags[0]}")
                with common.Sandbox({source: text}) as folder:
                    code, output = common.run([compiler, *flags, *FLAGS, "-I", include,
                                               folder / source])
                if code != 0:
                    problems.append(f"include/{name} with {compiler} {flags[0]}:\n{output}")
    return problems, sorted(ways)


def self_test():
    good = '#ifndef A_H\n#define A_H\n#include <stdint.h>\ntypedef struct a { uint8_t x; } a;\n#endif\n'
    bad = {
        "uses a type it does not include": ("void fk_f(uint8_t x);\n", "uint8_t"),
        "no include guard": ("struct b { int x; };\n", "redefinition"),
        "a C++ keyword as a name": ("#ifndef B_H\n#define B_H\nvoid fk_f(int class);\n#endif\n",
                                    "-std=c++17"),
        "a warning": ("#ifndef B_H\n#define B_H\n#include <stddef.h>\n"
                      "static inline int fk_f(int x) { }\n#endif\n", "b.h"),
        "not standard C": ("#ifndef B_H\n#define B_H\nstruct b { int n; int x[0]; };\n#endif\n",
                           "b.h"),
    }
    if not common.compilers("g++", "clang++", "c++"):
        del bad["a C++ keyword as a name"]
    cases = []
    with common.Sandbox({"include/fraktor/a.h": good}) as root:
        cases.append(("a good header", check(root)[0], None))
    for name, (text, wanted) in bad.items():
        with common.Sandbox({"include/fraktor/a.h": good, "include/fraktor/b.h": text}) as root:
            cases.append((name, check(root)[0], wanted))
    common.self_test("headers", cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        self_test()
    problems, ways = check(args.root)
    common.report("headers", problems, "A public header includes what it uses, has a guard, and"
                  " stays inside the common ground of C11 and C++17.", ", ".join(ways))


main()
