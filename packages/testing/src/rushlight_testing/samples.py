"""Evaluate an operator's samples, which are written as Python source.

The entry of an operator (`packages/core/ops/*.yaml`) lists samples. A sample is the source text of the arguments of one
call. `samples_of` evaluates a sample with tensors of a given library and dtype. A sample may use these helpers:

    t(3, 4)                       a random float tensor of that shape; of dtype `dtype` if the test selects one
    t(3, 4, dtype=int64)          a fixed dtype, whatever the test selects
    t(3, low=0.1, high=9)         from a range
    spd(2, 3)                     two random symmetric positive-definite matrices of three rows and columns
    units(), pairs(), scalars()   lists of samples: one tensor; two tensors that broadcast; a tensor and a number
    special()                     infinities, NaN, zeros, and small and large values

The values depend only on the text and the dtype, so that they are the same in two libraries and in two runs.
"""

from __future__ import annotations

import math
import random
import zlib
from dataclasses import dataclass, field
from typing import Any

_INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")


@dataclass(frozen=True)
class Sample:
    """The arguments of one call.

    Attributes:
        text: the text of the sample in the operator's YAML entry.
        args: the positional arguments.
        kwargs: the keyword arguments.

    Example:
        >>> sample = Sample("t(2), 1", (torch.ones(2), 1))
        >>> torch.add(*sample.args, **sample.kwargs)
        tensor([2., 2.])
    """

    text: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


def samples_of(text: str, library: Any, dtype: str = "float32") -> list[Sample]:
    """Return the samples that `text` describes.

    Args:
        text: the arguments of a call, as in the keys `samples` and `errors` of a YAML entry.
        library: the module that creates the tensors, by `library.tensor(data, dtype=...)`.
        dtype: the dtype of tensors whose dtype `text` does not specify.

    Example:
        >>> import rushlight_core as core
        >>> [sample] = samples_of("t(3, 4), dim=1", core)
        >>> sample.args[0].shape, sample.kwargs
        (torch.Size([3, 4]), {'dim': 1})
        >>> len(samples_of("pairs()", core))
        9
    """
    names = _names(library, dtype, text)
    args, kwargs = eval(f"(lambda *args, **kwargs: (args, kwargs))({text})", names)
    if len(args) == 1 and not kwargs and isinstance(args[0], _Group):
        return [Sample(f"{text}[{i}]", one, more) for i, (one, more) in enumerate(args[0])]
    return [Sample(text, args, kwargs)]


def evaluated(text: str, library: Any, names: dict[str, Any]) -> Any:
    """Evaluate an expression that may use the helpers, the library under the name `torch`, and additional names."""
    return eval(text, names | _names(library, "float32", text))


def _names(library: Any, dtype: str, text: str) -> dict[str, Any]:
    helpers = _Helpers(library, dtype, random.Random(zlib.crc32(f"{text}:{dtype}".encode())))
    names = {name: getattr(helpers, name) for name in ("t", "spd", "units", "pairs", "scalars", "special")}
    names |= {name: getattr(library, name) for name in (*_INTEGERS, *_FLOATS, *_COMPLEX)}
    return names | {
        "bool": library.bool,
        "bool_": library.bool,
        "inf": math.inf,
        "nan": math.nan,
        "torch": library,
    }


def arguments_of(op: Any, sample: Sample) -> dict[str, Any]:
    """Return the arguments of a call of an operator (`rushlight_core.codegen.model.Op`) by name, defaults included."""
    arguments, given = list(op.schema.arguments), list(sample.args)
    bound: dict[str, Any] = {}
    for a in arguments:
        if a.varargs and given and not isinstance(given[0], (tuple, list)):
            bound[a.name], given = tuple(given), []
        elif given and not a.keyword_only:
            bound[a.name] = given.pop(0)
    assert not given, f"{op.name}: too many arguments in {sample.text!r}"
    for name, value in sample.kwargs.items():
        bound[op.aliases.get(name, name)] = value
    for a in arguments:
        if a.name in op.none_is_default and bound.get(a.name) is None:
            bound.pop(a.name, None)
        if a.name not in bound:
            assert not a.required, f"{op.name}: {sample.text!r} leaves out {a.name}"
            bound[a.name] = a.default
        if a.type.name.startswith("int[]") and isinstance(bound[a.name], int):
            bound[a.name] = (bound[a.name],) * max(a.fill, 1)
    return bound


class _Group(list[Any]):
    """A list of samples, each as (args, kwargs)."""


