"""The training programs, shortened: they run, their losses are finite, and they write a picture."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "training"
PROGRAMS = sorted(file.stem for file in FOLDER.glob("*.py") if file.stem != "common")


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_runs(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--short", "--out", "out"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    figure = re.match(rf"{name}: .* ([\d.e+-]+) after (\d+) steps", ended.stdout)
    assert figure, ended.stdout  # `nan` does not match
    assert float(figure[1]) > 0
    assert int(figure[2]) >= 3
    assert (tmp_path / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_page_lists_every_program() -> None:
    page = (FOLDER.parents[1] / "training-programs.md").read_text()
    assert sorted(re.findall(r"\(examples/training/(\w+)\.py\)", page)) == PROGRAMS
