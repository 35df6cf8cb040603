"""The pytest plug-in that runs tests on another device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest
import rushlight_core as core

def test_that_has_a_kernel():
    assert core.ones(3).sum().item() == 3

def test_that_has_none():
    raise NotImplementedError("sort: no kernel for device toy:0")

def test_that_takes_it_for_another_error():
    with pytest.raises(RuntimeError, match="shape"):
        raise NotImplementedError("sort: no kernel for device toy:0")

def test_that_is_about_something_else():
    raise NotImplementedError("sort: not there")
"""


@pytest.mark.parametrize(
    ("choice", "counts"), [("skip", "1 failed, 1 passed, 2 skipped"), ("fail", "3 failed, 1 passed")]
)
def test_missing_kernels(tmp_path: Path, choice: str, counts: str) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "rushlight_testing.on_device",
    ]
    options = ["--device", "toy", "--missing-kernels", choice]
    ran = subprocess.run([*command, *options, "test_some.py"], cwd=tmp_path, capture_output=True, text=True)
    assert counts in ran.stdout, ran.stdout + ran.stderr
