"""Helpers of the functional optimizers, such as `radam`, which update lists of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._counted import CountedSteps


def step_lists(
    kind: type[CountedSteps],
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    states: Mapping[str, Sequence[Tensor]],
    settings: dict[str, Any],
) -> None:
    """Update lists of tensors by one step of an optimizer. The C++ operator also increments the step counters."""
    optimizer = kind.__new__(kind)  # only its methods are used, so it needs no parameters
    owns: list[dict[str, Any]] = [
        {key: values[i] for key, values in states.items() if len(values)} for i in range(len(params))
    ]
    calls = [
        (
            settings,
            [params[i] for i in positions],
            [grads[i] for i in positions],
            [owns[i] for i in positions],
        )
        for positions in group_by_kind(params)
    ]
    with core.no_grad():
        if len(calls) > 1:
            for call in calls:
                optimizer._check_all(*call)
        for call in calls:
            optimizer._advance(*call)


def check_lists(function: str, params: Sequence[Tensor], state_steps: Sequence[Any] = ()) -> None:
    """Raise an error if a step counter is not a tensor, or if a parameter must not be modified in place."""
    for step in state_steps:
        if not isinstance(step, Tensor):
            raise RuntimeError(
                f"{function}(state_steps): must contain a list of singleton tensors, got {type(step).__name__}\n"
                "hint: pass tensors, such as torch.tensor(0.0); they are incremented in place"
            )
    if not core.is_grad_enabled():
        return
    hint = f"\nhint: call {function} in a block of torch.no_grad()"
    for param in params:
        if param.requires_grad and param.is_leaf:
            raise RuntimeError(
                f"{function}(params): a leaf that requires grad cannot be written in place while gradients are recorded"
                + hint
            )
        if param.requires_grad:
            raise NotImplementedError(
                f"{function}(params): a tensor with a grad_fn cannot be updated while gradients are recorded{hint}"
            )


def group_by_kind(params: Sequence[Tensor]) -> list[list[int]]:
    """Group the indices of parameters by device and dtype, because a fused step requires equal devices and dtypes."""
    found: dict[Any, list[int]] = {}
    for i, param in enumerate(params):
        found.setdefault((param.device, param.dtype), []).append(i)
    return list(found.values())
