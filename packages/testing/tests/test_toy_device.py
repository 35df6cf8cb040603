"""The toy device keeps its own side of the contract. (What core makes of it, its operators' tests ask.)"""

from __future__ import annotations

import os
import shlex
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

import rushlight_core

SANITIZE = os.environ.get("RUSHLIGHT_SANITIZE", "")


def compile_cpp(source: Path, target: Path, *options: str) -> None:
    include = Path(rushlight_core.__file__).parent / "include"
    command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++20", "-O1", "-Wall", "-Wextra", *options]
    if SANITIZE:
        command += ["-g", f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all"]
    command += [f"-I{include}", str(source), "-ldl", "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def toy_device(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = files("rushlight_testing") / "toy_device" / "toy_device.cpp"
    plugin = tmp_path_factory.mktemp("toy") / "toy_device.so"
    compile_cpp(Path(str(source)), plugin, "-shared", "-fPIC")
    return plugin


def test_contract(toy_device: Path, tmp_path: Path) -> None:
    program = tmp_path / "test_toy_device"
    compile_cpp(Path(__file__).parent / "cpp" / "test_toy_device.cpp", program)
    run = subprocess.run([program, toy_device], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "ok\n"


def test_it_links_nothing_of_core(toy_device: Path) -> None:
    symbols = subprocess.run(
        ["nm", "-DC", "--undefined-only", toy_device], capture_output=True, text=True, check=True
    )
    assert "rushlight" not in symbols.stdout
