# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the scripts about remoting share: nodes that are started and killed, and the commands."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 60.0  # seconds: for what must happen, however slow the machine is


def fail(what, shown=""):
    sys.exit(f"{what}\n{shown}")


def check(condition, what, shown=""):
    if not condition:
        fail(what, shown)


def until(what, condition, shown=lambda: ""):
    """Waits until the condition gives something that is true, and returns that."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    fail(f"it did not happen: {what}", shown())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def command(program, *args, expect=0):
    """Runs `fraktor ARGS` and shows it as a terminal would."""
    done = subprocess.run([program, *args], capture_output=True, text=True, timeout=PATIENCE)
    print(f"$ fraktor {' '.join(args)}\n{done.stdout}{done.stderr}", flush=True)
    if expect is not None and done.returncode != expect:
        fail(f"exit code {done.returncode} instead of {expect}")
    return done


class Node:
    """`fraktor node` as a process; its log is a file."""

    def __init__(self, program, *args, name="demo", port=None):
        self.program, self.name, self.args = program, name, args
        self.port = port if port is not None else free_port()
        self.file = tempfile.TemporaryFile("w+")
        self.start()

    @staticmethod
    def block_signals():
        """ThreadSanitizer keeps a signal back until its thread calls something that it knows, and a
        futex is not: so the thread that waits for signals, and polls, is to take them."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})

    def start(self):
        """Again, if it was killed: another incarnation at the same address."""
        self.process = subprocess.Popen(
            [self.program, "node", "--name", self.name, "--listen", f"127.0.0.1:{self.port}",
             *self.args], stdout=subprocess.PIPE, stderr=self.file, text=True,
            preexec_fn=self.block_signals)
        line = self.process.stdout.readline()
        ready = re.fullmatch(r"ready (\S+) uid=(\d+) actors=/user/echo,/user/sink,/user/admin"
                             r"(?: member=(\S+) incarnation=(\d+))?\n", line)
        check(ready, f"not ready: {line!r}", self.log())
        print(line, end="", flush=True)
        self.address, self.uid, self.member, self.incarnation = ready.groups()
        check(self.address == f"fraktor.tcp://{self.name}@127.0.0.1:{self.port}", self.address)

    def log(self):
        return os.pread(self.file.fileno(), 1 << 24, 0).decode()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        """In order, and quickly."""
        self.process.terminate()
        code = self.process.wait(timeout=PATIENCE)
        check(code == 0, f"exit code {code} after SIGTERM", self.log())
        self.process.stdout.close()
        check("ERROR: " not in self.log(), "a sanitizer has something to say", self.log())

    def ask(self, actor, text):
        done = command(self.program, "ask", f"{self.address}/user/{actor}", text)
        check(re.fullmatch(r'".*"\n', done.stdout), "not a text", done.stdout)
        return done.stdout[1:-2]

    def admin(self, text):
        answer = self.ask("admin", text)
        check(answer.startswith("ok"), f"{text}: {answer}")
        return answer[3:]

    def counts(self):
        return dict(pair.split("=") for pair in self.admin("counts").split())

    def sink(self):
        return self.ask("sink", "?")

    def association(self, address):
        lines = command(self.program, "assoc", "--node", self.address, "--json").stdout.splitlines()
        found = [a for a in map(json.loads, lines) if a["address"] == address]
        check(len(found) == 1, f"{address} is not among them", "\n".join(lines))
        return found[0]

    def until_state(self, address, state):
        """Not by the log, which is limited: every command is a system that comes and goes."""
        until(f"{address} is {state}", lambda: self.association(address)["state"] == state)

    def until_logged(self, pattern, count=1):
        until(f"a line in the log: {pattern}",
              lambda: len(re.findall(pattern, self.log(), re.M)) >= count, self.log)

    def rss_kb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return int(re.search(r"^VmRSS:\s+(\d+) kB", f.read(), re.M).group(1))
