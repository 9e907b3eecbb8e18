#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The commands for clusters: members, grains, where, call and load against two nodes, and what they say
to wrong input and where there is no cluster."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "first_hour"))
from nodes import Node, free_port, until

PROGRAM = ""
COMMANDS = ("members", "grains", "where", "call", "load")
problems = []


def run(*args):
    done = subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def expect(what, condition, shown=""):
    if not condition:
        problems.append(f"{what}\n{shown}")


def objects(*args):
    code, out, err = run(*args, "--json")
    expect(f"{args}: ok", (code, err) == (0, ""), f"{code} {out}{err}")
    return [json.loads(line) for line in out.splitlines()]


def test_help():
    _, table, _ = run("--help")
    for command in COMMANDS + ("demo", "node"):
        expect(f"{command} is in the table", re.search(f"^  {command} ", table, re.M), table)
        code, out, err = run(command, "--help")
        expect(f"{command} --help", (code, err) == (0, ""), err)
        expect(f"{command}: usage first", out.startswith(f"usage: fraktor {command} "), out)
        last = out.splitlines()[-1]
        expect(f"{command}: an example last",
               re.match(rf"example: (\w+=\d+ )?fraktor {command}\b", last), last)
        expect(f"{command}: --json", "--json" in out, out)
        expect(f"{command}: 100 columns", max(map(len, out.splitlines())) <= 100, out)


def test_usage():
    long_key = "k" * 4097
    for args in (["members", "x"], ["grains", "a", "b"], ["where"], ["where", "account"],
                 ["where", "account", "a", "b"], ["where", "account", ""], ["where", "a/b", "k"],
                 ["where", "account", long_key], ["call", "account", "a"],
                 ["call", "account", "a", "b", "c"], ["call", "", "a", "b"],
                 ["call", "account", "a", "x" * 16000], ["members", "--wrong"],
                 ["members", "--timeout", "0"], ["load"], ["load", "--store", "memory:", "more"],
                 ["load", "--store", "memory:", "--callers", "65"],
                 ["load", "--store", "memory:", "--accounts", "1"],
                 ["load", "--store", "memory:", "--seconds", "0"],
                 ["load", "--store", "memory:", "--slots", "3"],
                 ["node", "--ttl", "1000"], ["node", "--client"],
                 ["node", "--store", "memory:", "--ttl", "199"],
                 ["node", "--store", "memory:", "--slots", "100"],
                 ["node", "--store", "memory:", "--weight", "0"], ["demo", "--seconds", "0"]):
        code, out, err = run(*args)
        expect(f"{args}: exit 2, no data", (code, out) == (2, ""), f"{code} {out}{err}")
        expect(f"{args}: says why and where to look",
               err.startswith(f"fraktor {args[0]}: ") and f"'fraktor {args[0]} --help'" in err, err)


def test_bad_store():
    listen = ["--listen", "127.0.0.1:0"]
    for store in ("nowhere:x", "sqlite:/nowhere/at/all.db"):
        for args in (["node", *listen, "--store", store], ["load", "--store", store]):
            code, out, err = run(*args)
            expect(f"{args}: exit 1", (code, out) == (1, ""), f"{code} {out}{err}")
            expect(f"{args}: says which store", f"cannot join the cluster at {store}: " in err, err)


def test_no_cluster():
    node = Node(PROGRAM)
    for args in (["members"], ["grains"], ["where", "account", "a"], ["call", "account", "a", "b"]):
        code, out, err = run(*args, "--node", node.address)
        expect(f"{args}: exit 1", (code, out) == (1, ""), f"{code} {out}{err}")
        expect(f"{args}: advice", "is in no cluster" in err and "--store" in err, err)
        code, out, err = run(*args, "--node", node.address, "--json")
        expect(f"{args}: as an object", json.loads(out)["error"] == "FK_E_NOT_READY", out)
    node.stop()
    address = f"fraktor.tcp://demo@127.0.0.1:{free_port()}"
    code, out, err = run("members", "--node", address, "--timeout", "300")
    expect("nobody there", (code, out) == (1, "") and "could not reach" in err, err)


def check_members(nodes):
    for node in nodes:
        for member in objects("members", "--node", node.address):
            expect("its fields", set(member) == {"id", "address", "status", "weight", "incarnation",
                                                 "kinds", "self"}, str(member))
            expect("up", member["status"] == "up", str(member))
            expect("kinds", sorted(member["kinds"]) == ["account", "counter"], str(member))
            expect("which is asked", member["self"] == (member["id"] == node.member), str(member))
    code, out, err = run("members", "--node", nodes[0].address)
    expect("a table", code == 0 and out.startswith("member ") and "(this node)" in out, out + err)


def check_calls(nodes):
    def call(node, kind, key, text):
        return objects("call", kind, key, text, "--node", node.address)[0]["answer"]

    for i in range(8):
        key = f"key {i} \u00e9"
        expect("from here", call(nodes[0], "counter", key, "add 2") == "ok count=2", key)
        expect("from there", call(nodes[1], "counter", key, "add 3") == "ok count=5", key)
    for n, (text, answer) in enumerate((
            ("deposit 10", "ok balance=10 applied=1"), ("withdraw 3", "ok balance=7 applied=2"),
            ("withdraw 8", "refused balance=7 applied=2"), ("balance", "ok balance=7 applied=2"),
            ("deposit 5 77 1", "ok balance=12 applied=3"),
            ("deposit 5 77 1", "ok balance=12 applied=3"),
            ("withdraw 99 77 2", "refused balance=12 applied=3"),
            ("deposit 1000 88 1", "ok balance=1012 applied=4"),
            ("withdraw 99 77 2", "refused balance=1012 applied=4"),
            ("deposit 5 77 1", "stale balance=1012 applied=4"))):
        got = call(nodes[n % 2], "account", "alice", text)
        expect(f"{text}: {answer}", got == answer, got)
    for text in ("", "deposit", "deposit -1", "deposit x", "withdraw 1 2", "deposit 1 2 0", "a b c d e"):
        got = call(nodes[0], "account", "alice", text)
        expect(f"'{text}' is refused", got.startswith("error: an account knows"), got)
    code, out, err = run("call", "account", "alice", "balance", "--node", nodes[1].address)
    expect("as text", (code, out) == (0, "ok balance=1012 applied=4\n"), f"{code} {out}{err}")
    expect("latency", re.fullmatch(r"answered in \d+\.\d{3} ms\n", err), err)
    code, out, err = run("call", "nothing", "x", "y", "--node", nodes[0].address, "--timeout", "500")
    expect("no such kind", (code, out) == (1, "") and "no member" in err, err)


