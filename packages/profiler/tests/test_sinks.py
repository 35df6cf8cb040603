"""Sinks: every sink must write all data of a recording. The sinks of this package share their tests."""

from __future__ import annotations

import gzip
import json
import re
import threading
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

import rushlight_core as core
import rushlight_profiler
from rushlight_core.seams.profiler import Argument, Event, Sink
from rushlight_profiler import profile, record_function, tensorboard_trace_handler, trace_handler
from rushlight_profiler.sinks import make_sink
from rushlight_profiler.sinks.chrome import ChromeTrace
from rushlight_profiler.sinks.html import MAX_MEMORY_POINTS, HtmlPage, page_data
from rushlight_profiler.sinks.json_lines import JsonLines
from rushlight_testing.trace_format import trace_problems


@pytest.fixture
def recording(hooks):
    """Return a recording with all kinds of data: shapes, stacks, memory, nodes and unusual names."""
    x = core.tensor([[1.0, 2.0], [3.0, 4.0]])
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        with record_function("step </script> \u2028 é", "epoch 1"):
            y = x + x
            core.add(x, 2, out=y)
        hooks.observer.node_begin(b"AddBackward", 12)
        y.select(0, 1).clone()
        hooks.observer.node_end(12)
    raw = [event._replace(sequence=12) if event.name == "add" else event for event in prof.recording.raw]
    return rushlight_profiler.Recording(prof.recording.header, raw)


def read_chrome(path: str) -> list[Event]:
    """Read a Chrome trace and return its events."""
    entries = json.loads(Path(path).read_text())["traceEvents"]
    events = []
    for entry in entries:
        arguments = entry.get("args", {})
        if entry["ph"] == "X":
            kind = "annotation" if entry["cat"] == "user_annotation" else "operator"
            kind = "node" if arguments.get("Backward node") else kind
            inputs = None
            if "Input Dims" in arguments:
                pairs = zip(arguments["Input type"], arguments["Input Dims"], strict=True)
                inputs = tuple(Argument(dtype, tuple(dims)) if dtype else None for dtype, dims in pairs)
            elif "Text" in arguments:
                inputs = (arguments["Text"],)
            stack = arguments.get("Call stack")
            begin, duration = round(entry["ts"] * 1e3), round(entry["dur"] * 1e3)
            events.append(
                Event(
                    kind, entry["name"], arguments.get("Overload", ""), entry["tid"], begin, begin + duration,
                    arguments["External id"], arguments.get("Parent", 0), arguments.get("Sequence number", 0),
                    arguments.get("Result bytes", 0), 0, inputs, stack and tuple(stack.split(";\n")),
                )
            )  # fmt: skip
        elif entry["ph"] == "i":
            at = round(entry["ts"] * 1e3)
            events.append(
                Event("memory", arguments["Device"], "", entry["tid"], at, at, 0, arguments["Parent"], 0,
                      arguments["Bytes"], arguments["Addr"], None, None)
            )  # fmt: skip
    return events


def read_json_lines(path: str) -> list[Event]:
    return rushlight_profiler.load(path).raw


SINKS = [
    pytest.param(ChromeTrace, read_chrome, id="chrome"),
    pytest.param(JsonLines, read_json_lines, id="json_lines", marks=pytest.mark.swap),
]


@pytest.mark.parametrize(("sink", "read"), SINKS)
class TestEverySink:
    def test_it_keeps_the_protocol(self, sink, read, tmp_path):
        assert isinstance(sink(str(tmp_path / "out")), Sink)

    def test_what_is_written_is_read_again(self, sink, read, recording, tmp_path):
        path = str(tmp_path / "out")
        recording.write_to(sink(path))
        assert read(path) == recording.raw

    def test_an_empty_recording(self, sink, read, make_recording, tmp_path):
        path = str(tmp_path / "out")
        make_recording().write_to(sink(path))
        assert read(path) == []

    def test_a_folder_that_is_not_there(self, sink, read, recording, tmp_path):
        with pytest.raises(FileNotFoundError):
            recording.write_to(sink(str(tmp_path / "missing" / "out")))


# --- Chrome -------------------------------------------------------------------------------------------------


@pytest.fixture
def trace(recording, tmp_path):
    recording.export_chrome_trace(str(tmp_path / "trace.json"))
    return json.loads((tmp_path / "trace.json").read_text())


def of_phase(trace, phase):
    return [entry for entry in trace["traceEvents"] if entry["ph"] == phase]


def test_chrome_every_entry_has_its_place(trace, recording):
    for entry in trace["traceEvents"]:
        assert entry["pid"] == recording.header.process
        assert isinstance(entry["tid"], int)
        if entry["ph"] != "M":
            assert entry["ts"] >= 0
    assert len(of_phase(trace, "X")) == len(recording.events())
    assert trace["baseTimeNanoseconds"] == recording.header.start_time


