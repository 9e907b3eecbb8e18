#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Lets a node of ours and a node of Pekko talk, and says what works.

Each point is tried in both directions. Both nodes are behind proxies, so that connections can be
cut and frames compared. Exit code: 0 all points are ok, or Pekko cannot be had here (then it says
"skipped"); 1 a point failed.
"""

import argparse
import collections
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import frames
import points
import shapes
from node import Failed, Node

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "interop"
OURS = ROOT / "build" / "release" / "bin" / "interop-peer"
COMPARE = ROOT / "build" / "release" / "bin" / "tests" / "unit_wire_captured"

# What is new on the wire in Pekko 2 is the magic; while no 2.x can be had, 1.7 with that stands in.
PEKKO = {"1": ["1.7.0"], "2": ["[2.0.0-M1,3)", "1.7.0"]}
MAVEN_SECONDS = 100  # in which it must have answered
MAGIC_2 = '"PEKK","AKKA"'
FRAMES_COMPARED = 50  # of each kind, to each node


class Skipped(Exception):
    """Why there is no Pekko here."""


def build_pekko(version):
    """The command that starts a Pekko node. Maven compiles a copy and names the class path."""
    for tool, package in (("java", "default-jdk-headless"), ("mvn", "maven")):
        if shutil.which(tool) is None:
            raise Skipped(f"{tool} not found (Debian package {package})")
    copy = BUILD / ("pekko-" + "".join(c if c.isalnum() or c in ".-" else "_" for c in version))
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    command = ["mvn", "-B", "-q", "-Dstyle.color=never", f"-Dpekko.version={version}", "compile",
               "org.apache.maven.plugins:maven-dependency-plugin:build-classpath@class-path"]
    # An earlier run may have left everything; but only the registry knows the newest of a range.
    for options in ([], ["-o"]) if version.startswith("[") else (["-o"], []):
        try:
            done = subprocess.run([*command, *options], cwd=copy, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=MAVEN_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        if done.returncode == 0:
            class_path = (copy / "target" / "class-path.txt").read_text().strip()
            return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                    "-cp", f"{copy / 'target' / 'classes'}:{class_path}", "interop.Main"]
        if "COMPILATION ERROR" in done.stdout:
            raise Failed("our Java program does not compile:\n" + done.stdout)
    raise Skipped(f"the registry gave no Pekko {version}")


def pekko_of(generation):
    """Its command and options, and what to call it."""
    why = None
    for version in PEKKO[generation]:
        try:
            command = build_pekko(version)
        except Skipped as skipped:
            why = why or skipped
            continue
        magic = ["--magic", MAGIC_2] if generation == "2" else []
        return command, magic, why
    raise why


def check(title, check_point, x, y):
    """None, or what was wrong."""
    for node in (x, y):
        node.forget()
    start = time.monotonic()
    try:
        check_point(x, y)
        wrong = None
    except Failed as failed:
        wrong = str(failed)
    print(f"  {x.name + ' to ' + y.name:<20} {title:<62} "
          f"{'ok' if wrong is None else 'FAILED':<7}{time.monotonic() - start:6.1f} s", flush=True)
    if wrong is not None:
        print(f"      {wrong[:1500]}", flush=True)
    return wrong


def revive(nodes):
    """After a point that failed the others shall still be tried with two nodes."""
    for node in nodes:
        node.proxy.resume()
        if node.process.poll() is None:
            node.kill()
    for node in nodes:
        node.start()


def run_points(nodes, only):
    failures = 0
    for title, check_point in points.POINTS:
        if only and only not in check_point.__name__:
            continue
        for x, y in (nodes, nodes[::-1]):
            if check(title, check_point, x, y) is not None:
                failures += 1
                revive(nodes)
    return failures


def captured(nodes):
    """Every frame that went to a node: (its name, frame)."""
    for node in nodes:
        for connection in list(node.proxy.connections):
            for frame in frames.split(bytes(connection.there)):
                yield node.name, frame


def write_capture(path, nodes, of_each):
    """As a table of tests/vectors: so many frames of each kind, whoever they go to; 0: one."""
    rows, seen = [], collections.Counter()
    for name, frame in captured(nodes):
        kind = (frame.what, name if of_each else None)
        if len(frame.data) > 4000 or seen[kind] >= max(of_each, 1):
            continue
        seen[kind] += 1
        rows.append(f"ca{len(rows) + 1:03}\t{frame.kind}\t{frame.what}\t{len(frame.data)}\t"
                    f"{frame.data.hex()}\tto {name}; Pekko {nodes[0].version}")
    path.write_text("# columns: id\tkind\twhat\tlength\thex\tsource\n" + "\n".join(rows) + "\n")
    return len(rows)


def check_one_way(nodes):
    """Nobody says anything on a connection that was made to it."""
    back = sum(len(c.back) for node in nodes for c in node.proxy.connections)
    print(f"  {'both':<20} {'connections are one-way':<62} {'ok' if back == 0 else 'FAILED':<7}")
    return int(back != 0)


def compare(nodes, folder):
    """Our reader and writer on what was captured: the same bytes again."""
    table = folder / "captured.tsv"
    count = write_capture(table, nodes, FRAMES_COMPARED)
    title = f"{count} captured frames are read, and written as the same"
    if not COMPARE.exists():
        print(f"  {'both':<20} {title:<62} skipped: {COMPARE.name} is not built")
        return 0
    done = subprocess.run([str(COMPARE)], env={"FK_CAPTURED": str(table)}, capture_output=True,
                          text=True)
    ok = done.returncode == 0 and count > 0
    print(f"  {'both':<20} {title:<62} {'ok' if ok else 'FAILED'}")
    if not ok:
        print((done.stdout + done.stderr)[-3000:])
    return int(not ok)


def check_shapes(nodes):
    """Whatever kind of frame both nodes wrote, ours must look like one of Pekko's."""
    pekko, ours = (collections.defaultdict(set) for _ in nodes)
    for name, frame in captured(nodes):
        if frame.kind == "frame" and shapes.kind_of(frame) is not None:
            kinds = ours if name == nodes[0].name else pekko  # what went to A is F's
            kinds[shapes.kind_of(frame)].add(repr(shapes.of(frame)))
    common = sorted(set(pekko) & set(ours))
    wrong = [(kind, one) for kind in common for one in sorted(ours[kind] - pekko[kind])]
    title = f"{len(common)} kinds of frames look as Pekko writes them"
    print(f"  {nodes[1].name + ' to ' + nodes[0].name:<20} {title:<62} "
          f"{'FAILED' if wrong or not common else 'ok'}")
    for kind, one in wrong[:20]:
        print(f"      {kind}: {one[:600]}\n      Pekko: {sorted(pekko[kind])[0][:600]}")
    return int(bool(wrong) or not common)


