"""Parts of a batch on several devices: there is one, which gets the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight_core import Tensor, device

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _only(function: str, devices: Sequence[Any]) -> Any:
    if len(devices) != 1:
        raise NotImplementedError(
            f"{function}(): got {len(devices)} devices, a batch is not split over several"
        )
    one = devices[0]
    return device("cuda", one) if isinstance(one, int) else device(one)


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> list[Any]:
    """One part for each device, here for one: `inputs` with its tensors there.

    Raises:
        NotImplementedError: there are several devices.
    """
    target = _only("scatter", target_gpus)

    def move(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.to(target)
        if isinstance(value, dict):
            return type(value)((key, move(one)) for key, one in value.items())
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(move, value))
        return type(value)(map(move, value)) if isinstance(value, (list, tuple)) else value

    return [move(inputs)]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """`scatter` of the arguments of a call."""
    return tuple(scatter(inputs, target_gpus, dim)), tuple(scatter(kwargs or {}, target_gpus, dim))


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Return the only part. Raises NotImplementedError for several."""
    if len(outputs) != 1:
        raise NotImplementedError(
            f"gather(): got {len(outputs)} parts, a batch is not split over several devices"
        )
    return outputs[0]
