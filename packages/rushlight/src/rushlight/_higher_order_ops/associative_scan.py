"""Running results of an associative function, in a number of steps that is the logarithm of the length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight_core as core
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight_core import Tensor

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """Compute `x0, f(x0, x1), f(f(x0, x1), x2), …` along a dimension.

    Args:
        combine_fn: an associative function of two containers like `xs`, whose tensors may be longer in any dimension.
        xs: a tensor or a container of tensors.
        dim: the dimension.
        reverse: whether to begin at the end.
        combine_mode: "pointwise" or "generic"; both compute the same here.

    Shape:
        - Tensors in `xs`: (*, L, *), with the same size L of `dim`.
        - Output: the container of `xs` with tensors of the same shapes.

    Raises:
        ValueError: there is no tensor, the tensors have different lengths, `combine_mode` is another text, or `combine_fn`
            returns tensors of other shapes.

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
        raise ValueError("associative_scan(xs): needs tensors of one length along dim")

    def combine(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        results = tree_flatten(combine_fn(tree_unflatten(left, spec), tree_unflatten(right, spec)))[0]
        shapes, expected = [t.shape for t in results], [t.shape for t in left]
        if shapes != expected:
            raise ValueError(
                f"associative_scan(combine_fn): must return tensors of the shapes that it is given, {expected}, got {shapes}"
            )
        return results

    def part(tensors: list[Tensor], start: int, stop: int, step: int) -> list[Tensor]:
        index = core.arange(start, stop, step, device=tensors[0].device)
        return [t.index_select(dim, index) for t in tensors]

    def scan(tensors: list[Tensor]) -> list[Tensor]:
        n = tensors[0].shape[dim]
        if n < 2:
            return tensors
        # Results at odd places are those of the pairs; one more step gives the even ones.
        odd = scan(combine(part(tensors, 0, n - n % 2, 2), part(tensors, 1, n, 2)))
        first = part(tensors, 0, 1, 1)
        if n > 2:
            rest = combine(part(odd, 0, (n - 1) // 2, 1), part(tensors, 2, n, 2))
            even = [core.cat([a, b], dim) for a, b in zip(first, rest, strict=True)]
        else:
            even = first
        places = core.arange(n, device=tensors[0].device)
        order = core.where(places % 2 == 0, places // 2, (n + 1) // 2 + places // 2)
        return [core.cat([a, b], dim).index_select(dim, order) for a, b in zip(even, odd, strict=True)]

    if reverse:
        return tree_unflatten([t.flip(dim) for t in scan([t.flip(dim) for t in leaves])], spec)
    return tree_unflatten(scan(leaves), spec)
