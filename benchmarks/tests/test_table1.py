"""Table 1's harness, with simulated training processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.table1 import __main__ as command
from benchmarks.table1 import agreement, run
from benchmarks.table1.catalogue import ENTRIES
from benchmarks.table1.modes import PEERS, Group, Mode, groups
from benchmarks.table1.protocol import Request, Timing
from benchmarks.table1.report import fastest, render, units_per_second
from benchmarks.table1.run import write_start
from benchmarks.table1.training import FailedError, Training

SECONDS = {
    "rushlight": 0.5,
    "torch": 2.0,
    "torch fused": 1.0,
    "torch fused+malloc": 0.75,
    "jax": 1.5,
    "tensorflow": 3.0,
}
GROUP = Group("torch", (Mode("rushlight"), Mode("torch"), Mode("torch", "fused")))


class Told:
    """A simulated training process."""

    steps: list[str]
    broken: dict[str, int]
    losses: dict[str, list[float]]
    unchecked: set[str]  # modes that fail in the check

    def __init__(self, request: Request, python: str, patience: float) -> None:
        self.name = str(Mode(request.library, request.mode))
        self.count = 0
        self.checks = not request.dropout
        assert request.samples == (ENTRIES[request.workload].checked if self.checks else None)

    def step(self) -> Timing:
        self.count += 1
        if self.checks:
            if self.name in Told.unchecked:
                raise FailedError("the process ended with exit code -11")
            losses = Told.losses.get(self.name, [7.0, 6.9, 6.7])
            return Timing(1.0, 1.0, 0, losses[self.count - 1])
        if self.count > Told.broken.get(self.name, 1000):
            raise FailedError("the process ended with exit code -9")
        Told.steps.append(self.name)
        return Timing(SECONDS[self.name], SECONDS[self.name], 7, 1.5)

    def peak_memory(self) -> int:
        return 250_000_000 if self.name == "rushlight" else 500_000_000

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    Told.steps, Told.broken, Told.losses, Told.unchecked = [], {}, {}, set()
    monkeypatch.setattr(run, "Training", Told)
    monkeypatch.setattr(run, "write_start", lambda python, workload, size, path: None)


def measured(group: Group = GROUP, check: bool = False, **more: Any) -> dict[str, Any]:
    plan = run.Plan(warm_up=2, minimum=3, rounds=3, seconds=0.0, check=check)
    pythons = dict.fromkeys(("rushlight", *PEERS), "")
    return run.measure("ncf", group, 1, plan, pythons=pythons, progress=lambda text: None, **more)


def test_speed_is_the_modes_time_over_ours() -> None:
    row = measured()
    best = fastest([row], tuned=False)
    assert best is not None
    assert best[0] == "torch fused"
    assert best[1]["speed"]["value"] == pytest.approx(2.0)
    assert row["modes"]["torch"]["speed"]["value"] == pytest.approx(4.0)
    assert "speed" not in row["modes"]["rushlight"]
    assert units_per_second(row, "rushlight") == pytest.approx(16384 / 0.5)
    assert json.loads(json.dumps(row)) == row


def test_modes_take_turns_after_warming_up() -> None:
    measured()
    assert Told.steps[:6] == ["rushlight", "rushlight", "torch", "torch", "torch fused", "torch fused"]
    for start in (6, 9, 12):
        assert sorted(Told.steps[start : start + 3]) == ["rushlight", "torch", "torch fused"]
    assert len(Told.steps) == 15


@pytest.mark.parametrize("after", [0, 3], ids=["warming up", "in a round"])
def test_a_mode_that_fails_is_a_row_that_says_why(after: int) -> None:
    Told.broken = {"torch fused": after}
    row = measured()
    assert row["modes"]["torch fused"] == {"problem": "the process ended with exit code -9"}
    assert row["modes"]["torch"]["speed"]["value"] == pytest.approx(4.0)
    assert "exit code -9" in render([row])


def test_nothing_is_compared_where_rushlight_fails() -> None:
    Told.broken = {"rushlight": 1}
    row = measured()
    assert fastest([row], tuned=True) is None
    assert "exit code -9" in render([row])


def test_nothing_is_compared_where_rushlight_fails_in_the_check() -> None:
    Told.unchecked = {"rushlight"}
    row = measured(check=True)
    assert "exit code -11" in row["modes"]["rushlight"]["problem"]
    assert "cpu" in row["modes"]["torch fused"]
    assert fastest([row], tuned=True) is None
    assert "rushlight / the fastest" not in render([row])


def test_a_row_where_all_modes_fail_says_why() -> None:
    Told.unchecked = set(map(str, GROUP.modes))
    row = measured(check=True)
    assert all("exit code -11" in result["problem"] for result in row["modes"].values())
    assert render([row]).count("exit code -11") == 3


def test_a_peer_that_is_not_installed_is_a_row_that_says_why() -> None:
    row = measured(Group("jax", (Mode("rushlight"), Mode("jax"))), missing={"jax": "no such version"})
    assert row["modes"] == {"jax": {"problem": "no such version"}}
    assert Told.steps == []
    assert "no such version" in render([row])


def test_weights_that_cannot_be_written_are_a_row_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*ignored: object) -> None:
        raise FailedError("no space left")

    monkeypatch.setattr(run, "write_start", write)
    assert "no space left" in measured()["modes"]["torch"]["problem"]


def test_a_mode_that_computes_something_else_has_no_figure() -> None:
    Told.losses = {"torch": [7.0, 6.9, 6.9]}
    row = measured(check=True)
    assert "7, 6.9, 6.9" in row["modes"]["torch"]["problem"]
    assert "torch" not in Told.steps
    assert "speed" in row["modes"]["torch fused"]
    assert row["agreement"]["torch fused"]["first"] == 0.0


@pytest.mark.parametrize(
    ("theirs", "agrees"),
    [
        ([7.0, 6.9, 6.7], True),
        ([7.0005, 6.9005, 6.7005], True),
        ([7.001, 6.901, 6.701], False),  # another forward pass
        ([7.0, 6.9, 6.72], False),  # another gradient or update
        ([7.0, 7.0, 7.0], False),  # no update
        ([7.0, float("nan"), 6.7], False),
    ],
)
def test_losses_agree_from_the_first_step_on(theirs: list[float], agrees: bool) -> None:
    assert ("problem" not in agreement.compare([7.0, 6.9, 6.7], theirs)) == agrees


def test_a_table_puts_the_groups_of_a_model_together() -> None:
    tuned = Group("torch malloc", (Mode("rushlight"), Mode("torch", "fused+malloc")))
    other = Group("jax", (Mode("rushlight"), Mode("jax")))
    text = render([measured(), measured(tuned), measured(other)])
    assert "rushlight / the fastest of the others, torch fused" in text
    assert "**2.00** (2.00 to 2.00)" in text
    assert "rushlight / the fastest with malloc tuned, torch fused+malloc" in text
    assert "**1.50** (1.50 to 1.50)" in text
    assert "1 thread, 1 model: 2.00 times the fastest of the others" in text
    assert "0.50 of PyTorch's peak memory" in text
    assert len([line for line in text.splitlines() if "| rushlight |" in " ".join(line.split())]) == 1


def test_modes_of_images_have_a_memory_format() -> None:
    for entry in ENTRIES.values():
        chosen = [mode for group in groups("torch", images=entry.images) for mode in group.modes]
        assert any("channels_last" in mode.switches for mode in chosen) == entry.images
        assert not any("compile" in mode.switches or "malloc" in mode.switches for mode in chosen)


@pytest.mark.parametrize("library", PEERS)
def test_every_group_begins_with_rushlight(library: str) -> None:
    found = groups(library, images=True, compiled=True, tuned=True)
    assert len({group.name for group in found}) == len(found) >= 2
    for group in found:
        assert group.modes[0] == Mode("rushlight")
        assert {mode.library for mode in group.modes} == {"rushlight", library}
        assert all("malloc" in m.switches for m in group.modes[1:]) == group.name.endswith("malloc")


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    given = command.parse(["resnet50", "gpt", "--threads", "1,2", "--peers", "jax", "--python", "jax=/a/b=c"])
    assert (given.models, given.threads, given.peers) == (["resnet50", "gpt"], [1, 2], ["jax"])
    assert given.python == {"jax": "/a/b=c"}
    for wrong, message in (
        (["resnet51"], "no such model: resnet51"),
        (["--peers", "caffe"], "no such peer: caffe"),
        (["--python", "jax"], "--python takes PEER=TEXT"),
        (["--threads", "one"], "--threads takes integers"),
        (["--threads", "2,0"], "--threads takes positive integers, got 0"),
        (["--size", "0"], "--size takes a positive integer, got 0"),
        (["--size", "-3"], "--size takes a positive integer, got -3"),
        (["--chart", "chart.txt"], "--chart takes a file that ends in .png or .svg, got 'chart.txt'"),
        (["--chart", "no such folder/chart.svg"], "--chart takes a file in an existing folder"),
    ):
        with pytest.raises(SystemExit):
            command.parse(wrong)
        assert message in capsys.readouterr().err


def short(seconds: float = 60.0, check: bool = True, patience: float = 600.0) -> run.Plan:
    return run.Plan(warm_up=1, minimum=1, rounds=1, seconds=seconds, check=check)


def test_a_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "Plan", short)
    out = ["--out", str(tmp_path / "table1.json")]
    assert command.main(["ncf", *out]) == 0
    steps = len(Told.steps)
    assert command.main(["ncf", "--peers", "torch,jax", *out]) == 0
    assert set(Told.steps[steps:]) == {"rushlight", "jax"}
    assert command.main(["ncf", "--peers", "torch", "--again", *out]) == 0
    rows = json.loads((tmp_path / "table1.json").read_text())["rows"]
    assert [row["group"] for row in rows] == ["jax", "torch"]


def test_a_group_is_measured_again_if_a_mode_has_failed_or_settings_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "Plan", short)
    out = tmp_path / "table1.json"

    def measured_again(*options: str) -> bool:
        Told.steps = []
        assert command.main(["ncf", "--out", str(out), *options]) == 0
        (row,) = json.loads(out.read_text())["rows"]
        assert (row["check"], row["seconds"]) == (
            "--no-check" not in options,
            5.0 if "--seconds" in options else 60.0,
        )
        return bool(Told.steps)

    Told.broken = {"torch fused": 0}
    assert measured_again()
    Told.broken = {}
    assert measured_again()
    assert not measured_again()
    assert measured_again("--no-check")
    assert not measured_again("--no-check")
    assert measured_again("--seconds", "5")


def test_a_peer_that_was_missing_is_measured_once_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "Plan", short)
    arguments = ["ncf", "--peers", "jax", "--out", str(tmp_path / "table1.json")]
    assert command.main([*arguments, "--missing", "jax=no such version"]) == 0
    assert Told.steps == []
    assert command.main(arguments) == 0
    assert set(Told.steps) == {"rushlight", "jax"}


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema": 3}'])
def test_a_file_that_is_not_of_a_run_is_an_error_before_measuring(tmp_path: Path, text: str) -> None:
    out = tmp_path / "table1.json"
    out.write_text(text)
    with pytest.raises(SystemExit, match="must be a file of an earlier run"):
        command.main(["ncf", "--out", str(out)])
    assert (Told.steps, out.read_text()) == ([], text)


def test_an_interpreter_that_cannot_be_started_is_a_row_that_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A process is started for torch only, with an interpreter that does not exist.
    def start(request: Request, python: str, patience: float) -> Told | Training:
        return Training(request, python, patience) if python else Told(request, python, patience)

    monkeypatch.setattr(run, "Training", start)
    plan = run.Plan(warm_up=1, minimum=1, rounds=1, seconds=0.0, check=False)
    pythons = {"rushlight": "", "torch": "/no/such/python"}
    row = run.measure("ncf", GROUP, 1, plan, pythons=pythons, progress=lambda text: None)
    assert row["modes"]["torch"]["problem"].startswith("/no/such/python cannot be started: ")
    assert "cpu" in row["modes"]["rushlight"]


def test_an_interpreter_that_cannot_write_the_weights_is_an_error_that_says_why(tmp_path: Path) -> None:
    with pytest.raises(FailedError, match="/no/such/python cannot be started"):
        write_start("/no/such/python", "ncf", 1, tmp_path / "start.npz")
