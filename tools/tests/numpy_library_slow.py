"""numpy_library with slow calls: `add` waits for a second, and `neg` never ends."""

from __future__ import annotations

import time

import numpy_library
from numpy_library import *  # noqa: F403


def add(x: numpy_library.Tensor, y: numpy_library.Tensor) -> numpy_library.Tensor:
    time.sleep(1.0)
    return numpy_library.add(x, y)


def neg(x: numpy_library.Tensor) -> numpy_library.Tensor:
    while True:
        pass
