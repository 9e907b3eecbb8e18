#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A node with 1,024 file descriptors, and others that speak Artery to it and mean no good: a thousand
connections with valid handshakes, whose addresses take every connection and say nothing; one connection
that brings thousands of systems; large frames that are never finished. Whoever asks the node something
gets an answer all the while, no descriptor is missing, and memory is bounded."""

import argparse
import os
import random
import resource
import socket
import struct
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "first_hour"))
from nodes import Node, check, until

FILES = 1024
CONNECTIONS = 1000
CONTROL, LARGE = 1, 3
FRAME_MAX_LARGE = 2 << 20
INBOUND_KB = 64 << 10


class PoorNode(Node):
    @staticmethod
    def block_signals():
        Node.block_signals()
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Mute:
    """Takes every connection, and never says or reads a thing."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.taken = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            self.taken.append(self.listener.accept()[0])


# ---- a little of Artery ------------------------------------------------------------------------------


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def text(field, b):
    return varint(field << 3 | 2) + varint(len(b)) + b


def address(system, port):
    return text(1, b"fraktor") + text(2, system.encode()) + text(3, b"127.0.0.1") + number(4, port)


def handshake(node, system, port, uid):
    origin = text(1, address(system, port)) + number(2, uid)
    payload = text(1, origin) + text(2, address(node.name, node.port))
    tags = struct.pack("<HHH", 0, 0, 1) + b"d"
    body = struct.pack("<BBBBQiIII", 0, 0, 0, 0, uid, 17, 28, 30, 32) + tags + payload
    return struct.pack("<I", len(body)) + body


def connect(node, stream, data):
    s = socket.socket()
    s.settimeout(30)
    try:
        s.connect(("127.0.0.1", node.port))
        s.sendall(b"AKKA" + bytes([stream]) + data)
    except ConnectionError:
        pass  # turned away, perhaps before we have noticed that we were connected
    return s


def is_open(s):
    s.settimeout(0)
    try:
        return s.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


# ---- what they do ------------------------------------------------------------------------------------


def many_connections(node, mute, rng):
    log, most = len(node.log()), 0
    held = []
    for i in range(CONNECTIONS):
        uid = rng.getrandbits(62) | 1
        held.append(connect(node, CONTROL, handshake(node, f"x{i}", mute.port, uid)))
        most = max(most, node.files()) if i % 50 == 0 else most
        if i % 250 == 249:
            check(node.ask("echo", f"while {i}") == f"while {i}", "no answer")
    for i in range(5):
        check(node.ask("echo", f"after {i}") == f"after {i}", "no answer")
        most = max(most, node.files())
        time.sleep(0.5)
    print(f"{CONNECTIONS} connections, {len(mute.taken)} answered, at most {most} files", flush=True)
    check(most < FILES, "all descriptors were used")
    check(len(mute.taken) > 64, "they were not even called")
    check("no file descriptors left" not in node.log()[log:], "descriptors", node.log()[log:])
    for s in held:
        s.close()


def many_systems(node, mute, rng):
    frames = [handshake(node, f"y{i}", mute.port, rng.getrandbits(62) | 1) for i in range(5000)]
    s = connect(node, CONTROL, b"".join(frames))
    until("a connection with two systems is closed", lambda: not is_open(s))
    s.close()
    systems = node.admin("counts")
    print(systems)
    check(node.ask("echo", "one") == "one", "no answer")


def many_bytes(node, mute, rng, slack_kb):
    before = node.rss_kb()
    held = []
    for i in range(150):
        uid = rng.getrandbits(62) | 1
        held.append(connect(node, LARGE, handshake(node, f"z{i}", mute.port, uid)))
    time.sleep(0.5)
    for s in held:
        try:
            s.sendall(struct.pack("<I", FRAME_MAX_LARGE) + bytes(FRAME_MAX_LARGE - 1))
        except (ConnectionError, TimeoutError):
            pass
    check(node.ask("echo", "large") == "large", "no answer")
    grown = node.rss_kb() - before
    print(f"{grown} kB more for {len(held)} frames that are not whole", flush=True)
    check(grown < INBOUND_KB + slack_kb, "memory is not bounded")
    check(grown > INBOUND_KB // 4, "they were not taken at all")
    for s in held:
        s.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--slack-kb", type=int, default=32768, help="by how much memory may grow besides")
    args = parser.parse_args()
    seed = int(os.environ.get("FK_SEED", "0") or "0", 0) or random.SystemRandom().getrandbits(32)
    print(f"FK_SEED={seed}", flush=True)
    rng = random.Random(seed)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 8 * FILES:
        if hard != resource.RLIM_INFINITY and hard < 8 * FILES:
            print("SKIP: this needs more descriptors than the node has")
            return
        resource.setrlimit(resource.RLIMIT_NOFILE, (8 * FILES, hard))

    node, mute = PoorNode(args.program), Mute()
    check(node.ask("echo", "before") == "before", "no answer")
    many_systems(node, mute, rng)
    many_connections(node, mute, rng)
    many_bytes(node, mute, rng, args.slack_kb)
    node.stop()


main()
