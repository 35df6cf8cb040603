"""The digits example, shortened: the files that it writes, and its message if it misses the accuracy."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rushlight_testing.trace_format import trace_problems

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "digits.py"


def digits(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", str(EXAMPLE), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def one_epoch(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    folder = tmp_path_factory.mktemp("digits")
    return digits("--epochs", "1", "--seed", "3", "--out", "out", folder=folder), folder / "out"


def test_missed_accuracy_is_said_and_fails(one_epoch: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    ended, _ = one_epoch
    assert ended.returncode == 1, ended.stderr
    # One epoch is not enough for 97 %, but much better than guessing.
    reached = re.search(r"digits: test accuracy ([\d.]+)% is below 97%", ended.stderr)
    assert reached, ended.stderr
    assert 60 < float(reached[1]) < 97


def test_checkpoint_scores_what_the_network_scored(
    one_epoch: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    ended, out = one_epoch
    trained = re.search(r"test accuracy ([\d.]+%)", ended.stdout)
    loaded = re.search(r"loaded again: ([\d.]+%)", ended.stdout)
    assert trained
    assert loaded
    assert trained[1] == loaded[1]
    assert (out / "digits.pt").stat().st_size > 4 * (128 * 9 + 128 + 128 * 36 * 10 + 10)


def test_figure_is_an_image(one_epoch: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    _, out = one_epoch
    assert (out / "digits.png").read_bytes().startswith(b"\x89PNG")


def test_trace_holds_the_step(one_epoch: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    _, out = one_epoch
    trace = json.loads((out / "trace.json").read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    slices = {event["name"]: event for event in events if event["ph"] == "X"}
    assert {"forward", "backward", "update", "convolution", "relu", "softmax", "mm"} <= slices.keys()
    forward, relu = slices["forward"], slices["relu"]
    assert forward["ts"] <= relu["ts"] < relu["ts"] + relu["dur"] <= forward["ts"] + forward["dur"]


def test_trace_keeps_the_rules_of_its_format(
    one_epoch: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    _, out = one_epoch
    assert trace_problems((out / "trace.json").read_text()) == []


def test_misread_digits_are_shown(one_epoch: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    ended, _ = one_epoch
    title = ended.stdout.index("read as")
    assert re.match(r"read as (\d), is (?!\1)\d", ended.stdout[title:])
    assert "@@" in ended.stdout[title:]


def test_epochs_must_be_positive(tmp_path: Path) -> None:
    ended = digits("--epochs", "0", folder=tmp_path)
    assert ended.returncode == 2
    assert "--epochs must be at least 1" in ended.stderr
