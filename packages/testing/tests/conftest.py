"""Second implementations of core's seams in C++, compiled once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from rushlight_testing.native import compile_cpp, compile_plugin

pytest.register_assert_rewrite("rushlight_testing.conformance")


@pytest.fixture(scope="session")
def toy_device(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_plugin("toy_device", tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="session")
def guard_allocator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_plugin("guard_allocator", tmp_path_factory.mktemp("guard"))


@pytest.fixture(scope="session")
def toy_device_test(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the C++ test of the toy device."""
    program = tmp_path_factory.mktemp("cpp") / "test_toy_device"
    compile_cpp(Path(__file__).parent / "cpp" / "test_toy_device.cpp", program)
    return program
