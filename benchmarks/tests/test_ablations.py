"""The harness of the ablations, with invented figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ablations import __main__ as command
from benchmarks.ablations import loader
from benchmarks.ablations.parts import LOADING, LOADING_OFF, PARTS, group
from benchmarks.ablations.report import draw, memory, page, render, speed
from benchmarks.table1.modes import Mode
from benchmarks.table1.peers import pytorch
from benchmarks.table1.protocol import VARIABLES


def result(seconds: float, size: int, times_ours: float | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"cpu": {"median": seconds}, "memory": size}
    if times_ours is not None:
        found["speed"] = {"value": times_ours, "low": times_ours, "high": times_ours}
    return found


def document() -> dict[str, Any]:
    modes = {
        "rushlight": result(0.5, 100_000_000),
        "rushlight uncached": result(1.0, 150_000_000, 2.0),
        "rushlight operators": {"problem": "the process ended with exit code -9"},
    }
    row = {
        "workload": "ncf",
        "group": "ablations",
        "threads": 1,
        "size": None,
        "clock": "cpu",
        "modes": modes,
    }
    machine = {"processor": "CPU", "instruction_sets": ["avx2"], "python": "CPython 3.11"}
    loading = {
        "all parts": {"wall": {"median": 2.0}, "images": 512, "memory": 100_000_000},
        "shared memory": {"wall": {"median": 4.0}, "images": 512, "memory": 110_000_000},
        "workers": {"problem": "OSError: no"},
    }
    return {"schema": 1, "machine": machine, "rows": [row], "loading": loading}


def test_a_part_is_worth_what_the_step_takes_without_it() -> None:
    (row,) = document()["rows"]
    assert speed(row, "uncached") == 0.5
    assert memory(row, "uncached") == 1.5
    assert speed(row, "operators") is None
    assert memory(row, "operators") is None


def test_the_table_says_what_failed_and_what_a_model_does_not_have() -> None:
    text = render(document())
    assert "0.50, 1.50" in text
    assert "NCF without fused optimizers: the process ended with exit code -9" in text
    assert "has none" in text
    assert "OSError: no" in text
    assert "without shared memory" in text
    assert "0.50 |" in text


def test_the_page_names_every_part() -> None:
    text = page(document())
    for name in [part.title for part in PARTS] + list(LOADING_OFF) + ["METH_FASTCALL"]:
        assert name in text


def test_every_part_has_a_switch_that_a_trainer_takes() -> None:
    for part in PARTS:
        assert part.switch in {*pytorch.SWITCHES, *VARIABLES}
    assert set(LOADING) == {"all parts", *LOADING_OFF}


def test_a_model_without_convolutions_has_no_filtering() -> None:
    assert Mode("rushlight", "direct") in group("resnet50").modes
    assert Mode("rushlight", "direct") not in group("ncf").modes
    assert group("ncf").modes[0] == Mode("rushlight")


def test_the_figure_is_the_same_for_the_same_data(tmp_path: Path) -> None:
    for name in "ab":
        draw(document(), tmp_path / f"{name}.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def measure(name: str, *ignored: object, **settings: Any) -> dict[str, Any]:
        measured.append(name)
        return {**document()["rows"][0], "workload": name}

    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(loader, "measure", lambda: measured.append("loading") or document()["loading"])
    out = ["--out", str(tmp_path / "a.json")]
    assert command.main(["ncf", "loading", *out]) == 0
    assert command.main(["ncf", "gpt", "loading", *out]) == 0
    assert measured == ["ncf", "loading", "gpt"]
    assert command.main(["ncf", "--again", *out]) == 0
    assert measured[3:] == ["ncf"]
    rows = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert [row["workload"] for row in rows] == ["gpt", "ncf"]


def test_the_data_are_those_of_the_index() -> None:
    images = loader.Images()
    first, label = images[3]
    assert first.shape == (3, loader.CROP, loader.CROP)
    assert label == 3
    assert (first == images[3][0]).all()
    assert not (first == images[4][0]).all()
