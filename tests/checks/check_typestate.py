#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks that a system that is still booting cannot be used as one that runs, nor the other way
round: each call with the right pointer compiles, with the wrong one it does not, as C11 and as
C++17, with each compiler this machine has."""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
import common

LANGUAGES = {  # source file: (compilers, flags)
    "wrong.c": (("gcc", "clang", "cc"), ["-std=c11", "-Werror=incompatible-pointer-types"]),
    "wrong.cpp": (("g++", "clang++", "c++"), ["-std=c++17"]),
}
RUNNING = {  # what wants a system that runs
    "fk_spawn": 'return fk_spawn({}, FK_STR("a"), &props, &ref);',
    "fk_send": "return fk_send({}, ref, FK_MSG(ping, 1));",
    "fk_send_from": "return fk_send_from({}, ref, ref, FK_MSG(ping, 1));",
    "fk_system_tell": "return fk_system_tell({}, FK_MSG(ping, 1));",
    "fk_stop": "return fk_stop({}, ref);",
    "fk_poison": "return fk_poison({}, ref);",
    "fk_kill": "return fk_kill({}, ref);",
    "fk_terminate": "return fk_terminate({});",
    "fk_system_stop": "return fk_system_stop({});",
    "fk_guardian": "ref = fk_guardian({}, FK_GUARDIAN_USER);",
    "fk_resolve": 'return fk_resolve({}, FK_STR("x"), &ref, 0);',
    "fk_select_send": 'return fk_select_send({}, FK_STR("x"), FK_MSG(ping, 1));',
}
BOOTING = {  # what wants one that does not run yet
    "fk_boot_guardian": "return fk_boot_guardian({}, FK_GUARDIAN_USER, 0, 0);",
    "fk_boot_extra": 'return fk_boot_extra({}, FK_STR("a"), &props, &ref);',
    "fk_boot_finish": "return fk_boot_finish({}, &other, 0);",
    "fk_boot_abandon": "fk_boot_abandon({});",
}
PROGRAM = """#include <fraktor/boot.h>
#include <fraktor/fraktor.h>
struct ping_s {{ int n; }};
typedef struct ping_s ping;
FK_MESSAGE(ping);
fk_err use(fk_boot *boot, fk_system *sys);
fk_err use(fk_boot *boot, fk_system *sys)
{{
    fk_props props = fk_props();
    fk_ref ref = FK_REF_NONE;
    fk_system *other = 0;
    (void)boot, (void)sys, (void)props, (void)ref, (void)other;
    {call}
    return FK_OK;
}}
"""


def compiles(include, source, compiler, flags, call):
    text = PROGRAM.format(call=call)
    if source.endswith(".c"):
        text = text.replace("= fk_props()", "= { 0 }")
    with common.Sandbox({source: text}) as folder:
        return common.run([compiler, *flags, "-fsyntax-only", "-I", include, folder / source])


def check(root):
    problems, ways = [], set()
    include = root / "include"
    for source, (candidates, flags) in LANGUAGES.items():
        for compiler in common.compilers(*candidates):
            ways.add(f"{compiler} {flags[0]}")
            for right, wrong, calls in (("sys", "boot", RUNNING), ("boot", "sys", BOOTING)):
                for name, call in calls.items():
                    where = f"{name}() with {compiler} {flags[0]}"
                    code, output = compiles(include, source, compiler, flags, call.format(right))
                    if code != 0:
                        problems.append(f"{where}: does not take fk_{right}:\n{output}")
                    code, _ = compiles(include, source, compiler, flags, call.format(wrong))
                    if code == 0:
                        problems.append(f"{where}: takes an fk_{wrong}")
    return problems, sorted(ways)


def self_test(root):
    """With the two types made one, every call takes either."""
    headers = {path.relative_to(root).as_posix(): path.read_text()
               for path in (root / "include").rglob("*.h")}
    same = {name: text.replace("typedef struct fk_boot fk_boot;", "typedef struct fk_system fk_boot;")
            for name, text in headers.items()}
    assert same != headers
    cases = []
    with common.Sandbox(headers) as folder:
        cases.append(("two types", check(folder)[0], None))
    with common.Sandbox(same) as folder:
        cases.append(("one type", check(folder)[0], "takes an fk_boot"))
    common.self_test("typestate", cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[2])
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        self_test(args.root)
    problems, ways = check(args.root)
    common.report("typestate", problems, "Nothing that sends or spawns takes an fk_boot.",
                  ", ".join(ways))


main()
