#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks the symbols of what was built.

  --core lib.a     the freestanding archive needs nothing but memcpy memmove memset memcmp
  --shared lib.so  the shared library exports fk_[a-z]* only and has a versioned SONAME
"""

import argparse
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import common

NEEDED = {"memcpy", "memmove", "memset", "memcmp"}
LINKER_MADE = {"_GLOBAL_OFFSET_TABLE_"}  # the linker itself defines it at the final link


def tool(*command):
    code, output = common.run(command)
    if code != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{output}")
    return output


def check_core(archive):
    """Links the whole archive into one object first: calls inside it are then settled."""
    with common.Sandbox({}) as folder:
        linked = folder / "core.o"
        tool("ld", "-r", "-o", linked, "--whole-archive", archive)
        undefined = {line.split()[-1] for line in tool("nm", "-u", linked).splitlines() if line}
    problems = []
    for symbol in sorted(undefined - NEEDED - LINKER_MADE):
        users = [line.split(":")[-2] if ":" in line else "?"
                 for line in tool("nm", "-A", "-u", archive).splitlines()
                 if line.split()[-1] == symbol]
        problems.append(f"{archive.name}: needs {symbol}, used by {', '.join(sorted(set(users)))}")
    return problems


def check_shared(library, soname):
    problems = []
    for line in tool("nm", "-D", "--defined-only", library).splitlines():
        kind, symbol = line.split()[-2:]
        name, _, version = symbol.partition("@")
        if kind == "A" and re.fullmatch(r"FK_\d+(\.\d+)?", name):
            continue  # the version node itself
        if not re.match(r"fk_[a-z]", name):
            problems.append(f"{library.name}: exports {name}, which is not fk_[a-z]*")
        elif not version.strip("@").startswith("FK_"):
            problems.append(f"{library.name}: {name} has no symbol version")
    if not any("fk_" in line for line in tool("nm", "-D", "--defined-only", library).splitlines()):
        problems.append(f"{library.name}: exports nothing at all; are functions marked FK_API?")
    found = re.search(r"SONAME.*\[(.*)\]", tool("readelf", "-d", library))
    if not found or found.group(1) != soname:
        problems.append(f"{library.name}: SONAME is {found.group(1) if found else 'absent'},"
                        f" wanted {soname}")
    return problems


def self_test():
    compiler = (common.compilers("cc", "gcc", "clang") or sys.exit("no C compiler"))[0]
    source = {
        "a.c": "int fk__b(void *p); int fk_a(void *p); int fk_a(void *p) { return fk__b(p); }\n",
        "b.c": "void *memset(void *, int, __SIZE_TYPE__); int fk__b(void *p);\n"
               "int fk__b(void *p) { memset(p, 0, 8); return 0; }\n",
        "bad.c": "int puts(const char *); int fk_bad(void); int fk_bad(void) { return puts(\"\"); }\n",
        "leak.c": "int helper(void); int helper(void) { return 0; }\n",
        "good.map": "FK_0 { global: fk_[a-z]*; local: *; };\n",
        "wide.map": "FK_0 { global: *; };\n",
    }
    cases = []
    with common.Sandbox(source) as root:
        for name in ("a", "b", "bad", "leak"):
            tool(compiler, "-fPIC", "-ffreestanding", "-fno-stack-protector", "-c",
                 root / f"{name}.c", "-o", root / f"{name}.o")
        tool("ar", "rcs", root / "good.a", root / "a.o", root / "b.o")
        tool("ar", "rcs", root / "bad.a", root / "a.o", root / "b.o", root / "bad.o")
        cases.append(("memset and calls inside the archive", check_core(root / "good.a"), None))
        cases.append(("an archive that needs puts", check_core(root / "bad.a"), "needs puts"))

        def link(name, soname, script, *objects):
            options = [f"-Wl,-soname,{soname}"] if soname else []
            options += [f"-Wl,--version-script={root / script}"] if script else []
            tool(compiler, "-shared", *options, "-o", root / name, *(root / o for o in objects))
            return check_shared(root / name, "libx.so.0.1")

        cases.append(("a good library", link("1.so", "libx.so.0.1", "good.map", "a.o", "b.o"),
                      None))
        cases.append(("a helper exported", link("2.so", "libx.so.0.1", "wide.map", "a.o", "b.o",
                                                "leak.o"), "exports helper"))
        cases.append(("a private name exported", link("3.so", "libx.so.0.1", "wide.map", "a.o",
                                                      "b.o"), "exports fk__b"))
        cases.append(("no version", link("4.so", "libx.so.0.1", None, "a.o", "b.o"),
                      "no symbol version"))
        cases.append(("no SONAME", link("5.so", None, "good.map", "a.o", "b.o"), "SONAME"))
        cases.append(("wrong SONAME", link("6.so", "libx.so", "good.map", "a.o", "b.o"),
                      "SONAME"))
        cases.append(("nothing exported", link("7.so", "libx.so.0.1", "good.map", "leak.o"),
                      "exports nothing"))
    common.self_test("symbols", cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", type=pathlib.Path)
    parser.add_argument("--shared", type=pathlib.Path)
    parser.add_argument("--soname")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        self_test()
    if args.core:
        common.report("symbols", check_core(args.core), "Freestanding parts may call those four"
                      " functions only: ask the port for the rest, and keep 64-bit division,"
                      " big atomics and thread-locals out of them.", "archive looked at")
    if args.shared:
        common.report("symbols", check_shared(args.shared, args.soname), "Public names are"
                      " fk_noun_verb and marked FK_API; private ones are fk__noun_verb or static.",
                      "library looked at")
    parser.error("nothing to do")


main()
