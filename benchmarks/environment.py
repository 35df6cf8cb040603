"""Describe the machine, and confine a measurement to some of its processors."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# A library determines the size of its thread pool when it is loaded, so these are set before the measuring process
# starts. The last one lets OpenBLAS's idle workers sleep after 2^22 cycles, so that they do not spin during another
# library's block.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_SPIN_VARIABLE = ("OPENBLAS_THREAD_TIMEOUT", "22")

# Settings that affect measurements, and are therefore part of the report.
_REPORTED_VARIABLES = (
    "GLIBC_TUNABLES",
    "MALLOC_ARENA_MAX",
    "LD_PRELOAD",
    "OMP_WAIT_POLICY",
    "GOMP_SPINCOUNT",
    "PYTHONMALLOC",
)
_REPORTED_FLAGS = ("avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "amx_bf16")


@contextlib.contextmanager
def confined(threads: int, cpus: list[int] | None = None) -> Iterator[list[int]]:
    """Pin this process and its children to one processor per thread, and set the sizes of thread pools.

    The processors with the highest numbers are used unless cpus names some, because the first one serves most interrupts.
    Raises ValueError when there are fewer processors than threads.
    """
    before = os.sched_getaffinity(0)
    chosen = sorted(cpus if cpus is not None else before)[-threads:]
    if len(chosen) < threads or not set(chosen) <= before:
        raise ValueError(
            f"threads={threads}: too few processors; this process may use {len(before)}: {sorted(before)}"
        )
    settings = {name: str(threads) for name in _THREAD_VARIABLES} | dict([_SPIN_VARIABLE])
    saved = {name: os.environ.get(name) for name in settings}
    os.sched_setaffinity(0, chosen)
    os.environ.update(settings)
    try:
        yield chosen
    finally:
        os.sched_setaffinity(0, before)
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def describe() -> dict[str, Any]:
    """Return a description of the machine without host name, user and paths."""
    model, flags = _processor()
    return {
        "processor": model,
        "instruction_sets": [flag for flag in _REPORTED_FLAGS if flag in flags],
        "processors": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "libc": " ".join(platform.libc_ver()),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load": round(os.getloadavg()[0], 2),
        "commit": commit(),
        "variables": reported_variables(os.environ),
    }


def reported_variables(environ: Any) -> dict[str, str]:
    """Return the environment variables that affect measurements; of a path, only the file name."""
    return {name: os.path.basename(environ[name]) for name in _REPORTED_VARIABLES if environ.get(name)}


def commit() -> str | None:
    """Return the measured commit, with a mark if the tree differs from it; None outside a repository."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        revision = subprocess.run(
            [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        )
        changes = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return revision.stdout.strip() + (" with changes" if changes.stdout.strip() else "")


def _processor() -> tuple[str, set[str]]:
    model, flags = platform.machine(), set[str]()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            elif key.strip() == "flags":
                flags = set(value.split())
                break
    return model, flags
