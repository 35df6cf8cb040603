"""Turn a function of one example into a function of a batch, without a loop: `vmap`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rushlight_core as core
from rushlight_autograd._C import (
    _batch,
    _close_batch,
    _on_slow_path,
    _open_batch,
    _peel,
    _slow_path_taken,
    _unbatch,
)
from rushlight_autograd.tree import TreeSpec, broadcast_prefix, flatten
from rushlight_core import Tensor, _printing

__all__ = ["debug_unwrap", "slow_path_taken", "vmap", "warn_of_slow_path"]

RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes `func` for all examples of a batch in one call of `func`.

    Inside `func`, tensors have the shape of one example, and one call of an operator computes all examples.
    Transforms compose: vmap(grad(f)) computes a separate gradient for each example. Control flow cannot
    depend on the values of tensors, because the values differ between examples; `torch.where` selects between
    two values.

    Args:
        func: a function of tensors, nested containers of tensors, and other objects. `func` must return
            tensors or containers of tensors.
        in_dims: the dimension of each argument along which the examples lie; None for an argument that is the same for all
            examples. An int applies to all positional arguments that are tensors. A tuple has one entry for
            each positional argument. If an argument is a container, its entry may be a container of the same
            structure, with an entry for each element. Examples of keyword arguments lie along dimension 0.
        out_dims: the dimension of each result along which the examples lie: an int, or a container with the
            structure of the result. None for a result that is the same for all examples; such a result may be
            any object.
        randomness: the behaviour of random operators. "error": random operators raise an error; "different":
            each example gets different numbers; "same": all examples get the same numbers.
        chunk_size: the number of examples that are computed at a time; None computes all examples at once.
            Smaller chunks use less memory and give the same results (except for random operators).

    Raises:
        ValueError, IndexError: `in_dims` or `out_dims` does not match the arguments or the results, arguments have
            different numbers of examples, no argument is batched, or `func` returns an object that is not a tensor.
        RuntimeError: the function uses an operation that cannot be computed for many examples at once; the message suggests
            an alternative.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.vmap(torch.dot)(x, x)
        tensor([ 5., 25.])
        >>> per_sample = torch.vmap(torch.func.grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))
        >>> per_sample(torch.ones(2), x)
        tensor([[ 6., 12.],
                [42., 56.]])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"vmap(randomness): must be 'error', 'different' or 'same', got {randomness!r}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap(chunk_size): must be positive or None, got {chunk_size}")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, tree, dims, size = _arguments(func, in_dims, args, kwargs)
        if chunk_size is None or size <= chunk_size:
            return _run(func, leaves, tree, dims, size, out_dims, randomness)
        return _in_chunks(func, leaves, tree, dims, size, out_dims, randomness, chunk_size)

    return wrapper


_printing.unbatch = lambda t: _peel(t)[:2]  # used by core to print a batched tensor
_warns = True


def _warn(op: str) -> None:
    if _warns:
        warnings.warn(
            f"vmap: {op} has no batching rule and is computed example by example, which is slow\n"
            "hint: this is reported once per operator; func.warn_of_slow_path(False) disables the warning",
            UserWarning,
            stacklevel=3,
        )


_on_slow_path(_warn)


def warn_of_slow_path(mode: bool) -> bool:
    """Set whether vmap warns about operators that are computed example by example. Return the previous setting.

    A warning is issued once for each operator.

    Args:
        mode: whether to warn.

    Example:
        >>> before = warn_of_slow_path(False)
        >>> warn_of_slow_path(before)
        False
    """
    global _warns
    before, _warns = _warns, mode
    return before


def slow_path_taken(forget: bool = False) -> list[str]:
    """Return the operators that vmap has computed example by example so far.

    Args:
        forget: whether to clear the list.

    Example:
        >>> _ = slow_path_taken(forget=True)
        >>> _ = torch.vmap(torch.sin)(torch.ones(3))
        >>> slow_path_taken()
        []
    """
    return _slow_path_taken(forget)


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the tensor that a batched tensor wraps, for debugging; any other tensor is returned unchanged.

    Args:
        tensor: the tensor.
        recurse: True unwraps `tensor` at all levels of nested `vmap` calls, so that the result has one dimension for each
            level before the dimensions of an example. False unwraps `tensor` at the innermost level only.

    Shape:
        - Input: (*), the shape of one example.
        - Output: (number of examples, *).

    Example:
        >>> def show(x):
        ...     print(debug_unwrap(x).shape)
        ...     return x
        >>> _ = torch.vmap(show)(torch.ones(3, 2))
        torch.Size([3, 2])
    """
    while tensor._is_batched():
        tensor = _peel(tensor)[0]
        if not recurse:
            break
    return tensor


def _name(func: Any) -> str:
    return getattr(func, "__name__", type(func).__name__)


