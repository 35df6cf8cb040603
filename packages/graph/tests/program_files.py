"""Take files of programs apart and put them together, for tests of damaged files."""

from __future__ import annotations

import json
import struct
from typing import Any

#: Errors that loading or running a damaged file may raise.
ERRORS = (ValueError, RuntimeError, NotImplementedError, MemoryError)


def parts(file: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", file[:8])
    header = json.loads(file[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["rushlight.program"]), file[8 + length :]


def joined(header: dict[str, Any], graph: Any, data: bytes) -> bytes:
    metadata = {**header["__metadata__"], "rushlight.program": json.dumps(graph)}
    text = json.dumps({**header, "__metadata__": metadata}).encode()
    return struct.pack("<Q", len(text)) + text + data
