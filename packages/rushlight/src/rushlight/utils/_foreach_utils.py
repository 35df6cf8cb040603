"""Groups of tensors that an optimizer can update together."""

from __future__ import annotations

from typing import Any

from rushlight_core import Tensor

Groups = dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cpu", "cuda"]


_get_fused_kernels_supported_devices = _get_foreach_kernels_supported_devices


def _has_foreach_support(tensors: list[Tensor], device: Any) -> bool:
    return all(t is None or type(t) is Tensor for t in tensors)


def _device_has_foreach_support(device: Any) -> bool:
    return device.type in _get_foreach_kernels_supported_devices()


def _group_tensors_by_device_and_dtype(tensorlistlist: list[list[Any]], with_indices: bool = False) -> Groups:
    """Group corresponding items of several lists by the device and dtype of the tensor in the first list.

    A group is a pair. The first element contains, for each of the given lists, the list of its items in this
    group. The second element is the list of the positions of these items in the given lists if `with_indices`
    is true, and an empty list otherwise.
    """
    groups: Groups = {}
    for row, first in enumerate(tensorlistlist[0]):
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for made, given in zip(lists, tensorlistlist, strict=True):
            if given:
                made.append(given[row])
        if with_indices:
            indices.append(row)
    return groups
