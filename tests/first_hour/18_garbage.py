#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Item 18 of the first hour: garbage, a huge length, half a frame, a TLS hello and random bytes are sent
to a node's port, then a thousand such connections are made. Each is closed, with a line in the log that
gives peer, byte offset and reason, not too many of them; memory stays flat; the node answers."""

import argparse
import os
import random
import re
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True
from nodes import Node, check, command, until

MAGIC = b"AKKA"
TLS_HELLO = bytes.fromhex("16030100b0010000ac0303") + bytes(165)


def cases(rng):
    yield "garbage", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "a wrong stream", MAGIC + b"\x09" + b"\x00" * 64
    yield "a huge length", MAGIC + b"\x02" + struct.pack("<i", 0x7FFFFFFF) + b"x" * 64
    yield "a negative length", MAGIC + b"\x02" + struct.pack("<i", -1) + b"x" * 64
    yield "a frame of zeros", MAGIC + b"\x02" + struct.pack("<i", 64) + b"\x00" * 64
    yield "a frame of noise", MAGIC + b"\x02" + struct.pack("<i", 64) + rng.randbytes(64)
    yield "a TLS hello", TLS_HELLO
    yield "random bytes", b"\xff" + rng.randbytes(4096)
    yield "half a magic, and silence", MAGIC[:2]
    yield "half a frame, and silence", MAGIC + b"\x02" + struct.pack("<i", 1000) + b"x" * 10
    yield "nothing, and silence", b""


def send(port, data):
    """Our address. The other side must hang up."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
        own = s.getsockname()
        try:
            s.sendall(data)
            while s.recv(65536):
                pass
        except ConnectionError:
            pass
        return f"{own[0]}:{own[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--slack-kb", type=int, default=8192, help="by how much memory may grow")
    args = parser.parse_args()
    seed = int(os.environ.get("FK_SEED", "0") or "0", 0) or random.SystemRandom().getrandbits(32)
    print(f"FK_SEED={seed}", flush=True)
    rng = random.Random(seed)
    node = Node(args.program, "--handshake-timeout", "2000")

    check(node.ask("echo", "before") == "before", "no answer")
    for what, data in cases(rng):
        time.sleep(1.1)  # a line a second is all there is of one kind
        log = len(node.log())
        peer = send(node.port, data)
        print(f"{what}: closed", flush=True)
        if not data:
            continue
        line = until(f"a line about {what}",
                     lambda: re.search(rf".*{re.escape(peer)}.*", node.log()[log:]), node.log).group()
        print(line)
        check(re.search(r"\bbyte[= ]\d+|\bat=\d+", line), "no byte offset", line)
        check("reason=" in line, "no reason", line)
    check(node.ask("echo", "between") == "between", "no answer")

    before, lines, begun = node.rss_kb(), len(node.log().splitlines()), time.monotonic()
    noisy = [data for what, data in cases(rng) if "silence" not in what]
    for i in range(1000):
        send(node.port, noisy[i % len(noisy)])
    grown = node.rss_kb() - before
    lines = len(node.log().splitlines()) - lines
    print(f"1000 connections: {grown} kB more, {lines} lines")
    check(grown < args.slack_kb, f"memory has grown by {grown} kB")
    seconds = time.monotonic() - begun  # a line a second of each kind
    check(lines < 20 + 5 * seconds, f"{lines} lines for 1000 connections", node.log()[-2000:])

    # All at once, more than may be half open: nobody is kept, and nothing is in the way of a friend.
    crowd = []
    for _ in range(300):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", node.port))
        crowd.append(s)
    check(node.ask("echo", "after") == "after", "no answer")
    for s in crowd:
        s.close()
    node.stop()


if __name__ == "__main__":
    main()
