"""Queries about GPUs, and selection of the current GPU."""

from __future__ import annotations

import os
import warnings

import rushlight_core as core

TYPE_CHECKING = False  # typing takes longer to import than this module
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "current_device",
    "device",
    "device_count",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_tf32_supported",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """Return whether tensors can be created on a GPU: the package for GPUs is installed and finds one.

    Example:
        >>> device = "cuda" if torch.cuda.is_available() else "cpu"
        >>> torch.zeros(2, device=device).shape
        torch.Size([2])
    """
    if not _driver_is_there():
        return False
    if core._C._device_count("cuda") > 0:
        return True
    try:
        core.devices.find_backend("cuda")
        return False
    except RuntimeError as error:
        # Programs hide all devices to run on the CPU, so this needs no warning.
        if os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1"):
            warnings.warn(f"cuda.is_available(): no GPU can be used: {error}", stacklevel=2)
        return False


def device_count() -> int:
    """Return the number of GPUs, or 0 if no GPU can be used.

    Example:
        >>> (torch.cuda.device_count() > 0) == torch.cuda.is_available()
        True
    """
    return core._C._device_count("cuda") if _is_usable() else 0


def _is_usable() -> bool:
    return _why_not() is None


def _why_not() -> str | None:
    """Return why no GPU can be used, or None if one can be used."""
    if not _driver_is_there():
        return "this machine has no NVIDIA driver\nhint: check cuda.is_available() first"
    try:
        core.empty(0, device=core.device("cuda", 0))
    except RuntimeError as error:
        return str(error)
    return None


def _driver_is_there() -> bool:
    """Return True if GPUs are already in use, or if the library of the driver can be opened.

    This check is faster than a search for the package that supports GPUs.
    """
    from _ctypes import dlopen

    if core._C._kernels("cuda"):
        return True
    try:
        dlopen("libcuda.so.1", os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError:
        return False
    return True


def _need(function: str) -> None:
    if (cause := _why_not()) is not None:
        raise RuntimeError(f"cuda.{function}(): no GPU is available: {cause}")


def init() -> None:
    """Initialise GPUs. Calling this function is optional, because the first use of a GPU initialises GPUs.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.init()
    """
    _need("init")


def is_initialized() -> bool:
    """Return whether GPUs are initialised.

    Example:
        >>> torch.cuda.is_initialized() == torch.cuda.is_available()
        True
    """
    return _is_usable()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether there is a GPU that computes with bfloat16.

    Args:
        including_emulation: has no effect.

    Example:
        >>> torch.cuda.is_bf16_supported() == torch.cuda.is_available()
        True
    """
    return _is_usable()


def is_tf32_supported() -> bool:
    """Return whether there is a GPU that multiplies in TF32, which needs the compute capability 8.0 or higher.

    Example:
        >>> torch.cuda.is_tf32_supported() <= torch.cuda.is_available()
        True
    """
    return _is_usable() and get_device_capability()[0] >= 8


def synchronize(device: Any = None) -> None:
    """Wait until a GPU has finished all work that was submitted to it.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        x = torch.ones(1000, 1000, device="cuda") @ torch.ones(1000, 1000, device="cuda")
        torch.cuda.synchronize()  # the product is computed
    """
    _need("synchronize")
    core.devices.synchronize(_device(device))


def current_device() -> int:
    """Return the index of the current GPU, to which the device "cuda" without an index refers.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.set_device(1)
        torch.cuda.current_device()  # 1
    """
    _need("current_device")
    return core.devices.current_device("cuda").index or 0


def set_device(device: Any) -> None:
    """Select the current GPU, to which the device "cuda" without an index refers.

    Args:
        device: an index or a device. A negative index changes nothing.

    Raises:
        RuntimeError: there is no GPU.
        ValueError: the device is not a GPU.

    Example::

        torch.cuda.set_device(0)
    """
    if isinstance(device, int) and device < 0:
        return
    where = _device(device)
    _need("set_device")
    core.devices.set_device(where)


def get_device_properties(device: Any = None) -> core.devices.DeviceProperties:
    """Return the name, memory and compute capability of a GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.get_device_properties(0).total_memory
    """
    _need("get_device_properties")
    return core.devices.get_device_properties(_device(device))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a GPU, as major and minor number.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.get_device_capability()  # (9, 0) for an H100
    """
    found = get_device_properties(device)
    return found.major, found.minor


def get_device_name(device: Any = None) -> str:
    """Return the product name of a GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.get_device_name()
    """
    return get_device_properties(device).name


def _device(device: Any) -> core.device:
    if device is None:
        return core.devices.current_device("cuda")
    if isinstance(device, int):
        return core.device("cuda", device)
    found = core.device(device)
    if found.type != "cuda":
        raise ValueError(f"cuda: must be a GPU, such as 'cuda:0', got device {str(found)!r}")
    return found


def _resolved(device: Any) -> core.device:
    where = _device(device)
    return where if where.index is not None else core.devices.current_device("cuda")


class device:  # noqa: N801
    """Context manager within which `device` is the current GPU.

    Args:
        device: an index or a device. A negative index, or None, changes nothing.

    Raises:
        RuntimeError: there is no GPU.

    Example:
        >>> with torch.cuda.device(0 if torch.cuda.is_available() else None):
        ...     x = torch.ones(2)
    """

    def __init__(self, device: Any) -> None:
        self._wanted = None if device is None or (isinstance(device, int) and device < 0) else device
        self._before: int | None = None

    def __enter__(self) -> None:
        if self._wanted is not None:
            self._before = current_device()
            set_device(self._wanted)

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            set_device(self._before)


class device_of(device):  # noqa: N801
    """Context manager within which the GPU of a tensor is the current GPU. A tensor on the CPU changes nothing.

    Args:
        obj: a tensor or a storage.

    Example:
        >>> with torch.cuda.device_of(torch.ones(2)):
        ...     x = torch.ones(2)
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.is_cuda else None)


def get_arch_list() -> list[str]:
    """Return an empty list: the backend does not report the GPUs for which its kernels were compiled.

    Example:
        >>> torch.cuda.get_arch_list()
        []
    """
    return []
