"""The functions behind `Tensor.__array_namespace__`, `Tensor.to_device` and `__array_namespace_info__`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import _C
from .._C import Tensor
from ._dtypes import isdtype

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def array_namespace(self: Tensor, *, api_version: str | None = None) -> ModuleType:
    """Return `rushlight.array_api`. This function is `Tensor.__array_namespace__`.

    Raises:
        ValueError: the version `api_version` of the standard is not supported.
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(
            f"__array_namespace__(api_version): got {api_version!r}, needs one of {', '.join(_VERSIONS)}"
        )
    from .. import array_api

    return array_api


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Return a copy on `device`, or the tensor itself if it is on `device` already. This function is `Tensor.to_device`."""
    if stream is not None:
        raise NotImplementedError(f"to_device(stream): must be None, got {stream!r}")
    return self.to(device)


class _Information:
    """The inspection methods that the array API standard defines for a namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Return a dict with the supported optional features and the maximum number of dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> _C.device:
        """Return the default device in the sense of the array API standard: the CPU."""
        return _C.device("cpu")

    def default_dtypes(self, *, device: Any = None) -> dict[str, _C.dtype]:
        """Return the default dtype for each kind of dtype, such as "integral"."""
        real = _C.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": _C.complex128 if real is _C.float64 else _C.complex64,
            "integral": _C.int64,
            "indexing": _C.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, _C.dtype]:
        """Return all dtypes of the standard by name, or the dtypes of one kind (see `isdtype`)."""
        names = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
        names += ["float32", "float64", "complex64", "complex128"]
        known = {name: getattr(_C, name) for name in names}
        return {name: t for name, t in known.items() if kind is None or isdtype(t, kind)}

    def devices(self) -> list[_C.device]:
        """Return the devices that can be used."""
        return [_C.device("cpu")]


def __array_namespace_info__() -> _Information:  # noqa: N807
    """Return an object with the query functions of the standard, such as `capabilities`, `default_device` and `dtypes`."""
    return _Information()
