"""Time to accuracy, with simulated trainings."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.accuracy.__main__ import measure, parse, render


def test_libraries_take_turns_and_are_compared_seed_by_seed() -> None:
    calls: list[tuple[str, int]] = []

    def train(library: str, task: str, seed: int, threads: int) -> dict[str, Any]:
        calls.append((library, seed))
        seconds = {"rushlight": 1.0, "torch": 2.0 + seed}[library]
        return {"seconds": seconds, "figures": [0.5, 0.99], "reached": True}

    row = measure("digits", 1, 3, train)
    assert [library for library, _ in calls] == [
        "rushlight",
        "torch",
        "torch",
        "rushlight",
        "rushlight",
        "torch",
    ]
    assert row["speed"] == pytest.approx(3.0)
    assert "3.00" in render([row])


@pytest.mark.parametrize(
    ("run", "text"),
    [
        ({"problem": "ImportError: no torch"}, "ImportError: no torch"),
        ({"seconds": 9.0, "figures": [0.5, 0.6], "reached": False}, "9.0, 2, only 0.6"),
    ],
)
def test_a_training_that_does_not_get_there_has_no_ratio(run: dict[str, Any], text: str) -> None:
    good = {"seconds": 1.0, "figures": [0.99], "reached": True}
    row = measure("digits", 1, 1, lambda library, *rest: good if library == "rushlight" else run)
    assert "speed" not in row
    assert text in render([row])


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(["digits", "--seeds", "1"]).tasks == ["digits"]
    with pytest.raises(SystemExit):
        parse(["imagenet"])
    assert "no such task: imagenet" in capsys.readouterr().err
