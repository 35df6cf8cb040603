"""Information about the machine for bug reports: `python -m rushlight.utils.collect_env`."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import NamedTuple

import rushlight

_PACKAGES = (
    "numpy",
    "rushlight",
    "safetensors",
    "torch",
    "torchvision",
    "torchaudio",
    "transformers",
    "triton",
)


class SystemEnv(NamedTuple):
    """Versions and hardware that matter for bug reports. A field is None if the component is missing."""

    torch_version: str
    cuda_compiled_version: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    nvidia_gpu_models: str | None
    pip_packages: str
    cpu_info: str
    threads: str


_TITLES = {
    "torch_version": "rushlight version",
    "cuda_compiled_version": "CUDA of the plug-in",
    "os": "OS",
    "libc_version": "Libc version",
    "python_version": "Python version",
    "python_platform": "Python platform",
    "is_cuda_available": "Is CUDA available",
    "nvidia_gpu_models": "GPU models",
    "pip_packages": "Versions of relevant packages",
    "cpu_info": "CPU",
    "threads": "Threads",
}


def get_env_info() -> SystemEnv:
    """Return information about this process and its machine, without running other programs."""
    cuda = rushlight.cuda.is_available()
    names = [rushlight.cuda.get_device_name(i) for i in range(rushlight.cuda.device_count())] if cuda else []
    return SystemEnv(
        torch_version=rushlight.__version__,
        cuda_compiled_version=rushlight.version.cuda,
        os=_os(),
        libc_version="-".join(platform.libc_ver()),
        python_version=f"{sys.version.splitlines()[0]} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        python_platform=platform.platform(),
        is_cuda_available=str(cuda),
        nvidia_gpu_models="\n".join(names) or None,
        pip_packages="\n".join(_packages()),
        cpu_info=f"{_cpu()}, {os.cpu_count()} processors, kernels for {rushlight.backends.cpu.get_cpu_capability()}",
        threads=f"{rushlight.get_num_threads()} of rushlight, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS')}",
    )


def _os() -> str:
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']} ({platform.machine()})"
    except (OSError, KeyError):
        return f"{platform.system()} ({platform.machine()})"


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            lines = (line.partition(":") for line in file)
            return next(
                (value.strip() for key, _, value in lines if key.strip() == "model name"), platform.machine()
            )
    except OSError:
        return platform.machine()


def _packages() -> list[str]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name}=={metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return found


def pretty_str(envinfo: SystemEnv) -> str:
    """Return the information as lines of text."""
    lines = []
    for name, value in envinfo._asdict().items():
        shown = "Could not collect" if value is None else str(value)
        lines.append(f"{_TITLES[name]}:" + ("\n" if "\n" in shown else " ") + shown)
    return "\n".join(lines)


def get_pretty_env_info() -> str:
    """Return information about this process and its machine, as lines for a bug report."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the information."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
