"""PyTorch's functions that split a batch over devices, for a single device, which gets the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight_core import Tensor, device

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _only(function: str, devices: Sequence[Any]) -> Any:
    if len(devices) != 1:
        raise NotImplementedError(
            f"{function}(): got {len(devices)} devices, but splitting a batch over several is not supported"
        )
    one = devices[0]
    return device("cuda", one) if isinstance(one, int) else device(one)


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> list[Any]:
    """Move the tensors in `inputs` to a device, and return a list that contains only the moved `inputs`.

    A batch is not split over several devices.

    Args:
        inputs: a tensor, or tuples, lists and dicts of tensors.
        target_gpus: a list with one device.
        dim: has no effect.

    Raises:
        NotImplementedError: `target_gpus` does not contain exactly one device.

    Example:
        >>> torch.nn.parallel.scatter_gather.scatter((torch.ones(2), 3), ["cpu"])
        [(tensor([1., 1.]), 3)]
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
    """Apply `scatter` to the positional and the named arguments of a call.

    Raises:
        NotImplementedError: `target_gpus` does not contain exactly one device.

    Example:
        >>> torch.nn.parallel.scatter_gather.scatter_kwargs((torch.ones(2),), {"k": 1}, ["cpu"])
        (((tensor([1., 1.]),),), ({'k': 1},))
    """
    return tuple(scatter(inputs, target_gpus, dim)), tuple(scatter(kwargs or {}, target_gpus, dim))


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Return the only element of `outputs`.

    Args:
        outputs: a sequence with one result.
        target_device, dim: have no effect.

    Raises:
        NotImplementedError: `outputs` does not contain exactly one result.

    Example:
        >>> torch.nn.parallel.scatter_gather.gather([torch.ones(2)], "cpu")
        tensor([1., 1.])
    """
    if len(outputs) != 1:
        raise NotImplementedError(
            f"gather(): got {len(outputs)} parts, but splitting a batch over several devices is not supported"
        )
    return outputs[0]
