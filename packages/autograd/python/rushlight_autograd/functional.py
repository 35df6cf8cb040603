"""Derivatives of Python functions of tensors: Jacobians and Hessians, and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight_core as core
from rushlight_autograd._backward import grad
from rushlight_autograd.forward_ad import dual_level, make_dual, unpack_dual
from rushlight_autograd.jacobians import batched_gradients, forward_columns, units
from rushlight_core import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _leaves(inputs: Any, create_graph: bool) -> tuple[Tensor, ...]:
    """Return the inputs as leaves of a new graph.

    If `create_graph` is true, an input that requires grad is replaced by a view of the input, so that results are part of
    the graph of the input.
    """
    if create_graph:
        return tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in _tuple(inputs))
    return tuple(x.detach().requires_grad_() for x in _tuple(inputs))


def _outputs(name: str, outputs: Any) -> tuple[Tensor, ...]:
    for y in _tuple(outputs):
        if not isinstance(y, Tensor):
            raise TypeError(
                f"{name}(func): func must return a Tensor or a tuple of them, got {type(y).__name__}"
            )
    return _tuple(outputs)


def _vectors(name: str, v: Any, like: tuple[Tensor, ...], what: str) -> tuple[Tensor, ...]:
    """Check the shapes of `v`, and return it as a tuple.

    If `v` is None, `like` must be a single tensor of one element, and the vector is 1.
    """
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"{name}(v): may be left out only if {what} has one element")
        return (core.ones_like(like[0]),)
    vectors = _tuple(v)
    if [tuple(x.shape) for x in vectors] != [tuple(x.shape) for x in like]:
        raise RuntimeError(
            f"{name}(v): must have the shapes of {what}, {[tuple(x.shape) for x in like]},"
            f" got {[tuple(x.shape) for x in vectors]}"
        )
    return vectors


def _gradients(
    name: str,
    outputs: Any,
    xs: tuple[Tensor, ...],
    v: Any,
    create_graph: bool,
    strict: bool,
    retain: bool = False,
) -> tuple[Tensor, ...]:
    """Return the gradients of `outputs`, weighted by `v`, with respect to `xs`.

    For an input that the outputs do not depend on, raise RuntimeError if `strict` is true; otherwise return
    zeros.
    """
    ys = _tuple(outputs)
    if not any(y.requires_grad for y in ys):
        if strict:
            raise RuntimeError(f"{name}(strict): the output does not depend on any input")
        return tuple(core.zeros_like(x) for x in xs)
    found = grad(
        outputs, xs, v, retain_graph=retain or create_graph, create_graph=create_graph, allow_unused=True
    )
    for i, (x, g) in enumerate(zip(xs, found, strict=True)):
        if strict and g is None:
            raise RuntimeError(
                f"{name}(strict): the output does not depend on input {i} of shape {tuple(x.shape)}"
            )
    return tuple(core.zeros_like(x) if g is None else g for x, g in zip(xs, found, strict=True))


def _like(given: Any, values: tuple[Any, ...]) -> Any:
    return values if isinstance(given, (tuple, list)) else values[0]


def _finished(value: Any, create_graph: bool) -> Any:
    if isinstance(value, tuple):
        return tuple(_finished(one, create_graph) for one in value)
    return value if create_graph else value.detach()


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)`` and the product of the vector `v` with the Jacobian of `func`, computed in reverse mode.

    Args:
        func: a function of tensors that returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: the vector; may be omitted if there is one output with one element.
        create_graph: whether the result can be differentiated again.
        strict: whether to raise RuntimeError if an output does not depend on an input.

    Shape:
        - `v`: the shapes of the outputs. Product: the shapes of the inputs.

    Raises:
        RuntimeError: `v` has wrong shapes, or `strict` is True and an output does not depend on an input.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.vjp(lambda x: x * x, x, torch.tensor([1.0, 10.0]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with core.inference_mode(False):
        xs = _leaves(inputs, create_graph)
        outputs = func(*xs)
        vectors = _vectors("vjp", v, _outputs("vjp", outputs), "the output")
        grads = _gradients("vjp", _outputs("vjp", outputs), xs, vectors, create_graph, strict)
    return _finished(outputs, create_graph), _like(inputs, grads)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)`` and the product of the Jacobian of `func` with the vector `v`, computed in forward mode.

    Args:
        func, inputs, create_graph, strict: as for :func:`vjp`.
        v: the vector; may be omitted if there is one input with one element.

    Shape:
        - `v`: the shapes of the inputs. Product: the shapes of the outputs.

    Raises:
        RuntimeError: `v` has wrong shapes, or `strict` is True and an output does not depend on an input.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.jvp(lambda x: x * x, x, torch.tensor([1.0, 0.0]))
        (tensor([1., 4.]), tensor([2., 0.]))
    """
    xs = _tuple(inputs)
    vectors = _vectors("jvp", v, xs, "the input")
    with core.set_grad_enabled(create_graph), dual_level():
        outputs = func(*(make_dual(x, t) for x, t in zip(xs, vectors, strict=True)))
        pairs = [unpack_dual(y) for y in _outputs("jvp", outputs)]
    if strict and any(p.tangent is None for p in pairs):
        raise RuntimeError("jvp(strict): an output does not depend on any input")
    tangents = tuple(core.zeros_like(p.primal) if p.tangent is None else p.tangent for p in pairs)
    primals = tuple(p.primal for p in pairs)
    return _finished(_like(outputs, primals), create_graph), _finished(_like(outputs, tangents), create_graph)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of a function.

    Args:
        func: a function of tensors that returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        create_graph: whether the result can be differentiated again.
        strict: whether to raise RuntimeError if an output does not depend on an input.
        vectorize: compute all rows of the Jacobian (in forward mode, all columns) in one pass, as in `vmap`.
        strategy: "reverse-mode", one pass for each element of the outputs, or "forward-mode", one pass for each element of
            the inputs.

    Shape:
        - Output: (*output.shape, *input.shape); a tuple if there are several inputs or several outputs, and a tuple
          of tuples if there are several of both.

    Raises:
        RuntimeError: `vectorize` is given together with `strict`, or `strict` is True and an output does not depend on an
            input.
        ValueError: `strategy` is unknown.

    Example:
        >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if vectorize and strict:
        raise RuntimeError("jacobian(): vectorize=True and strict=True are mutually exclusive")
    if strategy == "forward-mode" and vectorize:
        return _vectorized_forward_jacobian(func, inputs, create_graph)
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict)
    if strategy != "reverse-mode":
        raise ValueError(f"jacobian(strategy): must be 'reverse-mode' or 'forward-mode', got {strategy!r}")
    with core.inference_mode(False):
        xs = _leaves(inputs, create_graph)
        outputs = func(*xs)
        result = []
        if vectorize:
            return _finished(_vectorized(outputs, inputs, xs, create_graph), create_graph)
        for y in _outputs("jacobian", outputs):
            rows = [
                _gradients("jacobian", one, xs, None, create_graph, strict, retain=True)
                for one in y.reshape(-1)
            ]
            parts = tuple(_stacked([row[k] for row in rows], y, x, 0) for k, x in enumerate(xs))
            result.append(_like(inputs, parts))
    return _finished(_like(outputs, tuple(result)), create_graph)


