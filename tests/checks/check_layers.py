#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks that #include lines follow the arrows between the parts.

  base <- core <- remote <- cluster,  base <- wire <- remote;  sim and host use any of these;
  cli, examples, bench and interop use the public headers only; public headers and freestanding parts
  reach nothing but the compiler's freestanding headers; no cycles between files.
"""

import argparse
import pathlib
import posixpath
import re
import sys

sys.dont_write_bytecode = True
import common

FREESTANDING_HEADERS = {"stddef.h", "stdint.h", "stdbool.h", "stdalign.h", "limits.h",
                        "stdatomic.h"}
FREESTANDING = set(common.FREESTANDING_PARTS)
ALLOWED = {  # part: the parts it may include; the public headers are open to all
    "base": {"base"},
    "core": {"base", "core"},
    "wire": {"base", "wire"},
    "remote": {"base", "core", "wire", "remote"},
    "cluster": FREESTANDING,
    "sim": FREESTANDING | {"sim"},
    "testkit": FREESTANDING | {"sim", "testkit"},
    "host": FREESTANDING | {"host", "store"},
    "store": FREESTANDING | {"store"},
    "cli": {"cli"},
    "examples": set(),
    "bench": {"bench"},
    "interop": {"interop"},
    "public": set(),
}
PUBLIC_ONLY = {"cli", "examples", "bench", "interop"}
# The only public headers that may use others than the compiler's own.
HOSTED_PUBLIC = {"include/fraktor/host.h", "include/fraktor/nanopb.h"}
# With FK_SIM the atomics become calls into the explorer; this one line is that seam.
SEAMS = {("src/base/atomic.h", "src/sim/atomic_sim.h")}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def part_of(path):
    """The part a repository path belongs to, or None when no rule covers it."""
    top, *rest = pathlib.PurePosixPath(path).parts
    if top == "include":
        return "public"
    if top == "src" and len(rest) > 1:
        return rest[0]
    return top if top in ("examples", "bench", "interop") else None


def includes(root, path):
    """(line, spelled name, repository path or None, is it in angle brackets) of each #include."""
    text = (root / path).read_text(errors="replace")
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
    found = []
    for match in INCLUDE.finditer(text):
        name = match.group(2)
        line = text.count("\n", 0, match.start()) + 1
        folders = ("include", "src", str(pathlib.PurePosixPath(path).parent), ".")
        hit = next((posixpath.normpath(posixpath.join(folder, name)) for folder in folders
                    if (root / folder / name).is_file()), None)
        found.append((line, name, hit, match.group(1) == "<"))
    return found


def check_edge(path, part, line, name, target, angled):
    """The rules that one #include line can break by itself."""
    here = f"{path}:{line}: #include {name}: "
    if target is None:
        if angled and not name.startswith("fraktor/"):
            return None  # a system header; reach() judges those
        return here + "no such file under include/ or src/"
    if (path, target) in SEAMS:
        return None
    to = part_of(target)
    if to == "public":
        return None
    if part == "public":
        return here + "a public header may include public headers only"
    if part in PUBLIC_ONLY and to != part:
        return here + f"{part} may use the public headers (fraktor/...) only"
    if to not in ALLOWED.get(part, set()):
        return here + f"the arrow {part} -> {to} is not allowed"
    if part not in PUBLIC_ONLY and not name.startswith(f"{to}/"):
        return here + f'name the part: "{to}/{pathlib.PurePosixPath(name).name}"'
    return None


def reach(graph, start):
    """Yields (chain of files, system header) for every system header reachable from start."""
    stack, seen = [(start, (start,))], {start}
    while stack:
        path, chain = stack.pop()
        for _, name, target, angled in graph.get(path, []):
            if target is None and angled:
                yield chain, name
            elif target and target not in seen and (path, target) not in SEAMS:
                seen.add(target)
                stack.append((target, chain + (target,)))


def cycles(graph):
    """One description per include cycle."""
    state, found = {}, []

    def visit(path, trail):
        state[path] = "open"
        for _, _, target, _ in graph.get(path, []):
            if target in trail:
                loop = trail[trail.index(target):] + [target]
                found.append(f"{path}: include cycle: " + " -> ".join(loop))
            elif target and target not in state:
                visit(target, trail + [target])
        state[path] = "done"

    for path in sorted(graph):
        if path not in state:
            visit(path, [path])
    return found


def check(root):
    graph, problems = {}, []
    for file in common.files(root, ".c", ".h"):
        path = file.relative_to(root).as_posix()
        if part_of(path):
            graph[path] = includes(root, path)
    for path, lines in sorted(graph.items()):
        part = part_of(path)
        if part not in ALLOWED:
            problems.append(f"{path}: src/{part} is not a known part; add it to ALLOWED")
            continue
        for line, name, target, angled in lines:
            problems.append(check_edge(path, part, line, name, target, angled))
        if part in FREESTANDING or (part == "public" and path not in HOSTED_PUBLIC):
            for chain, name in reach(graph, path):
                if name in FREESTANDING_HEADERS or name.startswith("fraktor/"):
                    continue
                if part == "public" and HOSTED_PUBLIC & set(chain):
                    continue  # the umbrella header takes host.h in
                problems.append(f"{path}: reaches <{name}>, which is not a freestanding header"
                                f" (by {' -> '.join(chain)})")
    return [p for p in problems if p] + cycles(graph), len(graph)


