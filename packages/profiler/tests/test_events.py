"""Averages, tables and sums, for recordings that are built from rows."""

from __future__ import annotations

import pytest

from rushlight_profiler.events import format_memory, format_time
from rushlight_profiler.flops import flops_of


@pytest.fixture
def recording(make_recording, f32):
    added = {"arguments": (f32(4, 5), f32(4, 5), None), "nbytes": 80}
    return make_recording(
        ("annotation", "step", 0, 100, 0),
        ("operator", "linear", 10, 60, 1, {"arguments": (f32(4, 3), f32(5, 3), None), "nbytes": 80}),
        ("operator", "addmm", 20, 50, 2, {"arguments": (f32(5), f32(4, 3), f32(3, 5)), "nbytes": 80}),
        ("memory", "cpu", 25, 25, 3, {"nbytes": 80}),
        ("operator", "add", 70, 80, 1, {**added, "stack": ("b.py(2): g", "a.py(1): f")}),
        ("memory", "cpu", 75, 75, 5, {"nbytes": 80}),
        ("memory", "cpu", 90, 90, 1, {"nbytes": -160}),
        ("operator", "add", 200, 230, 0, {"arguments": (f32(2), f32(2)), "nbytes": 8,
         "stack": ("c.py(3): h",)}),
        allocated=1000,
        metadata={"profile_memory": True, "with_stack": True},
    )  # fmt: skip


def rows(events):
    return {row.key: row for row in events.key_averages()}


def test_times(recording):
    found = rows(recording.events())
    assert {name: row.cpu_time_total for name, row in found.items()} == {
        "step": 100,
        "linear": 50,
        "addmm": 30,
        "add": 40,
    }
    assert {name: row.self_cpu_time_total for name, row in found.items()} == {
        "step": 40,
        "linear": 20,
        "addmm": 30,
        "add": 40,
    }
    assert found["add"].count == 2
    assert found["add"].cpu_time == 20
    # 100 for the step, and 30 for the operator outside it.
    assert recording.events().self_cpu_time_total == 130
    assert recording.events().total_average().count == 5


def test_memory(recording):
    found = rows(recording.events())
    assert found["linear"].cpu_memory_usage == 80
    assert found["linear"].self_cpu_memory_usage == 0
    assert found["step"].cpu_memory_usage == 0
    assert found["step"].self_cpu_memory_usage == -160
    assert [(point.time, point.nbytes) for point in recording.memory_timeline()] == [
        (25, 1080),
        (75, 1160),
        (90, 1000),
    ]


def test_flops(recording):
    found = rows(recording.events())
    assert found["addmm"].flops == 2 * 4 * 3 * 5
    assert found["linear"].flops == 0  # counted for the inner operators
    assert found["add"].flops == 20 + 2


@pytest.mark.parametrize(
    ("name", "shapes", "nbytes", "expected"),
    [
        ("mm", [(4, 3), (3, 5)], 80, 120),
        ("bmm", [(2, 4, 3), (2, 3, 5)], 160, 240),
        ("linear", [(7, 3), (5, 3)], 140, 210),
        ("mv", [(4, 3), (3,)], 16, 24),
        ("dot", [(6,), (6,)], 4, 12),
        ("conv2d", [(1, 3, 8, 8), (5, 3, 3, 3)], 4 * 5 * 6 * 6, 2 * 5 * 36 * 27),
        ("mul", [(4,), (4,)], 16, 4),
        ("relu", [(4,)], 16, 0),
    ],
)
def test_formulas(make_recording, f32, name, shapes, nbytes, expected):
    arguments = tuple(f32(*shape) for shape in shapes)
    recording = make_recording(("operator", name, 0, 1, 0, {"arguments": arguments, "nbytes": nbytes}))
    assert flops_of(recording.raw[0]) == expected


def test_groups(recording):
    by_shape = recording.key_averages(group_by_input_shape=True)
    assert sorted(str(row.input_shapes) for row in by_shape if row.key == "add") == [
        "[[2], [2]]",
        "[[4, 5], [4, 5], []]",
    ]
    assert len(recording.key_averages(group_by_stack_n=1)) == 5
    assert next(row for row in recording.key_averages(group_by_stack_n=2) if row.key == "add").stack == [
        "b.py(2): g",
        "a.py(1): f",
    ]
    assert all(row.stack == [] for row in recording.key_averages())


def table_names(table):
    lines = table.splitlines()
    rules = [i for i, line in enumerate(lines) if line.startswith("---")]
    return [line.split()[0] for line in lines[rules[1] + 1 : rules[2]]]


