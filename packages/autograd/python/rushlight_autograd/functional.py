"""jvp, vjp, jacobian and hessian of Python functions of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight_core as core
from rushlight_autograd.backward import grad
from rushlight_autograd.forward_ad import dual_level, make_dual, unpack_dual
from rushlight_core import Tensor

__all__ = ["hessian", "jacobian", "jvp", "vjp"]


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """func(*inputs), and the product of `v` with its Jacobian; `v` may be left out for an output of one element."""
    single = not isinstance(inputs, tuple)
    with core.enable_grad():
        xs = (
            tuple(x.detach().requires_grad_() for x in _tuple(inputs)) if not create_graph else _tuple(inputs)
        )
        outputs = func(*xs)
        grads = grad(outputs, xs, v, create_graph=create_graph, allow_unused=True, materialize_grads=True)
    return outputs, grads[0] if single else grads


def jvp(func: Callable[..., Any], inputs: Any, v: Any) -> tuple[Any, Any]:
    """func(*inputs), and the product of its Jacobian with `v`, by forward mode."""
    with dual_level():
        outputs = func(*(make_dual(x, t) for x, t in zip(_tuple(inputs), _tuple(v), strict=True)))
        single = isinstance(outputs, Tensor)
        pairs = [unpack_dual(y) for y in _tuple(outputs)]
    primals = tuple(p.primal for p in pairs)
    tangents = tuple(core.zeros_like(p.primal) if p.tangent is None else p.tangent for p in pairs)
    return (primals[0], tangents[0]) if single else (primals, tangents)


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False) -> Any:
    """The Jacobian of a function of one or several tensors with one output: shape output.shape + input.shape each."""
    single = not isinstance(inputs, tuple)
    with core.enable_grad():
        xs = tuple(
            x if create_graph and x.requires_grad else x.detach().requires_grad_() for x in _tuple(inputs)
        )
        y = func(*xs)
        if not isinstance(y, Tensor):
            raise TypeError(f"jacobian(func): func must return one Tensor, got {type(y).__name__}")
        flat = y.reshape(-1)
        rows: list[tuple[Tensor, ...]] = [
            grad(
                flat[i],
                xs,
                retain_graph=True,
                create_graph=create_graph,
                allow_unused=True,
                materialize_grads=True,
            )
            for i in range(flat.numel())
        ]
    result = tuple(
        core.stack([row[k] for row in rows]).reshape(tuple(y.shape) + tuple(x.shape))
        if rows
        else core.zeros(tuple(y.shape) + tuple(x.shape), dtype=x.dtype)
        for k, x in enumerate(xs)
    )
    return result[0] if single else result


def hessian(func: Callable[..., Any], inputs: Tensor, create_graph: bool = False) -> Tensor:
    """The matrix of second derivatives of a function with an output of one element."""

    def gradient(x: Tensor) -> Tensor:
        return grad(func(x), x, create_graph=True, materialize_grads=True)[0]

    return jacobian(gradient, inputs.detach().requires_grad_(), create_graph=create_graph)
