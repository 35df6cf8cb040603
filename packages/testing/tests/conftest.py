"""Second implementations of core's seams in C++, compiled once for all tests."""

from __future__ import annotations

import os
import shlex
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

import rushlight_core

pytest.register_assert_rewrite("rushlight_testing.conformance")

SANITIZE = os.environ.get("RUSHLIGHT_SANITIZE", "")


def compile_cpp(source: Path, target: Path, *options: str) -> None:
    """Compiles against core's headers alone."""
    include = Path(rushlight_core.__file__).parent / "include"
    command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++20", "-O1", "-Wall", "-Wextra", *options]
    if SANITIZE:
        command += ["-g", f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all"]
    command += [f"-I{include}", str(source), "-ldl", "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def compile_plugin(name: str, folder: Path) -> Path:
    """A library of rushlight_testing/native."""
    library = folder / f"{name}.so"
    source = files("rushlight_testing") / "native" / f"{name}.cpp"
    compile_cpp(Path(str(source)), library, "-shared", "-fPIC")
    return library


@pytest.fixture(scope="session")
def toy_device(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_plugin("toy_device", tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="session")
def guard_allocator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_plugin("guard_allocator", tmp_path_factory.mktemp("guard"))


@pytest.fixture(scope="session")
def toy_device_test(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy device's own test."""
    program = tmp_path_factory.mktemp("cpp") / "test_toy_device"
    compile_cpp(Path(__file__).parent / "cpp" / "test_toy_device.cpp", program)
    return program