class _Helpers:
    def __init__(self, library: Any, dtype: str, source: random.Random) -> None:
        self._library = library
        self._dtype = dtype
        self._source = source

    def t(self, *shape: int, dtype: Any = None, low: float = -3, high: float = 3) -> Any:
        """Return a random tensor.

        Integers are not zero unless `low` is 0. The magnitude of a float is more than 0.05 (or 5 % of
        `high - low`, if this is less than 1), unless both limits are less than 0.05.
        """
        name = self._dtype if dtype is None else str(dtype).rsplit(".", 1)[-1]
        count = math.prod(shape)
        if name == "bool":
            values: list[Any] = [self._source.random() < 0.5 for _ in range(count)]
        elif name in _INTEGERS:
            first = max(math.ceil(low), 0) if name == "uint8" else math.ceil(low)
            choices = [n for n in range(first, math.floor(high) + 1) if n != 0 or low == 0]
            values = [self._source.choice(choices or [0]) for _ in range(count)]
        elif name in _COMPLEX:
            values = [complex(self._float(low, high), self._float(low, high)) for _ in range(count)]
        else:
            values = [self._float(low, high) for _ in range(count)]
        return self._make(values, shape, name)

    def spd(self, *shape: int) -> Any:
        """Return random symmetric or Hermitian matrices that are positive-definite because of a large diagonal."""
        if self._dtype in (*_INTEGERS, "bool"):
            return self.t(*shape, shape[-1])
        n, values = shape[-1], []
        for _ in range(math.prod(shape[:-1])):
            matrix: list[list[Any]] = [[0.0] * n for _ in range(n)]
            for i in range(n):
                matrix[i][i] = float((i + 1) * n)
                for j in range(i):
                    matrix[i][j] = matrix[j][i] = round(self._source.uniform(-0.5, 0.5), 3)
                    if self._dtype in _COMPLEX:
                        turn = 1j * round(self._source.uniform(-0.5, 0.5), 3)
                        matrix[i][j], matrix[j][i] = matrix[i][j] + turn, matrix[j][i] - turn
            values += [value for row in matrix for value in row]
        return self._make(values, (*shape, n), self._dtype)

    def _float(self, low: float, high: float) -> float:
        while True:
            value = self._source.uniform(low, high)
            if abs(value) > 0.05 * min(1.0, high - low) or (low < 0.05 and high < 0.05):
                return round(value, 3)

    def _make(self, values: list[Any], shape: tuple[int, ...], name: str) -> Any:
        made = self._library.tensor(_nest(values, shape), dtype=getattr(self._library, name))
        # Nested lists cannot have shape (0, 3).
        return made if tuple(made.shape) == tuple(shape) else made.view(shape)

    def special(self, **kwargs: Any) -> Any:
        """Return special values, at which implementations of a function may differ."""
        if self._dtype == "bool":
            values: list[Any] = [False, True]
        elif self._dtype in _INTEGERS:
            values = [0, 1, 2, 127] + ([] if self._dtype == "uint8" else [-1, -128])
        elif self._dtype in _COMPLEX:
            values = [
                0j,
                1 + 0j,
                -1j,
                complex(math.inf, 1),
                complex(1, -math.inf),
                complex(math.nan, 0),
                1e-7 + 1e4j,
            ]
        else:
            values = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-7, 6e4]
        return self._make(values, (len(values),), self._dtype)

    def units(self, low: float = -3, high: float = 3, **kwargs: Any) -> _Group:
        """Return samples of one tensor: of one or more dimensions, transposed, 0-d, and empty."""
        dtype = kwargs.pop("dtype", None)

        def make(*shape: int) -> Any:
            return self.t(*shape, dtype=dtype, low=low, high=high)

        shapes = [make(3, 4), make(5, 2, 3), make(4, 3).t(), make(), make(0, 3), make(67)]
        return _Group(((one,), dict(kwargs)) for one in shapes)

    def pairs(self, low: float = -3, high: float = 3, **kwargs: Any) -> _Group:
        """Return samples of two tensors: of equal shapes, of shapes that broadcast, transposed, 0-d, and empty."""
        dtype = kwargs.pop("dtype", None)

        def make(*shape: int) -> Any:
            return self.t(*shape, dtype=dtype, low=low, high=high)

        both = [
            (make(3, 4), make(3, 4)),
            (make(3, 4), make(4)),
            (make(4), make(3, 4)),
            (make(3, 1), make(1, 4)),
            (make(4, 3).t(), make(3, 4)),
            (make(2, 3, 4), make()),
            (make(), make()),
            (make(0, 3), make(3)),
            (make(67), make(67)),
        ]
        return _Group((pair, dict(kwargs)) for pair in both)

    def scalars(self, low: float = -3, high: float = 3, **kwargs: Any) -> _Group:
        """Return samples of a tensor and a number."""
        dtype = kwargs.pop("dtype", None)

        def make(*shape: int) -> Any:
            return self.t(*shape, dtype=dtype, low=low, high=high)

        whole = dtype is not None and str(dtype).rsplit(".", 1)[-1] in _INTEGERS
        numbers: list[Any] = [2] if whole else [2, 1.5]
        samples = [((make(3, 4), number), dict(kwargs)) for number in numbers]
        samples += [
            ((make(), 3), dict(kwargs)),
            ((make(0), 2), dict(kwargs)),
            ((make(4, 3).t(), 2), dict(kwargs)),
        ]
        return _Group(samples)


def _nest(values: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return values[0]
    if not values:
        return []
    step = len(values) // shape[0]
    return [_nest(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
