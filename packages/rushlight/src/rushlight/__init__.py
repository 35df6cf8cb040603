"""rushlight: a deep-learning library with PyTorch's Python API.

    import rushlight as torch

This package makes the functions and classes of the other packages available under PyTorch's module paths. Tensors and
operators come from rushlight_core, and gradients from rushlight_autograd. `rushlight.nn`, `rushlight.optim`,
`rushlight.utils.data` and the other modules are loaded when they are first used.
"""

from __future__ import annotations

import os as _os
import sys as _sys

import rushlight_core

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from typing import Any as _Any


class _Finder:
    """Finds the modules in a folder of this package: first its files, then the modules of `rushlight._table`."""

    def __init__(self, path: str) -> None:
        root = globals()["__path__"][0]  # if importing the package has failed, `sys.modules` lacks it
        if path != root and not path.startswith((f"{root}/", f"{root}\\")):
            raise ImportError("not a folder of rushlight")
        self._prefix = path[len(root) :].replace("\\", ".").replace("/", ".") + "."
        for hook in _sys.path_hooks:
            if hook is not _Finder:
                try:
                    self._files: _Any = hook(path)
                    return
                except ImportError:
                    pass
        raise ImportError(f"no path hook for {path}")

    def find_spec(self, name: str, target: _Any = None) -> _Any:
        spec = self._files.find_spec(name, target)
        if spec is None or spec.loader is None:
            from rushlight import _table

            return _table.spec_of(name) or spec
        return spec

    def invalidate_caches(self) -> None:
        self._files.invalidate_caches()

    def iter_modules(self, prefix: str = "") -> _Any:
        """Yield the names of the folder's modules for `pkgutil.iter_modules`."""
        from pkgutil import iter_importer_modules  # type: ignore[attr-defined]  # typeshed lacks it

        from rushlight import _table

        yield from iter_importer_modules(self._files, prefix)
        for name in _table.MODULES:
            package, _, leaf = f".{name}".rpartition(".")
            if f"{package}." == self._prefix:
                yield prefix + leaf, False


# The finder is defined here, so that importing this package reads no other file of the package.
_sys.path_hooks.insert(0, _Finder)

# Gradients come from rushlight-autograd, which attaches itself to core, or from the provider that the user names.
if _provider := _os.environ.get("RUSHLIGHT_AUTOGRAD"):
    from rushlight_core.seams.gradients import attach_provider as _attach_provider

    _attach_provider(_provider)
else:
    import rushlight_autograd  # noqa: F401

__version__ = "0.1.0"

# All names of core, except those that core itself loads when they are first used, which __getattr__ finds.
globals().update(
    {name: vars(rushlight_core)[name] for name in rushlight_core.__all__ if name in vars(rushlight_core)}
)

if TYPE_CHECKING:
    from rushlight import accelerator as accelerator
    from rushlight import ao as ao
    from rushlight import autograd as autograd
    from rushlight import backends as backends
    from rushlight import compiler as compiler
    from rushlight import cpu as cpu
    from rushlight import cuda as cuda
    from rushlight import distributed as distributed
    from rushlight import distributions as distributions
    from rushlight import export as export
    from rushlight import func as func
    from rushlight import functional as functional
    from rushlight import futures as futures
    from rushlight import fx as fx
    from rushlight import hub as hub
    from rushlight import jit as jit
    from rushlight import library as library
    from rushlight import masked as masked
    from rushlight import mps as mps
    from rushlight import multiprocessing as multiprocessing
    from rushlight import nested as nested
    from rushlight import nn as nn
    from rushlight import onnx as onnx
    from rushlight import ops as ops
    from rushlight import optim as optim
    from rushlight import profiler as profiler
    from rushlight import quantization as quantization
    from rushlight import quasirandom as quasirandom
    from rushlight import random as random
    from rushlight import return_types as return_types
    from rushlight import serialization as serialization
    from rushlight import signal as signal
    from rushlight import storage as storage
    from rushlight import testing as testing
    from rushlight import torch_version as torch_version
    from rushlight import types as types
    from rushlight import utils as utils
    from rushlight import version as version
    from rushlight import xpu as xpu
    from rushlight.accelerator import get_device_module as get_device_module
    from rushlight.futures import Future as Future
    from rushlight.jit import ScriptFunction as ScriptFunction
    from rushlight.jit import ScriptModule as ScriptModule
    from rushlight_autograd.batching import vmap as vmap
    from rushlight_core import *  # noqa: F403
    from rushlight_core._control_flow import while_loop as while_loop
    from rushlight_nn.functional import bilinear as bilinear
    from rushlight_nn.functional import conv_tbc as conv_tbc
    from rushlight_nn.serialization import load as load
    from rushlight_nn.serialization import save as save