def run_pair(args, generation, folder):
    command, magic, why = pekko_of(generation)
    extra = [*magic, "--compress", args.compress]
    first = Node("A", command, folder, extra)
    other = Node("B", command, folder, extra) if args.self else \
        Node("F", [str(OURS)], folder, ["--compress", args.compress])
    nodes = (first, other)
    try:
        for node in nodes:
            node.start()
        print(f"{first.address} (Pekko {first.version}{', magic of 2.x' if magic else ''}) and "
              f"{other.address} ({'Pekko' if args.self else 'fraktor'} {other.version})")
        if why is not None:
            print(f"  skipped: {why}; this stands in for it")
        failures = run_points(nodes, args.only)
        failures += check_one_way(nodes) + compare(nodes, folder)
        if not args.only:  # some kinds take another shape now and then: all that there are must be seen
            failures += check_shapes(nodes)
        if args.capture:
            write_capture(pathlib.Path(args.capture), nodes, 0)
        return failures
    finally:
        for node in nodes:
            node.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--pekko", choices=["1", "2", "all"], default="all",
                        help="the generation of Pekko (default all)")
    parser.add_argument("--self", action="store_true", help="Pekko with Pekko: tests the tests")
    parser.add_argument("--only", metavar="POINT", help="only points whose function is called so")
    parser.add_argument("--capture", metavar="FILE", help="writes one frame of each kind")
    parser.add_argument("--compress", metavar="TIME", default="1s",
                        help="how often tables are advertised (default 1s)")
    parser.add_argument("--keep", action="store_true", help="keeps what the nodes said")
    args = parser.parse_args()
    if not args.self and not OURS.exists():
        sys.exit(f"interop.py: {OURS.relative_to(ROOT)} is not built (./run interop builds it)")

    # Whoever ends this ends the nodes with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    failures = tried = 0
    for generation in ("1", "2") if args.pekko == "all" else (args.pekko,):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="interop-"))
        try:
            failures += run_pair(args, generation, folder)
            tried += 1
        except Skipped as skipped:
            print(f"skipped: {skipped}")
        finally:
            if args.keep:
                print(f"kept: {folder}")
            else:
                shutil.rmtree(folder, ignore_errors=True)
    if tried == 0:
        print("skipped: no point was tried")
    else:
        print("all points are ok" if failures == 0 else f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
