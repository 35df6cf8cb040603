"""Draw random tensors: shapes, dtypes and values."""

from __future__ import annotations

import random
from typing import Any

from fuzz.operators import Array
from fuzz.program import COMPLEX, INTEGERS

DTYPES = {
    "float32": 36, "float64": 26, "int64": 12, "bool": 7, "int32": 4, "float16": 3, "bfloat16": 3, "uint8": 3,
    "complex64": 3, "complex128": 2, "int8": 1, "int16": 1,
}  # fmt: skip
SIZES = {0: 6, 1: 20, 2: 36, 3: 26, 4: 8, 5: 4}
RANKS = {0: 14, 1: 30, 2: 34, 3: 17, 4: 5}


def weighted(rng: random.Random, table: dict[Any, int]) -> Any:
    return rng.choices(list(table), list(table.values()))[0]


class Values:
    """Generator of tensors from one random sequence. With `extremes`, some have the extreme values named in generate.py."""

    def __init__(self, rng: random.Random, extremes: bool) -> None:
        self.rng, self.extremes = rng, extremes

    def shape(self) -> tuple[int, ...]:
        return tuple(weighted(self.rng, SIZES) for _ in range(weighted(self.rng, RANKS)))

    def numbers(self, dtype: str, count: int) -> tuple[Any, ...]:
        rng = self.rng
        if dtype == "bool":
            return tuple(rng.random() < 0.5 for _ in range(count))
        if dtype in INTEGERS:
            low = 0 if dtype == "uint8" else -3
            choices: list[Any] = list(range(low, 6))
            if self.extremes and rng.random() < 0.05:
                bits = 8 if dtype == "uint8" else int(dtype[3:])
                top = 2**bits - 1 if dtype == "uint8" else 2 ** (bits - 1) - 1
                choices += [top, top - 1, 0 if dtype == "uint8" else -top - 1]
            return tuple(rng.choice(choices) for _ in range(count))
        if dtype in COMPLEX:
            parts = [self.numbers("float32", count) for _ in range(2)]
            return tuple(complex(a, b) for a, b in zip(*parts, strict=True))
        kind = rng.random()
        if kind < 0.45:
            return tuple(round(rng.uniform(-3, 3), 3) for _ in range(count))
        choices = [0.0, 1.0, -1.0, 2.0, 0.5, -0.5, 3.0, 1.5, -2.0, 0.25]
        if self.extremes and kind > 0.93:
            choices += [float("inf"), float("-inf"), float("nan"), -0.0, 1e4, 1e-6]
        return tuple(rng.choice(choices) for _ in range(count))

    def fresh(self, shape: tuple[int, ...], dtype: str = "") -> Array:
        dtype = dtype or weighted(self.rng, DTYPES)
        count = 1
        for n in shape:
            count *= n
        return Array(dtype, shape, self.numbers(dtype, count))

    def recast(self, array: Array, dtype: str) -> Array:
        """Return the array's values, converted to another dtype as far as it can represent them."""

        def cast(value: Any) -> Any:
            if dtype in COMPLEX:
                return complex(value)
            real = value.real if isinstance(value, complex) else value
            if dtype == "bool":
                return bool(real == real and real > 0.5)
            if dtype in INTEGERS:
                whole = int(real) if abs(real) < 100 else 0  # infinities and NaN too
                return max(whole, 0) if dtype == "uint8" else whole
            return float(real)

        return Array(dtype, array.shape, tuple(cast(v) for v in array.values))

    def reshaped(self, array: Array, shape: tuple[int, ...]) -> Array:
        count = 1
        for n in shape:
            count *= n
        values = array.values or self.numbers(array.dtype, 4)
        return Array(array.dtype, shape, tuple(values[i % len(values)] for i in range(count)))

    def narrowed(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape that broadcasts with this one."""
        kind = self.rng.random()
        if kind < 0.55:
            return shape
        kept = shape[self.rng.randint(0, len(shape)) :]
        return tuple(1 if self.rng.random() < 0.3 else n for n in kept)

    def mutated(self, array: Array) -> Array:
        kind = self.rng.random()
        if kind < 0.75:
            return array
        if kind < 0.85:
            return self.reshaped(array, ())
        shape = list(array.shape)
        if kind < 0.95 and shape:
            shape[self.rng.randrange(len(shape))] = self.rng.choice((0, 1, 2))
        elif shape and kind < 0.975:
            del shape[0]
        else:
            shape.insert(0, self.rng.choice((1, 2)))
        return self.reshaped(array, tuple(shape))
