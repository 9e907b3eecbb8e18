#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Item 17 of the first hour: the peer comes back as a new incarnation. References to the old one are
dead letters, watchers are told once. A quarantine refuses each message with one event, is cleared by
the command, and ends by itself."""

import argparse
import re
import sys

sys.dont_write_bytecode = True
from nodes import Node, check, command, until

SECONDS = 10  # enough for a dozen commands, however slow the machine is


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    node = Node(program, "--quarantine", str(SECONDS))
    peer = Node(program)

    met = node.admin(f"meet {peer.address}/user/echo")
    check(re.fullmatch(re.escape(peer.address) + r"/user/echo#\d+", met), "whom has it met?", met)
    node.admin("watch")
    check(node.counts()["terminated"] == "0", "told too early")
    peer.kill()
    peer.start()
    until("the watcher is told", lambda: node.counts()["terminated"] == "1")
    node.admin("tell are you there?")
    until("a dead letter", lambda: "reason=wrong_incarnation" in node.log() + peer.log(),
          lambda: node.log() + peer.log())
    check(node.counts()["terminated"] == "1", "told twice")

    # The new one is another actor.
    check(node.admin(f"meet {peer.address}/user/sink") != met, "the same uid")
    node.admin("tell 1")
    until("a message", lambda: peer.sink().startswith("count=1 "))

    command(program, "quarantine", "set", f"demo@127.0.0.1:{peer.port}", "--node", node.address)
    node.until_state(peer.address, "quarantine")
    for _ in range(5):
        answer = node.ask("admin", "tell 2")
        check(answer.startswith("error FK_E_QUARANTINED"), "not refused", answer)
    counts = node.counts()
    check(counts["invalid_association"] == "5", "not one event for each", str(counts))
    command(program, "quarantine", "set", peer.address, "--node", node.address, expect=1)

    # The peer is told, and quarantines the node in turn.
    peer.until_state(node.address, "quarantine")
    command(program, "quarantine", "clear", peer.address, "--force", "--node", node.address)
    node.until_state(peer.address, "connected")
    command(program, "quarantine", "clear", node.address, "--force", "--node", peer.address)
    node.admin("tell 2")
    until("a message after the quarantine", lambda: peer.sink().startswith("count=2 "))
    command(program, "quarantine", "clear", peer.address, "--node", node.address, expect=1)

    command(program, "quarantine", "set", peer.address, "--node", node.address)
    node.until_state(peer.address, "quarantine")
    until("its end", lambda: node.association(peer.address)["state"] != "quarantine")
    node.stop()
    peer.stop()


if __name__ == "__main__":
    main()
