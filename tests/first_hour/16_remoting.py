#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Item 16 of the first hour: a node in one terminal, a question from another. Then the node's peer is
killed: the association goes from connected to unresolved, what is sent waits up to the limit, and is
delivered in order when the peer is back."""

import argparse
import re
import sys

sys.dont_write_bytecode = True
from nodes import Node, check, command, until

LIMIT = 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    node = Node(program, "--deferred", str(LIMIT))

    done = command(program, "ask", f"{node.address}/user/echo", "text", '"hi"')
    check(done.stdout == '"hi"\n', "the answer is not \"hi\"", done.stdout)
    check(re.fullmatch(r"answered in \d+\.\d{3} ms\n", done.stderr), "no latency", done.stderr)
    for kind, value, shown in (("int", "-7", "-7"), ("long", "9000000000", "9000000000"),
                               ("bytes", "00ff", '"00ff"')):
        done = command(program, "ask", f"{node.address}/user/echo", kind, value)
        check(done.stdout == shown + "\n", f"{kind}: not {shown}", done.stdout)
    done = command(program, "tell", f"{node.address}/user/nobody", "x", expect=1)
    check("nobody lives at" in done.stderr, "told nobody", done.stderr)

    peer = Node(program)
    sink = f"{peer.address}/user/sink"
    check(node.admin(f"send 10 {sink}") == "taken=10 refused=0 first=FK_OK", "not all were taken")
    until("ten messages", lambda: "count=10 first=1 last=10 gaps=0 backwards=0" == peer.sink())
    a = node.association(peer.address)
    check(a["state"] == "connected" and a["uid"] == peer.uid, "not connected", str(a))

    peer.kill()
    node.until_state(peer.address, "unresolved")
    answer = node.admin(f"send {LIMIT + 500} {sink}")
    check(answer == f"taken={LIMIT} refused=500 first=FK_E_FULL", "not up to the limit", answer)
    a = node.association(peer.address)
    check(a["state"] == "unresolved" and a["deferred"] == LIMIT, "not deferred", str(a))
    until("attempts, with a delay", lambda: node.association(peer.address)["failures"] >= 2)

    peer.start()
    node.until_state(peer.address, "connected")
    until("all that waited, in order",
          lambda: f"count={LIMIT} first=1 last={LIMIT} gaps=0 backwards=0" == peer.sink())
    a = node.association(peer.address)
    check(a["deferred"] == 0 and a["incarnation"] == 2, "something is left", str(a))
    node.stop()
    peer.stop()


if __name__ == "__main__":
    main()
