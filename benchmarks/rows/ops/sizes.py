"""The sizes, and the shapes that stand for them."""

from __future__ import annotations

import math

SIZES = {"16": 16, "64Ki": 64 * 1024, "16Mi": 16 * 1024 * 1024}


def matrix(size: str) -> tuple[int, int]:
    """Return the two-dimensional shape that stands for a size: (4, 4), (256, 256), (4096, 4096)."""
    side = math.isqrt(SIZES[size])
    return side, side


def image(size: str) -> tuple[int, int, int, int]:
    """NCHW."""
    return {"16": (1, 1, 4, 4), "64Ki": (8, 8, 32, 32), "16Mi": (8, 32, 256, 256)}[size]
