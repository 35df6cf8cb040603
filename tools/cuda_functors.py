"""Compile the loops of every functor and reducer for CUDA, on a machine that needs no GPU.

The compiler is the one of the package cuda-toolkit, from this program's environment. Each generated file is compiled to
machine code of sm_90; a call of a function that exists only on the host is an error.
"""

from __future__ import annotations

import argparse
import importlib
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "packages" / "core"
ARCHITECTURE = "sm_90"


def toolkit() -> Path:
    """Return the folder in which the packages of the CUDA toolkit have installed its parts."""
    package = importlib.import_module("nvidia.cu13")
    return Path(next(iter(package.__path__)))


def command(compiler: Path, source: Path, output: Path) -> list[str]:
    return [
        str(compiler), "-std=c++20", f"-arch={ARCHITECTURE}", "-cubin",
        "--expt-relaxed-constexpr",  # numeric_limits, bit_cast
        "-Xptxas", "-O0",  # nobody runs this machine code: cuda-build compiles the plug-in with optimisation
        "-Werror", "cross-execution-space-call",
        "--diag-suppress", "186,1675",  # comparisons of unsigned numbers with zero, pragmas of GCC
        "-DRUSHLIGHT_CPU=cuda_device",  # names the copies of long functions
        "-I", str(CORE / "src"), "-I", str(CORE / "include"), "-o", str(output), str(source),
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="how many files are compiled at a time")
    parser.add_argument("words", nargs="*", help="compile only files whose names contain one of these")
    args = parser.parse_args()
    compiler = toolkit() / "bin" / "nvcc"
    with tempfile.TemporaryDirectory() as folder:
        generate = [sys.executable, str(CORE / "codegen" / "__main__.py"), "cuda-kernels", "--out", folder]
        subprocess.run(generate, check=True)
        sources = sorted(Path(folder).rglob("*.cu"))
        chosen = [s for s in sources if not args.words or any(word in s.stem for word in args.words)]
        if not chosen:
            print(f"no generated file has a name with any of {args.words}", file=sys.stderr)
            return 1

        def compile_one(source: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
            made = command(compiler, source, source.with_suffix(".cubin"))
            return source, subprocess.run(made, capture_output=True, text=True)

        failed = 0
        with ThreadPoolExecutor(args.jobs) as pool:
            for source, run in pool.map(compile_one, chosen):
                text = (run.stdout + run.stderr).strip()
                failed += run.returncode != 0
                print(f"{source.stem}: {'failed' if run.returncode else 'compiled'}", flush=True)
                if text:
                    print(text, flush=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{len(chosen) - failed} of {len(chosen)} files compile for {ARCHITECTURE};"
        f" {used.ru_utime + used.ru_stime:.0f} CPU seconds"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
