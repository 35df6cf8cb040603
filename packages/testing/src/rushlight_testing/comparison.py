"""assert_close: are two tensors, numbers or nests of them the same, up to rounding?"""

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
    """(rtol, atol) that suit the least precise of `dtypes`: (0, 0) for integers and bool."""
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

    Compares tensors, numbers, NumPy arrays, and sequences and mappings of them. `rtol` and `atol` go together; left
    out, they follow from the dtypes. Shapes must agree; dtypes, devices and layouts unless their check is off. Indices of
    sparse tensors must be equal, and their values close. The error says how many elements differ and where the greatest
    difference is; `msg` replaces it, or is a function of it.

    Raises TypeError for what cannot be compared, and, unless `allow_subclasses`, for two tensors of different classes.
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close(rtol, atol): give both or none")

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
    """Raise AssertionError unless two values agree within tolerances, whatever their dtypes: use `assert_close`.

    PyTorch's function of this name is deprecated, and so is this one. What is no tensor is converted to one. Left out,
    the tolerances are the larger ones of both dtypes.
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
    # A number of Python compares as the widest type of its kind.
    kinds = ((bool, core.bool), (int, core.int64), (float, core.float64), (complex, core.complex128))
    for kind, dtype in kinds:
        if isinstance(x, kind):
            return core.tensor(x, dtype=dtype)
    if hasattr(x, "__array__"):
        return core.as_tensor(x)
    raise TypeError(f"assert_close(): cannot compare {type(x).__name__}")


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
    """What is wrong, or an empty text."""
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
    """What is wrong with tensors of one sparse layout: the places of their elements must be equal, and values close."""
    if a.is_sparse:
        if a.is_coalesced() != b.is_coalesced():
            a, b = a.coalesce(), b.coalesce()
        places = {"indices": (a._indices(), b._indices())}
        values = a._values(), b._values()
    else:
        by_rows = a.layout in (core.sparse_csr, core.sparse_bsr)
        names = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
        places = {name: (getattr(a, name)(), getattr(b, name)()) for name in names}
        values = a.values(), b.values()
    if values[0].shape[1:] != values[1].shape[1:]:
        return f"the blocks differ: {tuple(values[0].shape[1:])} and {tuple(values[1].shape[1:])}"
    if a._nnz() != b._nnz():
        return f"the numbers of specified elements differ: {a._nnz()} and {b._nnz()}"
    for name, (x, y) in places.items():
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
