"""Table 1's harness with training processes that are told how long their steps take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.table1 import run
from benchmarks.table1.__main__ import parse
from benchmarks.table1.catalogue import ENTRIES
from benchmarks.table1.modes import Mode, modes
from benchmarks.table1.protocol import Request, Timing
from benchmarks.table1.report import render, units_per_second
from benchmarks.table1.training import FailedError

SECONDS = {"rushlight": 0.5, "torch": 2.0, "torch fused": 1.0}


class Told:
    """A training process without a process."""

    steps: list[str]
    broken: dict[str, int]

    def __init__(self, request: Request, python: str) -> None:
        self.name = str(Mode(request.library, request.mode))
        self.count = 0

    def step(self) -> Timing:
        self.count += 1
        if self.count > Told.broken.get(self.name, 1000):
            raise FailedError("the process ended with exit code -9")
        Told.steps.append(self.name)
        return Timing(SECONDS[self.name], SECONDS[self.name], 7, 1.5)

    def peak_memory(self) -> int:
        return 250_000_000

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    Told.steps, Told.broken = [], {}
    monkeypatch.setattr(run, "Training", Told)


def measured(**broken: int) -> dict[str, Any]:
    Told.broken = {name.replace("_", " "): steps for name, steps in broken.items()}
    chosen = (Mode("rushlight"), Mode("torch"), Mode("torch", "fused"))
    plan = run.Plan(warm_up=2, minimum=3, rounds=3, seconds=0.0)
    pythons = {"rushlight": "", "torch": ""}
    row = run.measure("ncf", chosen, 1, plan, pythons=pythons, progress=lambda text: None)
    return {**row, "size": None}


def test_speed_is_the_fastest_peers_time_over_ours() -> None:
    row = measured()
    assert row["best peer"] == "torch fused"
    assert row["speed"]["value"] == pytest.approx(2.0)
    assert units_per_second(row, "rushlight") == pytest.approx(16384 / 0.5)
    assert json.loads(json.dumps(row)) == row


def test_modes_take_turns_after_warming_up() -> None:
    measured()
    assert Told.steps[:6] == ["rushlight", "rushlight", "torch", "torch", "torch fused", "torch fused"]
    for start in (6, 9, 12):
        assert sorted(Told.steps[start : start + 3]) == ["rushlight", "torch", "torch fused"]
    assert len(Told.steps) == 15


@pytest.mark.parametrize("after", [0, 3], ids=["warming up", "in a round"])
def test_a_peer_that_fails_is_a_row_that_says_why(after: int) -> None:
    row = measured(torch_fused=after)
    assert row["modes"]["torch fused"] == {"problem": "the process ended with exit code -9"}
    assert row["best peer"] == "torch"
    assert "exit code -9" in render([row], "rushlight")


def test_nothing_is_compared_where_rushlight_fails() -> None:
    row = measured(rushlight=1)
    assert "speed" not in row
    assert "exit code -9" in render([row], "rushlight")


def test_a_table_says_how_much_faster() -> None:
    text = render([measured()], "rushlight")
    assert "**2.00** (2.00 to 2.00)" in text
    assert "1 threads, 1 models: 2.00 times the fastest of the others" in text


def test_modes_of_images_have_a_memory_format() -> None:
    for entry in ENTRIES.values():
        chosen = modes(entry.images, compiled=False)
        assert any("channels_last" in mode.switches for mode in chosen) == entry.images
        assert not any("compile" in mode.switches for mode in chosen)
        assert any("compile" in mode.switches for mode in modes(entry.images, compiled=True))


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    given = parse(["resnet50", "gpt", "--threads", "1,2", "--out", "x.json"])
    assert (given.models, given.threads, given.out) == (["resnet50", "gpt"], [1, 2], Path("x.json"))
    with pytest.raises(SystemExit):
        parse(["resnet51"])
    assert "no such model: resnet51" in capsys.readouterr().err