def test_table(recording):
    averages = recording.key_averages()
    table = averages.table()
    assert table_names(table) == ["step", "linear", "addmm", "add"]
    assert "Self CPU time total: 130.000us" in table
    for title in ("Self CPU %", "CPU total", "CPU time avg", "# of Calls", "CPU Mem", "FLOPs"):
        assert title in table
    assert "Input Shapes" not in table
    assert "Input Shapes" in recording.key_averages(group_by_input_shape=True).table()
    assert str(averages) == table
    assert averages.table(header="Mine").startswith("Mine\n")


def test_a_call_inside_another_of_its_name_counts_once(make_recording):
    inside = {"nbytes": 8}
    found = rows(
        make_recording(
            ("operator", "sum", 0, 50, 0, inside),
            ("operator", "sum", 10, 30, 1, inside),
            ("operator", "sum", 15, 20, 2, inside),
        ).events()
    )
    assert found["sum"].count == 3
    assert found["sum"].cpu_time_total == 50
    assert found["sum"].self_cpu_time_total == 50


def test_shares_of_the_total(recording):
    lines = recording.key_averages().table().splitlines()
    (addmm,) = [line.split() for line in lines if line.startswith("addmm")]
    assert addmm[1] == addmm[3] == "23.08%"  # 30 of 130 microseconds


@pytest.mark.parametrize(
    ("key", "first"),
    [("cpu_time_total", "step"), ("self_cpu_time_total", "step"), ("cpu_time", "step"), ("count", "add"),
     ("flops", "addmm"), ("self_cpu_memory_usage", "addmm"), ("nbytes", "add")],
)  # fmt: skip
def test_sorting(recording, key, first):
    averages = recording.key_averages()
    found = table_names(averages.table(sort_by=key))
    values = {row.key: getattr(row, key) for row in averages}
    assert [values[name] for name in found] == sorted(values.values(), reverse=True)
    assert values[first] == max(values.values())


def test_rows_and_widths(recording):
    table = recording.key_averages().table(sort_by="self_cpu_time_total", row_limit=1)
    assert table_names(table) == ["step"]
    assert "3 more rows" in table
    assert table_names(recording.key_averages().table(row_limit=0)) == []
    assert "more rows" not in recording.key_averages().table(row_limit=-1)
    assert table_names(recording.key_averages().table(max_name_column_width=5))[1:3] == ["li...", "addmm"]
    assert table_names(recording.events().table(top_level_events_only=True)) == ["step", "add"]
    assert (
        "...py(3): h" in recording.events().table(max_src_column_width=11)
        or "c.py(3): h" in recording.events().table()
    )


def test_keys_that_cannot_be_sorted_by(recording):
    with pytest.raises(ValueError, match=r"table\(sort_by\): must be one of .*, got 'speed'"):
        recording.events().table(sort_by="speed")
    with pytest.raises(ValueError, match="times of GPUs were not recorded"):
        recording.events().table(sort_by="cuda_time_total")


def test_no_events(make_recording):
    empty = make_recording()
    assert empty.events().table() == "No events were recorded."
    assert empty.key_averages() == []
    with pytest.raises(RuntimeError, match="no event"):
        empty.events().total_average()


def test_a_parent_that_is_missing(make_recording):
    # The parent is missing because the buffer was full, so the children have no parent.
    recording = make_recording(
        ("operator", "add", 0, 1, 77), ("memory", "cpu", 0, 0, 99, {"nbytes": 4}), dropped=1
    )
    assert recording.events()[0].cpu_parent is None


def test_formats():
    assert [format_time(us) for us in (0.5, 1500, 2.5e6)] == ["0.500us", "1.500ms", "2.500s"]
    assert [format_memory(n) for n in (0, -2048, 3 << 20, 5 << 30)] == [
        "0 B",
        "-2.00 KB",
        "3.00 MB",
        "5.00 GB",
    ]


def test_stacks_for_flame_graphs(recording, make_recording, tmp_path):
    recording.export_stacks(str(tmp_path / "stacks"))
    assert (tmp_path / "stacks").read_text().splitlines() == [
        "a.py(1): f;b.py(2): g;add 10",
        "c.py(3): h;add 30",
    ]
    with pytest.raises(ValueError, match="metric"):
        recording.export_stacks(str(tmp_path / "stacks"), "self_cuda_time_total")
    with pytest.raises(RuntimeError, match="with_stack=True"):
        make_recording().export_stacks(str(tmp_path / "stacks"))
