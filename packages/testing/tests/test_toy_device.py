"""The toy device satisfies the backend contract. test_devices.py tests core with the toy device."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.swap


def test_contract(toy_device: Path, toy_device_test: Path) -> None:
    run = subprocess.run([toy_device_test, toy_device], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "ok\n"


def test_it_links_nothing_of_core(toy_device: Path) -> None:
    symbols = subprocess.run(
        ["nm", "-DC", "--undefined-only", toy_device], capture_output=True, text=True, check=True
    )
    assert "rushlight" not in symbols.stdout
