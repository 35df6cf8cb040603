"""Reference functions for tests of linear algebra, which apply SciPy's LAPACK to each matrix of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[Any]


def _each(function: Callable[..., Any], *arrays: Array, ndims: tuple[int, ...] | None = None) -> Any:
    """Broadcast batches, call `function` for each item, and stack the results, which are arrays or tuples of arrays."""
    ndims = ndims or (2,) * len(arrays)
    batch = np.broadcast_shapes(*(a.shape[: a.ndim - n] for a, n in zip(arrays, ndims, strict=True)))
    wide = [np.broadcast_to(a, batch + a.shape[a.ndim - n :]) for a, n in zip(arrays, ndims, strict=True)]
    results = [function(*(a[index] for a in wide)) for index in np.ndindex(*batch)]
    if not results:  # an empty batch: compute one item to determine the shapes
        ones = function(*(np.zeros(a.shape[len(batch) :]) + (np.eye(*a.shape[-2:]) if n == 2 else 0)
                          for a, n in zip(wide, ndims, strict=True)))  # fmt: skip
        if isinstance(ones, tuple):
            return tuple(np.zeros(batch + np.shape(r)) for r in ones)
        return np.zeros(batch + np.shape(ones))
    if isinstance(results[0], tuple):
        return tuple(np.reshape(np.stack(r), batch + np.shape(r[0])) for r in zip(*results, strict=True))
    return np.reshape(np.stack(results), batch + np.shape(results[0]))


def _adjoint(a: Array) -> Array:
    return np.conj(np.swapaxes(a, -1, -2))


def cholesky(a: Array, upper: bool) -> Array:
    if upper:
        return _adjoint(np.linalg.cholesky(_adjoint(a)))
    return np.linalg.cholesky(a)


def lu_factor(a: Array) -> tuple[Array, Array]:
    """Return both factors in one array, and the pivots, which are row numbers counted from 1."""
    if not a.size:
        return a, np.zeros((*a.shape[:-2], min(a.shape[-2:])), np.int32)
    factors, pivots = _each(lambda m: tuple(scipy.linalg.lu_factor(m)), a)
    return factors, pivots + 1


def ldl_factor(a: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """Return the LDL factors in one array (L below the diagonal, D on it), the pivots, and LAPACK's INFO, which is 0.

    The pivots are always 1, 2, ..., which is correct only for matrices that need no pivoting.
    """

    def one(m: Array) -> Array:
        lower, middle, _ = scipy.linalg.ldl(m, hermitian=hermitian)
        return np.tril(lower, -1) + middle

    factors = _each(one, a) if a.size else a
    batch, n = a.shape[:-2], a.shape[-1]
    return factors, np.broadcast_to(np.arange(1, n + 1), (*batch, n)), np.zeros(batch, np.int32)


def lu(a: Array) -> tuple[Array, Array, Array]:
    return _each(lambda m: tuple(scipy.linalg.lu(m)), a)


def _permutation(pivots: Array, rows: int) -> Array:
    order = np.arange(rows)
    for i, p in enumerate(np.asarray(pivots, dtype=int)):
        order[[i, p - 1]] = order[[p - 1, i]]
    return np.eye(rows)[:, order] if rows else np.zeros((0, 0))


def lu_unpack(factors: Array, pivots: Array) -> tuple[Array, Array, Array]:
    def one(f: Array, p: Array) -> tuple[Array, Array, Array]:
        k = min(f.shape)
        lower = np.tril(f[:, :k], -1) + np.eye(f.shape[0], k)
        return _permutation(p, f.shape[0]), lower, np.triu(f[:k])

    return _each(one, factors, pivots, ndims=(2, 1))


def lu_solve(factors: Array, pivots: Array, b: Array, left: bool, adjoint: bool) -> Array:
    p, lower, upper = lu_unpack(factors, pivots)
    a = p @ lower @ upper
    return solve(_adjoint(a) if adjoint else a, b, left)


def solve_triangular(a: Array, b: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        n = a.shape[-1]
        a = a * (1 - np.eye(n)) + np.eye(n)
    return np.linalg.solve(a, b) if left else np.swapaxes(
        np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2
    )  # fmt: skip


def solve(a: Array, b: Array, left: bool) -> Array:
    """Return the solution of linear systems. `b` contains vectors if it has one dimension or the shape a.shape[:-1]."""
    if b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]):
        return np.linalg.solve(a, b[..., None])[..., 0]
    if left:
        return np.linalg.solve(a, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def lstsq(a: Array, b: Array) -> tuple[Array]:
    """Return only the solution, since the other results depend on the driver."""
    return (np.linalg.pinv(a) @ b,)


def qr(a: Array, mode: str) -> tuple[Array, Array]:
    made: Any = np.linalg.qr
    return (np.zeros(0), made(a, "r")) if mode == "r" else tuple(made(a, mode))


def geqrf(a: Array) -> tuple[Array, Array]:
    if not a.size:
        return a, np.zeros((*a.shape[:-2], min(a.shape[-2:])))
    return _each(lambda m: tuple(scipy.linalg.qr(m, mode="raw")[0]), a)


def _reflectors(v: Array, tau: Array) -> Array:
    """Return the product of all reflectors, a square matrix."""
    m = v.shape[0]
    q = np.eye(m, dtype=v.dtype)
    for i, factor in enumerate(tau):
        w = np.zeros(m, dtype=v.dtype)
        w[i] = 1
        w[i + 1 :] = v[i + 1 :, i]
        q = q @ (np.eye(m) - factor * np.outer(w, np.conj(w)))
    return q


def householder_product(v: Array, tau: Array) -> Array:
    return _each(lambda m, t: _reflectors(m, t)[:, : m.shape[1]], v, tau, ndims=(2, 1))


def ormqr(v: Array, tau: Array, other: Array, left: bool, transpose: bool) -> Array:
    q = _each(_reflectors, v, tau, ndims=(2, 1))
    q = _adjoint(q) if transpose else q
    return q @ other if left else other @ q
