#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The commands for remoting, as far as they go without another system: help, wrong usage, and what
they say when nobody is there. (tests/first_hour/16_remoting.py has two systems.)"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "first_hour"))
from nodes import Node

PROGRAM = ""
problems = []


def run(*args):
    done = subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def expect(what, condition, shown=""):
    if not condition:
        problems.append(f"{what}\n{shown}")


def test_help():
    _, table, _ = run("--help")
    for command in ("node", "tell", "ask", "quarantine", "assoc"):
        expect(f"{command} is in the table", re.search(f"^  {command} ", table, re.M), table)
        code, out, err = run(command, "--help")
        expect(f"{command} --help", (code, err) == (0, ""), err)
        expect(f"{command}: usage first", out.startswith(f"usage: fraktor {command} "), out)
        expect(f"{command}: an example last",
               out.splitlines()[-1].startswith(f"example: fraktor {command} "), out)
        expect(f"{command}: --json", "--json" in out, out)
        expect(f"{command}: 80 columns or so", max(map(len, out.splitlines())) <= 100, out)


def test_usage():
    path = "fraktor.tcp://demo@127.0.0.1:1/user/echo"
    for args in (["ask"], ["ask", path], ["ask", path, "float", "1"], ["ask", path, "int", "x"],
                 ["ask", path, "int", "2147483648"], ["ask", path, "bytes", "0"],
                 ["ask", path, "bytes", "0g"], ["ask", path, "text", '"open'],
                 ["ask", path, "text", "a", "b"], ["ask", path, "a", "--timeout", "0"],
                 ["ask", path, "a", "--listen", "here"], ["tell", path, "--wrong", "a"],
                 ["node", "--listen", "127.0.0.1"], ["node", "--listen", "127.0.0.1:65536"],
                 ["node", "--listen", ":1"], ["node", "--deferred", "x"], ["node", "more"],
                 ["quarantine"], ["quarantine", "set"], ["quarantine", "lift", "a@h:1"],
                 ["quarantine", "set", "a@h:1", "--force"], ["assoc", "x"], ["assoc", "--force"]):
        code, out, err = run(*args)
        expect(f"{args}: exit 2, no data", (code, out) == (2, ""), f"{code} {out}{err}")
        expect(f"{args}: says why and where to look",
               err.startswith(f"fraktor {args[0]}: ") and f"'fraktor {args[0]} --help'" in err, err)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_nobody_there():
    port = free_port()
    path = f"fraktor.tcp://demo@127.0.0.1:{port}/user/echo"
    sentence = (f"could not reach 127.0.0.1:{port}: connection refused (is the node running? "
                f"fraktor node --listen 127.0.0.1:{port})")
    for command in ("ask", "tell"):
        code, out, err = run(command, path, "hi", "--timeout", "300")
        expect(f"{command} in vain", (code, out) == (1, ""), f"{code} {out}{err}")
        expect(f"{command}: what, where, what to do", err == f"fraktor {command}: {sentence}\n", err)
    code, out, err = run("ask", path, "hi", "--timeout", "300", "--json")
    answer = json.loads(out)
    expect("ask in vain, JSON", (code, err) == (1, ""), err)
    expect("as an object", answer == {"ok": False, "error": "FK_E_TIMEOUT", "message": sentence}, out)
    code, out, err = run("assoc", "--node", path[:-len("/user/echo")], "--timeout", "300")
    expect("assoc in vain", code == 1 and sentence in err, err)


def test_somebody_else_there():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, out, err = run("ask", f"fraktor.tcp://demo@127.0.0.1:{port}/user/echo", "hi",
                             "--timeout", "300")
        expect("who does not speak our language", (code, out) == (1, "") and
               "did not shake hands" in err, err)


def node_log(*args):
    """What a node says until it is ready."""
    with subprocess.Popen([PROGRAM, "node", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, preexec_fn=Node.block_signals) as node:
        line = node.stdout.readline()
        node.terminate()
        _, err = node.communicate(timeout=60)
    expect(f"node {args} is ready", line.startswith(("ready ", '{"event":"ready"')), line + err)
    return err


def test_address_that_nobody_reaches():
    for args, warns in ((["--listen", "10.9.9.9:0"], True),
                        (["--listen", "10.9.9.9:0", "--json"], True),
                        (["--listen", "127.0.0.1:0"], False),
                        (["--listen", "localhost:0"], False),
                        (["--listen", "10.9.9.9:0", "--bind", "127.0.0.1"], False)):
        err = node_log(*args)
        told = "cannot reach 10.9.9.9:" in err and "--bind 10.9.9.9 --allow-unencrypted" in err
        expect(f"node {args}: warns {warns}", told == warns, err)


def test_bad_path():
    for path in ("/user/echo", "fraktor://demo/user/echo", "http://h:1/", "fraktor.tcp://a@h:0/user/x"):
        code, out, err = run("ask", path, "hi")
        expect(f"{path}: refused", (code, out) == (1, "") and "is no path of another system" in err,
               f"{code} {out}{err}")


def main():
    global PROGRAM
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    PROGRAM = parser.parse_args().program
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            test()
    for problem in problems:
        print(problem)
    sys.exit(f"{len(problems)} problems" if problems else 0)


if __name__ == "__main__":
    main()
