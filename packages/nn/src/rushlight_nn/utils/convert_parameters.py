"""All parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the elements of `parameters`, one tensor after the other, as a 1-d tensor (gradients flow through it).

    Raises:
        TypeError: they are not all on one device.
    """
    flat = [p.reshape(-1) for p in parameters]
    devices = {str(p.device) for p in flat}
    if len(devices) > 1:
        raise TypeError(
            f"parameters_to_vector(parameters): got devices {', '.join(sorted(devices))}, needs one"
        )
    return core.cat(flat)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy consecutive parts of the 1-d tensor `vec` into `parameters`.

    Raises:
        TypeError: `vec` is no tensor.
        RuntimeError: it does not have as many elements as the parameters together; nothing has been copied.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters(vec): got {type(vec).__name__}, needs a tensor")
    parameters = list(parameters)
    needed = sum(p.numel() for p in parameters)
    if vec.numel() != needed:
        raise RuntimeError(f"vector_to_parameters(vec): got {vec.numel()} elements, needs {needed}")
    flat = vec.reshape(-1)
    start = 0
    with core.no_grad():
        for parameter in parameters:
            count = parameter.numel()
            parameter.copy_(flat[start : start + count].reshape(parameter.shape))
            start += count
