"""Mutations of an input: of bytes, of numbers, and of the keywords that the readers use."""

from __future__ import annotations

import pickletools
import random

from rushlight_nn.serialization.names import NAMES

_OPCODES = [opcode.code.encode("latin-1") for opcode in pickletools.opcodes]
_NAMES = [f"c{name.rpartition('.')[0]}\n{name.rpartition('.')[2]}\n".encode() for name in NAMES]
_NUMBERS = [0, 1, 2, 127, 128, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1]
_WORDS = [
    b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"storage", b"cpu", b"data.pkl",
    b'{"!":"', b"tensor", b"view", b"number", b"items", b"namedtuple", b"fields", b"class", b"value",
    b"__metadata__", b"data_offsets", b"shape", b"dtype", b"F32", b"BOOL", b"[", b"]", b"{", b"}", b",", b":",
    b"4611686018427387904", b"-1", b"1e999", b"null", b"\\ud800", b"../", b"\0",
]  # fmt: skip


def mutate(data: bytes, others: list[bytes], random: random.Random, limit: int = 1 << 16) -> bytes:
    """Return `data` with some changes, at most `limit` bytes long."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 5, 10))):
        _change(changed, others, random)
    return bytes(changed[:limit])


def _change(data: bytearray, others: list[bytes], random: random.Random) -> None:
    at = random.randrange(len(data) + 1)
    end = min(at + random.choice((1, 2, 4, 8, 30)), len(data))
    kind = random.randrange(9)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << random.randrange(8)
    elif kind == 1:
        data[at:end] = random.randbytes(end - at)
    elif kind == 2:
        del data[at:end]
    elif kind == 3:
        data[at:at] = data[at:end] * random.choice((1, 1, 2, 50))
    elif kind == 4:
        size = random.choice((1, 2, 4, 8))
        number = (random.choice(_NUMBERS) + random.choice((0, 0, -1, 1))) % 2 ** (8 * size)
        data[at : at + size] = number.to_bytes(size, "little")
    elif kind == 5:
        data[at:at] = random.choice(_OPCODES) + random.randbytes(random.choice((0, 0, 1, 4)))
    elif kind == 6:
        data[at:at] = random.choice(_NAMES)
    elif kind == 7:
        data[at : at + random.choice((0, 0, 4))] = random.choice(_WORDS)
    else:
        other = random.choice(others)
        begin = random.randrange(len(other) + 1)
        data[at:end] = other[begin : begin + random.choice((4, 20, 100, 1000))]
