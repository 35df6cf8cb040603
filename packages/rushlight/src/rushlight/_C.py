# ruff: noqa: N999
"""The names of core's extension module, and the names of PyTorch's extension module that libraries use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import rushlight_core as _core
from rushlight_core import Generator as Generator
from rushlight_nn.module import _parse_to as _parse


class _Traced:
    def __init__(self, *args: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__}(): cannot be created, because programs are not compiled; "
            "the class exists only for annotations"
        )


class Graph(_Traced):
    """Type of a traced program, for annotations. Captured programs have the type `rushlight.export.ExportedProgram`.

    Example:
        >>> def number_of_nodes(graph: torch._C.Graph) -> int: ...
    """


class Node(_Traced):
    """Type of an operation of a traced program, for annotations.

    Example:
        >>> def name_of(node: torch._C.Node) -> str: ...
    """


class Value(_Traced):
    """Type of a value of a traced program, for annotations."""


class PyTorchFileReader:
    """Type of PyTorch's archive readers, for annotations. Use `torch.load` to read an archive."""

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError(
            "PyTorchFileReader(): reading single entries is not supported\nhint: torch.load reads the file"
        )


class TensorType:
    """Type of a tensor in a traced program, for annotations."""


class _Keys(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Keys):
    """Names of PyTorch's dispatch keys as strings. This library does not use these keys."""


class DispatchKeySet(frozenset[str]):
    """A set of names of dispatch keys."""

    def __new__(cls, key: str) -> DispatchKeySet:
        return super().__new__(cls, (key,))


class _ExcludeDispatchKeyGuard:
    """A context manager that does nothing."""

    def __init__(self, keys: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


_TensorMeta = type(_core.Tensor)


def _log_api_usage_once(event: str) -> None:
    pass


def _get_tracing_state() -> None:
    return None


def _are_functorch_transforms_active() -> bool:
    return False  # callers then read values of tensors, which raises an error if these are batched


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    device, dtype, options = _parse(*args, **kwargs)
    return device, dtype, options.get("non_blocking", False), options.get("memory_format")


_nn = SimpleNamespace(_parse_to=_parse_to)


def __getattr__(name: str) -> object:
    return getattr(_core._C, name)
