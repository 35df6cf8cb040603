"""The report of the names of torch that a program uses, and whether they exist."""

from __future__ import annotations

import json
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
    assert report.find(name).missing == missing


@pytest.mark.parametrize(
    ("name", "raises"),
    [
        ("torch.distributed.fsdp.FullyShardedDataParallel", True),
        ("torch.nested.nested_tensor", True),
        ("torch.hub.load", True),
        ("torch.distributed.device_mesh.DeviceMesh", True),
        ("torch.nn.Linear", False),
        ("torch.sin", False),
        ("torch.nn.functional.relu", False),
        ("torch.nn", False),
        ("torch.float32", False),
    ],
)
def test_what_only_raises_an_error(name: str, raises: bool) -> None:
    assert report.only_raises(report.find(name).value) == raises


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
    (tmp_path / "e.py").write_text("from torch.nested import nested_tensor\n")
    done = run("e.py")
    assert done.returncode == 1
    assert "e.py: 1 names of torch, 1 missing, 0 that differ" in done.stdout
    assert "line 1: torch.nested.nested_tensor is not supported" in done.stdout
    (tmp_path / "c.py").write_text("import (")
    assert run("b.py", "c.py", "d.py").returncode == 2
    assert run().returncode == 2


def notebook(*cells: tuple[str, str]) -> str:
    return json.dumps(
        {"cells": [{"cell_type": kind, "source": text.splitlines(keepends=True)} for kind, text in cells]}
    )


def test_notebooks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.ipynb").write_text(
        notebook(
            ("markdown", "# torch.no_title"),
            ("code", "%matplotlib inline\n!pip install torch\nimport torch"),
            ("code", "%%time\nif True:\n    %timeit torch.hidden\n    torch.no_such"),
            ("code", "%%bash\necho torch.no_bash"),
            ("code", "torch.relu?\ntorch.tanh"),
        )
    )
    (tmp_path / "b.ipynb").write_text("[]")
    assert report.main([str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert "a.ipynb: 3 names of torch, 1 missing" in printed.out
    assert "line 7: torch.no_such is missing" in printed.out
    assert "b.ipynb: cannot be read (not a notebook" in printed.err


def test_a_reader_that_ends_early(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import torch\n" + "\n".join(f"torch.no_such_{i}" for i in range(5000)))
    command = [sys.executable, "-m", "rushlight.as_torch", "report", str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert "5000 missing" in running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait(60) == 1
