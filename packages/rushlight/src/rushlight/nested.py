"""Nested tensors, which are not supported: every function raises NotImplementedError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def _refused(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"nested.{name}(): nested tensors are not supported\n"
            "hint: use nn.utils.rnn.pad_sequence or pack_sequence for tensors of different lengths"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = (
        f"Raise NotImplementedError: `nested.{name}` is not supported. It exists for programs that import it."
    )
    return refuse


as_nested_tensor = _refused("as_nested_tensor")
masked_select = _refused("masked_select")
narrow = _refused("narrow")
nested_tensor = _refused("nested_tensor")
nested_tensor_from_jagged = _refused("nested_tensor_from_jagged")
to_padded_tensor = _refused("to_padded_tensor")
