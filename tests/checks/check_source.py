#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks rules of the house style that need no compiler: sizes of files and functions, no #if
inside a function, an SPDX line, no path of somebody's machine, no open point in code without an
issue number."""

import argparse
import bisect
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import common

LINES_MAX = {"source": 1000, "public header": 400, "function": 70}
SPDX = "SPDX-License-Identifier: MIT OR Apache-2.0"
SPDX_SUFFIXES = (".c", ".h", ".py", ".cmake", ".sh", ".map", "CMakeLists.txt", "run")
# Built from pieces, so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.$}/])/(?:" + "|".join(("home", "root", "work", "Users"))
                          + r")(?:/[\w.-]|\b(?=[\"'\s]))")
OPEN_POINT = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b(?!\(#\d+\))")


def functions(text):
    """Yields (name, first line, last line) of each function body and, as a fourth value, the
    lines of the conditionals in it. Works on text without a compiler: a body is a brace at file
    level that follows a closing parenthesis."""
    text = common.blank(text)
    starts = [0] + [m.end() for m in re.finditer("\n", text)]
    line_of = lambda offset: bisect.bisect_right(starts, offset)
    depth, before, opened, conditionals, saved, offset = 0, "", None, [], [], 0
    lines = text.splitlines(keepends=True)
    number = 0
    while number < len(lines):
        line = lines[number]
        directive = re.match(r"\s*#\s*(\w+)", line)
        if directive:
            word = directive.group(1)
            if word in ("if", "ifdef", "ifndef"):
                saved.append((depth, before))  # both branches start from the same place
            elif word in ("else", "elif") and saved:
                depth, before = saved[-1]
            elif word == "endif" and saved:
                saved.pop()
            if opened and word in ("if", "ifdef", "ifndef"):
                conditionals.append(number + 1)
            while True:  # the whole directive, with its continued lines
                offset += len(lines[number])
                number += 1
                if not lines[number - 1].rstrip("\n").endswith("\\") or number == len(lines):
                    break
            continue
        for at, char in enumerate(line):
            if char == "{":
                if depth == 0 and 'extern' in before and ")" not in before:
                    before = ""  # extern "C" { holds functions, it is not one
                    continue
                if depth == 0 and before.rstrip().endswith(")"):
                    name = re.search(r"(\w+)\s*\(", before)
                    opened, conditionals = (name.group(1) if name else "?",
                                            line_of(offset + at)), []
                depth += 1
            elif char == "}":
                depth = max(0, depth - 1)
                if depth == 0:
                    if opened:
                        yield opened[0], opened[1], line_of(offset + at), conditionals
                    opened, before = None, ""
            elif depth == 0:
                before = "" if char == ";" else before + char
        offset += len(line)
        number += 1


def check_c(path, text):
    count = text.count("\n")
    kind = "public header" if path.startswith("include/") else "source"
    if count > LINES_MAX[kind]:
        yield f"{path}:{LINES_MAX[kind] + 1}: {kind} of {count} lines, at most {LINES_MAX[kind]}"
    for name, first, last, conditionals in functions(text):
        length = last - first + 1
        if length > LINES_MAX["function"]:
            yield f"{path}:{first}: {name}() has {length} lines, at most {LINES_MAX['function']}"
        for line in conditionals:
            yield f"{path}:{line}: #if inside {name}(); switch whole functions or files instead"


def check_text(path, text):
    if path.endswith(SPDX_SUFFIXES) and SPDX not in "\n".join(text.splitlines()[:3]):
        yield f"{path}:1: no line with \"{SPDX}\" at the top"
    for number, line in enumerate(text.splitlines(), 1):
        found = MACHINE_PATH.search(line)
        if found:
            yield f"{path}:{number}: path of one machine: {line.strip()[:80]}"
        found = OPEN_POINT.search(line)
        if found and not path.endswith(".md"):
            yield f"{path}:{number}: {found.group(1)} without an issue number, as in {found.group(1)}(#12)"


def check(root):
    problems, count = [], 0
    wanted = (".c", ".h", ".py", ".cmake", ".sh", ".map", ".md", ".json", ".in", ".txt")
    for file in common.files(root, *wanted, names=("run",)):
        path = file.relative_to(root).as_posix()
        text = file.read_text(errors="replace")
        count += 1
        problems += check_text(path, text)
        if path.endswith((".c", ".h")):
            problems += check_c(path, text)
    return problems, count


def self_test():
    spdx = f"/* {SPDX} */\n"
    body = lambda lines: "{\n" + "    x();\n" * (lines - 2) + "}\n"
    todo, home = "TO" + "DO", "/" + "home/ada/x"
    cases = [
        ("a clean file", {"src/a.c": spdx + "static int f(void)\n" + body(70)}, None),
        ("a function of 71 lines", {"src/a.c": spdx + "int f(void)\n" + body(71)}, "f() has 71"),
        ("a long function after extern \"C\"",
         {"src/a.h": spdx + 'extern "C" {\nint g(void)\n' + body(71) + "}\n"}, "g() has 71"),
        ("a long function with braces in text",
         {"src/a.c": spdx + "int f(void)\n{\n    x('}', \"}\"); /* } */\n" + "    x();\n" * 70 + "}\n"},
         "f() has"),
        ("a long table is not a function",
         {"src/a.c": spdx + "static const int T[] = {\n" + "    1,\n" * 90 + "};\n"}, None),
        ("a source of 1001 lines", {"src/a.c": spdx + "\n" * 1000}, "1001 lines"),
        ("a public header of 401 lines", {"include/fraktor/a.h": spdx + "\n" * 400}, "401 lines"),
        ("#ifdef in a function",
         {"src/a.c": spdx + "int f(void)\n{\n#ifdef X\n    x();\n#endif\n}\n"}, "src/a.c:4: #if"),
        ("#if around a function",
         {"src/a.c": spdx + "#if X\nint f(void)\n{\n}\n#else\nint f(int a)\n{\n}\n#endif\n"}, None),
        ("#if with a brace in each branch",
         {"src/a.c": spdx + "#if X\nint f(void) {\n#else\nint f(int a) {\n#endif\n}\nint g(void)\n"
          + body(71)}, "g() has 71"),
        ("no SPDX line", {"src/a.c": "int x;\n"}, "SPDX"),
        ("no SPDX line in a script", {"run": "#!/bin/bash\n"}, "SPDX"),
        ("a path of one machine", {"docs/a.md": f"see {home} for more\n"}, "path of one machine"),
        ("a path under src", {"docs/a.md": "see tests" + home + "\n"}, None),
        ("an open point without number", {"src/a.c": spdx + f"/* {todo}: later */\n"}, "issue number"),
        ("an open point with number", {"src/a.c": spdx + f"/* {todo}(#12): later */\n"}, None),
    ]
    results = []
    for name, tree, wanted in cases:
        with common.Sandbox(tree) as root:
            results.append((name, check(root)[0], wanted))
    common.self_test("source", results)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        self_test()
    problems, count = check(args.root)
    common.report("source", problems, "Split by concept, not by letter.",
                  f"{count} files looked at")


main()
