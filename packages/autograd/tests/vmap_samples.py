"""Calls of every operator, from the samples of its entry, as functions of the tensors among their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core.codegen.loader import load_ops
from rushlight_core.codegen.model import Op
from rushlight_testing.samples import samples_of

OPS = [
    op
    for op in load_ops()
    if "hidden" not in op.variants and not op.random and any(a.type.is_tensor for a in op.schema.arguments)
]
CASES = [(op, sample.text) for op in OPS for sample in op.samples if "special" not in sample.text]


class Call(NamedTuple):
    """`function` of the tensors gives what the operator does; `tensors` are a sample's."""

    function: Callable[..., Any]
    tensors: list[Tensor]


def _operator(name: str) -> Callable[..., Any]:
    # The array API standard has a function `repeat` that is not the operator of that name.
    function = getattr(core, name, None) if name != "repeat" else None
    function = function or getattr(core.Tensor, name)
    if not name.endswith("_"):
        return function
    return lambda input, *args, **kwargs: function(input.clone(), *args, **kwargs)


def calls(op: Op, text: str) -> Iterator[Call]:
    """A call for each sample that the text stands for."""
    operator = _operator(op.base)
    for sample in samples_of(text, core, "float64"):
        tensors: list[Tensor] = []

        def collect(x: Any, tensors: list[Tensor] = tensors) -> None:
            if isinstance(x, Tensor):
                tensors.append(x)
            elif isinstance(x, (tuple, list)):
                for y in x:
                    collect(y)

        collect(sample.args)
        collect(list(sample.kwargs.values()))

        def function(*given: Tensor, sample: Any = sample) -> Any:
            rest = iter(given)

            def put(x: Any) -> Any:
                if isinstance(x, Tensor):
                    return next(rest)
                return type(x)(map(put, x)) if type(x) in (tuple, list) else x

            args = [put(x) for x in sample.args]
            kwargs = {k: put(v) for k, v in sample.kwargs.items()}
            return operator(*args, **kwargs)

        yield Call(function, tensors)


def variants(x: Tensor, count: int) -> list[Tensor]:
    """Tensors of the same shape, valid where `x` is: scaled a little, or reversed where they may be indices."""
    made = [x]
    for i in range(1, count):
        if x.is_floating_point() or x.is_complex():
            made.append(x * (1 - 0.03 * i))
        else:
            made.append(x.flip(list(range(x.dim()))) if i % 2 and x.dim() else x.clone())
    return made
