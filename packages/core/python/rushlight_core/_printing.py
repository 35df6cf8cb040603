"""Printing of tensors: `repr`, `str`, `format`, and their options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from . import _C
from ._C import Tensor


@dataclass
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_options = _Options()
_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed.

    Args:
        precision: digits after the decimal point. Default: 4.
        threshold: number of elements above which a tensor is summarised. Default: 1000.
        edgeitems: number of elements shown at each end of a dimension. Default: 3.
        linewidth: characters per line. Default: 80.
        profile: "default", "short" or "full"; the other arguments override its settings.
        sci_mode: whether to use scientific notation; None chooses the notation by the values of the elements.
            A call without `sci_mode` resets this option to None.

    Raises:
        ValueError: the profile is unknown.

    Example:
        >>> torch.set_printoptions(precision=2)
        >>> torch.tensor([1.23456])
        tensor([1.23])
        >>> torch.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            known = ", ".join(map(repr, _PROFILES))
            raise ValueError(f"set_printoptions(profile): got {profile!r}, needs one of {known}")
        vars(_options).update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    vars(_options).update({name: value for name, value in given.items() if value is not None})
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """Return the current print options, as a dict of keyword arguments for `set_printoptions`.

    Example:
        >>> get_printoptions()["precision"]
        4
    """
    return asdict(_options)


class printoptions:  # noqa: N801
    """A context manager that changes the print options for a `with` block.

    Args:
        kwargs: the options; see `set_printoptions`.

    Example:
        >>> with printoptions(precision=2):
        ...     print(torch.tensor([1.23456]))
        tensor([1.23])
    """

    def __init__(self, **kwargs: Any) -> None:
        self._given = kwargs

    def __enter__(self) -> None:
        self._former = get_printoptions()
        set_printoptions(**self._given)

    def __exit__(self, *exception: object) -> None:
        set_printoptions(**self._former)


def tensor_repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """Return the text that `repr(tensor)` returns.

    Args:
        self: the tensor.
        tensor_contents: text to show instead of the elements; None shows the elements.

    Shape:
        - Input: (*).

    Example:
        >>> tensor_repr(torch.ones(2))
        'tensor([1., 1.])'
        >>> tensor_repr(torch.ones(2), tensor_contents="...")
        'tensor(...)'
    """
    if self._is_batched():
        return _batched_repr(self)
    with _C.DisableTorchFunctionSubclass():
        prefix = "tensor(" if type(self) is Tensor else f"{type(self).__name__}("
        if (parts := _C._sparse_parts(self)) is not None:
            return _sparse_repr(self, prefix, parts, tensor_contents)
        contents = tensor_contents if tensor_contents is not None else _contents(self.detach(), len(prefix))
        return _with_suffixes(prefix + contents, list(_suffixes(self)), len(prefix))


def _sparse_repr(t: Tensor, prefix: str, parts: Any, contents: str | None) -> str:
    layout, indices, plain, values, _ = parts
    indent = len(prefix)
    named = {"indices": indices, "values": values}
    if plain is not None:
        by_rows = layout in ("torch.sparse_csr", "torch.sparse_bsr")
        names = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
        named = {names[0]: indices, names[1]: plain, "values": values}
    lines = []
    for name, part in named.items():
        start = f"{name}=tensor("
        size = f", size={tuple(part.shape)}" if part.numel() == 0 else ""
        lines.append(f"{start}{_contents(part, indent + len(start))}{size})")
    suffixes = [f"size={tuple(t.shape)}", f"nnz={values.shape[0]}"]
    if t.device.type != "cpu":
        suffixes.insert(0, f"device='{t.device}'")
    if t.dtype is not _C.get_default_dtype() and t.dtype not in _obvious_dtypes():
        suffixes.append(f"dtype={t.dtype}")
    suffixes += [f"layout={layout}", *_gradient_suffixes(t)]
    text = prefix + ((",\n" + " " * indent).join(lines) if contents is None else contents)
    if plain is not None:
        return _with_suffixes(text, suffixes, indent)
    # For COO, the size is on a separate line.
    text += ",\n" + " " * indent + suffixes[0]
    return _with_suffixes(text, suffixes[1:], indent)


# The function that unwraps one level of a batched tensor: (value, level). Providers of such tensors set it.
unbatch: Callable[[Tensor], tuple[Tensor, int]] | None = None


def _batched_repr(t: Tensor) -> str:
    assert unbatch is not None
    value, level = unbatch(t)
    inner = tensor_repr(value).replace("\n", "\n    ")
    return f"BatchedTensor(lvl={level}, bdim=0, value=\n    {inner}\n)"


def tensor_format(self: Tensor, format_spec: str) -> str:
    """Format a tensor; a 0-d tensor is formatted like a number. This is `Tensor.__format__`."""
    if self.dim() == 0 and not self.is_meta and type(self) is Tensor and not self._is_batched():
        return format(self.item(), format_spec)
    return object.__format__(self, format_spec)


def _suffixes(t: Tensor) -> Iterator[str]:
    """Yield the parts of the text that follow the numbers: device, size, dtype, and `grad_fn` or `requires_grad`."""
    if t.device.type != "cpu":
        yield f"device='{t.device}'"
    if t.is_meta or (t.numel() == 0 and t.dim() != 1) or (t.numel() and not _options.edgeitems):
        yield f"size={tuple(t.shape)}"
    obvious = () if t.is_meta or not t.numel() else _obvious_dtypes()
    if t.dtype is not _C.get_default_dtype() and t.dtype not in obvious:
        yield f"dtype={t.dtype}"
    yield from _gradient_suffixes(t)


def _obvious_dtypes() -> tuple[object, ...]:
    """Return the dtypes, besides the default dtype, that `repr` omits because the printed numbers show them."""
    return (_C.int64, _C.bool, _C.complex128 if _C.get_default_dtype() is _C.float64 else _C.complex64)


def _gradient_suffixes(t: Tensor) -> Iterator[str]:
    grad_fn = t.grad_fn
    if grad_fn is not None:
        yield f"grad_fn=<{type(grad_fn).name(grad_fn)}>"
    elif t.requires_grad:
        yield "requires_grad=True"


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    # As in PyTorch, the width of a comma and a space is counted before the first suffix, too.
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def _contents(t: Tensor, indent: int) -> str:
    if t.is_meta:
        return "..."
    if t.numel() == 0:
        return "[]"
    values = _shown(t if t.is_cpu else t.cpu(), t.numel() > _options.threshold)
    numbers = list(_numbers(values))
    if t.dtype.is_complex:
        return _layout(values, t.dim(), indent, _ComplexFormat(numbers))
    return _layout(values, t.dim(), indent, _Format(numbers, t.dtype.is_floating_point))


def _shown(t: Tensor, summarize: bool) -> Any:
    """Return the numbers as nested lists, with an Ellipsis in place of omitted numbers."""
    edge = _options.edgeitems
    if not summarize or t.dim() == 0:
        return t.tolist()
    n = t.shape[0]
    if n <= 2 * edge:
        return [_shown(row, summarize) for row in t]
    first = [_shown(t[i], summarize) for i in range(edge)]
    return [*first, ..., *(_shown(t[i], summarize) for i in range(n - edge, n))]


def _numbers(values: Any) -> Iterator[Any]:
    if isinstance(values, list):
        for value in values:
            yield from _numbers(value)
    elif values is not ...:
        yield values


def _layout(values: Any, ndim: int, indent: int, format: _Format | _ComplexFormat) -> str:
    if ndim == 0:
        return format(values)
    if ndim > 1:
        rows = ["..." if row is ... else _layout(row, ndim - 1, indent + 1, format) for row in values]
        return "[" + ("," + "\n" * (ndim - 1) + " " * (indent + 1)).join(rows) + "]"
    dots = " ..." if len(values) > 1 else "..."
    words = [dots if value is ... else format(value) for value in values]
    per_line = max(1, (_options.linewidth - indent) // (format.width + 2))
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


class _Format:
    """The notation and width in which all numbers of a tensor are printed."""

    def __init__(self, values: list[Any], floating: bool) -> None:
        self.width = 1
        self._spec = ""
        self._dot = False
        if not floating:
            self.width = max([1, *(len(str(value)) for value in values)])
            return
        self._spec = ".0f"
        self._dot = True
        ordinary = [value for value in values if value and math.isfinite(value)]
        if not ordinary:
            return
        small, large = min(map(abs, ordinary)), max(map(abs, ordinary))
        whole = all(value == math.ceil(value) for value in ordinary)
        scientific = _options.sci_mode
        if scientific is None:
            scientific = large / small > 1000 or large > 1e8 or small < 1e-4
        if scientific:
            self._spec, self._dot = f".{_options.precision}e", False
        elif not whole:
            self._spec, self._dot = f".{_options.precision}f", False
        self.width = max(len(format(value, self._spec)) for value in ordinary) + self._dot

    def __call__(self, value: Any) -> str:
        if not self._spec:
            return str(value).rjust(self.width)
        text = format(value, self._spec)
        if self._dot and math.isfinite(value):
            text += "."
        return text.rjust(self.width)


class _ComplexFormat:
    """The notations of complex numbers: one for the real parts, and one for the imaginary parts."""

    def __init__(self, values: list[complex]) -> None:
        self._real = _Format([value.real for value in values], True)
        self._imag = _Format([value.imag for value in values], True)
        self.width = self._real.width + self._imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = self._imag(value.imag).lstrip() + "j"
        return self._real(value.real) + ("" if imag[0] in "+-" else "+") + imag