_MODULES = (
    "accelerator",
    "amp",
    "ao",
    "array_api",
    "autograd",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "export",
    "fft",
    "func",
    "functional",
    "futures",
    "fx",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "mps",
    "multiprocessing",
    "nested",
    "nn",
    "onnx",
    "ops",
    "optim",
    "overrides",
    "profiler",
    "quantization",
    "quasirandom",
    "random",
    "return_types",
    "serialization",
    "signal",
    "sparse",
    "special",
    "storage",
    "testing",
    "torch_version",
    "types",
    "utils",
    "version",
    "xpu",
)
# Names in PyTorch's root module that other modules define here.
_ELSEWHERE = {
    "Future": "rushlight.futures",
    "PyTorchFileReader": "rushlight._C",
    "ScriptFunction": "rushlight.jit",
    "ScriptModule": "rushlight.jit",
    "TensorType": "rushlight._C",
    "vmap": "rushlight_autograd.batching",
    "bilinear": "rushlight_nn.functional",
    "conv_tbc": "rushlight_nn.functional",
    "get_device_module": "rushlight.accelerator",
    "load": "rushlight_nn.serialization",
    "save": "rushlight_nn.serialization",
    "while_loop": "rushlight_core._control_flow",
}

_NOT_FOR_ALL = {
    "Future",
    "PyTorchFileReader",
    "ScriptModule",
    "TensorType",
    "while_loop",
}  # names that PyTorch does not document

# Type checkers find no names in a computed `__all__`, and would accept any name with `__getattr__`.
if not TYPE_CHECKING:
    __all__ = [*{*rushlight_core.__all__, *_MODULES, *_ELSEWHERE} - _NOT_FOR_ALL]

    def __getattr__(name: str) -> object:
        if name in _MODULES or name in (
            "_C",
            "__config__",
            "__future__",
            "_dynamo",
            "_higher_order_ops",
            "_jit_internal",
            "_subclasses",
            "_tensor",
            "_tensor_str",
            "_utils",
            "_vmap_internals",
            "_weights_only_unpickler",
        ):
            from importlib import import_module

            return import_module(f"rushlight.{name}")
        if name in _ELSEWHERE:
            from importlib import import_module

            value = globals()[name] = getattr(import_module(_ELSEWHERE[name]), name)
            return value
        try:
            return getattr(rushlight_core, name)
        except AttributeError:
            from rushlight_core._misspelt import missing

            hint = "docs/differences.md lists the differences from PyTorch"
            raise missing(__name__, name, __dir__, hint, _find) from None


def _find(name: str) -> str | None:
    """Return the path of `name` in the most used modules, such as `nn.Linear` for `Linear`, or None."""
    from contextlib import suppress
    from importlib import import_module

    for path in (
        "nn", "optim", "utils", "utils.data", "nn.functional", "optim.lr_scheduler", "func", "linalg", "fft", "special",
        "distributions", "nn.utils", "nn.init", "backends", "amp", "autograd",
    ):  # fmt: skip
        with suppress(ImportError):
            module = import_module(f"{__name__}.{path}")
            if not name.startswith("_") and name in getattr(module, "__all__", dir(module)):
                return f"{path}.{name}"
    return None


def __dir__() -> list[str]:
    return sorted({*globals(), *globals()["__all__"]})
