"""Rows, suites and output, with simulated libraries, logs and installations."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from benchmarks import environment, process, report
from benchmarks.__main__ import main, parse
from benchmarks.harness import Plan, interleave
from benchmarks.options import Options
from benchmarks.processes import queues
from benchmarks.programs import c_interface
from benchmarks.rows import Row, ops, optimizers, overhead, shapes
from benchmarks.suites import (
    against,
    build,
    checkpoints,
    imports,
    micro,
    null_launches,
    processes,
    profiler,
    programs,
    queueing,
    size,
    threads,
)
from benchmarks.suites import ops as ops_suite
from benchmarks.suites import optimizers as optimizers_suite
from benchmarks.worker import Remote, Worker


class FakeTensor:
    """A tensor with the methods that the rows of these tests use."""

    def __init__(self, values: Any) -> None:
        self.values = np.array(values)

    def __add__(self, other: FakeTensor) -> FakeTensor:
        return FakeTensor(self.values + other.values)

    def detach(self) -> FakeTensor:
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        return self.values


def fake_library(name: str, **extra: Any) -> ModuleType:
    module = ModuleType(name)
    threads = [0]
    module.__dict__.update(
        {
            "__version__": "1.0",
            "tensor": FakeTensor,
            "set_num_threads": lambda count: threads.__setitem__(0, count),
            "get_num_threads": lambda: threads[0],
        }
        | extra
    )
    return module


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules, "fake_ours", fake_library("fake_ours", twice=lambda a: FakeTensor(a.values * 2))
    )
    wrong = fake_library("fake_theirs", twice=lambda a: FakeTensor(a.values * 3), only_theirs=lambda a: a)
    monkeypatch.setitem(sys.modules, "fake_theirs", wrong)


def measure(rows: list[Row]) -> list[Any]:
    sent: list[Any] = []
    plan = Options(quick=True).plan(1)
    micro.measure(sent.append, rows, "fake_ours", "fake_theirs", 1, plan, "cpu")
    return sent


def test_a_failing_row_costs_only_itself(libraries: None) -> None:
    setup = "a = torch.tensor(data(16)); b = torch.tensor(data(16))"
    sent = measure(
        [
            Row("wrong", "torch.twice(a)", setup),
            Row("missing", "torch.only_theirs(a)", setup),
            Row("right", "a + b", setup, numpy="a + b", numpy_setup="a = data(16); b = data(16)"),
        ]
    )
    assert sent[0] == ("versions", {"fake_ours": "1.0", "fake_theirs": "1.0", "numpy": np.__version__})
    wrong, missing, right = (value for _, value in sent[1:])
    assert wrong["problem"].startswith("WrongResultError: wrong: result 0 differs from")
    assert missing["problem"].startswith("AttributeError")
    assert "problem" not in right
    assert right["ratio"]["value"] > 0
    assert right["numpy_ratio"]["value"] > 0


def test_failed_rows_keep_the_geometric_mean_from_being_met() -> None:
    mean = {"value": 0.2, "low": 0.2, "high": 0.2}
    ok, failed = {"name": "a"}, {"name": "b", "problem": "missing"}
    result = {"runs": [{"threads": 1, "geometric_mean": dict(mean), "rows": [ok]}]}
    assert micro.judge_mean(result, 0.3)["runs"][0]["geometric_mean_verdict"] == "met"
    result = {"runs": [{"threads": 1, "geometric_mean": dict(mean), "rows": [ok, failed]}]}
    assert micro.judge_mean(result, 0.3)["runs"][0]["geometric_mean_verdict"].startswith("not met")


def test_peer_may_have_a_setup_of_its_own(libraries: None) -> None:
    row = Row(
        "best", "a + b", "a = b = torch.tensor(data(4))", peer_setup="a = b = torch.tensor(data(4) * 2)"
    )
    assert measure([row])[1][1]["problem"].startswith("WrongResultError")


def test_names_are_unique_and_every_row_compiles() -> None:
    for rows in (overhead.ROWS, ops.ROWS, shapes.ROWS):
        names = [row.name for row in rows]
        assert len(set(names)) == len(names)
        for row in rows:
            for code in (row.setup, row.statement, row.numpy_setup, row.numpy or "", row.peer_setup or ""):
                compile(code, row.name, "exec")


def test_overhead_holds_the_promised_targets() -> None:
    targets = sorted(row.target for row in overhead.ROWS if row.target is not None)
    assert len(targets) == len(overhead.ROWS) == 16
    assert targets == sorted(
        [0.22, 0.12, 0.3, 0.25, 0.25, 0.3, 0.4, 0.3, 0.3, 0.5, 0.4, 0.3, 0.3, 0.4, 0.3, 0.3]
    )


def _die(send: process.Send) -> None:
    send("before")
    os.kill(os.getpid(), 9)


def _raise(send: process.Send) -> None:
    raise KeyError("lost")


def _echo(send: process.Send, value: int) -> None:
    send(value + 1)


def test_processes_report_values_errors_and_deaths() -> None:
    assert process.fresh(_echo, 41) == 42
    with pytest.raises(RuntimeError, match="KeyError: 'lost'"):
        list(process.stream(_raise))
    received = []
    with pytest.raises(process.CrashedError, match="exit code -9"):
        for value in process.stream(_die):
            received.append(value)
    assert received == ["before"]


def test_a_crashing_row_is_skipped_and_the_rest_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def stream(function: Any, rows: list[Row], *rest: Any) -> Any:
        for row in list(rows):
            if row.name == "bad":
                raise process.CrashedError("the process ended with exit code -11")
            yield "row", {"name": row.name, "group": "", "ratio": {"value": 0.5}, "paired": [0.5, 0.5]}

    monkeypatch.setattr(process, "stream", stream)
    rows = [Row(name, "pass") for name in ("one", "bad", "two")]
    (run,) = micro.run_rows("overhead", rows, Options())["runs"]
    assert [row["name"] for row in run["rows"]] == ["one", "bad", "two"]
    assert run["rows"][1]["problem"] == "crashed: the process ended with exit code -11"
    assert run["geometric_mean"]["value"] == pytest.approx(0.5)


def test_no_matching_row_is_an_error() -> None:
    with pytest.raises(ValueError, match="no row's name contains 'zzz'"):
        micro.run_rows("overhead", overhead.ROWS, Options(match="zzz"))


IMPORTTIME = """\
import time: self [us] | cumulative | imported package
import time:       100 |        100 |   encodings.aliases
import time:       500 |       2000 | site
import time:       250 |        250 |     json.decoder
import time:      1000 |       1000 |     numpy.core
import time:      4000 |       5000 |   rushlight_core._C
import time:      2000 |       2000 |   rushlight_core
import time:       750 |       9000 | rushlight
"""


def test_import_time_is_split_by_package() -> None:
    split = imports.parse_importtime(IMPORTTIME)
    assert split == {"(standard library)": 0.25, "numpy": 1.0, "rushlight_core": 6.0, "rushlight": 0.75}


def test_import_of_a_real_module_and_of_a_missing_one() -> None:
    cpu, wall, whole = imports.start(sys.executable, "json")
    assert 0 < cpu <= whole
    assert wall > 0
    with pytest.raises(RuntimeError, match="import no_such_module_here ended with exit code 1"):
        imports.start(sys.executable, "no_such_module_here")


def _install(site: Path, name: str, files: dict[str, int], requires: list[str], direct_url: str = "") -> None:
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    records = []
    for file, length in files.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_bytes(b"x" * length)
        records.append(f"{file},,")
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        "Version: 1.0",
        *(f"Requires-Dist: {line}" for line in requires),
    ]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    if direct_url:
        (info / "direct_url.json").write_text(direct_url)
    (info / "RECORD").write_text("\n".join(records) + "\n")


def test_size_follows_requirements_markers_and_extras(tmp_path: Path) -> None:
    _install(tmp_path, "top", {"top/a.py": 100, "shared.txt": 7}, [
        "Mid_Dle[fast]>=1", "absent; python_version < '3'", "optional; extra == 'all'",
    ])  # fmt: skip
    _install(tmp_path, "mid-dle", {"mid/b.py": 20, "shared.txt": 7}, ["quick; extra == 'fast'", "top"])
    _install(tmp_path, "quick", {"quick.py": 3}, [])
    assert size.closure_sizes("top", [str(tmp_path)]) == {"top": 107, "mid-dle": 20, "quick": 3}


def test_size_refuses_what_it_cannot_measure(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="nothing-here is not installed"):
        size.closure_sizes("nothing-here", [str(tmp_path)])
    _install(
        tmp_path, "dev", {"dev.py": 1}, [], direct_url='{"url": "file:///x", "dir_info": {"editable": true}}'
    )
    with pytest.raises(RuntimeError, match="editable"):
        size.closure_sizes("dev", [str(tmp_path)])


def test_build_log(tmp_path: Path) -> None:
    log = tmp_path / "build-times.json"
    assert "build the wheels first" in build.run(Options(build_times=log))["problem"]
    log.write_text('{"core": {"cpu_s": 400, "wall_s": 210.5}, "nn": {"cpu_s": 2, "wall_s": 2.5}}')
    result = build.run(Options(build_times=log))
    assert result["total"] == {"cpu_s": 402.0, "wall_s": 213.0}
    assert result["verdict"] == "met"
    assert "| core " in build.render(result)
    for text in ("[]", "{", '{"core": 3}', '{"core": {"cpu_s": 1}}'):
        log.write_text(text)
        assert "is not a build log" in build.run(Options(build_times=log))["problem"]


def test_profiler_verdict_compares_with_the_control() -> None:
    rows = overhead.ROWS[:2]
    control = [[0.0, 0.01], [0.01, 0.0], [-0.01, 0.0], [0.0, -0.01]]
    same = profiler.summarize(Options(), rows, {"imported": control, "control": control})
    assert same["verdict"].startswith("met")
    slower = [[0.2, 0.2]] * 4
    assert profiler.summarize(Options(), rows, {"imported": slower, "control": control})[
        "verdict"
    ].startswith("not met")
    assert "geometric mean" in profiler.render(same)


def test_against_resamples_whole_rounds_and_judges_rows_and_mean() -> None:
    rows = overhead.ROWS[:2]
    # Rounds in which a process was fast or slow as a whole: they cancel in no row, and nearly in the median.
    logs = [[shift + 0.01, shift - 0.01] for shift in (-0.2, -0.01, 0.0, 0.01, 0.2)] * 8
    same = against.summarize(rows, logs)
    assert same["rounds"] == 40
    assert same["geometric_mean"]["value"] == pytest.approx(1.0)
    assert same["geometric_mean"]["low"] < 1 < same["geometric_mean"]["high"]
    assert same["geometric_mean_verdict"] == "met"
    assert [row["verdict"] for row in same["rows"]] == ["met", "met"]
    assert "geometric mean" in against.render(same | {"module": "rushlight", "versions": ["2", "1"]})
    slower = against.summarize(rows, [[0.0, 0.1]] * 40)
    assert slower["geometric_mean_verdict"] == "not met"
    assert [row["verdict"] for row in slower["rows"]] == ["met", "not met"]
    assert report.problems([slower])
    assert against.summarize(rows, [[-0.1, -0.1]] * 40)["geometric_mean_verdict"] == "met"


_LIBRARY = """
import numpy as np
__version__ = {version!r}
def set_num_threads(n): pass
def get_num_threads(): return 1
def number(): return {value}
"""


def test_workers_have_interpreters_of_their_own(tmp_path: Path) -> None:
    pythons = []
    for value, version in ((3, "new"), (4, "old")):
        home = tmp_path / version
        home.mkdir()
        (home / "numbered.py").write_text(_LIBRARY.format(version=version, value=value))
        # An interpreter that finds its own module first, as in an environment.
        python = home / "python"
        start = f"import sys, runpy; sys.path[:0] = [{str(home)!r}, '.']; sys.argv = sys.argv[2:]"
        run = "sys.argv[0] = '-m'; runpy.run_module('benchmarks.worker', run_name='__main__')"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{start}; {run}" "$@"\n')
        python.chmod(0o755)
        pythons.append(str(python))
    row = Row("number", "torch.number()")
    with (
        Worker("numbered", "cpu", python=pythons[0]) as new,
        Worker("numbered", "cpu", python=pythons[1], also="json.tool") as old,
    ):
        assert [int(worker.result(row)[0]) for worker in (new, old)] == [3, 4]
        assert [worker.origin()[1] for worker in (new, old)] == ["new", "old"]
        assert (new.loaded("json.tool"), old.loaded("json.tool")) == (False, True)
        new.prepare(row)
        assert Remote(new, "run").run(10) > 0
        with pytest.raises(RuntimeError, match="AttributeError"):
            new.prepare(Row("absent", "torch.absent()", "torch.absent"))
        with pytest.raises(RuntimeError, match="both interpreters import"):
            against.check([row], new, new)
        with pytest.raises(AssertionError, match="differs"):
            against.check([row], new, old)
    with pytest.raises(RuntimeError, match="ModuleNotFoundError"):
        Worker("numbered", "cpu")
    assert "other-python" in against.run(Options())["problem"]


def test_confinement_is_undone() -> None:
    before = os.sched_getaffinity(0)
    with environment.confined(1) as chosen:
        assert os.sched_getaffinity(0) == set(chosen) == {max(before)}
        assert os.environ["OMP_NUM_THREADS"] == "1"
    assert os.sched_getaffinity(0) == before
    with pytest.raises(ValueError, match="processors"), environment.confined(len(before) + 1):
        pass


def test_description_names_no_host_and_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/secret/place/libmalloc.so")
    text = json.dumps(environment.describe())
    assert "libmalloc.so" in text
    for private in ("/secret", os.uname().nodename, str(Path.home()) + "/"):
        assert private not in text


def test_table_is_aligned_markdown() -> None:
    assert report.table(["row", "ratio"], [["a + b", "0.20"], ["c"]]) == (
        "| row   | ratio |\n| ----- | ----: |\n| a + b |  0.20 |\n| c     |       |"
    )


def test_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "new" / "figures.json"
    report.write(file, report.document({"processor": "x"}, {}, [{"suite": "size"}]))
    assert json.loads(file.read_text())["results"] == [{"suite": "size"}]
    with pytest.raises(TypeError):
        report.write(file, {"bad": object()})
    assert json.loads(file.read_text())["results"] == [{"suite": "size"}]
    assert [entry.name for entry in file.parent.iterdir()] == ["figures.json"]


def test_problems_name_what_was_not_kept() -> None:
    results: list[dict[str, Any]] = [
        {"suite": "overhead", "runs": [{"rows": [
            {"name": "a + b", "verdict": "not met"},
            {"name": "sum", "verdict": "met?"},
            {"name": "cat", "problem": "AttributeError: cat"},
        ], "geometric_mean_verdict": "not met"}]},
        {"suite": "build", "problem": "there is no log"},
    ]  # fmt: skip
    assert report.problems(results) == [
        "overhead / a + b: target not met",
        "overhead / cat: AttributeError: cat",
        "overhead: geometric_mean not met",
        "build: there is no log",
    ]


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suites, options, _ = parse(["ops", "--threads", "1,2", "--cpus", "0,1", "--quick"])
    assert (suites, options.threads, options.cpus, options.quick) == (["ops"], (1, 2), (0, 1), True)
    for wrong in (["nonsense"], ["--threads", "0"], ["--threads", "two"]):
        with pytest.raises(SystemExit):
            parse(wrong)
    log = tmp_path / "build-times.json"
    log.write_text('{"core": {"cpu_s": 4000, "wall_s": 2100}}')
    arguments = ["build", "--build-times", str(log), "--json", str(tmp_path / "out.json")]
    assert main(arguments) == 0
    assert main([*arguments, "--check"]) == 1
    assert json.loads((tmp_path / "out.json").read_text())["results"][0]["verdict"] == "not met"
    assert "build: target not met" in capsys.readouterr().err


def test_sixty_operators_at_every_size_and_their_means_are_judged() -> None:
    for label in ops.MEANS:
        assert sum(row.size == label for row in ops.ROWS) == 60
    assert {row.target for row in ops.ROWS} == {1.5}
    mean = {"value": 0.25, "low": 0.24, "high": 0.26}
    rows = [{"size": "16"}, {"size": "64Ki", "problem": "missing"}]
    run = {"rows": rows, "sizes": {"16": dict(mean), "64Ki": dict(mean), "16Mi": None}}
    sizes = ops_suite.judge_sizes({"runs": [run]})["runs"][0]["sizes"]
    assert (sizes["16"]["target"], sizes["16"]["verdict"]) == (0.30, "met")
    assert sizes["64Ki"]["verdict"] == "not met: 1 rows failed"


def test_checkpoints_are_judged_by_value_or_by_ratio() -> None:
    by_value = checkpoints.Figure("load", checkpoints.load_peak, "", 1.1)
    row = checkpoints.summarize(by_value, {"subject": [1.0, 1.05, 9.0], "peer": [2.0, 2.1, 2.0]})
    assert (row["subject"]["median"], row["ratio"]["value"], row["verdict"]) == (1.05, 0.5, "met")
    by_ratio = checkpoints.Figure("step", checkpoints.first_step_peak, "", 1.0, to_peer=True)
    missed = checkpoints.summarize(by_ratio, {"subject": [1.5], "peer": [1.0]})
    alone = checkpoints.summarize(
        checkpoints.Figure("save", checkpoints.shard_time, "ms", 1.2, peer=False), {"subject": [1.3]}
    )
    assert missed["verdict"] == alone["verdict"] == "not met"
    result = {
        "suite": "checkpoints",
        "gigabytes": 1,
        "subject": "ours",
        "peer": "theirs",
        "rows": [row, missed, alone],
    }
    text = checkpoints.render(result)
    assert "value 1.1" in text
    assert "ratio 1 " in text
    assert "1.3 ms" in text
    assert len(report.problems([result])) == 2


def test_figures_of_processes_are_judged_by_ratio_rate_or_value() -> None:
    def judged(target: float, **options: Any) -> dict[str, Any]:
        figure = processes.Figure("row", queues.plain_round_trips, "ms", target, **options)
        return processes.summarize(figure, {"subject": [2.0, 2.2, 1.9], "peer": [4.0, 4.4, 3.8]})

    assert judged(0.5)["verdict"] == "met"
    assert judged(0.4)["verdict"] == "not met"
    rate = judged(2.0, judged="rate", at_least=True)
    assert (rate["ratio"]["value"], rate["verdict"]) == (2.0, "met")
    assert judged(2.1, judged="rate", at_least=True)["verdict"] == "not met"
    assert judged(1.9, judged="value", at_least=True)["verdict"] == "met"
    assert judged(1.9, judged="value")["verdict"] == "not met"
    alone = processes.Figure("held", queues.growth_of_held, "", 1.2, "value", peer=False)
    rows = [rate, judged(1.9, judged="value"), processes.summarize(alone, {"subject": [1.1]})]
    result = {"suite": "processes", "subject": "ours", "peer": "theirs", "rows": rows}
    text = processes.render(result)
    assert "rate >= 2 " in text
    assert "value <= 1.2" in text
    assert len(report.problems([result])) == 1


def test_a_figure_of_processes_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(function: Any, *arguments: Any, **options: Any) -> float:
        if function is queues.small_tensors:
            raise RuntimeError("no module named PIL")
        return 2.0

    monkeypatch.setattr(process, "fresh", measure)
    monkeypatch.setattr(processes, "confined", lambda *_: contextlib.nullcontext())
    result = processes.run(Options(quick=True))
    assert len(result["rows"]) == len(processes.FIGURES)
    failed = [row for row in result["rows"] if "problem" in row]
    assert [row["name"] for row in failed] == ["10,000 small tensors"]
    assert "10,000 small tensors: no module named PIL" in processes.render(result)


def test_programs_are_compared_round_by_round_and_must_agree() -> None:
    series = {"program": [9e6, 18e6, 9e6], "eager": [10e6, 20e6, 10e6], "onnxruntime": [6e6, 12e6, 6e6]}
    row = programs.summarize("a model", {"as_eager": True, "distance": 0.5}, series)
    assert (row["to_eager"]["value"], row["to_onnxruntime"]["value"]) == (0.9, 1.5)
    assert row["agreement_verdict"] == "met"
    for agreement in ({"as_eager": False, "distance": 0.5}, {"as_eager": True, "distance": 1.1}):
        assert programs.summarize("a model", agreement, series)["agreement_verdict"] == "not met"
    failed = {"name": "another", "problem": "a reason"}
    shown = programs.render({"peer": "torch", "figures": [], "rows": [row, failed]})
    assert "1.50" in shown
    assert "a reason" in shown
    assert "geometric mean" not in shown


def test_programs_are_chosen_by_name() -> None:
    assert [size for _, _, size in programs.model_rows("ResNet")] == [1, 16]
    assert len(programs.model_rows()) == 12
    with pytest.raises(ValueError, match="no figure's name contains 'nothing'"):
        programs.run(Options(match="nothing"))


def test_the_cost_of_a_call_by_name_is_read() -> None:
    text = "ops::add 63.5 ns; rl_call 151.7 ns, +88.2; rl_op_add 82.6 ns, +19.0\n"
    assert c_interface.nanoseconds_over(text) == 88.2
    with pytest.raises(RuntimeError, match="printed"):
        c_interface.nanoseconds_over("nothing")


def test_the_runner_is_measured_with_onednn_and_without(tmp_path: Path) -> None:
    for distribution, files in size.RUNNER.items():
        module = distribution.replace("-", "_")
        records = [f"{module}/lib/{name}" for name in files]
        for record in records:
            (tmp_path / record).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / record).write_bytes(b"x" * 1_000_000)
        folder = tmp_path / f"{module}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
        (folder / "RECORD").write_text("".join(f"{record},,\n" for record in records))
    found = size._runner([str(tmp_path)])
    assert found == dict.fromkeys([name for files in size.RUNNER.values() for name in files], 1.0)
    assert [(each["name"], each["mb"]) for each in size._runner_totals(found)] == [
        ("with oneDNN", 4.0),
        ("without", 3.0),
    ]


def test_calls_of_known_length_are_blocks_of_their_own() -> None:
    class Counting:
        name = "counting"

        def __init__(self) -> None:
            self.counts: list[int] = []

        def run(self, count: int) -> int:
            self.counts.append(count)
            return 1000 * count

    subject = Counting()
    (found,) = interleave([subject], Plan(rounds=3, calls=1))
    assert found.count == 1
    assert [count for count in subject.counts if count] == [1, 1, 1]


def test_peaks_are_counted_anew() -> None:
    np.ones(100 << 20, np.uint8)
    before = checkpoints.reset_peak()
    assert checkpoints.status("VmHWM") - before < 20 << 20
    np.ones(100 << 20, np.uint8)
    assert checkpoints.status("VmHWM") - before > 80 << 20
    with pytest.raises(RuntimeError, match="no VmNothing"):
        checkpoints.status("VmNothing")


def test_resnet_50_has_its_parameters() -> None:
    shapes_ = optimizers.resnet50_shapes()
    assert len(shapes_) == 161
    assert sum(int(np.prod(shape)) for shape in shapes_) == 25_557_032


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_copy_moves_what_a_step_moves(threads: int) -> None:
    scope: dict[str, Any] = {"np": np}
    exec(optimizers._copy(4 * 1001, threads), scope)
    scope["targets"] = [np.zeros_like(part) for part in scope["targets"]]
    scope["copy"]()
    assert np.array_equal(np.concatenate(scope["targets"]), np.ones(1001, np.float32))
    assert [optimizers.moved_bytes(step) for step in optimizers.STEPS] == [
        511_140_640,
        715_596_896,
        715_596_896,
    ]


def test_a_step_keeps_one_of_two_promises() -> None:
    def judged(to_peer: float, to_copy: float) -> str:
        estimates = [{"value": v, "low": v - 0.01, "high": v + 0.01} for v in (to_peer, to_copy)]
        row = {"name": "SGD", "ratio": estimates[0], "numpy_ratio": estimates[1]}
        optimizers_suite.judge(row)
        return str(row["verdict"])

    assert judged(0.7, 2.0) == judged(1.5, 1.0) == "met"
    assert judged(0.9, 1.2) == "not met"
    assert judged(0.9, 1.095) == "met?"
    assert judged(0.805, 1.2) == "not met?"


def test_threads_takes_medians_of_both_libraries_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def measured(_: Any, name: str) -> dict[str, float]:
        calls.append(name)
        value = float(len(calls))
        return {"alone": 100 * value, "two": value, "busy": 0.5, "pause": 3.0}

    monkeypatch.setattr(process, "fresh", measured)
    result = threads.run(parse(["threads", "--peer", "numpy"])[1])
    assert calls == ["rushlight", "numpy"] * 5
    assert [row["module"]["median"] for row in result["rows"]] == [500, 5, 0.5, 3]
    assert [row["peer"]["median"] for row in result["rows"]][:2] == [600, 6]
    assert "two threads" in threads.render(result | {"module": "rushlight", "peer": "numpy"})


def test_queueing_compares_the_devices_of_each_process(monkeypatch: pytest.MonkeyPatch) -> None:
    repeats = iter([{"cpu": 100.0, "toy": toy} for toy in (140.0, 150.0, 160.0, 170.0, 900.0)])
    monkeypatch.setattr(process, "fresh", lambda *_: next(repeats))
    result = queueing.run(parse(["queueing"])[1])
    assert result["ratio"]["median"] == 1.6
    assert "not met" in queueing.render(result)
    assert "not met" not in queueing.render(result | {"target": 1.6})


def test_null_launches_compares_with_the_meta_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    repeats = iter([{"peer": 1000.0, "cuda": cuda} for cuda in (400.0, 450.0, 490.0, 530.0, 900.0)])
    monkeypatch.setattr(process, "fresh", lambda *_: next(repeats))
    monkeypatch.setattr(null_launches, "build", lambda folder: folder / "plugin.so")
    asked: list[bool] = []

    def ask(options: Options, installed: Path | None) -> dict[str, float]:
        if installed is not None:
            assert (installed / "rushlight_cuda" / "__init__.py").exists()
        asked.append(installed is not None)
        return {"wall": 12.0 if installed else 5.0, "cpu": 3.0}

    monkeypatch.setattr(null_launches, "ask", ask)
    result = null_launches.run(parse(["null-launches"])[1])
    assert result["ratio"]["median"] == 0.49
    assert asked == [False] * 25 + [True] * 25
    text = null_launches.render(result)
    assert text.count("not met") == 1
    assert null_launches.render(result | {"target": 0.4}).count("not met") == 2


def test_a_thread_beside_runs_until_the_scope_ends() -> None:
    calls: list[int] = []
    with threads._Beside(lambda: calls.append(len(calls))):
        while len(calls) < 3:
            pass
    ended = len(calls)
    assert threads._pause() > 0
    assert len(calls) == ended
