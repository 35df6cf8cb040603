"""`python -m rushlight_profiler`, for which `python -m rushlight.profiler` is another name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import rushlight_core as core

print(sys.argv, __name__, __file__)
x = core.ones(4, 4)
x @ x
if sys.argv[1:] == ["raise"]:
    raise ValueError("by the program")
if sys.argv[1:] == ["exit"]:
    sys.exit(3)
"""


@pytest.fixture
def run(tmp_path: Path, python_path: str):
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rushlight_profiler", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": python_path},
            check=False,
        )

    return run


def test_a_file_runs_with_its_arguments_and_the_table_is_printed(run, tmp_path: Path) -> None:
    done = run("--flops", "--memory", "--trace", "trace.json", "program.py", "one", "--two")
    assert done.returncode == 0, done.stderr
    first, *table = done.stdout.splitlines()
    assert first == "['program.py', 'one', '--two'] __main__ program.py"
    assert table[1].split()[:3] == ["Name", "Self", "CPU"]
    assert {"CPU Mem", "FLOPs"} <= {title for title in ("CPU Mem", "FLOPs") if title in table[1]}
    assert any(line.startswith("mm ") and " 128 " in line for line in table)
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_a_module_runs(run) -> None:
    done = run("-m", "program")
    assert done.returncode == 0, done.stderr
    assert "__main__" in done.stdout.splitlines()[0]
    assert "\nmm " in done.stdout


@pytest.mark.parametrize(("argument", "status"), [("raise", 1), ("exit", 3)])
def test_the_table_is_printed_also_where_the_program_fails(run, argument: str, status: int) -> None:
    done = run("program.py", argument)
    assert done.returncode == status
    assert "\nmm " in done.stdout
    assert ("ValueError: by the program" in done.stderr) == (argument == "raise")


def test_a_file_that_is_not_there(run) -> None:
    done = run("nothing.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no file nothing.py" in done.stderr
