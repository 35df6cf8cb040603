"""The plug-in's sources, compiled by g++ over a driver in host memory.

    python host_plugin.py FOLDER [--operators NAME...] [--optimised]

Loops are compiled for a few operators, which cover all forms of loops, or for the given operators; "all" stands for all of
them. With `--optimised`, the host's code is optimised, so that the time to queue an operator can be measured.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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


def build(folder: Path, operators: str | None = None, optimised: bool = False) -> Path:
    """Compile the plug-in and the fake of cuDNN, which it finds beside it, into `folder`. Return the plug-in's path.

    Args:
        folder: an existing folder.
        operators: names of operators whose loops are compiled, separated by spaces; "all" for all of them.
        optimised: whether to optimise the host's code, which takes longer.
    """
    generate = [
        sys.executable,
        str(CORE / "codegen" / "__main__.py"),
        "cuda-kernels",
        "--out",
        str(folder / "generated"),
    ]
    chosen = operators or OPERATORS
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
        # Files of kernels in src/cuda/kernels only queue their own operators.
        level = ["-O2"] if optimised and source.parent != CORE / "src" / "cuda" / "kernels" else []
        subprocess.run(
            [*launcher, compiler, *FLAGS, *level, *more, *include, "-c", str(source), "-o", str(made)],
            check=True,
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--operators", nargs="+")
    parser.add_argument("--optimised", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    operators = " ".join(given.operators) if given.operators else None
    print(build(given.folder.resolve(), operators, given.optimised))


if __name__ == "__main__":
    main()
