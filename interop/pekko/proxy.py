# SPDX-License-Identifier: MIT OR Apache-2.0
"""A proxy in front of a node: passes bytes on, remembers them, and can be a bad network."""

import socket
import threading

REMEMBERED_MAX = 4 << 20  # bytes of one connection; what comes after is passed on only


class Connection:
    """One connection to the node; in this protocol bytes go one way, those back are an error."""

    def __init__(self, inner, outer):
        self.ends = (outer, inner)
        self.there = bytearray()
        self.back = bytearray()

    def close(self):
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()


class Proxy:
    """Listens for the node from the first moment, so the address is the node's for good."""

    def __init__(self):
        self.connections = []
        self.flowing = threading.Event()
        self.flowing.set()
        self.refusing = False
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.target = free_port()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                outer, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.refusing:
                    raise OSError
                inner = socket.create_connection(("127.0.0.1", self.target), timeout=2)
            except OSError:
                outer.close()
                continue
            for end in (outer, inner):
                end.settimeout(None)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(inner, outer)
            with self.lock:
                self.connections.append(connection)
            for source, sink, memory in ((outer, inner, connection.there),
                                         (inner, outer, connection.back)):
                threading.Thread(target=self.pump, args=(connection, source, sink, memory),
                                 daemon=True).start()

    def pump(self, connection, source, sink, memory):
        try:
            while data := source.recv(65536):
                if len(memory) < REMEMBERED_MAX:
                    memory += data
                self.flowing.wait()
                sink.sendall(data)
        except OSError:
            pass
        connection.close()

    def cut(self):
        """Ends all connections; new ones may be made at once."""
        with self.lock:
            for connection in self.connections:
                connection.close()

    def hold(self):
        """From now on nothing arrives, and nobody is told."""
        self.flowing.clear()

    def resume(self):
        self.flowing.set()

    def close(self):
        self.listener.close()
        self.flowing.set()
        self.cut()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
