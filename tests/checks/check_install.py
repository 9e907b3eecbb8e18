#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Installs the build into a temporary prefix, moves that prefix, and builds and runs a consumer
through find_package(fraktor) and through pkg-config, in C and (if there is a compiler) in C++.
With --way subdirectory: builds the consumer with add_subdirectory() instead."""

import argparse
import os
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True
import common


class Problem(Exception):
    pass


def must(what, command, **options):
    code, output = common.run(command, **options)
    if code != 0:
        raise Problem(f"{what} failed: {' '.join(map(str, command))}\n{output}")
    return output


def must_print(what, program, version, **options):
    output = must(what, [program], **options)
    if output.strip() != version:
        raise Problem(f"{what}: fk_version() is {output.strip()!r}, the package says {version}")
    print(f"ok: {what}")


def build_with_cmake(args, folder, *options):
    must("configuring the consumer", [
        args.cmake, "-G", "Ninja" if shutil.which("ninja") else "Unix Makefiles",
        "-S", args.root / "tests" / "install", "-B", folder, f"-DCMAKE_C_COMPILER={args.cc}",
        f"-DFRAKTOR_VERSION={args.version}", *options])
    must("building the consumer", [args.cmake, "--build", folder, "--parallel", "2"])
    programs = [f for f in sorted(folder.rglob("consumer_*")) if f.is_file() and os.access(f, os.X_OK)]
    if len(programs) < 3:
        raise Problem(f"only {[p.name for p in programs]} were built")
    for program in programs:
        must_print(f"{folder.name}: {program.name}", program, args.version)


def build_with_pkg_config(args, prefix, folder):
    folder.mkdir()
    pc = next(iter(prefix.rglob("fraktor.pc")), None)
    if pc is None:
        raise Problem("fraktor.pc was not installed")
    environment = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent))
    libraries = dict(environment, LD_LIBRARY_PATH=str(pc.parent.parent))
    sources = args.root / "tests" / "install"
    ways = [("C", args.cc, ["-std=c11"], "fraktor"), ("core, C", args.cc, ["-std=c11"], "fraktor-core"),
            ("static, C", args.cc, ["-std=c11"], "fraktor"),
            ("testkit, C", args.cc, ["-std=c11"], "fraktor-testkit")]
    for compiler in common.compilers("g++", "c++", "clang++")[:1]:
        ways.append(("C++", compiler, ["-std=c++17", "-x", "c++"], "fraktor"))
        ways.append(("testkit, C++", compiler, ["-std=c++17", "-x", "c++"], "fraktor-testkit"))
    for number, (name, compiler, language, module) in enumerate(ways):
        static = ["--static"] if name.startswith("static") else []
        flags = must("pkg-config", ["pkg-config", "--cflags", "--libs", *static, module],
                     env=environment)
        if static:  # without -static, which the C library's own name lookup does not like
            flags = flags.replace("-lfraktor", "-l:libfraktor.a")
        if str(prefix) not in flags:
            raise Problem(f"{module}.pc does not follow its prefix: {flags}")
        program = folder / f"consumer{number}"
        source = sources / ("consumer_testkit.c" if module == "fraktor-testkit" else "consumer.c")
        must(f"{name} with pkg-config", [compiler, *language, "-Wall", "-Wextra", "-Werror",
                                         source, "-x", "none", *flags.split(), "-o", program])
        must_print(f"pkg-config: {name}", program, args.version, env=libraries)


def check_content(args, prefix):
    """The right headers and none of the private ones; no path of the build machine."""
    public = {f.name for f in (args.root / "include" / "fraktor").glob("*.h")}
    installed = {f.relative_to(prefix / "include").as_posix()
                 for f in (prefix / "include").rglob("*") if f.is_file()}
    if installed != {f"fraktor/{name}" for name in public}:
        raise Problem(f"installed headers differ from include/fraktor: {sorted(installed)}")
    for file in common.files(prefix, ".pc", ".cmake"):
        for path in (args.root, args.build):
            if str(path) in file.read_text():
                raise Problem(f"{file.name} names the build machine's {path}")
    for wanted in ("LICENSE-MIT", "LICENSE-APACHE"):
        if not any(prefix.rglob(wanted)):
            raise Problem(f"{wanted} was not installed")


def check_package(args, folder, spoil=None):
    try:
        must("install", [args.cmake, "--install", args.build, "--prefix", folder / "first"])
        prefix = folder / "moved"
        (folder / "first").rename(prefix)
        if spoil:
            spoil(prefix)
        check_content(args, prefix)
        build_with_pkg_config(args, prefix, folder / "pc")
        build_with_cmake(args, folder / "find_package", f"-DCMAKE_PREFIX_PATH={prefix}")
    except Problem as problem:
        return [str(problem)]
    return []


def check_subdirectory(args, folder):
    try:
        build_with_cmake(args, folder / "subdirectory", f"-DFRAKTOR_ROOT={args.root}",
                         "-DCMAKE_BUILD_TYPE=Debug")
    except Problem as problem:
        return [str(problem)]
    return []


def replace(prefix, name, old, new):
    for file in prefix.rglob(name):
        file.write_text(file.read_text().replace(old, new))


def self_test(args):
    spoils = {
        "a wrong library name": (lambda p: replace(p, "fraktor.pc", "-lfraktor", "-lfractor"),
                                 "with pkg-config failed"),
        "a fixed prefix": (lambda p: replace(p, "fraktor.pc", "${pcfiledir}", "/usr"),
                           "does not follow its prefix"),
        "a header left out": (lambda p: (p / "include/fraktor/base.h").unlink(),
                              "installed headers differ"),
        "a private header": (lambda p: (p / "include/fraktor/private.h").write_text(""),
                             "installed headers differ"),
        "targets without file": (lambda p: [f.unlink() for f in p.rglob("fraktor-targets.cmake")],
                                 "configuring the consumer failed"),
        "a path of the build": (lambda p: replace(p, "fraktor.pc", "Name:", f"# {args.root}\nName:"),
                                "names the build machine"),
    }
    cases = []
    for name, (spoil, wanted) in spoils.items():
        with common.Sandbox({}) as folder:
            cases.append((name, check_package(args, folder, spoil), wanted))
    common.self_test("install", cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", choices=("package", "subdirectory"), default="package")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--version", required=True)
    args = parser.parse_args()
    if args.self_test:
        self_test(args)
    with common.Sandbox({}) as folder:
        check = check_package if args.way == "package" else check_subdirectory
        problems = check(args, folder)
    common.report("install", problems, "See cmake/install.cmake, cmake/*.in and tests/install.",
                  args.way)


main()
