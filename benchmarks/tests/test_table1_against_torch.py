"""The models of Table 1 give the same results in rushlight and in PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .train_once import SIZES

pytest.importorskip("torch")
pytest.importorskip("rushlight")

_ROOT = Path(__file__).resolve().parents[2]


def trained(library: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tests.train_once", library],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def both() -> tuple[dict[str, Any], dict[str, Any]]:
    return trained("rushlight"), trained("torch")


@pytest.mark.parametrize("model", SIZES)
def test_a_step_gives_the_same_loss_and_gradients(
    both: tuple[dict[str, Any], dict[str, Any]], model: str
) -> None:
    ours, theirs = (found[model] for found in both)
    assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-9)
    assert len(ours["norms"]) == len(theirs["norms"]) > 5
    assert ours["norms"] == pytest.approx(theirs["norms"], rel=1e-6)
