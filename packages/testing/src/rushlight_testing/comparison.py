"""Assertions that tensors, numbers or nested containers of them are equal up to rounding."""

from __future__ import annotations

import cmath
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor

_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def default_tolerances(*dtypes: Any) -> tuple[float, float]:
    """Return the default relative and absolute tolerance for the least precise of several dtypes.

    Args:
        dtypes: the dtypes that are compared. For integers and bool, both tolerances are 0.

    Returns:
        (rtol, atol).

    Example:
        >>> default_tolerances(torch.float32, torch.float64)
        (1.3e-06, 1e-05)
        >>> default_tolerances(torch.int64)
        (0.0, 0.0)
    """
    known = [_TOLERANCES.get(str(d).rsplit(".", 1)[-1], (0.0, 0.0)) for d in dtypes]
    return max(r for r, _ in known), max(a for _, a in known)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| for every element.

    For sparse tensors, the indices must be equal, and the values must be close.

    Args:
        actual: the values to check: a tensor, a number, a NumPy array, or sequences and mappings of these.
        expected: the expected values, in the same structure.
        allow_subclasses: whether tensors of different classes may be compared.
        rtol: the relative tolerance; None for the default of the dtypes, see :func:`default_tolerances`. Requires `atol`.
        atol: the absolute tolerance. Requires `rtol`.
        equal_nan: whether NaN is considered equal to NaN.
        check_device: whether the devices must agree.
        check_dtype: whether the dtypes must agree.
        check_layout: whether the layouts must agree. If False, sparse tensors are compared as dense tensors.
        check_stride: whether the strides must agree.
        msg: the message of the error, or a function that receives the default message and returns the message
            to use.

    Shape:
        - Input: tensors of equal shapes (*).

    Raises:
        AssertionError: the values differ. The message states the number of elements that differ, and the
            index of the greatest difference.
        TypeError: an object cannot be compared, or the classes differ and `allow_subclasses` is false.
        ValueError: only one of `rtol` and `atol` is given.

    Example:
        >>> assert_close(torch.ones(3) / 3 * 3, torch.ones(3))
        >>> assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]))
        Traceback (most recent call last):
        AssertionError: 1 of 2 elements differ: the greatest difference is 0.5 at (1,) ...
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close(rtol, atol): both or neither must be given, got only one")

    def fail(text: str, path: str) -> None:
        full = f"{text}\nat {path}" if path else text
        raise AssertionError(msg(full) if callable(msg) else msg if msg is not None else full)

    def compare(a: Any, b: Any, path: str) -> None:
        if isinstance(b, Mapping) and isinstance(a, Mapping):
            if a.keys() != b.keys():
                fail(f"the keys differ: {sorted(map(str, a))} and {sorted(map(str, b))}", path)
            for key in b:
                compare(a[key], b[key], f"{path}[{key!r}]")
        elif _is_sequence(a) and _is_sequence(b):
            if len(a) != len(b):
                fail(f"the lengths differ: {len(a)} and {len(b)}", path)
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                compare(x, y, f"{path}[{i}]")
        elif a is None or b is None:
            if a is not b:
                fail(f"{a!r} is not {b!r}", path)
        else:
            if not allow_subclasses and type(a) is not type(b):
                raise TypeError(
                    f"assert_close(allow_subclasses=False): the classes differ: {type(a).__name__} and {type(b).__name__}"
                )
            checks = (check_device, check_dtype, check_layout, check_stride)
            text = _difference(_tensor(a), _tensor(b), rtol, atol, equal_nan, *checks)
            if text:
                fail(text, path)

    compare(actual, expected, "")


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Raise AssertionError unless two values agree within tolerances. Deprecated: use `assert_close`.

    Dtypes are not compared, and objects that are not tensors are converted to tensors.

    Args:
        actual: a tensor, or numbers.
        expected: a tensor, or numbers.
        rtol: the relative tolerance; by default the larger of the default tolerances of both dtypes.
        atol: the absolute tolerance.
        equal_nan: whether NaN is considered equal to NaN.
        msg: the message of the error.

    Shape:
        - Input: equal shapes (*).

    Raises:
        AssertionError: the values differ.

    Example:
        >>> assert_allclose(torch.ones(2), [1.0, 1.0])
    """
    warnings.warn("assert_allclose() is deprecated; use assert_close()", FutureWarning, stacklevel=2)
    a = actual if isinstance(actual, Tensor) else core.tensor(actual)
    b = expected if isinstance(expected, Tensor) else core.tensor(expected, dtype=a.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(a.dtype, b.dtype)
    assert_close(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, (str, bytes))


def _tensor(x: Any) -> Tensor:
    if isinstance(x, Tensor):
        return x.detach()
    # A Python number is compared as the widest dtype of its category.
    kinds = ((bool, core.bool), (int, core.int64), (float, core.float64), (complex, core.complex128))
    for kind, dtype in kinds:
        if isinstance(x, kind):
            return core.tensor(x, dtype=dtype)
    if hasattr(x, "__array__"):
        return core.as_tensor(x)
    raise TypeError(
        f"assert_close(): must compare tensors, numbers, arrays, sequences or mappings, got {type(x).__name__}"
    )


def _difference(
    a: Tensor,
    b: Tensor,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    check_device: bool,
    check_dtype: bool,
    check_layout: bool,
    check_stride: bool,
) -> str:
    """Return a description of the first difference between `a` and `b`, or an empty string if they agree."""
    if a.shape != b.shape:
        return f"the shapes differ: {tuple(a.shape)} and {tuple(b.shape)}"
    if check_device and a.device != b.device:
        return f"the devices differ: {a.device} and {b.device}"
    if check_dtype and a.dtype != b.dtype:
        return f"the dtypes differ: {a.dtype} and {b.dtype}"
    if check_layout and a.layout != b.layout:
        return f"the layouts differ: {a.layout} and {b.layout}"
    if rtol is None or atol is None:
        rtol, atol = default_tolerances(a.dtype, b.dtype)
    if a.layout != b.layout:
        a, b = a.to_dense(), b.to_dense()
    if a.layout != core.strided:
        return _sparse_difference(a, b, rtol, atol, equal_nan)
    if check_stride and a.stride() != b.stride():
        return f"the strides differ: {a.stride()} and {b.stride()}"
    return _element_difference(a, b, rtol, atol, equal_nan)


def _sparse_difference(a: Tensor, b: Tensor, rtol: float, atol: float, equal_nan: bool) -> str:
    """Return a description of the difference between two sparse tensors of the same layout, or an empty string."""
    if a.is_sparse:
        if a.is_coalesced() != b.is_coalesced():
            a, b = a.coalesce(), b.coalesce()
        indices = {"indices": (a._indices(), b._indices())}
        values = a._values(), b._values()
    else:
        by_rows = a.layout in (core.sparse_csr, core.sparse_bsr)
        names = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
        indices = {name: (getattr(a, name)(), getattr(b, name)()) for name in names}
        values = a.values(), b.values()
    if values[0].shape[1:] != values[1].shape[1:]:
        return f"the blocks differ: {tuple(values[0].shape[1:])} and {tuple(values[1].shape[1:])}"
    if a._nnz() != b._nnz():
        return f"the numbers of specified elements differ: {a._nnz()} and {b._nnz()}"
    for name, (x, y) in indices.items():
        if not core.equal(x, y):
            return f"the {name} differ: {x.tolist()} and {y.tolist()}"
    text = _element_difference(*values, rtol, atol, equal_nan)
    return text and f"of the values {text}"


def _element_difference(a: Tensor, b: Tensor, rtol: float, atol: float, equal_nan: bool) -> str:
    worst, worst_ratio, where, count = 0.0, 0.0, 0, 0
    left, right = a.reshape(-1).tolist(), b.reshape(-1).tolist()
    for i, (x, y) in enumerate(zip(left, right, strict=True)):
        if _close(x, y, rtol, atol, equal_nan):
            continue
        count += 1
        gap = float(abs(x - y)) if cmath.isfinite(x) and cmath.isfinite(y) else math.inf
        if gap >= worst:
            worst, where = gap, i
            worst_ratio = gap / abs(y) if y and cmath.isfinite(y) else math.inf
    if not count:
        return ""
    index = []
    rest = where
    for n in reversed(tuple(a.shape)):
        index.append(rest % n)
        rest //= n
    return (
        f"{count} of {len(left)} elements differ: the greatest difference is {worst} at {tuple(reversed(index))} "
        f"({left[where]} and {right[where]}, relative {worst_ratio}); allowed are rtol={rtol}, atol={atol}"
    )


def _close(x: Any, y: Any, rtol: float, atol: float, equal_nan: bool) -> bool:
    if x == y:
        return True
    if cmath.isnan(x):
        return equal_nan and cmath.isnan(y)
    if not (cmath.isfinite(x) and cmath.isfinite(y)):
        return False
    return abs(x - y) <= atol + rtol * abs(y)