def check_looking(nodes):
    grains = [objects("grains", "--node", n.address) for n in nodes]
    counters = [[g["key"] for g in some if g["kind"] == "counter"] for some in grains]
    expect("eight counters, each on one node", len(counters[0] + counters[1]) == 8, str(counters))
    expect("and all different", len(set(counters[0] + counters[1])) == 8, str(counters))
    for node, some in zip(nodes, grains):
        for grain in some:
            expect("under its kind", f"/user/{grain['kind']}/" in grain["path"], str(grain))
        only = objects("grains", "account", "--node", node.address)
        expect("of one kind", {g["kind"] for g in only} <= {"account"}, str(only))
    def look():
        """Calls it, too: who held its slot before the last member came hands it over."""
        objects("call", "account", "alice", "balance", "--node", nodes[0].address)
        return [objects("where", "account", "alice", "--node", n.address)[0] for n in nodes]

    until("it is with its owner",
          lambda: any(p["active_here"] and n.member == p["owner"] for n, p in zip(nodes, look())))
    places = look()
    expect("they agree", places[0]["owner"] == places[1]["owner"], str(places))
    owner = next(n for n in nodes if n.member == places[0]["owner"])
    expect("it is there", [n is owner for n in nodes] == [p["active_here"] for p in places], str(places))
    slot = places[0]["slot"]
    sentence = (f"slot {slot} of 1024: {owner.member} has the highest rendezvous score of 2 members")
    expect("why", all(p["reason"].startswith(sentence) for p in places), str(places))
    code, out, err = run("where", "account", "alice", "--node", nodes[0].address)
    expect("in words", code == 0 and out.startswith(f"{owner.member}\n{sentence}"), out + err)
    code, out, err = run("where", "nothing", "x", "--node", nodes[0].address)
    expect("no such kind", (code, out) == (1, "") and "no member" in err, err)


def check_load(nodes, store):
    code, out, err = run("load", "--store", store, "--slots", "1024", "--seconds", "1", "--callers", "4",
                         "--accounts", "10", "--json")
    expect("load", (code, err) == (0, ""), f"{code} {out}{err}")
    summary = json.loads(out.splitlines()[-1])
    expect("the books", summary["ok"] and summary["sum_found"] == 10000, out)
    expect("exactly once", summary["lost"] == summary["double"] == summary["unknown"] == 0, out)
    expect("calls for transfers", summary["calls"] >= 2 * summary["transfers"] > 0, out)
    expect("latencies", 0 < summary["p50_ms"] <= summary["p99_ms"] <= summary["max_ms"], out)
    # Whoever else writes to an account is noticed: that the check can fail is part of it.
    with subprocess.Popen([PROGRAM, "load", "--store", store, "--slots", "1024", "--seconds", "3",
                           "--accounts", "10", "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as load:
        load.stdout.readline()
        run("call", "account", "a00003", "deposit 7", "--node", nodes[0].address)
        out, err = load.communicate(timeout=60)
    summary = json.loads(out.splitlines()[-1])
    expect("a stranger's deposit is seen", load.returncode == 1 and "books are wrong" in err, out + err)
    expect("as one too many", (summary["lost"], summary["double"], summary["ok"]) == (0, 1, False), out)
    expect("of 7", summary["sum_found"] == summary["sum_expected"] + 7, out)


def test_two_nodes():
    with tempfile.TemporaryDirectory() as folder:
        store = "sqlite:" + os.path.join(folder, "bank.db")
        options = ("--store", store, "--slots", "1024", "--ttl", "2000")
        nodes = [Node(PROGRAM, *options, name="bank"), Node(PROGRAM, *options, "--weight", "50",
                                                            name="bank")]
        client = Node(PROGRAM, *options, "--client", name="bank")
        until("all know both", lambda: all(len(objects("members", "--node", n.address)) == 2
                                           for n in (*nodes, client)))
        weights = {m["id"]: m["weight"] for m in objects("members", "--node", client.address)}
        expect("weights", weights == {nodes[0].member: 100, nodes[1].member: 50}, str(weights))
        code, out, err = run("node", "--listen", "127.0.0.1:0", "--store", store, "--slots", "64")
        expect("another number of slots", code == 1 and "number of slots" in err, f"{code} {out}{err}")
        check_members(nodes)
        check_calls(nodes)
        check_looking(nodes)
        expect("a client runs none", objects("grains", "--node", client.address) == [])
        answer = objects("call", "account", "alice", "balance", "--node", client.address)[0]["answer"]
        expect("a client calls", answer == "ok balance=1012 applied=4", answer)
        check_load(nodes, store)
        nodes[1].stop()  # its grains go to the other
        for i in range(3):
            answer, = objects("call", "account", f"a{i:05}", "balance", "--node", nodes[0].address)
            expect("still there", answer["answer"].startswith("ok balance="), str(answer))
        client.stop()
        nodes[0].stop()


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