def self_test():
    good = {
        "include/fraktor/base.h": "#include <stdint.h>\n",
        "include/fraktor/host.h": '#include "fraktor/base.h"\n#include <pthread.h>\n',
        "include/fraktor/fraktor.h": '#include "fraktor/host.h"\n',
        "src/base/list.h": '#include "fraktor/base.h"\n',
        "src/core/cell.c": '#include "base/list.h"\n',
        "src/host/loop.c": '#include "core/cell.h"\n#include <stdio.h>\n',
        "src/core/cell.h": "",
        "src/wire/frame.h": "",
        "src/remote/link.c": '#include "wire/frame.h"\n#include "core/cell.h"\n'
                             '#include "base/list.h"\n#include "remote/peer.h"\n',
        "src/remote/peer.h": "",
        "src/cli/main.c": '#include <fraktor/fraktor.h>\n#include "cli/args.h"\n#include <stdio.h>\n',
        "src/cli/args.h": "",
        "examples/01_hello.c": '#include <fraktor/fraktor.h>\n',
    }
    bad = {
        "upward arrow": ({"src/base/map.c": '#include "core/cell.h"\n'}, "base -> core"),
        "core uses wire": ({"src/core/x.c": '#include "wire/frame.h"\n'}, "core -> wire"),
        "core uses remote": ({"src/core/x.c": '#include "remote/peer.h"\n'}, "core -> remote"),
        "base uses remote": ({"src/base/x.c": '#include "remote/peer.h"\n'}, "base -> remote"),
        "wire uses remote": ({"src/wire/x.c": '#include "remote/peer.h"\n'}, "wire -> remote"),
        "remote uses cluster": ({"src/remote/x.c": '#include "cluster/y.h"\n',
                                 "src/cluster/y.h": ""}, "remote -> cluster"),
        "remote uses host": ({"src/remote/x.c": '#include "host/y.h"\n', "src/host/y.h": ""},
                             "remote -> host"),
        "core uses host": ({"src/core/x.c": '#include "host/y.h"\n', "src/host/y.h": ""},
                           "core -> host"),
        "cli goes inside": ({"src/cli/x.c": '#include "core/cell.h"\n'}, "public headers"),
        "example goes inside": ({"examples/02_x.c": '#include "core/cell.h"\n'},
                                "public headers"),
        "peer goes inside": ({"interop/fraktor/x.c": '#include "core/cell.h"\n'},
                             "public headers"),
        "public header goes inside": ({"include/fraktor/x.h": '#include "base/list.h"\n'},
                                      "a public header may"),
        "public header is hosted": ({"include/fraktor/x.h": "#include <stdio.h>\n"},
                                    "<stdio.h>"),
        "freestanding part is hosted": ({"src/core/x.c": "#include <string.h>\n"}, "<string.h>"),
        "hosted by a detour": ({"src/core/x.c": '#include "fraktor/fraktor.h"\n'},
                               "<pthread.h>"),
        "cycle": ({"src/core/a.h": '#include "core/b.h"\n',
                   "src/core/b.h": '#include "core/a.h"\n'}, "cycle"),
        "self-include": ({"src/core/a.h": '#include "core/a.h"\n'}, "cycle"),
        "part not named": ({"src/core/x.c": '#include "cell.h"\n'}, "name the part"),
        "missing file": ({"src/core/x.c": '#include "core/gone.h"\n'}, "no such file"),
        "new part": ({"src/magic/x.c": ""}, "not a known part"),
        "sim from base": ({"src/base/x.h": '#include "sim/y.h"\n', "src/sim/y.h": ""},
                          "base -> sim"),
    }
    cases = []
    with common.Sandbox(good) as root:
        cases.append(("a clean tree", check(root)[0], None))
    seam = {"src/base/atomic.h": '#include "sim/atomic_sim.h"\n', "src/sim/atomic_sim.h": ""}
    with common.Sandbox(good | seam) as root:
        cases.append(("the seam of the atomics", check(root)[0], None))
    for name, (extra, wanted) in bad.items():
        with common.Sandbox(good | extra) as root:
            cases.append((name, check(root)[0], wanted))
    common.self_test("layers", cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        self_test()
    problems, count = check(args.root)
    common.report("layers", problems, "Move the code to the part it belongs to, or let the lower"
                  " part define a table of functions that the upper one fills.",
                  f"{count} files looked at")


main()
