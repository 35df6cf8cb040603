"""The plug-in's sources, compiled by g++ over a driver in host memory, and attached as the device "cuda".

Kernels run thread by thread. This tests their logic, but neither CUDA's compiler nor a GPU. Loops are compiled for a few
operators, which cover all forms of loops. CUDA_HOST_OPERATORS=all compiles the loops of all operators. CUDA_HOST_PLUGIN is
the path of a plug-in that was built before.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rushlight_core as core

sys.path.insert(0, str(Path(__file__).parent))
from host_plugin import CUDNN, build


@pytest.fixture
def without_kernel(driver: ctypes.CDLL) -> Callable[[core.Tensor], core.Tensor]:
    """An operator of one tensor for which the tested plug-in has no kernel. A plug-in of all operators has none."""
    if "digamma" in core._C._kernels("cuda"):
        pytest.skip("the plug-in has kernels for all operators")
    return core.digamma


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("CUDA_HOST_PLUGIN")
    folder = tmp_path_factory.mktemp("plugin")
    return Path(given) if given else build(folder, os.environ.get("CUDA_HOST_OPERATORS"))


@pytest.fixture(scope="session")
def driver(plugin: Path) -> ctypes.CDLL:
    """The plug-in with the fake driver, attached as the device "cuda"."""
    core.devices.load_backend(plugin)
    library = ctypes.CDLL(str(plugin))
    library.fake_cuda_advance.argtypes = [ctypes.c_int, ctypes.c_uint64]
    return library


@pytest.fixture(scope="session")
def cudnn(plugin: Path, driver: ctypes.CDLL) -> ctypes.CDLL:
    """The fake of cuDNN that the plug-in uses."""
    library = ctypes.CDLL(str(plugin.with_name(CUDNN)))
    library.fake_cudnn_last_alignment.restype = ctypes.c_int64
    return library
