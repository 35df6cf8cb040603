"""The operations and bytes of a step, counted from invented events."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import pytest

from benchmarks.roofline.counts import furthest, operators, roof, traffic, vendor_seconds
from benchmarks.roofline.figures import above, page, render


class Argument(NamedTuple):
    dtype: str
    shape: tuple[int, ...]


@dataclass
class Event:
    name: str
    arguments: tuple[Any, ...] = ()
    nbytes: int = 0
    flops: int = 0
    self_cpu_time_total: float = 0.0
    kind: str = "operator"
    cpu_children: list[Any] = field(default_factory=list)


MATRIX = Argument("float32", (10, 10))


def test_bytes_are_those_of_arguments_and_result() -> None:
    assert traffic(Event("add", (MATRIX, None, Argument("int64", (5,))), 400)) == 400 + 40 + 400
    assert traffic(Event("cat", ((MATRIX, MATRIX), None), 800)) == 1600
    assert traffic(Event("view", (MATRIX,), 400)) == 0


def test_a_fused_optimizer_writes_all_but_the_gradients() -> None:
    lists = ((MATRIX, MATRIX),) * 3
    assert traffic(Event("_fused_sgd_", lists, 0)) == 800 * 5


def test_an_embedding_reads_the_rows_that_it_returns() -> None:
    table, indices = Argument("float32", (1000, 10)), Argument("int64", (2,))
    assert traffic(Event("embedding", (table, indices), 80)) == 80 + 16 + 80


def test_an_operator_is_counted_where_the_work_is_done() -> None:
    inside = Event("mm", (MATRIX, MATRIX), 400, 2000, 3e6)
    outside = Event("linear", (MATRIX, MATRIX), 400, 2000, 1e6, cpu_children=[inside])
    node = Event("MmBackward", kind="node")
    (found,) = operators([outside, inside, inside, node])
    assert (found.name, found.calls, found.flops, found.bytes, found.seconds) == ("mm", 2, 4000, 2400, 6.0)


CEILINGS = {"gflops": 100.0, "gbytes": 10.0}


def test_the_roof_is_the_longer_of_two_times() -> None:
    product = {"name": "mm", "flops": 200e9, "bytes": 1e9, "seconds": 2.5}
    copy = {"name": "copy", "flops": 0, "bytes": 5e9, "seconds": 3.0}
    assert roof([product, copy], CEILINGS) == pytest.approx(2.0 + 0.5)
    assert [one["name"] for one in furthest([product, copy], CEILINGS, 2)] == ["copy", "mm"]


def test_onednns_account_of_itself() -> None:
    text = """onednn_verbose,info,oneDNN v3.1
onednn_verbose,primitive,exec,cpu,convolution,jit,forward,src,,,mb1,5
step
onednn_verbose,primitive,exec,cpu,convolution,jit,forward,src,,,mb1,1.5
onednn_verbose,v1,primitive,exec,cpu,reorder,jit,undef,src,,,8x8,0.5
onednn_verbose,primitive,create:cache_hit,cpu,convolution,jit,forward,src,,,mb1,100
step
"""
    assert vendor_seconds(text) == [pytest.approx(0.002), 0.0]


def test_tables() -> None:
    found = operators([Event("mm", (MATRIX, MATRIX), 400, 2000, 2e6)])
    row = {
        "workload": "ncf", "threads": 1, "size": None, "flops": 100e9, "bytes": 1e9, "seconds": 2.0, "roof": 1.0,
        "vendor": 0.25, "operators": [asdict(one) for one in found],
    }  # fmt: skip
    failed = {"workload": "gpt", "threads": 1, "size": None, "problem": "exit code -9"}
    machine = {"processor": "CPU", "instruction_sets": ["avx2"], "python": "CPython 3.11"}
    document = {"machine": machine, "ceilings": CEILINGS, "rows": [row, failed]}
    text = render(document)
    assert "50%" in text
    assert "25%" in text
    assert "exit code -9" in text
    assert "`mm`" in above(document)
    assert "100 GFLOP/s" in page(document)
