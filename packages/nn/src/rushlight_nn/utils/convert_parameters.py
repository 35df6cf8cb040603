"""Conversion between parameters and one vector."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the elements of all parameters, concatenated to one vector. The operation is differentiable.

    Args:
        parameters: the tensors.

    Shape:
        - Parameters: (*), any shapes.
        - Output: (total number of elements).

    Raises:
        TypeError: the parameters are not all on one device.

    Example:
        >>> nn.utils.parameters_to_vector([torch.zeros(2, 2), torch.ones(1)])
        tensor([0., 0., 0., 0., 1.])
    """
    flat = [p.reshape(-1) for p in parameters]
    devices = {str(p.device) for p in flat}
    if len(devices) > 1:
        raise TypeError(
            f"parameters_to_vector(parameters): must be on one device, got {', '.join(sorted(devices))}"
        )
    return core.cat(flat)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy consecutive parts of a vector into parameters.

    Args:
        vec: the vector.
        parameters: the tensors to copy to.

    Shape:
        - `vec`: (total number of elements).
        - Parameters: (*), any shapes.

    Raises:
        TypeError: `vec` is not a tensor.
        RuntimeError: `vec` does not have as many elements as the parameters. In this case, nothing is copied.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), layer.parameters())
        >>> layer.weight.tolist(), layer.bias.tolist()
        ([[1.0, 2.0]], [3.0])
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
