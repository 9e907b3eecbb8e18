# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the checks share: finding files, reading C without a compiler, self-tests."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77  # ctest shows such a test as "Skipped"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wcast-qual",
            "-Wvla", "-Wundef", "-Werror"]
FREESTANDING_PARTS = ("base", "core", "wire", "remote", "cluster")


def files(root, *suffixes, names=()):
    """Every file of the working copy with one of the suffixes or names, sorted."""
    found = []
    for where, folders, entries in os.walk(root):
        folders[:] = sorted(f for f in folders
                            if f == ".ci" or not (f.startswith((".", "build")) or f == "__pycache__"))
        for entry in sorted(entries):
            if entry.endswith(suffixes) or entry in names:
                found.append(pathlib.Path(where, entry))
    return found


def blank(text):
    """C text with comments, strings and character constants blanked; offsets and lines stay."""
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def compilers(*candidates):
    """Those of the candidate compilers that this machine has, without two names for one."""
    seen = {}
    for name in candidates:
        path = shutil.which(name) if name else None
        if path:
            seen.setdefault(os.path.realpath(path), name)
    return list(seen.values())


def run(command, **options):
    """Runs a command; returns (exit code, everything it printed)."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    return done.returncode, done.stdout


def report(check, problems, advice, what="checked"):
    """Prints the outcome and ends the program."""
    for problem in problems:
        print(problem)
    if problems:
        print(f"\n{check}: {len(problems)} problem(s). {advice}")
        sys.exit(1)
    print(f"{check}: {what}, no problem")
    sys.exit(0)


class Sandbox:
    """A temporary tree made from {path: text}."""

    def __init__(self, tree):
        self.tree = tree

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="fraktor-check-")
        root = pathlib.Path(self.folder.name)
        for path, text in self.tree.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return root

    def __exit__(self, *_):
        self.folder.cleanup()


def self_test(check, cases):
    """cases: (name, problems found, text one of them must contain or None for "no problem")."""
    failed = 0
    for name, problems, wanted in cases:
        if wanted is None:
            good = not problems
        else:
            good = any(wanted in problem for problem in problems)
        print(f"{'ok  ' if good else 'FAIL'} {name}")
        if not good:
            failed += 1
            print(f"     wanted: {'no problem' if wanted is None else wanted}")
            for problem in problems or ["(nothing found)"]:
                print(f"     found:  {problem}")
    print(f"{check} self-test: {len(cases) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
