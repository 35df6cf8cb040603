"""Laws of transforms of functions that hold for every operator: vmap of derivatives, and Jacobians in each mode."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from vmap_samples import OPS, Call, calls, of_size_one, variants

import rushlight_core as core
from rushlight_autograd.batching import vmap
from rushlight_autograd.jacobians import hessian, jacfwd, jacrev
from rushlight_autograd.transforms import grad, jvp, vjp
from rushlight_autograd.tree import flatten
from rushlight_core import Tensor
from rushlight_core.codegen.model import Op

D = core.float64
ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)
DIFFERENTIABLE = [op for op in OPS if op.differentiable]
# Operators whose forward and reverse mode differ, by definition or for the samples.
MODES_DIFFER = {
    "embedding": "the gradient of the row padding_idx is 0 by definition, and its tangent is not",
    "index_copy": "of two writes to the same element, one takes effect; both receive a gradient",
    "index_put": "of two writes to the same element, one takes effect; both receive a gradient",
    "scatter": "of two writes to the same element, one takes effect; both receive a gradient",
    "put": "of two writes to the same element, one takes effect; both receive a gradient",
}


class Function(NamedTuple):
    """An operator as a function of some floating-point tensors of a call, with real floating-point results."""

    function: Callable[..., list[Tensor]]
    tensors: list[Tensor]
    where: str


def _real_results(results: Any) -> list[Tensor]:
    tensors = [t for t in flatten(results)[0] if isinstance(t, Tensor)]
    tensors = [core.view_as_real(t) if t.is_complex() else t for t in tensors]
    return [t for t in tensors if t.dtype is D]


def _functions(op: Op, most: int, on_view: bool = False) -> Iterator[Function]:
    """Yield functions of all floating-point tensors of a sample, and of each tensor alone."""
    texts = [sample.text for sample in op.samples if "special" not in sample.text]
    chosen = [call for text in texts for call in itertools.islice(calls(op, text, on_view), 1)][:most]
    for call, text in [*zip(chosen, texts, strict=False), *((of_size_one(c), "size 1") for c in chosen[:1])]:
        floats = [i for i, x in enumerate(call.tensors) if x.dtype is D and x.numel()]
        for which in [floats, *([i] for i in floats if len(floats) > 1)]:
            if not which:
                continue

            def function(*given: Tensor, call: Call = call, which: list[int] = which) -> list[Tensor]:
                tensors = list(call.tensors)
                for i, x in zip(which, given, strict=True):
                    tensors[i] = x
                return _real_results(call.function(*tensors))

            yield Function(
                function, [call.tensors[i].clone() for i in which], f"{op.name}({text}), tensors {which}"
            )


def _weights(like: Tensor) -> Tensor:
    return (core.arange(like.numel(), dtype=D).view(like.shape) + 1).cos()


def _close(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and core.allclose(a, b, rtol=1e-7, atol=1e-9, equal_nan=True)


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- derivatives inside of vmap ---


def _gradients(f: Function, *xs: Tensor) -> list[Tensor]:
    outputs, back = vjp(f.function, *xs)
    return list(back([_weights(y) for y in outputs]))


def _tangents(f: Function, *xs: Tensor) -> list[Tensor]:
    return jvp(f.function, xs, tuple(_weights(x) for x in xs))[1]


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_vmap_of_a_derivative_is_a_loop(op: Op) -> None:
    """Gradients, tangents and `requires_grad` inside of vmap are those of each example."""
    for f in _functions(op, 3):
        rows = [variants(x, 2) for x in f.tensors]
        stacked = [core.stack(r) for r in rows]
        leaves = [x.clone().requires_grad_() for x in stacked]
        try:
            wanted = [y.requires_grad for y in f.function(*(x[0] for x in leaves))]
            found = vmap(f.function)(*leaves)
        except ERRORS:
            continue  # compared in test_vmap.py
        assert [y.requires_grad for y in found] == wanted, f.where
        for derivative in (_gradients, _tangents):
            try:
                want = [derivative(f, *(r[b] for r in rows)) for b in range(2)]
            except ERRORS:
                continue  # there is no derivative
            got = vmap(lambda *xs, f=f, derivative=derivative: derivative(f, *xs))(*stacked)
            for g, *w in zip(got, *want, strict=True):
                wanted_rows = core.stack(w)
                assert _close(g, wanted_rows), f"{derivative.__name__} of {f.where}:\n{g}\n{wanted_rows}"


# --- Jacobians ---


def _along(f: Function, form: str) -> Callable[[Tensor], Tensor]:
    """Return a function of two numbers, which moves the tensors along two directions, so that Jacobians are small.

    The results are joined. For the form "written", they are joined by in-place writes to a result and to views of a tensor
    of zeros.
    """
    ways = [(_weights(x), _weights(x).flip(0) if x.dim() else _weights(x) + 1) for x in f.tensors]

    def along(t: Tensor) -> Tensor:
        moved = [x + (a * t[0] + b * t[1]) / 8 for x, (a, b) in zip(f.tensors, ways, strict=True)]
        results = [y for y in f.function(*moved) if y.numel()]
        if form != "written":
            return core.cat([y.reshape(-1) for y in results])
        whole = core.zeros(2, sum(y.numel() for y in results) + 1, dtype=D)
        at = 0
        for y in results:
            whole[0, at : at + y.numel()].view(y.shape).copy_(y)
            y = y.clone()
            y[...].mul_(t[0] + 2)
            whole[1, at : at + y.numel()] = y.reshape(-1)
            at += y.numel()
        whole[1, at] = t[1]
        return whole

    return along


TWICE: dict[str, Callable[..., Any]] = {
    "hessian": hessian,
    "jacrev(jacfwd)": lambda f: jacrev(jacfwd(f)),
    "jacfwd(jacfwd)": lambda f: jacfwd(jacfwd(f)),
}
T = core.tensor([0.25, -0.5], dtype=D)
UNITS = core.eye(2, dtype=D)


FORMS = [
    *((op, "result") for op in DIFFERENTIABLE),
    *((op, "written") for op in DIFFERENTIABLE[::5]),
    *((op, "view") for op in DIFFERENTIABLE if op.is_inplace),
    *(
        (op, "view")
        for op in [op for op in DIFFERENTIABLE if "inplace" in op.variants and not op.is_inplace][::4]
    ),
]


@pytest.mark.parametrize(("op", "form"), FORMS, ids=lambda v: v if isinstance(v, str) else v.name)
def test_jacobians_agree(op: Op, form: str) -> None:
    """Each composition of forward and reverse mode gives the columns that a loop of jvp gives."""
    for f in _functions(op, 1 if form == "written" else 2, form == "view"):
        along = _along(f, form)

        def total(t: Tensor, along: Callable[[Tensor], Tensor] = along) -> Tensor:
            y = along(t)
            return (y * y * _weights(y)).sum()

        try:
            first = jacrev(along)(T)
        except ERRORS:
            continue  # no real result, or no derivative
        if not core.isfinite(first).all():
            continue
        try:
            columns = core.stack([jvp(along, (T,), (e,))[1] for e in UNITS], -1)
        except NotImplementedError:
            continue
        assert _close(jacfwd(along)(T), columns), f"jacfwd of {f.where}"
        if op.base.rstrip("_") in MODES_DIFFER:
            continue
        assert _close(first, columns), f"jacrev of {f.where}:\n{first}\n{columns}"
        try:
            second = core.stack([vjp(grad(total), T)[1](e)[0] for e in UNITS])
        except NotImplementedError:
            continue
        assert _close(jacrev(grad(total))(T), second), f"jacrev(grad) of {f.where}"
        for name, transform in TWICE.items():
            found = transform(total)(T)
            assert _close(found, second), f"{name} of {f.where}:\n{found}\n{second}"
