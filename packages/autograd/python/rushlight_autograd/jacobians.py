"""Jacobians and Hessians: jacrev, jacfwd, hessian.

jacrev computes the rows of a Jacobian as one batch, and jacfwd computes the columns as one batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import rushlight_core as core
from rushlight_autograd._C import _batch, _unbatch
from rushlight_autograd.batching import batch_level
from rushlight_autograd.forward_ad import dual_level, make_dual, unpack_dual
from rushlight_autograd.transforms import (
    ArgNums,
    Transform,
    gradients,
    tensors_of,
    with_arguments,
    with_aux,
)
from rushlight_autograd.tree import TreeSpec, flatten, tree_map
from rushlight_core import Tensor

__all__ = ["hessian", "jacfwd", "jacrev"]


def units(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return one tensor of shape (total number of elements, *x.shape) for each tensor x in `tensors`.

    Row i contains a one at element i of the concatenated tensors, and zeros elsewhere.
    """
    total = sum(t.numel() for t in tensors)
    result, start = [], 0
    for t in tensors:
        rows = core.zeros((total, t.numel()), dtype=t.dtype, device=t.device)
        rows.narrow(0, start, t.numel()).fill_diagonal_(1)
        result.append(rows.view(total, *t.shape))
        start += t.numel()
    return result


def batched_gradients(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    vectors: Sequence[Tensor],
    create_graph: bool,
    retain_graph: bool = True,
    compute: Callable[..., list[Tensor]] = gradients,
) -> list[Tensor]:
    """Compute vector-Jacobian products in one backward pass for many vectors, batched along dimension 0."""
    count = vectors[0].shape[0]
    with batch_level(count, passive=True):
        rows = [_batch(v, 0) for v in vectors]
        found = compute(outputs, inputs, rows, retain_graph, create_graph)
        return [_unbatch(g, 0) for g in found]


def _in_chunks(
    rows: Sequence[Tensor], chunk_size: int | None, compute: Callable[[Sequence[Tensor]], list[Tensor]]
) -> list[Tensor]:
    count = rows[0].shape[0]
    if chunk_size is None or chunk_size >= count or count == 0:
        return compute(rows)
    parts = [
        compute([r.narrow(0, at, min(chunk_size, count - at)) for r in rows])
        for at in range(0, count, chunk_size)
    ]
    return [core.cat(pieces) for pieces in zip(*parts, strict=True)]


def _check_chunk(name: str, chunk_size: int | None) -> None:
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"{name}(chunk_size): must be positive or None, got {chunk_size}")


def _check_real(name: str, what: str, tensors: Sequence[Tensor]) -> None:
    """Raise RuntimeError if `tensors` is empty or contains a complex tensor.

    A function of complex numbers need not have a complex derivative.
    """
    if not tensors:
        raise RuntimeError(f"{name}: {what} must contain a tensor")
    for t in tensors:
        if t.is_complex():
            raise RuntimeError(
                f"{name}: {what} must be real, got {t.dtype}\n"
                "hint: use torch.view_as_real and torch.view_as_complex to differentiate with respect to the real and "
                "imaginary parts"
            )


