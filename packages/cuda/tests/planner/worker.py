"""Plan convolutions with cuDNN: `python worker.py LIBCUDNN PLANNER DEVICE < forms > offers`, both as JSON lists.

A process of its own, because a process can have loaded only one library with cuDNN's name.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any


def main(cudnn: str, planner: str, device: str) -> None:
    ctypes.CDLL(cudnn)
    library = ctypes.CDLL(planner)
    offers: list[Any] = []
    for numbers in json.load(sys.stdin):
        offer, text = (ctypes.c_int64 * 5)(), ctypes.create_string_buffer(500)
        given = (ctypes.c_int64 * len(numbers))(*numbers)
        failed = library.plan(given, device.encode(), offer, text, ctypes.c_size_t(len(text)))
        offers.append(text.value.decode(errors="replace") if failed else list(offer))
    json.dump(offers, sys.stdout)


main(*sys.argv[1:])
