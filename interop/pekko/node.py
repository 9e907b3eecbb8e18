# SPDX-License-Identifier: MIT OR Apache-2.0
"""A node in a process of its own: commands by its standard input, events by its output."""

import json
import os
import re
import signal
import subprocess
import threading
import time

import proxy


class Failed(Exception):
    """What a point found, in one line."""


class Node:
    """command: a list to start it with, to which name and ports are added."""

    def __init__(self, name, command, folder, extra=()):
        self.name, self.command, self.folder, self.extra = name, command, folder, list(extra)
        self.proxy = proxy.Proxy()
        self.process = None
        self.events = []
        self.starts = 0
        self.news = threading.Condition()

    def start(self):
        self.starts += 1
        self.events = []
        # Another port each time: the last process may have left connections there.
        self.proxy.target = proxy.free_port()
        errors = open(self.folder / f"{self.name}.{self.starts}.stderr", "wb")
        self.process = subprocess.Popen(
            [*self.command, "--name", self.name, "--port", str(self.proxy.port),
             "--bind", str(self.proxy.target), *self.extra],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        errors.close()
        threading.Thread(target=self.listen, args=(self.process, self.events), daemon=True).start()
        ready = self.expect("ready", timeout=30)
        self.address, self.uid, self.version = ready["address"], ready["uid"], ready["version"]

    def listen(self, process, events):
        log = open(self.folder / f"{self.name}.{self.starts}.events", "w")
        with log:
            for line in process.stdout:
                log.write(f"{time.monotonic():.3f} {line.decode(errors='replace')}")
                log.flush()
                try:
                    event = json.loads(line)
                except ValueError:
                    event = {"event": "noise", "text": line.decode(errors="replace").strip()}
                with self.news:
                    events.append(event)
                    self.news.notify_all()
        with self.news:
            events.append({"event": "gone"})
            self.news.notify_all()

    def do(self, line):
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Failed(f"{self.name} is not there any more for: {line}") from None

    def path(self, path):
        return self.address + path

    def take(self, name, fields):
        """The first event that fits, taken out; None."""
        for index, event in enumerate(self.events):
            if event["event"] == name and all(fits(event.get(k), v) for k, v in fields.items()):
                return self.events.pop(index)
        return None

    def expect(self, name, timeout=6.0, **fields):
        """The event, which may have come before. Values: the same, a predicate, or a pattern."""
        until = time.monotonic() + timeout
        with self.news:
            while True:
                event = self.take(name, fields)
                if event is not None:
                    return event
                left = until - time.monotonic()
                if left <= 0:
                    break
                self.news.wait(left)
            seen = [e for e in self.events if e["event"] in (name, "error", "dead_letter", "gone")]
        raise Failed(f"{self.name} had no {name} {fields or ''}; but {seen[-3:]}")

    def refuse(self, name, within, **fields):
        """Such an event must not come."""
        time.sleep(within)
        with self.news:
            event = self.take(name, fields)
        if event is not None:
            raise Failed(f"{self.name} had {event}")

    def forget(self):
        with self.news:
            self.events.clear()

    def kill(self):
        """As a machine without power."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def exit(self):
        """As somebody who says good-bye."""
        self.do("exit")
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} does not end") from None

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        if self.process is not None:
            self.process.stdin.close()
        self.proxy.close()


def fits(actual, wanted):
    if callable(wanted):
        return wanted(actual)
    if isinstance(wanted, re.Pattern):
        return isinstance(actual, str) and wanted.search(actual) is not None
    return actual == wanted
