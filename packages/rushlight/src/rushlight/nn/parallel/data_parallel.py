"""The class `DataParallel` and the function `data_parallel`, under PyTorch's module path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight_nn import DataParallel, Module

__all__ = ["DataParallel", "data_parallel"]


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call `module` with the whole batch, which is not split over several GPUs.

    Args:
        module: the model.
        inputs: a tuple of positional arguments, or a single positional argument.
        device_ids: at most one GPU.
        output_device: the device of the results, which must be the device of `module`.
        dim: the dimension of the batch; has no effect, because the module is on one device.
        module_kwargs: the named arguments.

    Shape:
        - Inputs and output: the same as for the module.

    Raises:
        NotImplementedError: there is more than one device, or `output_device` is not the device of `module`.

    Example:
        >>> nn.parallel.data_parallel(nn.Identity(), torch.ones(2))
        tensor([1., 1.])
    """
    arguments = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*arguments, **(module_kwargs or {}))
