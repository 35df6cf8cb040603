"""Calls of all operators, from the samples in their entries, as functions of the tensors among the arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core.codegen.loader import load_ops
from rushlight_core.codegen.model import Op
from rushlight_testing.operators import boxed
from rushlight_testing.samples import Sample, samples_of

OPS = [
    op
    for op in load_ops()
    if "hidden" not in op.variants and not op.random and any(a.type.is_tensor for a in op.schema.arguments)
]
# Operators that are called only by other operators and by formulas.
HIDDEN = [
    op
    for op in load_ops()
    if "hidden" in op.variants
    and not op.random
    and op.kind != "view"
    and any(a.type.is_tensor for a in op.schema.arguments)
]
CASES = [(op, sample.text) for op in OPS for sample in op.samples if "special" not in sample.text]


class Call(NamedTuple):
    """A call of an operator as a function of its tensor arguments, and the tensors of a sample."""

    function: Callable[..., Any]
    tensors: list[Tensor]


def _operator(name: str, on_view: bool) -> Callable[..., Any]:
    # The function `repeat` of the array API standard differs from the operator `repeat`.
    function = getattr(core, name, None) if name != "repeat" else None
    function = function or getattr(core.Tensor, name)
    if not name.endswith("_"):
        return function
    if not on_view:
        return lambda input, *args, **kwargs: function(input.clone(), *args, **kwargs)

    def write(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        whole = core.stack([input, input])
        function(whole[1], *args, **kwargs)
        return whole

    return write


def calls(op: Op, text: str, on_view: bool = False) -> Iterator[Call]:
    """Yield a call for each sample that the text describes. In-place operators write to a copy of their argument.

    If `on_view` is true, the in-place form of the operator writes to a view of a tensor, and the call returns this tensor.
    """
    operator: Any
    if "hidden" in op.variants:
        operator = lambda *args, **kwargs: boxed(op, Sample("", args, kwargs))  # noqa: E731
    else:
        operator = _operator(op.base.removesuffix("_") + "_" if on_view else op.base, on_view)
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
    """Return tensors like `x` that are valid arguments: scaled slightly, or reversed if `x` may be an index."""
    made = [x]
    for i in range(1, count):
        if x.is_floating_point() or x.is_complex():
            made.append(x * (1 - 0.03 * i))
        else:
            made.append(x.flip(list(range(x.dim()))) if i % 2 and x.dim() else x.clone())
    return made


def of_size_one(call: Call) -> Call:
    """Return the call with one size of its tensors, wherever it occurs, replaced by 1."""
    sizes = [n for x in call.tensors for n in x.shape[-1:] if n > 1]
    if not sizes:
        return call
    shorter = []
    for x in call.tensors:
        for d in range(x.dim()):
            if x.size(d) == sizes[0]:
                x = x.narrow(d, 0, 1)
        shorter.append(x.clone() if x.dtype.is_floating_point or x.is_complex() else x.clamp(max=0).clone())
    return Call(call.function, shorter)
