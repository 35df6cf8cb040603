# ruff: noqa: N999
"""What libraries reach for in PyTorch's extension module, and what else is in ours."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import rushlight_core as _core
from rushlight_core import Generator as Generator
from rushlight_nn.module import _parse_to as _parse


class _Traced:
    def __init__(self, *args: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}(): there is no tracer of programs")


class Graph(_Traced):
    """A traced program, for annotations."""


class Node(_Traced):
    """An operation of a traced program, for annotations."""


class Value(_Traced):
    """A value of a traced program, for annotations."""


class PyTorchFileReader:
    """What reads PyTorch's archives, for annotations: they hold pickles, which are not read."""

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError(
            "PyTorchFileReader(): pickles are not read\nhint: torch.load reads safetensors files"
        )


class TensorType:
    """The type of a tensor in a traced program, for annotations."""


_TensorMeta = type(_core.Tensor)


def _log_api_usage_once(event: str) -> None:
    pass


def _get_tracing_state() -> None:
    return None


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    device, dtype, options = _parse(*args, **kwargs)
    return device, dtype, options.get("non_blocking", False), options.get("memory_format")


_nn = SimpleNamespace(_parse_to=_parse_to)


def __getattr__(name: str) -> object:
    return getattr(_core._C, name)
