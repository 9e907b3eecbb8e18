#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Item 3 of the first hour: the hello program, compiled by one line without a warning in C11 and
C++17, greets three times in order, and valgrind finds no leak."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

EXPECTED = "".join(f"hello, world ({i})\n" for i in (1, 2, 3))


def run(command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300,
                          **more)
    if done.returncode != 0 or done.stderr and "valgrind" not in str(command[0]):
        sys.exit(f"{' '.join(str(c) for c in command)}: exit {done.returncode}\n"
                 f"{done.stdout}{done.stderr}")
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--include", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--needs", default="", help="what the library itself needs: -luv")
    parser.add_argument("--cc", required=True)
    parser.add_argument("--cxx", default="")
    args = parser.parse_args()
    here = pathlib.Path(__file__).parent
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-I", args.include]
    compilers = [(args.cc, "c11", "03_hello.c")]
    if args.cxx:
        compilers.append((args.cxx, "c++17", "03_hello.cpp"))
    with tempfile.TemporaryDirectory() as folder:
        for compiler, standard, source in compilers:
            program = pathlib.Path(folder) / f"hello-{standard}"
            run([compiler, f"-std={standard}", *strict, here / source, args.library,
                 *args.needs.split(), "-pthread", "-o", program])
            for _ in range(20):
                output = run([program]).stdout
                if output != EXPECTED:
                    sys.exit(f"{source} said:\n{output}")
            print(f"{source}: three greetings in order, as {standard} without a warning")
            if shutil.which("valgrind"):
                environment = dict(os.environ, FK_POOLS="malloc")
                done = run(["valgrind", "--error-exitcode=9", "--leak-check=full",
                            "--show-leak-kinds=all", program], env=environment)
                if "no leaks are possible" not in done.stderr or done.stdout != EXPECTED:
                    sys.exit(f"valgrind says:\n{done.stderr}")
                print(f"{source}: valgrind says \"no leaks are possible\"")
            else:
                print("valgrind is not installed: that half was left out")


if __name__ == "__main__":
    main()
