"""Which names of torch a program uses, and whether they are there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rushlight.as_torch import _report as report

PROGRAM = """
import torch
import torch.nn.functional as F, numpy
from torch import nn as layers
from torch.optim.lr_scheduler import StepLR as Step, NoSuch

def f(x):
    x = F.relu(layers.Linear(2, 2)(x)).torch.no
    late.step(numpy.ones(2))
    return torch.linalg.norm(x), torch.no_such.name, F.no_such(x), self.torch.other, Step.last_epoch

import torch.optim as late
from .torch import own
from torch.nn import *
"""


def test_names_of_a_program() -> None:
    assert report.uses(PROGRAM) == [
        ("torch", 2),
        ("torch.nn.functional", 3),
        ("torch.nn", 4),
        ("torch.optim.lr_scheduler.NoSuch", 5),
        ("torch.optim.lr_scheduler.StepLR", 5),
        ("torch.nn.Linear", 8),
        ("torch.nn.functional.relu", 8),
        ("torch.optim.step", 9),
        ("torch.linalg.norm", 10),
        ("torch.nn.functional.no_such", 10),
        ("torch.no_such.name", 10),
        ("torch.optim.lr_scheduler.StepLR.last_epoch", 10),
        ("torch.optim", 12),
    ]


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("torch", None),
        ("torch.nn.functional.relu", None),
        ("torch.utils.data.DataLoader", None),
        ("torch.Tensor.no_such", None),
        ("torch.no_such", "torch.no_such"),
        ("torch.no_such.name", "torch.no_such"),
        ("torch.nn.no_such.name", "torch.nn.no_such"),
        ("torch.nn.utils.parametrizations.weight_norm", None),
        ("torch.utils.no_such_module", "torch.utils.no_such_module"),
    ],
)
def test_what_is_missing(name: str, missing: str | None) -> None:
    assert report.missing_part(name) == missing


def test_what_differs() -> None:
    page = list(
        report.items(
            "* **`nn.Thing(a=1)`** is another,\n  see `torch.other`.\n* **Sums** (`sum`, `mean`) and `lr`.\n\ntext `zeros`\n"
        )
    )
    assert [item.names for item in page] == [{"nn.Thing", "other"}, {"sum", "mean"}]
    assert report.differs("torch.nn.Thing", page) == "**`nn.Thing(a=1)`** is another, see `torch.other`."
    assert report.differs("torch.Tensor.sum", page) is not None
    assert report.differs("torch.Thing", page) is None
    assert report.differs("torch.lr", page) is None
    assert "torch.compile" in report.differences()


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(PROGRAM)
    (tmp_path / "b.py").write_text("import torch\ntorch.compile(print)\n")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "rushlight.as_torch", "report", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = run(".")
    assert done.returncode == 1
    assert "a.py: 13 names of torch, 4 missing" in done.stdout
    assert "line 10: torch.no_such.name is missing: there is no torch.no_such\n" in done.stdout
    assert "b.py: 2 names of torch, 0 missing, 1 that differ" in done.stdout
    assert "line 2: torch.compile differs: **`torch.compile`** returns its argument" in done.stdout
    assert run("b.py").returncode == 0
    (tmp_path / "c.py").write_text("import (")
    assert run("b.py", "c.py", "d.py").returncode == 2
    assert run().returncode == 2