def _vectorized(outputs: Any, inputs: Any, xs: tuple[Tensor, ...], create_graph: bool) -> Any:
    ys = _outputs("jacobian", outputs)
    rows = batched_gradients(ys, xs, units(ys), create_graph)
    result, start = [], 0
    for y in ys:
        parts = tuple(
            r.narrow(0, start, y.numel()).reshape(y.shape + x.shape) for r, x in zip(rows, xs, strict=True)
        )
        result.append(_like(inputs, parts))
        start += y.numel()
    return _like(outputs, tuple(result))


def _vectorized_forward_jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool) -> Any:
    xs = _tuple(inputs)
    returned: list[Any] = []

    def function(duals: Any) -> Any:
        returned.append(func(*duals))
        return _outputs("jacobian", returned[0])

    with core.set_grad_enabled(create_graph):
        ys, _, columns, _ = forward_columns("jacobian", function, xs, units(xs))
        result = []
        for y, along in zip(ys, columns, strict=True):
            parts, start = [], 0
            for x in xs:
                part = along.narrow(0, start, x.numel()).permute([*range(1, y.dim() + 1), 0])
                parts.append(part.reshape(y.shape + x.shape))
                start += x.numel()
            result.append(_like(inputs, tuple(parts)))
    return _finished(_like(returned[0], tuple(result)), create_graph)


