"""Names for the annotations of devices, dtypes, sizes and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight_core import Size, Tensor, UntypedStorage, device, dtype, layout

__all__ = ["Device", "Number", "Storage"]

Number = int | float | bool
Device = device | str | int | None

_TensorOrTensors = Tensor | Sequence[Tensor]
_dtype, _device, _layout = dtype, device, layout
_int, _float, _bool = int, float, bool
_size = Size | list[int] | tuple[int, ...]

Storage = UntypedStorage
