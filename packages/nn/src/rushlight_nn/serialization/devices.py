"""Move loaded tensors to devices."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from .errors import FormatError


def map_to_device(tensor: Tensor, device: str, map_location: Any) -> Tensor:
    """Move `tensor`, which is on the CPU and was saved from `device`, to the device that `map_location` selects.

    Raises:
        FormatError: the device from which the tensor was saved is unknown or not available.
        RuntimeError: the device that `map_location` selects is not available.
    """
    if isinstance(map_location, dict):
        target: Any = map_location.get(device, device)
    elif callable(map_location) and not isinstance(map_location, core.device):
        result = map_location(tensor, device)
        if result is not None:
            return result
        target = device
    else:
        target = device if map_location is None else map_location
    if isinstance(target, int):
        target = f"cuda:{target}"
    chosen = target is not device
    if not chosen:
        try:
            target = core.device(target)
        except (RuntimeError, ValueError, TypeError) as error:
            raise FormatError(
                f"a tensor was saved from the unknown device {device[:40]!r} ({error})"
            ) from None
    else:
        target = core.device(target)
    if target.type == "cpu":
        return tensor
    try:
        return tensor.to(target)
    except (RuntimeError, AssertionError) as error:
        what = f"a tensor belongs on the device {str(target)!r}, which is not available ({error})"
        if chosen:
            raise RuntimeError(f"load: {what}\nhint: pass map_location='cpu'") from error
        raise FormatError(f"{what}\nhint: pass map_location='cpu'") from error