def jacrev(
    func: Callable[..., Any],
    argnums: ArgNums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` in reverse mode.

    One backward pass computes the gradients of all elements of the output, or of `chunk_size` elements.

    Args:
        func: a function that returns tensors, in any container; with `has_aux`, a tuple of the output and any other
            object.
        argnums: the position of the argument to differentiate with respect to, or a tuple of positions.
        has_aux: whether `func` returns a second value, which is returned unchanged.
        chunk_size: the number of elements of the output whose gradients one backward pass computes; None for
            all elements. A smaller number needs less memory.
        _preallocate_and_copy: accepted for compatibility; has no effect.

    Returns:
        a function that takes the arguments of `func`. Its result is the output of `func`, with each tensor
        replaced by its Jacobian with respect to the selected argument. If this argument is a container, each
        tensor is replaced by a container of the same structure, with one Jacobian for each tensor of the
        argument. If `argnums` is a tuple, each tensor is replaced by a tuple, with one entry for each
        selected argument. With `has_aux`, the function returns a tuple of this result and the second value of
        `func`.

    Shape:
        - Jacobian: (*output.shape, *argument.shape).

    Raises:
        RuntimeError: the output of `func`, or the arguments that `argnums` selects, contain a complex tensor
            or no tensor.

    Example:
        >>> torch.func.jacrev(torch.sin)(torch.tensor([0.0, 1.0]))
        tensor([[1.0000, 0.0000],
                [0.0000, 0.5403]])
    """
    _check_chunk("jacrev", chunk_size)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with Transform() as transform:
            given, chosen = with_arguments("jacrev", transform.leaf, args, argnums)
            leaves, tree = tensors_of("jacrev", "the arguments that argnums selects", chosen)
            _check_real("jacrev", "the arguments that argnums selects", leaves)
            output, aux = with_aux("jacrev", func(*given, **kwargs), has_aux)
            outputs, output_tree = tensors_of("jacrev", "the output of func", output)
            _check_real("jacrev", "the output of func", outputs)
            outside = transform.outside([*outputs, *flatten(aux)[0]])
            found = _in_chunks(
                units(outputs), chunk_size, lambda rows: batched_gradients(outputs, leaves, rows, outside)
            )
            found = [transform.finished(g) for g in found]
            aux = tree_map(transform.finished, aux)
        # The rows of all outputs are in one tensor: split it, and restore the outputs' shapes.
        blocks, start = [], 0
        for y in outputs:
            end = start + y.numel()
            blocks.append(
                tree.unflatten(
                    g.narrow(0, start, end - start).reshape(y.shape + x.shape)
                    for g, x in zip(found, leaves, strict=True)
                )
            )
            start = end
        result = output_tree.unflatten(blocks)
        return (result, aux) if has_aux else result

    return wrapper


def forward_columns(
    name: str,
    function: Callable[..., Any],
    leaves: Sequence[Tensor],
    directions: Sequence[Tensor],
    has_aux: bool = False,
) -> tuple[list[Tensor], TreeSpec, list[Tensor], Any]:
    """Run function(leaves) once in forward mode with many tangents, which are batched along dimension 0."""
    count = directions[0].shape[0]
    with dual_level(), batch_level(count, passive=True):
        duals = [make_dual(x, _batch(d, 0)) for x, d in zip(leaves, directions, strict=True)]
        output, aux = with_aux(name, function(duals), has_aux)
        outputs, tree = tensors_of(name, "the output of func", output)
        pairs = [unpack_dual(y) for y in outputs]
        aux = tree_map(lambda x: unpack_dual(x).primal if isinstance(x, Tensor) else x, aux)
        along = [_unbatch(core.zeros_like(p.primal) if p.tangent is None else p.tangent, 0) for p in pairs]
        return [p.primal for p in pairs], tree, along, aux


def jacfwd(
    func: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` in forward mode.

    One run of the function computes the derivatives with respect to all elements of the arguments, or with
    respect to `chunk_size` elements.

    Args:
        func, argnums, has_aux: as for :func:`jacrev`.
        randomness: accepted for compatibility; each run of the function draws its random numbers once.
        chunk_size: the number of elements of the arguments for which one run of the function computes
            derivatives; None for all elements.

    Returns:
        a function like the result of :func:`jacrev`.

    Shape:
        - Jacobian: (*output.shape, *argument.shape).

    Raises:
        RuntimeError: as for :func:`jacrev`.

    Example:
        >>> torch.func.jacfwd(torch.sin)(torch.tensor([0.0, 1.0]))
        tensor([[1.0000, 0.0000],
                [0.0000, 0.5403]])
    """
    _check_chunk("jacfwd", chunk_size)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given, chosen = with_arguments("jacfwd", lambda x: x, args, argnums)
        leaves, tree = tensors_of("jacfwd", "the arguments that argnums selects", chosen)
        _check_real("jacfwd", "the arguments that argnums selects", leaves)
        seen: list[Any] = []

        def function(duals: Sequence[Tensor]) -> Any:
            chosen = tree.unflatten(duals)
            numbers = (argnums,) if isinstance(argnums, int) else argnums
            full = list(given)
            for n, value in zip(numbers, (chosen,) if isinstance(argnums, int) else chosen, strict=True):
                full[n] = value
            return func(*full, **kwargs)

        def columns(directions: Sequence[Tensor]) -> list[Tensor]:
            outputs, output_tree, along, aux = forward_columns(
                "jacfwd", function, leaves, directions, has_aux
            )
            _check_real("jacfwd", "the output of func", outputs)
            seen[:] = [outputs, output_tree, aux]
            return along

        along = _in_chunks(units(leaves), chunk_size, columns)
        outputs, output_tree, aux = seen
        blocks = []
        for y, t in zip(outputs, along, strict=True):
            parts, start = [], 0
            for x in leaves:
                part = t.narrow(0, start, x.numel())
                order = [*range(1, y.dim() + 1), 0]
                parts.append(part.permute(order).reshape(y.shape + x.shape))
                start += x.numel()
            blocks.append(tree.unflatten(parts))
        result = output_tree.unflatten(blocks)
        return (result, aux) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """Return a function that computes the second derivatives of `func`, by forward mode over reverse mode.

    Args:
        func, argnums: as for :func:`jacrev`.

    Shape:
        - Result, for each tensor of the output and each pair of arguments: (*output.shape, *first.shape,
          *second.shape).

    Example:
        >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
