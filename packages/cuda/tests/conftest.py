"""The plug-in's sources, compiled by g++ over a driver in host memory, and attached as the device "cuda".

Kernels run thread by thread. This tests their logic, but neither CUDA's compiler nor a GPU. Loops are compiled for a few
operators, which cover all forms of loops. CUDA_HOST_OPERATORS=all compiles the loops of all operators.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import rushlight_core as core

HERE = Path(__file__).resolve().parent
CORE = HERE.parent.parent / "core"
OPERATORS = (
    "add mul div sub eq lt where abs relu square cos sin threshold_backward sum mean amax any all argmax max.dim var "
    "hardtanh hardtanh_backward _gelu gelu_backward remainder floor_divide _norm2 clamp_max reciprocal "
    "floor round gt ge le tanh tanh_backward _sgn sign max bitwise_not logical_and logical_or logical_not fmod "
    "clamp_min _clamp maximum isnan isfinite _nan_to_num exp log neg pow _conj"
)
FLAGS = ["-std=c++20", "-O0", "-fPIC", "-fvisibility=hidden", "-w", "-x", "c++", "-DRUSHLIGHT_CUDA_ON_HOST",
         "-DRUSHLIGHT_CUDA_OLDEST=90", "-DRUSHLIGHT_CPU=cuda_device",
         "-DRUSHLIGHT_CUDA_COLUMN_BYTES=4096", "-DRUSHLIGHT_CUDA_SCORE_BYTES=4096",
         "-DRUSHLIGHT_CUDA_BLOCK_ORDER=16", "-DRUSHLIGHT_CUDA_LAUNCH_ELEMENTS=16384",
         "-DRUSHLIGHT_CUDA_MATRICES=16", "-DRUSHLIGHT_CUDA_PLANS=8"]  # fmt: skip
CUDNN = "libcudnn.so.9"


def build(folder: Path) -> Path:
    """Compile the plug-in and the fake of cuDNN, which it finds beside it, into `folder`. Return the plug-in's path."""
    generate = [
        sys.executable,
        str(CORE / "codegen" / "__main__.py"),
        "cuda-kernels",
        "--out",
        str(folder / "generated"),
    ]
    chosen = os.environ.get("CUDA_HOST_OPERATORS", OPERATORS)
    subprocess.run(generate + ([] if chosen == "all" else ["--operators", *chosen.split()]), check=True)
    sources = [path for path in (CORE / "src" / "cuda").glob("*.cpp") if path.name != "driver.cpp"]
    sources += (CORE / "src" / "cuda" / "kernels").glob("*.cu")
    sources += (HERE / "on_host").glob("*.cpp")
    sources += (folder / "generated").rglob("*.c*")
    fake = HERE / "fake_cudnn" / "fake_cudnn.cpp"
    launcher = ["ccache"] if shutil.which("ccache") else []
    compiler = os.environ.get("CXX", "g++")
    include = [f"-I{path}" for path in (HERE / "on_host", CORE / "src", CORE / "include")]

    def compile_one(source: Path, *more: str) -> str:
        made = folder / (source.name + ".o")
        subprocess.run(
            [*launcher, compiler, *FLAGS, *more, *include, "-c", str(source), "-o", str(made)], check=True
        )
        return str(made)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        library = pool.submit(compile_one, fake, "-O2")
        objects = list(pool.map(compile_one, sorted(sources, key=lambda path: "pointwise" not in path.name)))
    plugin = folder / "librushlight_cuda_on_host.so"
    link = [compiler, "-shared", "-Wl,--no-undefined", "-lpthread", "-ldl"]
    found_beside = ["-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN"]
    subprocess.run([*link, "-o", str(plugin), *objects, *found_beside], check=True)
    soname = f"-Wl,-soname,{CUDNN}"
    subprocess.run([*link, "-o", str(folder / CUDNN), library.result(), soname], check=True)
    return plugin


@pytest.fixture
def without_kernel(driver: ctypes.CDLL) -> Callable[[core.Tensor], core.Tensor]:
    """An operator of one tensor for which the tested plug-in has no kernel. A plug-in of all operators has none."""
    if "digamma" in core._C._kernels("cuda"):
        pytest.skip("the plug-in has kernels for all operators")
    return core.digamma


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("CUDA_HOST_PLUGIN")  # a plug-in that was built before
    return Path(given) if given else build(tmp_path_factory.mktemp("plugin"))


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
