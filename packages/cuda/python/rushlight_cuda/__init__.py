"""CUDA devices for rushlight.

Nothing here needs to be called: core finds the package by its entry point when a CUDA device is first named, and loads the
plug-in then. Importing rushlight does not load it.
"""

from __future__ import annotations

import os
import sys

__all__ = ["library"]

_PLUGIN = "librushlight_cuda.so"
# The plug-in's libraries, and the packages that have them, in the order in which one needs another.
_LIBRARIES = {"libcudart.so.13": "nvidia-cuda-runtime", "libcublasLt.so.13": "nvidia-cublas"}


def library() -> str:
    """Load the libraries that the plug-in needs, and return the plug-in's path.

    Raises:
        RuntimeError: the machine has no NVIDIA driver, the plug-in was not built, or a library of CUDA is missing.

    Example::

        rushlight_core.devices.load_backend(library())  # what core does when a CUDA device is first named
    """
    from _ctypes import dlopen

    try:
        dlopen("libcuda.so.1", os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError:
        # Known at once: the libraries below take a tenth of a second to load.
        raise RuntimeError("cuda: this machine has no NVIDIA driver: libcuda.so.1 was not found") from None
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), _PLUGIN)
    if not os.path.exists(path):
        raise RuntimeError(f"cuda: {_PLUGIN} is not in {os.path.dirname(path)}: rushlight_cuda was not built")
    for name, package in _LIBRARIES.items():
        # By its path: an editable install is not in the plug-in's own search path.
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
    return path


def _find(name: str) -> str | None:
    """Return where the packages of CUDA have put a library."""
    for folder in sys.path:
        path = os.path.join(folder, "nvidia", "cu13", "lib", name)
        if os.path.exists(path):
            return path
    return None
