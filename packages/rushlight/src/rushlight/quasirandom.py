"""Points that fill a cube evenly: Sobol's sequence, with SciPy's direction numbers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """Generator of Sobol's sequence of points in [0, 1)^dimension, which cover the cube more evenly than random points.

    Args:
        dimension: the number of dimensions, at most `MAXDIM`.
        scramble: whether to permute the digits of the points and shift the sequence at random. Different
            seeds produce different sequences, so the error of an estimate can be computed from several
            sequences. `scipy.stats.qmc.Sobol` computes the same points for the same seed.
        seed: seed of the scrambling; by default a number from the default generator.

    Shape:
        - Result of `draw(n)`: (n, dimension). Result of `draw_base2(m)`: (2^m, dimension).

    Raises:
        ImportError: SciPy, which contains the direction numbers of Joe and Kuo (2008), is not installed.
        ValueError: the number of dimensions is out of range.

    Example:
        >>> SobolEngine(2).draw(4)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500],
                [0.2500, 0.7500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"SobolEngine(dimension): must be from 1 to {self.MAXDIM}, got {dimension}")
        try:
            qmc: Any = import_module("scipy.stats").qmc
        except ImportError as error:
            raise ImportError("SobolEngine(): needs SciPy\nhint: pip install scipy") from error
        self.dimension = dimension
        self.scramble = scramble
        if scramble and seed is None:
            seed = int(core.randint(2**31, ()).item())
        self.seed = seed
        try:
            self._sequence: Any = qmc.Sobol(dimension, scramble=scramble, bits=self.MAXBIT, rng=seed)
        except TypeError:  # SciPy before 1.15
            self._sequence = qmc.Sobol(dimension, scramble=scramble, bits=self.MAXBIT, seed=seed)
        self.num_generated: int = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next `n` points as a tensor (n, dimension). The dtype is the default dtype unless `dtype` is given."""
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy warns if n is not a power of two
            points = core.from_numpy(self._sequence.random(n))
        self.num_generated += n
        points = points.to(dtype or core.get_default_dtype())
        if out is None:
            return points
        return out.resize_(points.shape).copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next 2^m points, which are balanced in all dimensions.

        Raises:
            ValueError: points were drawn before, and their number, `num_generated`, is not a power of two or is less than
                2^m.
        """
        n = 2**m
        if self.num_generated & (self.num_generated - 1) or (self.num_generated and self.num_generated % n):
            raise ValueError(
                f"draw_base2(m): {self.num_generated} points were drawn before, and {n} more would not be balanced\n"
                "hint: call reset() first, or call draw()"
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Reset the generator to the first point of the sequence."""
        self._sequence.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip `n` points."""
        self._sequence.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        text = f"dimension={self.dimension}"
        if self.scramble:
            text += ", scramble=True"
        return f"SobolEngine({text}{'' if self.seed is None else f', seed={self.seed}'})"
