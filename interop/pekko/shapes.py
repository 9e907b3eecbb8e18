# SPDX-License-Identifier: MIT OR Apache-2.0
"""Frames without what they say: two nodes that write alike have equal shapes for each kind of frame.

A shape is the fixed bytes, the serializer, which texts there are and in which order, and which fields
the payload has, in their order. That each field's value is right the points show.
"""

import itertools

import frames

RAW = (4, 18, 19, 20, 21, 35)  # serializers whose payload is no protobuf


def fields_of(data):
    """None: it is text, or a number. Tags of this protocol are below a space; no field is 0."""
    if min(data, default=0x20) >= 0x20:
        return None
    try:
        found = list(frames.fields(data))
    except (ValueError, IndexError):
        return None
    return found if all(number != 0 for number, _ in found) else None


def tree(data):
    """Repeated fields count once."""
    found = fields_of(data)
    if found is None:
        return "text" if data else "empty"
    parts = [(number, tree(value) if isinstance(value, bytes) else "number")
             for number, value in found]
    return [part for part, _ in itertools.groupby(parts)]


def texts_of(envelope):
    """For sender, recipient and manifest: is it where the one before ended, and is it there?"""
    texts, end = [], 28
    for tag in (16, 20, 24):
        offset = int.from_bytes(envelope[tag:tag + 4], "little")
        if offset >> 24:  # by table: it is there, and takes no place
            texts.append((True, True))
            continue
        size = int.from_bytes(envelope[offset:offset + 2], "little")
        texts.append((offset == end, size != 0))
        end = offset + 2 + size
    return texts, envelope[end:]


def kind_of(frame):
    """None: its manifest is by table."""
    if "manifest by table" in frame.what:
        return None
    return frame.what.partition(",")[0].partition(" with ")[0]


def of(frame):
    """The versions of tables are bytes 2 and 3. Messages of actors have a sender or none, as they like."""
    envelope = frame.data[4:]
    texts, payload = texts_of(envelope)
    serializer = int.from_bytes(envelope[12:16], "little", signed=True)
    content = "raw" if serializer in RAW else tree(payload)
    return envelope[0:2], serializer, texts[0 if frame.what.startswith("control") else 1:], content