def _arguments(
    func: Callable[..., Any], in_dims: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], TreeSpec, list[int | None], int]:
    """Return the leaves of (args, kwargs), the dimensions along which their examples lie, and the number of examples."""
    who = f"vmap({_name(func)}, in_dims={in_dims})"
    if not isinstance(in_dims, (int, tuple, list)) or isinstance(in_dims, bool):
        raise ValueError(f"{who}: in_dims must be an int or a tuple, got {type(in_dims).__name__}")
    if not args and not kwargs:
        raise ValueError(f"{who}: was called without arguments, so there is nothing to batch")
    given, tree = flatten(args)
    dims = broadcast_prefix(in_dims if isinstance(in_dims, int) else tuple(in_dims), tree)
    if dims is None:
        raise ValueError(
            f"{who}: in_dims must be nested like the positional arguments, {tree}; one value may stand for a whole container"
        )
    # A number applies to all arguments that are tensors.
    if isinstance(in_dims, int):
        dims = [d if isinstance(x, Tensor) else None for d, x in zip(dims, given, strict=True)]
    size = -1
    for x, d in zip(given, dims, strict=True):
        if d is None:
            continue
        if not isinstance(d, int) or isinstance(d, bool):
            raise ValueError(f"{who}: in_dims must hold ints and None, got {d!r}")
        if not isinstance(x, Tensor):
            raise ValueError(
                f"{who}: in_dims has dimension {d} for an argument of type {type(x).__name__}; only Tensors are batched"
            )
        if not -x.dim() <= d < x.dim():
            raise ValueError(
                f"{who}: dimension {d} is out of range for an argument of shape {tuple(x.shape)}"
            )
    rest, rest_tree = flatten(kwargs)
    leaves = [*given, *rest]
    dims = [*dims, *(0 if isinstance(x, Tensor) else None for x in rest)]
    for x, d in zip(leaves, dims, strict=True):
        if d is None:
            continue
        if x.dim() == 0:
            raise ValueError(
                f"{who}: a keyword argument is a 0-d Tensor, which has no dimension to batch over"
            )
        if size not in (-1, x.shape[d]):
            sizes = [tuple(y.shape) for y, e in zip(leaves, dims, strict=True) if e is not None]
            raise ValueError(
                f"{who}: the batched dimensions must have the same size, got {size} and {x.shape[d]} in shapes {sizes}"
            )
        size = x.shape[d]
    if size < 0:
        raise ValueError(f"{who}: no argument is a Tensor to be batched")
    return leaves, TreeSpec(tuple, None, [tree, rest_tree]), dims, size


@contextmanager
def batch_level(size: int, randomness: str = "error", passive: bool = False) -> Iterator[None]:
    """Return a context manager that runs its block inside a new level of `vmap`."""
    _open_batch(size, RANDOMNESS.index(randomness), passive)
    try:
        yield
    finally:
        _close_batch()


def _run(
    func: Callable[..., Any],
    leaves: list[Any],
    tree: TreeSpec,
    dims: list[int | None],
    size: int,
    out_dims: Any,
    randomness: str,
) -> Any:
    with batch_level(size, randomness):
        args, kwargs = tree.unflatten(
            [x if d is None else _batch(x, d) for x, d in zip(leaves, dims, strict=True)]
        )
        results, result_tree = flatten(func(*args, **kwargs))
        result_dims = _result_dims(func, out_dims, results, result_tree)
        rows = [
            _unbatch(y, d) if isinstance(y, Tensor) else y for y, d in zip(results, result_dims, strict=True)
        ]
    return result_tree.unflatten(rows)


def _result_dims(
    func: Callable[..., Any], out_dims: Any, results: list[Any], tree: TreeSpec
) -> list[int | None]:
    who = f"vmap({_name(func)}, out_dims={out_dims})"
    wanted = out_dims
    if isinstance(out_dims, tuple) and tree.is_leaf() and len(out_dims) == 1:
        (wanted,) = out_dims
    dims = broadcast_prefix(wanted, tree)
    if dims is None:
        raise ValueError(
            f"{who}: out_dims must be nested like the result, {tree}; one value may stand for a whole container"
        )
    for y, d in zip(results, dims, strict=True):
        if d is None:
            continue
        if not isinstance(y, Tensor):
            raise ValueError(
                f"{who}: {_name(func)} must return only Tensors, got {type(y).__name__}\n"
                "hint: results with out_dims None may be of any type"
            )
        if not isinstance(d, int) or isinstance(d, bool):
            raise ValueError(f"{who}: out_dims must hold ints and None, got {d!r}")
        if not -y.dim() - 1 <= d <= y.dim():
            raise IndexError(
                f"{who}: dimension {d} is out of range for a result whose examples have shape {tuple(y.shape)}"
            )
    return dims


def _in_chunks(
    func: Callable[..., Any],
    leaves: list[Any],
    tree: TreeSpec,
    dims: list[int | None],
    size: int,
    out_dims: Any,
    randomness: str,
    chunk_size: int,
) -> Any:
    if randomness == "same":
        generator = core.default_generator
        state = generator.get_state()
    parts: list[list[Any]] = []
    for start in range(0, size, chunk_size):
        length = min(chunk_size, size - start)
        chunk = [x if d is None else x.narrow(d, start, length) for x, d in zip(leaves, dims, strict=True)]
        if randomness == "same":
            generator.set_state(state)
        result = _run(func, chunk, tree, dims, length, out_dims, randomness)
        values, result_tree = flatten(result)
        parts.append(values)
    wanted = out_dims[0] if isinstance(out_dims, tuple) and result_tree.is_leaf() else out_dims
    result_dims = broadcast_prefix(wanted, result_tree) or []
    joined = [
        pieces[0] if d is None else core.cat(pieces, d if d >= 0 else d + pieces[0].dim())
        for pieces, d in zip(zip(*parts, strict=True), result_dims, strict=True)
    ]
    return result_tree.unflatten(joined)