def _stacked(slices: list[Tensor], y: Tensor, x: Tensor, dim: int) -> Tensor:
    shape = tuple(y.shape) + tuple(x.shape)
    if not slices:
        return core.zeros(shape, dtype=x.dtype, device=x.device)
    return core.stack([s.reshape(-1) for s in slices], dim).reshape(shape)


def _forward_jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool) -> Any:
    xs = _tuple(inputs)
    columns: list[list[tuple[Tensor, ...]]] = []
    outputs: Any = None
    for k, x in enumerate(xs):
        columns.append([])
        for i in range(x.numel()):
            vectors = [core.zeros_like(other) for other in xs]
            vectors[k].view(-1)[i] = 1
            outputs, tangents = jvp(func, tuple(xs), tuple(vectors), create_graph, strict)
            columns[k].append(_tuple(tangents))
    if outputs is None:
        outputs = func(*xs)
    ys = _outputs("jacobian", outputs)
    result = tuple(
        _like(inputs, tuple(_stacked([c[j] for c in columns[k]], y, x, 1) for k, x in enumerate(xs)))
        for j, y in enumerate(ys)
    )
    return _like(outputs, result)


def _scalar(name: str, func: Callable[..., Any], xs: tuple[Tensor, ...]) -> Tensor:
    y = func(*xs)
    if not isinstance(y, Tensor) or y.numel() != 1:
        got = f"shape {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
        raise RuntimeError(f"{name}(func): func must return a Tensor of one element, got {got}")
    return y


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a function whose output has one element.

    Args:
        func: a function of tensors that returns a tensor of one element.
        inputs, create_graph, strict, vectorize: as for :func:`jacobian`.
        outer_jacobian_strategy: how the gradient is differentiated, "reverse-mode" or "forward-mode".

    Shape:
        - Output: (*input.shape, *input.shape); for several inputs a tuple of tuples of (*input_i.shape,
          *input_j.shape).

    Raises:
        RuntimeError: the output has several elements, or `strict` is True and the output does not depend on an input.

    Example:
        >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """

    def gradient(*xs: Tensor) -> Any:
        with core.no_grad():  # use a view, which keeps a tangent; detach() would remove it
            ys = tuple(x if x.requires_grad else x.view_as(x).requires_grad_() for x in xs)
        with core.inference_mode(False):
            grads = _gradients("hessian", _scalar("hessian", func, ys), ys, None, True, strict)
        return _like(inputs, grads)

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, Any]:
    """Return ``func(*inputs)``, and the product of a vector with the Hessian of `func`.

    Args:
        func: a function of tensors that returns a tensor of one element.
        inputs, v, create_graph, strict: as for :func:`jvp`.

    Shape:
        - `v` and the product: the shapes of the inputs.

    Raises:
        RuntimeError: the output has several elements, `v` has wrong shapes, or `strict` is True and the output does not
            depend on an input.

    Example:
        >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
        (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, Any]:
    """Return ``func(*inputs)``, and the product of the Hessian of `func` with a vector.

    If the second derivatives are continuous, the Hessian is symmetric, and :func:`vhp` returns the same product.

    Args:
        func: a function of tensors that returns a tensor of one element.
        inputs, v, create_graph, strict: as for :func:`jvp`.

    Shape:
        - `v` and the product: the shapes of the inputs.

    Raises:
        RuntimeError: the output has several elements, `v` has wrong shapes, or `strict` is True and the output does not
            depend on an input.

    Example:
        >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
        (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Tensor, Any]:
    with core.inference_mode(False):
        xs = _leaves(inputs, create_graph)
        vectors = _vectors(name, v, xs, "the input")
        y = _scalar(name, func, xs)
        first = _gradients(name, y, xs, None, True, strict)
        second = _gradients(name, first, xs, vectors, create_graph, strict)
    return _finished(y, create_graph), _like(inputs, second)
