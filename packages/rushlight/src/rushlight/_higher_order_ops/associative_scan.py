"""Scans with an associative function, in a logarithmic number of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight_core as core
from rushlight._higher_order_ops.while_loop import while_loop
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight_core import Tensor
from rushlight_core.seams.control_flow import active_recorder

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """Compute `x0, f(x0, x1), f(f(x0, x1), x2), …` along a dimension.

    If a program with dynamic sizes is captured (`export` with `dynamic_shapes`), the scan becomes two loops, and its
    length may be dynamic.

    Args:
        combine_fn: an associative function of two containers with the structure of `xs`. The tensors that are passed to the
            function have the shapes of the tensors in `xs`, but may have any size in dimension `dim`.
        xs: a tensor or a container of tensors.
        dim: the dimension to scan.
        reverse: whether to scan from the end of the dimension.
        combine_mode: "pointwise" or "generic", which are equivalent here.

    Shape:
        - Tensors in `xs`: (*, L, *), with the same size L of `dim`.
        - Output: a container like `xs`, with tensors of the same shapes.

    Raises:
        ValueError: `xs` contains no tensor, the tensors have different lengths, `combine_mode` is not one of the two
            strings, or `combine_fn` returns tensors of other shapes.

    Source: the work-efficient scan of Blelloch, Prefix Sums and Their Applications (1990).

    Example:
        >>> associative_scan(lambda x, y: x * y, torch.tensor([1, 2, 3, 4]), dim=0)
        tensor([ 1,  2,  6, 24])
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f'associative_scan(combine_mode): must be "pointwise" or "generic", got {combine_mode!r}'
        )
    leaves, spec = tree_flatten(xs)
    if not leaves or len({leaf.shape[dim] for leaf in leaves}) != 1:
        raise ValueError(
            f"associative_scan(xs): must have tensors of the same size in dimension {dim}, "
            f"got shapes {[tuple(leaf.shape) for leaf in leaves]}"
        )

    def combine(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        results = tree_flatten(combine_fn(tree_unflatten(left, spec), tree_unflatten(right, spec)))[0]
        shapes, expected = [t.shape for t in results], [t.shape for t in left]
        if shapes != expected:
            raise ValueError(
                f"associative_scan(combine_fn): must return tensors of the shapes of its arguments, {expected}, got {shapes}"
            )
        return results

    def part(tensors: list[Tensor], start: int, stop: int, step: int) -> list[Tensor]:
        index = core.arange(start, stop, step, device=tensors[0].device)
        return [t.index_select(dim, index) for t in tensors]

    def scan(tensors: list[Tensor]) -> list[Tensor]:
        n = tensors[0].shape[dim]
        if n < 2:
            return tensors
        # The scan of the combined pairs gives the results at odd positions. One more step gives the results at even
        # positions.
        odd = scan(combine(part(tensors, 0, n - n % 2, 2), part(tensors, 1, n, 2)))
        first = part(tensors, 0, 1, 1)
        if n > 2:
            rest = combine(part(odd, 0, (n - 1) // 2, 1), part(tensors, 2, n, 2))
            even = [core.cat([a, b], dim) for a, b in zip(first, rest, strict=True)]
        else:
            even = first
        positions = core.arange(n, device=tensors[0].device)
        order = core.where(positions % 2 == 0, positions // 2, (n + 1) // 2 + positions // 2)
        return [core.cat([a, b], dim).index_select(dim, order) for a, b in zip(even, odd, strict=True)]

    recorder = active_recorder()
    run = scan if recorder is None or not recorder.follows_sizes() else _in_loops(combine, dim)
    if reverse:
        return tree_unflatten([t.flip(dim) for t in run([t.flip(dim) for t in leaves])], spec)
    return tree_unflatten(run(leaves), spec)


def _in_loops(
    combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], dim: int
) -> Callable[[list[Tensor]], list[Tensor]]:
    """Return a function that computes the scan by two loops instead of a recursion.

    Each step of a loop calls `combine` once for all positions. Positions that are not combined in a step keep their values.
    """

    def run(tensors: list[Tensor]) -> list[Tensor]:
        n = tensors[0].shape[dim]
        positions = core.arange(n, device=tensors[0].device)

        def step(distance: Tensor, values: list[Tensor], combined: Tensor) -> list[Tensor]:
            before = (positions - distance).clamp(min=0)
            made = combine([t.index_select(dim, before) for t in values], values)
            return [
                core.where(combined.reshape([-1] + [1] * (t.dim() - 1 - dim % t.dim())), new, t)
                for new, t in zip(made, values, strict=True)
            ]

        def up(distance: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
            # Each position that ends a block of 2 * distance gets the result of its block.
            made = step(distance, list(values), positions % (2 * distance) == 2 * distance - 1)
            return (distance * 2, *made)

        def down(distance: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
            # Each position in the middle of a block gets the result of all elements up to it.
            combined = (positions % (2 * distance) == distance - 1) & (positions >= 2 * distance)
            return (distance // 2, *step(distance, list(values), combined))

        one = core.ones((), dtype=core.int64, device=tensors[0].device)
        distance, *values = while_loop(lambda distance, *_: 2 * distance <= n, up, (one, *tensors))
        return list(while_loop(lambda distance, *_: distance >= 1, down, (distance // 2, *values))[1:])

    return run