def test_chrome_names(trace, recording):
    meta = {(entry["name"], entry["tid"]): entry["args"] for entry in of_phase(trace, "M")}
    assert meta["process_name", 0]["name"].startswith("python")
    for thread, name in recording.header.threads.items():
        assert meta["thread_name", thread]["name"].startswith(name)
    assert {entry["tid"] for entry in of_phase(trace, "X")} <= set(recording.header.threads)


def test_chrome_keeps_the_rules_of_the_format(recording, make_recording, tmp_path):
    for kept in (recording, make_recording(), make_recording(("operator", "mul", 0, 1, 0), dropped=7)):
        kept.export_chrome_trace(str(tmp_path / "trace.json"))
        assert trace_problems((tmp_path / "trace.json").read_text()) == []


def test_chrome_keeps_the_rules_with_several_threads(x, tmp_path):
    def work():
        for _ in range(20):
            with record_function("outer"):
                (x + x).clone()

    with profile(profile_memory=True) as prof:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    text = (tmp_path / "trace.json").read_text()
    assert len({entry["tid"] for entry in of_phase(json.loads(text), "X")}) == 4
    assert trace_problems(text) == []


def test_chrome_arrows_lead_from_operators_to_nodes(trace):
    starts = {entry["id"]: entry for entry in of_phase(trace, "s")}
    ends = {entry["id"]: entry for entry in of_phase(trace, "f")}
    assert starts.keys() == ends.keys() == {1}
    assert ends[1]["bp"] == "e"
    slices = {(entry["tid"], entry["ts"]): entry for entry in of_phase(trace, "X")}
    assert slices[starts[1]["tid"], starts[1]["ts"]]["name"] == "add"
    assert slices[ends[1]["tid"], ends[1]["ts"]]["name"] == "AddBackward"
    assert starts[1]["cat"] == ends[1]["cat"]
    assert starts[1]["name"] == ends[1]["name"]


def test_chrome_arrows_of_a_node_that_runs_twice(make_recording, tmp_path):
    recording = make_recording(
        ("operator", "mul", 0, 1, 0, {"sequence": 4}),
        ("node", "MulBackward", 2, 3, 0, {"sequence": 4}),
        ("node", "MulBackward", 4, 5, 0, {"sequence": 4}),
        ("node", "Unknown", 6, 7, 0, {"sequence": 99}),
    )
    recording.export(str(tmp_path / "t"), "chrome")
    trace = json.loads((tmp_path / "t").read_text())
    assert [entry["ts"] for entry in of_phase(trace, "f")] == [2, 4]
    assert [entry["id"] for entry in of_phase(trace, "s")] == [1, 2]


def test_chrome_counts_memory(trace, recording):
    counters = of_phase(trace, "C")
    assert [entry["args"]["bytes"] for entry in counters] == [
        point.nbytes for point in recording.memory_timeline()
    ]
    assert {entry["name"] for entry in counters} == {"memory of cpu"}


def test_chrome_says_what_is_missing(make_recording, tmp_path):
    make_recording(("operator", "mul", 0, 1, 0), dropped=7).export(str(tmp_path / "t"))
    trace = json.loads((tmp_path / "t").read_text())
    assert any("7 events are missing" in entry["name"] for entry in of_phase(trace, "i"))


# --- JSON lines ---------------------------------------------------------------------------------------------


def test_json_lines_keep_the_whole_recording(recording, tmp_path):
    for name in ("r.jsonl", "r.jsonl.gz"):
        path = str(tmp_path / name)
        recording.export_json_lines(path)
        again = rushlight_profiler.load(path)
        assert again.header == recording.header
        assert again.raw == recording.raw
        assert again.key_averages().table() == recording.key_averages().table()
        assert all(isinstance(argument, Argument) for argument in again.raw[1].arguments[:2])
    assert gzip.decompress(Path(path).read_bytes())[:1] == b"{"


def test_json_lines_that_are_damaged(recording, tmp_path):
    path = tmp_path / "r.jsonl"
    recording.export_json_lines(str(path))
    lines = path.read_text().splitlines(keepends=True)
    for text, why in (
        ("", "not a recording"),
        ("[1]\n", "not a recording"),
        ("nonsense", "Expecting value"),
        ('{"format": "rushlight-profile", "version": 99}\n', "version 99"),
        ('{"format": "rushlight-profile", "version": 1}\n', "threads"),
        ("".join(lines[:-1]), "truncated"),
        ("".join(lines[:-1])[:-20], ""),
        ("".join([*lines[:2], *lines[3:]]), "must hold"),
        (lines[0] + '{"kind": "operator"}\n', "argument"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=rf"load\(path\): .* cannot be read: .*{why}"):
            rushlight_profiler.load(str(path))
    with pytest.raises(FileNotFoundError):
        rushlight_profiler.load(str(tmp_path / "missing"))


# --- HTML ---------------------------------------------------------------------------------------------------


def test_html_is_one_page_by_itself(recording, tmp_path):
    path = tmp_path / "page.html"
    recording.export_html(str(path))
    page = path.read_text()
    assert not re.search(r"https?://|<link|src=|@import", page)
    assert page.count("</script>") == 2  # a name that contains </script> does not end the script
    data = json.loads(
        re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1]
    )
    assert data["header"]["process"] == recording.header.process
    assert {row["name"] for row in data["table"]} == {event.name for event in recording.events()}
    assert len(data["spans"]) == len(recording.events())
    assert len(data["memory"]) == len(recording.memory_timeline())


