"""The information that is printed for bug reports."""

from __future__ import annotations

import platform
import subprocess
import sys

import numpy

import rushlight
from rushlight.utils import collect_env


def test_what_is_known() -> None:
    info = collect_env.get_env_info()
    assert info.torch_version == rushlight.__version__
    assert info.python_version.startswith(platform.python_version())
    assert "64-bit" in info.python_version
    assert f"numpy=={numpy.__version__}" in info.pip_packages.splitlines()
    assert info.is_cuda_available == str(rushlight.cuda.is_available())
    assert info.threads.startswith(f"{rushlight.get_num_threads()} of rushlight")


def test_the_command() -> None:
    command = [sys.executable, "-m", "rushlight.utils.collect_env"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"rushlight version: {rushlight.__version__}\n" in shown
    assert len(shown.splitlines()) >= len(collect_env.SystemEnv._fields)
    nothing = collect_env.get_env_info()._replace(cuda_compiled_version=None)
    assert "CUDA of the plug-in: Could not collect\n" in collect_env.pretty_str(nothing)
