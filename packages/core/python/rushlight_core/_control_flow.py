"""Control flow as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._C import Tensor


def cond(
    pred: bool | Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """Call `true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`, and return the result.

    Nothing is traced: this is an `if` statement as a function, for programs that were written for a compiler.

    Args:
        pred: a bool, or a tensor of one element.
        true_fn, false_fn: functions of the operands; only one of them runs.
        operands: their arguments.

    Raises:
        TypeError: one of the functions cannot be called, or `operands` is no sequence.
        RuntimeError: `pred` does not have one element.

    Example:
        >>> torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.tensor(0.0),))
        tensor(0.)
    """
    for name, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise TypeError(f"cond({name}): must be a function, not {type(function).__name__}")
    if not isinstance(operands, (tuple, list)):
        raise TypeError(f"cond(operands): must be a tuple or a list, not {type(operands).__name__}")
    return true_fn(*operands) if bool(pred) else false_fn(*operands)
