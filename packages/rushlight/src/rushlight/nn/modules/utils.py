"""Functions under PyTorch's module path: repeat a number as a tuple, and remove a prefix from the names of a state dict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that repeats a number `n` times, or converts an iterable to a tuple."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    return parse


_single, _pair, _triple, _quadruple = (_ntuple(n) for n in range(1, 5))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove a prefix from the names in a state dict, in place.

    Args:
        state_dict: the state dict.
        prefix: the prefix, such as "module.", which DataParallel adds.

    Example:
        >>> state = {"module.weight": torch.ones(2), "step": 1}
        >>> consume_prefix_in_state_dict_if_present(state, "module.")
        >>> sorted(state)
        ['step', 'weight']
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        if key == prefix.removesuffix(".") or key.startswith(prefix):
            metadata[key.removeprefix(prefix) if key.startswith(prefix) else ""] = metadata.pop(key)
