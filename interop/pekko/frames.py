# SPDX-License-Identifier: MIT OR Apache-2.0
"""Captured bytes as frames, and what each is: enough to name it. The test in C reads all of it."""

import dataclasses

STREAMS = {1: "control", 2: "ordinary", 3: "large"}
CONTROLS = dict(zip("abcdefghijklmnop", (
    "Quarantined", "ActorSystemTerminating", "ActorSystemTerminatingAck", "HandshakeReq",
    "HandshakeRsp", "ActorRefCompressionAdvertisement", "ActorRefCompressionAdvertisementAck",
    "ClassManifestCompressionAdvertisement", "ClassManifestCompressionAdvertisementAck",
    "SystemMessageEnvelope", "SystemMessageDeliveryAck", "SystemMessageDeliveryNack",
    "ArteryHeartbeat", "ArteryHeartbeatRsp", "Flush", "FlushAck")))
SYSTEM_MESSAGES = ("CREATE", "RECREATE", "SUSPEND", "RESUME", "TERMINATE", "SUPERVISE", "WATCH",
                   "UNWATCH", "FAILED", "DEATHWATCH_NOTIFICATION")
MISC = {"A": "Identify", "B": "ActorIdentity", "D": "Status.Success", "E": "Status.Failure",
        "G": "ActorRef", "K": "Kill", "P": "PoisonPill"}
VALUES = {4: "bytes", 18: "long", 19: "int", 20: "string", 21: "ByteString", 35: "boolean"}


@dataclasses.dataclass
class Frame:
    kind: str  # frame, or connection-header
    what: str
    data: bytes  # with the length before it


def fields(data):
    """The fields of a protobuf message: (number, value)."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {key & 7}")
        yield key >> 3, value


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def text(envelope, tag):
    offset = int.from_bytes(envelope[tag:tag + 4], "little")
    if offset >> 24:
        return None
    size = int.from_bytes(envelope[offset:offset + 2], "little")
    return envelope[offset + 2:offset + 2 + size].decode()


def end_of_texts(envelope):
    """Where the payload begins: after the last text that is written out."""
    end = 28
    for tag in (16, 20, 24):
        offset = int.from_bytes(envelope[tag:tag + 4], "little")
        if not offset >> 24:
            end = offset + 2 + int.from_bytes(envelope[offset:offset + 2], "little")
    return end


def name(serializer, manifest, payload):
    """What a message is called."""
    if serializer == 17 and manifest == "j":
        inner = dict(fields(payload))
        return "SystemMessageEnvelope(" + name(inner[2], inner.get(3, b"").decode(), inner[1]) + ")"
    if serializer == 17:
        return CONTROLS[manifest]
    if serializer == 22:
        return SYSTEM_MESSAGES[dict(fields(payload))[1]]
    if serializer == 6:
        content = list(fields(payload))
        inner = dict(content)
        kinds = "".join("/" + ("..", "name", "glob")[dict(fields(value))[1]]
                        for number, value in content if number == 3)
        message = name(inner[2], inner.get(4, b"").decode(), inner[1])
        return f"ActorSelection{kinds}({message})"
    if serializer == 16:
        return MISC.get(manifest, f"misc {manifest}")
    return VALUES.get(serializer, f"serializer {serializer} {manifest}")


def describe(envelope):
    serializer = int.from_bytes(envelope[12:16], "little", signed=True)
    manifest = text(envelope, 24)
    parts = [text(envelope, 16), text(envelope, 20), manifest]
    what = name(serializer, manifest, envelope[end_of_texts(envelope):]) \
        if manifest is not None else f"serializer {serializer}, manifest by table"
    if parts[0] is None or parts[1] is None:
        what += " with " + " and ".join(
            side for side, part in zip(("sender", "recipient"), parts) if part is None)
        what += " by table"
    if parts[0] == "":
        what += ", no sender"
    if parts[1] == "":
        what += ", no recipient"
    return what


def split(data):
    """The header and the frames of one connection; a last one that is cut is left out."""
    if len(data) < 5:
        return []
    stream, at = STREAMS[data[4]], 5
    head = f"magic={data[:4].decode()} stream={data[4]}({stream})"
    found = [Frame("connection-header", head, data[:5])]
    while at + 4 <= len(data):
        size = int.from_bytes(data[at:at + 4], "little")
        if at + 4 + size > len(data):
            break
        what = describe(data[at + 4:at + 4 + size])
        found.append(Frame("frame", f"{stream}: {what}", data[at:at + 4 + size]))
        at += 4 + size
    return found
