"""Transforms of functions into derivatives: grad, vjp, jvp, linearize. Transforms can be nested in any order.

Arguments and results may be tensors and nested containers of them. Gradients with respect to tensors outside of the
function, such as parameters that require grad, are recorded as usual; see Note [Transforms] in transform.h.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import rushlight_core as core
from rushlight_autograd._backward import grad as _gradients
from rushlight_autograd._C import (
    _close_transform,
    _finish,
    _open_transform,
    _reaches_outside,
    _transform_leaf,
)
from rushlight_autograd.forward_ad import dual_level, make_dual, unpack_dual
from rushlight_autograd.tree import TreeSpec, flatten, tree_map
from rushlight_core import Tensor

__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]

ArgNums = int | tuple[int, ...]


class Transform:
    """A context manager in which a transform such as `grad` runs the function that it differentiates.

    Each transform is a new level of reverse-mode differentiation.

    Example:
        >>> with Transform() as level:
        ...     x = level.leaf(torch.tensor(2.0))
        ...     x.requires_grad
        True
    """

    def __init__(self) -> None:
        self.outer: bool = core.is_grad_enabled()  # whether outer graphs are recorded
        self._mode = core.inference_mode(False)  # also turns on the recording of gradients

    def __enter__(self) -> Transform:
        self._id = _open_transform()
        self._mode.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mode.__exit__(kind, value, trace)
        _close_transform(self._id)

    def leaf(self, x: Any) -> Any:
        """Return the tensor that the function receives in place of `x`, or `x` itself if it is not a tensor."""
        return _transform_leaf(x, self._id, self.outer) if isinstance(x, Tensor) else x

    def outside(self, tensors: Sequence[Any]) -> bool:
        """Return whether any of `tensors` depends on a tensor that requires grad and was made outside of this transform."""
        if not self.outer:
            return False
        return _reaches_outside([t for t in tensors if isinstance(t, Tensor) and t.requires_grad], self._id)

    def finished(self, value: Any, outer: bool | None = None) -> Any:
        """Return a result of the transform, detached from the autograd graph of this transform.

        The result is not detached if it is also part of an outer graph, that is, the graph of an enclosing
        transform or of the calling code. The same holds for the tangents of the result. `outer` states
        whether outer graphs are recorded; by default, it is the value of `is_grad_enabled()` when the
        transform was created.
        """
        if not isinstance(value, Tensor):
            return value
        return _finish(value, self._id, self.outer if outer is None else outer)


def gradients(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    vectors: Sequence[Tensor] | None,
    retain_graph: bool,
    create_graph: bool,
) -> list[Tensor]:
    """Return the gradient of the outputs with respect to each input, or zeros for an input that has no gradient."""
    which = [i for i, y in enumerate(outputs) if y.requires_grad]
    found: Sequence[Tensor | None] = [None] * len(inputs)
    if which and inputs:
        found = _gradients(
            [outputs[i] for i in which],
            inputs,
            None if vectors is None else [vectors[i] for i in which],
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
    return [core.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


def _positions(name: str, argnums: Any, count: int) -> list[int]:
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(numbers, tuple) or not all(isinstance(n, int) for n in numbers):
        raise RuntimeError(f"{name}(argnums): must be an int or a tuple of ints, got {argnums!r}")
    if not numbers:
        raise RuntimeError(f"{name}(argnums): must name at least one argument")
    for n in numbers:
        if not -count <= n < count:
            raise RuntimeError(f"{name}(argnums): {n} is out of range for {count} positional arguments")
    positions = [n % count for n in numbers]
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"{name}(argnums): {argnums!r} names an argument twice")
    return positions


def with_arguments(name: str, transform: Any, args: tuple[Any, ...], argnums: Any) -> tuple[list[Any], Any]:
    """Replace the arguments that `argnums` selects by the results of `transform`.

    Return the list of all arguments after the replacement, and the selected arguments alone.
    """
    args_list = list(args)
    for n in _positions(name, argnums, len(args)):
        args_list[n] = tree_map(transform, args_list[n])
    chosen = args_list[argnums] if isinstance(argnums, int) else tuple(args_list[n] for n in argnums)
    return args_list, chosen


def tensors_of(name: str, what: str, value: Any) -> tuple[list[Tensor], TreeSpec]:
    """Return the tensors in a nested container, and its structure.

    Raise RuntimeError if the container has a leaf that is not a tensor.
    """
    leaves, tree = flatten(value)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{name}: {what} must contain only Tensors, got {type(leaf).__name__}")
    return leaves, tree


def with_aux(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Split the result of a function into its output and its auxiliary object, which is None if `has_aux` is false."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{name}(has_aux=True): the function must return a tuple (output, aux), got {_kind(result)}"
        )
    return result


def _kind(value: Any) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__


def grad_and_value(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the gradient and the value of `func`.

    Args:
        func: a function that returns a 0-d tensor; with `has_aux` a tuple of that tensor and any other object.
        argnums: the position of the argument to differentiate with respect to, or a tuple of positions. The
            arguments may be containers of tensors.
        has_aux: whether `func` also returns an auxiliary object, which is returned unchanged.

    Returns:
        a function of the same arguments that returns (gradient, value), or (gradient, (value, aux)). The gradient has the
        structure of the selected argument. If `argnums` is a tuple, the gradient is a tuple with one item for each number
        in `argnums`.

    Shape:
        - Gradients: the same shapes as the selected arguments.

    Raises:
        RuntimeError: `func` does not return a 0-d tensor (raised by the returned function).

    Example:
        >>> torch.func.grad_and_value(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        (tensor([ 3., 12.]), tensor(9.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with Transform() as transform:
            given, chosen = with_arguments("grad", transform.leaf, args, argnums)
            leaves, tree = tensors_of("grad", "the arguments that argnums selects", chosen)
            value, aux = with_aux("grad", func(*given, **kwargs), has_aux)
            if not isinstance(value, Tensor) or value.dim():
                got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
                raise RuntimeError(
                    f"grad(func): func must return a 0-d Tensor, got {got}\n"
                    "hint: reduce it (sum, mean), or use vjp or jacrev"
                )
            outside = transform.outside([value, *flatten(aux)[0]])
            found = gradients([value], leaves, None, outside, outside)
            result = tree.unflatten(map(transform.finished, found))
            value, aux = tree_map(transform.finished, (value, aux))
        return result, (value, aux) if has_aux else value

    return wrapper


def grad(func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of `func`.

    Args:
        func, argnums, has_aux: as for :func:`grad_and_value`.

    Returns:
        a function of the same arguments that returns the gradient, or (gradient, aux).

    Shape:
        - Gradients: the same shapes as the selected arguments.

    Raises:
        RuntimeError: `func` does not return a 0-d tensor (raised by the returned function).

    Example:
        >>> square = torch.func.grad(lambda x: x**3)
        >>> square(torch.tensor(2.0)), torch.func.grad(square)(torch.tensor(2.0))
        (tensor(12.), tensor(12.))
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result, value = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return ``func(*primals)``, and a function that computes the product of a vector with the Jacobian of `func`.

    Args:
        func: a function that returns tensors, in any container; with `has_aux` a tuple of the output and any other object.
        primals: the arguments to differentiate with respect to, tensors or containers of them.
        has_aux: whether `func` also returns an auxiliary object, which is returned unchanged.

    Returns:
        (output, vjp_fn), or (output, vjp_fn, aux). `vjp_fn(cotangents)` takes tensors with the structure of the
        output, and returns a tuple with a gradient for each of `primals`. `vjp_fn` may be called several
        times, and inside `vmap`.

    Shape:
        - Cotangents: the same shapes as the output.
        - Gradients: the same shapes as the primals.

    Raises:
        RuntimeError: there are no primals, or the cotangents do not have the structure and shapes of the output (raised by
            `vjp_fn`).

    Example:
        >>> output, vjp_fn = torch.func.vjp(torch.sin, torch.tensor([0.0, 1.0]))
        >>> vjp_fn(torch.ones(2))
        (tensor([1.0000, 0.5403]),)
    """
    if not primals:
        raise RuntimeError("vjp(func, *primals): needs at least one primal")
    with Transform() as transform:
        leaves, tree = tensors_of("vjp", "primals", primals)
        leaves = [transform.leaf(x) for x in leaves]
        output, aux = with_aux("vjp", func(*tree.unflatten(leaves)), has_aux)
        outputs, output_tree = tensors_of("vjp", "the output of func", output)
        outside = transform.outside([*outputs, *flatten(aux)[0]])
        finished, aux = tree_map(transform.finished, (output, aux))

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        vectors, given = tensors_of("vjp_fn", "cotangents", cotangents)
        if given != output_tree:
            raise RuntimeError(
                f"vjp_fn(cotangents): must be nested like the output, {output_tree}, got {given}"
            )
        for v, y in zip(vectors, outputs, strict=True):
            if v.shape != y.shape:
                raise RuntimeError(
                    f"vjp_fn(cotangents): must have the shape of the output, {tuple(y.shape)}, got {tuple(v.shape)}"
                )
        create = core.is_grad_enabled() and (outside or any(v.requires_grad for v in vectors))
        if create_graph is not None:
            create = create_graph
        found = gradients(outputs, leaves, vectors, retain_graph or create, create)
        # The cotangents may have a graph even if gradients were disabled when vjp() was called.
        return tree.unflatten(transform.finished(g, core.is_grad_enabled()) for g in found)

    return (finished, vjp_fn, aux) if has_aux else (finished, vjp_fn)


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """Return ``func(*primals)``, and the product of the Jacobian of `func` with a vector, computed in forward mode.

    Args:
        func: a function that returns tensors, in any container; with `has_aux` a tuple of the output and any other object.
        primals: a tuple of arguments: tensors or containers of them.
        tangents: the vector by which the Jacobian is multiplied, as a tuple with the structure of `primals`.
        strict: raise RuntimeError if an output does not depend on any primal.
        has_aux: whether `func` also returns an auxiliary object, which is returned unchanged.

    Returns:
        (output, tangent of the output), or (output, tangent of the output, aux).

    Shape:
        - Tangents: the same shapes as the primals.
        - Tangent of the output: the same shape as the output.

    Raises:
        RuntimeError: `primals` and `tangents` are not tuples or differ in structure, `primals` contains no tensor, or
            `strict` is true and an output does not depend on any primal.

    Example:
        >>> torch.func.jvp(torch.sin, (torch.tensor([0.0, 1.0]),), (torch.ones(2),))
        (tensor([0.0000, 0.8415]), tensor([1.0000, 0.5403]))
    """
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple):
            raise RuntimeError(f"jvp({name}): must be a tuple, got {type(value).__name__}")
    xs, tree = tensors_of("jvp", "primals", primals)
    ts, given = tensors_of("jvp", "tangents", tangents)
    if tree != given:
        raise RuntimeError(f"jvp(tangents): must be nested like primals, {tree}, got {given}")
    if not xs:
        raise RuntimeError("jvp(primals): needs at least one Tensor")
    with dual_level():
        duals = [make_dual(x, t) for x, t in zip(xs, ts, strict=True)]
        output, aux = with_aux("jvp", func(*tree.unflatten(duals)), has_aux)
        outputs, output_tree = tensors_of("jvp", "the output of func", output)
        pairs = [unpack_dual(y) for y in outputs]
        aux = tree_map(lambda x: unpack_dual(x).primal if isinstance(x, Tensor) else x, aux)
        if strict and any(p.tangent is None for p in pairs):
            raise RuntimeError("jvp(strict=True): an output does not depend on any primal")
        output = output_tree.unflatten(p.primal for p in pairs)
        along = output_tree.unflatten(
            core.zeros_like(p.primal) if p.tangent is None else p.tangent for p in pairs
        )
    return (output, along, aux) if has_aux else (output, along)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return ``func(*primals)``, and the derivative at `primals` as a linear function of tangents.

    `func` runs once; the linear function computes only the values that depend on the tangents. The linear function is the
    vjp of a vjp (the transpose of a transpose), so every operator in `func` must be differentiable twice in reverse mode.

    Args:
        func: a function that returns tensors, in any container.
        primals: its arguments, tensors or containers of them.

    Returns:
        (output, jvp_fn). The result of `jvp_fn(*tangents)` has the structure of `output`.

    Shape:
        - Tangents: the same shapes as the primals.

    Raises:
        RuntimeError: the tangents do not have the structure of the primals (raised by `jvp_fn`).

    Example:
        >>> output, jvp_fn = torch.func.linearize(torch.sin, torch.tensor([0.0, 1.0]))
        >>> jvp_fn(torch.ones(2))
        tensor([1.0000, 0.5403])
    """
    output, vjp_fn = vjp(func, *primals)
    outputs, tree = flatten(output)
    like = tree.unflatten([core.zeros_like(y) for y in outputs])
    _, transposed = vjp(vjp_fn, like)
    expected = flatten(primals)[1]

    def jvp_fn(*tangents: Any) -> Any:
        _, given = tensors_of("jvp_fn", "tangents", tangents)
        if given != expected:
            raise RuntimeError(f"jvp_fn(*tangents): must be nested like the primals, {expected}, got {given}")
        return transposed(tangents)[0]

    return output, jvp_fn