def test_html_spans_stand_below_one_another(recording):
    data = page_data(recording.header, recording.raw)
    depths = {data["names"][span[0]]: span[2] for span in data["spans"]}
    assert depths["AddBackward"] == 0
    assert depths["clone"] == depths["add"] == 1


def test_html_thins_memory_and_keeps_its_extremes(make_recording):
    rows = [("memory", "cpu", i, i, 0, {"nbytes": 5 if i % 2 else -5}) for i in range(3 * MAX_MEMORY_POINTS)]
    rows[12345] = ("memory", "cpu", 12345, 12345, 0, {"nbytes": 1 << 30})
    recording = make_recording(*rows)
    points = page_data(recording.header, recording.raw)["memory"]
    assert len(points) <= MAX_MEMORY_POINTS
    assert max(point[1] for point in points) == max(point.nbytes for point in recording.memory_timeline())
    assert [point[0] for point in points] == sorted(point[0] for point in points)


def test_html_says_what_it_leaves_out(make_recording, monkeypatch):
    monkeypatch.setattr("rushlight_profiler.sinks.html.MAX_SPANS", 3)
    recording = make_recording(*[("operator", "add", i, i + 1, 0) for i in range(5)])
    data = page_data(recording.header, recording.raw)
    assert (len(data["spans"]), data["left_out"]) == (3, 2)


# --- choosing -----------------------------------------------------------------------------------------------


def test_formats_by_name():
    assert isinstance(make_sink("chrome", "x"), ChromeTrace)
    assert isinstance(make_sink("json_lines", "x"), JsonLines)
    assert isinstance(make_sink("html", "x"), HtmlPage)
    with pytest.raises(
        ValueError, match=r"must be one of chrome, html, json_lines, got 'pdf'\nhint: .*rushlight.profiler"
    ):
        make_sink("pdf", "x")


class CountingSink:
    """A sink of another package."""

    def __init__(self, path: str) -> None:
        self.path = path

    def begin(self, header):
        self.count = 0

    def event(self, event):
        self.count += 1

    def end(self):
        Path(self.path).write_text(str(self.count))


def test_a_format_that_another_package_brings(recording, tmp_path, monkeypatch):
    entry = EntryPoint("count", f"{__name__}:CountingSink", "rushlight.profiler")
    monkeypatch.setattr(EntryPoint, "load", lambda self: CountingSink)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints([entry]))
    recording.export(str(tmp_path / "n"), "count")
    assert (tmp_path / "n").read_text() == str(len(recording.raw))


def test_handlers_write_a_file_for_each_window(x, tmp_path):
    handler = trace_handler(str(tmp_path / "new"), "json_lines", worker_name="w")
    plan = rushlight_profiler.schedule(wait=0, warmup=0, active=1)
    with profile(schedule=plan, on_trace_ready=handler) as prof:
        for _ in range(2):
            x + x
            prof.step()
    files = sorted((tmp_path / "new").iterdir())
    # The last step was not complete when the profile stopped, but its events form a window, too.
    assert len(files) == 3
    assert all(file.name.startswith("w.") and file.suffix == ".jsonl" for file in files)
    assert [event.name for event in rushlight_profiler.load(str(files[0])).events()] == [
        "ProfilerStep#0",
        "add",
    ]


def test_the_handler_of_tensorboard(x, tmp_path):
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path), use_gzip=True)):
        x + x
    (file,) = tmp_path.iterdir()
    assert file.name.endswith(".pt.trace.json.gz")
    assert of_phase(json.loads(gzip.decompress(file.read_bytes())), "X")[0]["name"] == "add"


def test_memory_timelines(recording, make_recording, tmp_path):
    path = tmp_path / "m.json"
    recording.export_memory_timeline(str(path))
    times, sizes = json.loads(path.read_text())
    assert sizes == [point.nbytes for point in recording.memory_timeline()]
    assert len(times) == len(sizes)
    recording.export_memory_timeline(str(tmp_path / "m.html"))
    assert (tmp_path / "m.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(RuntimeError, match="profile_memory=True"):
        make_recording().export_memory_timeline(str(path))
