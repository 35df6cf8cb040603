"""DataParallel: a wrapper for models that run on a single device."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core

from .._typing import Any
from ..module import Module


class DataParallel(Module):
    """A wrapper that calls `module` without splitting the batch over several GPUs.

    This class is for programs that wrap their model even if there is only one device. Names of parameters begin with
    `module.`, as in PyTorch.

    Args:
        module: the model.
        device_ids: at most one GPU.
        output_device: the device of the results, which must be the device of the module.
        dim: the dimension of the batch. This argument has no effect, because the module is on one device.

    Raises:
        NotImplementedError: there is more than one device, or `output_device` is not the device of the module.

    Example:
        >>> model = nn.DataParallel(nn.Linear(4, 2))
        >>> list(model.state_dict())
        ['module.weight', 'module.bias']
    """

    device_ids: list[Any]

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int | core.device] | None = None,
        output_device: int | core.device | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise NotImplementedError(
                f"DataParallel(device_ids): got {list(device_ids)}; splitting a batch over several GPUs is not supported\n"
                "hint: start a process for each device, and average their gradients"
            )
        if output_device is not None and device_ids and output_device != device_ids[0]:
            raise NotImplementedError(
                f"DataParallel(output_device): got {output_device!r}, needs the module's device {device_ids[0]!r}"
            )
        self.module = module
        self.dim = dim
        self.device_ids = list(device_ids or [])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
