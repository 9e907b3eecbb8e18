#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes tests/vectors/rendezvous.tsv: ids, seeds, scores and tables, computed in another way.

  tools/rendezvous_vectors.py > tests/vectors/rendezvous.tsv

The logarithms are those of the decimal module, with fifty digits, not a squaring of integers; a
table is found by scoring every member for every slot. What both agree on is not an accident of how
either is written.
"""

import decimal
import random

decimal.getcontext().prec = 50
LN2 = decimal.Decimal(2).ln()
M64 = (1 << 64) - 1
GRAIN, MEMBER = 1, 2


def rotl(x, by):
    return ((x << by) | (x >> (64 - by))) & M64


def sip_round(v0, v1, v2, v3):
    v0 = (v0 + v1) & M64
    v1 = rotl(v1, 13) ^ v0
    v0 = rotl(v0, 32)
    v2 = (v2 + v3) & M64
    v3 = rotl(v3, 16) ^ v2
    v0 = (v0 + v3) & M64
    v3 = rotl(v3, 21) ^ v0
    v2 = (v2 + v1) & M64
    v1 = rotl(v1, 17) ^ v2
    v2 = rotl(v2, 32)
    return v0, v1, v2, v3


def digest(what, first, second):
    v = (0x243f6a8885a308d3 ^ len(first), 0x13198a2e03707344 ^ len(second), 0xa4093822299f31d0,
         0x082efa98ec4e6c89 ^ what)
    for text in (first, second):
        padded = text + bytes(-len(text) % 8)
        for at in range(0, len(padded), 8):
            word = int.from_bytes(padded[at:at + 8], "little")
            v = sip_round(v[0], v[1], v[2], v[3] ^ word)
            v = (v[0] ^ word, v[1], v[2], v[3])
    v = (v[0], v[1], v[2] ^ 0xff, v[3])
    for _ in range(3):
        v = sip_round(*v)
    return v[0] ^ v[1], v[2] ^ v[3]


def seed_of(member):
    return digest(MEMBER, member.encode(), b"")[0]


def mix64(x):
    for factor in (0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53):
        x ^= x >> 33
        x = x * factor & M64
    return x ^ (x >> 33)


def log2_floor(x, bits):
    """floor(log2(x) * 2^bits)"""
    if x & (x - 1) == 0:
        return (x.bit_length() - 1) << bits
    return int(decimal.Decimal(x).ln() / LN2 * (1 << bits))


def draw(seed, slot):
    return mix64(seed ^ mix64((slot + 0x9e3779b97f4a7c15) & M64)) >> 32


def score(seed, slot, weight):
    if weight == 0:
        return 0
    u = draw(seed, slot)
    odds = (33 << 40) - log2_floor(2 * u + 1, 40)
    coarse = (46 << 25) + log2_floor(weight, 25) - log2_floor(odds, 25)
    return coarse << 32 | u


def table_of(members, slots):
    """members: (id, weight); the owners are indices in the order of the ids."""
    members = sorted((name.encode(), weight) for name, weight in members)
    seeds = [(seed_of(name.decode()), weight) for name, weight in members]
    owners = []
    for slot in range(slots):
        scores = [score(seed, slot, weight) for seed, weight in seeds]
        best = max(scores, default=0)
        owners.append(scores.index(best) if best else 0xffffffff)
    return owners


def fnv(owners):
    h = 0xcbf29ce484222325
    for owner in owners:
        for byte in owner.to_bytes(4, "little"):
            h = (h ^ byte) * 0x100000001b3 & M64
    return h


def escape(data):
    if not data:
        return r"\e"
    return "".join(chr(b) if 0x20 < b < 0x7f and b not in b"\\|" else f"\\x{b:02x}" for b in data)


def rows():
    rng = random.Random(6)
    kinds = ["a", "ab", "account", "sensor-7", "x" * 63, "order.line", "cart", "Z_9"]
    keys = [b"c", b"bc", b"alice", b"\x00", b"\x00\x00", b"1234567", b"12345678", b"123456789",
            "größe".encode(), b"0123456789abcdef"]
    longest = bytes(range(256)) * 16
    for kind in kinds:
        for key in keys + [rng.randbytes(rng.randrange(1, 40)) for _ in range(4)] + (
                [longest] if kind == "account" else []):
            hi, lo = digest(GRAIN, kind.encode(), key)
            yield "grain", kind, escape(key), r"\N", f"{hi:016x}", f"{lo:016x}"
    names = [f"bank@127.0.0.1:{port}" for port in range(9000, 9010)]
    names += ["a", "ab", "node-7@10.0.0.7:4001", "n" * 255]
    for name in names:
        yield "seed", name, r"\N", r"\N", f"{seed_of(name):016x}", r"\N"
    weights = [0, 1, 2, 3, 7, 100, 1000, 65536, 99999, (1 << 31) + 1, (1 << 32) - 1]
    for _ in range(300):
        seed, slot = rng.getrandbits(64), rng.choice([0, 1, rng.randrange(1 << 14), (1 << 20) - 1])
        weight = rng.choice(weights)
        yield "score", f"{seed:016x}", slot, weight, f"{score(seed, slot, weight):016x}", r"\N"
    ten = names[:10]
    for members, slots in [
            ([(n, 1) for n in ten[:3]], 1024), ([(n, 7) for n in ten], 1024),
            ([(n, i + 1) for i, n in enumerate(ten[:3])], 1024),
            ([(n, (0, 1, 1000000)[i % 3]) for i, n in enumerate(ten)], 256),
            ([(ten[0], 4294967295), (ten[1], 1)], 256), ([(ten[0], 0)], 16), ([(ten[5], 3)], 16)]:
        text = "|".join(n for n, _ in members)
        weight_text = "|".join(str(w) for _, w in members)
        yield "table", text, weight_text, slots, f"{fnv(table_of(members, slots)):016x}", r"\N"


def main():
    print("# columns: id\top\ta\tb\tc\tresult\tresult_2")
    print("# made by tools/rendezvous_vectors.py")
    print("# grain: a = kind, b = key, results = id.hi, id.lo; seed: a = id of a member; score: a = seed,"
          " b = slot, c = weight; table: a = ids, b = weights, c = slots, result = FNV-1a 64 of the"
          " owners' indices, four bytes each, least significant first")
    for number, row in enumerate(rows(), 1):
        print(f"rv{number:03}", *row, sep="\t")


main()
