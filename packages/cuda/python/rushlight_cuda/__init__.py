"""CUDA devices for rushlight.

Programs do not need to call this package. When a CUDA device is first used, core finds this package by its
entry point, and loads the plug-in. Importing rushlight does not load the plug-in.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

__all__ = ["library"]

_PLUGIN = "librushlight_cuda.so"
# The libraries that the plug-in needs, in the order in which they depend on each other, and the packages that contain them.
_LIBRARIES = {"libcudart.so.13": "nvidia-cuda-runtime", "libcublasLt.so.13": "nvidia-cublas"}
# The library that the plug-in loads by name for its first convolution, which raises an error if the library is missing.
_CUDNN = "libcudnn.so.9"


def library() -> str:
    """Load the libraries that the plug-in needs, and return the plug-in's path.

    Raises:
        RuntimeError: the machine has no NVIDIA driver, the plug-in was not built, or a library of CUDA is missing.

    Example::

        rushlight_core.devices.load_backend(library())  # as core does for the first CUDA device
    """
    from _ctypes import dlopen

    try:
        dlopen("libcuda.so.1", os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError:
        # Checked first, because loading the libraries below takes a tenth of a second.
        raise RuntimeError("cuda: this machine has no NVIDIA driver: libcuda.so.1 was not found") from None
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), _PLUGIN)
    if not os.path.exists(path):
        raise RuntimeError(f"cuda: {_PLUGIN} is not in {os.path.dirname(path)}: rushlight_cuda was not built")
    for name, package in _LIBRARIES.items():
        # Loaded by path, because an editable install is not in the search path of the plug-in.
        file = _find(name)
        if file is None:
            raise RuntimeError(
                f"cuda: {name} was not found: the package {package}>=13.0,<14 is missing or has another version\n"
                f"hint: pip install '{package}>=13.0,<14'"
            )
        try:
            dlopen(file, os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise RuntimeError(f"cuda: {file} cannot be loaded: {error}") from None
    if file := _find(_CUDNN, "cudnn"):
        # This small library loads its large parts when they are needed.
        with suppress(OSError):
            dlopen(file, os.RTLD_NOW | os.RTLD_LOCAL)
    return path


def _find(name: str, part: str = "cu13") -> str | None:
    """Return the path of a library in the installed CUDA packages, or None."""
    for folder in sys.path:
        path = os.path.join(folder, "nvidia", part, "lib", name)
        if os.path.exists(path):
            return path
    return None
