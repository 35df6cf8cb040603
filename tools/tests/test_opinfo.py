"""The comparison with PyTorch's operator database: what differs, what counts as complete, and how crashes are kept apart."""

from __future__ import annotations

import json
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from known_differences import Known, read
from opinfo import isolation, report
from opinfo.comparison import (
    Difference,
    Row,
    apart,
    as_near,
    caught_like,
    flat,
    spread,
    structure,
)
from opinfo.report import KINDS, read_names, sort_out
from opinfo.translate import AbsentError, Translator, attribute, rebuilt

TOOLS = Path(__file__).resolve().parents[1]


# --- what counts ---


def row(op: str, *checks: str, samples: int = 1, absent: str = "") -> Row:
    found = [Difference(op, check, "float32", "0: float32(3,), dim=1", "1, not 2") for check in checks]
    return Row(op, samples=samples, absent=absent, differences=found)


def test_an_operator_is_complete_if_nothing_is_left() -> None:
    rows = [
        row("add"),
        row("sub", "values"),
        row("mul", "dtype"),
        row("div", absent="div"),
        row("gpu", samples=0),
    ]
    table = [Known("sub", "values", "why")]
    found = sort_out(rows, table, {"add", "sub", "mul", "div", "gpu"})
    assert [found.status(r) for r in rows] == ["agrees", "meant", "differs", "absent", "not compared"]
    assert found.complete(1) == (
        2,
        4,
    )  # absent operators are not complete; operators that could not be compared do not count
    assert found.complete(2) == (0, 0)
    assert not found.stale
    assert found.as_json()["tiers"]["tier 1"] == {
        "complete": 2, "of": 4, "agrees": 1, "meant": 1, "differs": 1, "absent": 1, "not compared": 1,
    }  # fmt: skip


def test_a_difference_that_is_not_named_is_left() -> None:
    rows = [row("sub", "values", "dtype")]
    table = [Known("sub", "values", "why", sample="dim=1"), Known("sub", "dtype", "why", dtype="bool")]
    found = sort_out(
        rows,
        table,
        set(),
    )
    assert [d.kind for d in found.left["sub"]] == ["dtype"]
    assert [entry.kind for entry in found.stale] == ["dtype"]
    assert found.complete(2) == (0, 1)


def test_an_entry_of_an_operator_that_did_not_run_is_not_stale() -> None:
    assert not sort_out([row("add")], [Known("sub", "values", "why")], set()).stale


def test_text_names_what_differs_what_is_absent_and_the_figures() -> None:
    rows = [row("add"), row("sub", "values", "values"), row("mul", absent="torch.mul")]
    text = "\n".join(report.lines(sort_out(rows, [Known("add", "dtype", "why")], {"add", "sub"})))
    assert "sub (tier 1): 2 values" in text
    assert "1, not 2" in text
    assert "mul: torch.mul" in text
    assert "add dtype" in text
    assert "does not differ any more" in text
    assert "tier 1: 1 of 2 complete, 50.0 %" in text
    assert "others: 0 of 1 complete, 0.0 %" in text


def test_the_tables_can_be_read() -> None:
    yaml = pytest.importorskip("yaml")
    read(yaml.safe_load(report.MEANT.read_text()), KINDS)
    names = read_names(report.TIER1.read_text())
    assert len(names) == len(set(names)) > 100
    assert "add" in names


def test_rows_survive_json() -> None:
    given = row("add", "values", "error")
    assert Row.of_json(json.loads(json.dumps(given.as_json()))) == given


# --- values ---


def test_values_apart() -> None:
    nan, inf = np.nan, np.inf
    a = np.array([1.0, nan, inf])
    assert apart(a, a.copy(), 0.0) == ""
    assert apart(a, np.array([1.0, nan, -inf]), 1e-3).startswith("inf, not -inf, at (2,)")
    assert apart(a, np.array([1.0, 0.0, inf]), 1e-3)
    assert apart(np.array([1, 2]), np.array([1, 3]), 1.0)  # integers must be equal
    assert apart(np.array([True]), np.array([False]), 1.0)
    assert apart(np.array([1 + 2j]), np.array([1 + 2.5j]), 1e-3).startswith("2.0, not 2.5")
    assert apart(np.empty((0, 3)), np.empty((0, 3)), 0.0) == ""


def test_ours_may_be_as_far_from_the_reference_as_theirs() -> None:
    reference = np.array([1.0, 100.0])
    assert as_near(np.array([1.01, 100.0]), np.array([0.99, 100.0]), reference)
    assert as_near(np.array([1.0, 100.0]), np.array([1.5, np.nan]), reference)
    assert not as_near(np.array([1.03, 100.0]), np.array([0.99, 100.0]), reference)
    assert not as_near(np.array([np.nan, 100.0]), np.array([0.5, 100.0]), reference)
    assert not as_near(np.array([5.0]), np.array([0.5]), np.array([np.inf]))
    assert as_near(np.array([1.0, 100.4]), reference, reference, unit=0.01)
    assert not as_near(np.array([1.0, 100.6]), reference, reference, unit=0.01)
    assert as_near(np.array([1.02, 100.0]), np.array([0.99, 100.0]), reference, factor=3.0)


def test_errors_are_caught_alike() -> None:
    class LinAlgError(RuntimeError):
        pass

    class _LinAlgError(RuntimeError):
        pass

    assert caught_like(_LinAlgError(), LinAlgError())
    assert caught_like(NotImplementedError(), RuntimeError())
    assert not caught_like(RuntimeError(), NotImplementedError())
    assert not caught_like(TypeError(), ValueError())


def test_results_are_flattened_and_their_structure_compared() -> None:
    t = SimpleNamespace(numel=lambda: 1)
    assert flat((1, [2, (3,)], {"a": 4})) == [1, 2, 3, 4]
    assert structure((t, t)) == structure([t, t]) != structure((t,))
    assert structure((t, 3)) != structure((t, t))
    assert structure(((t, t), (t, t))) != structure((t, t))
    assert structure(()) != structure((t,))


def test_samples_are_spread_evenly() -> None:
    assert spread([1, 2, 3], 5) == [1, 2, 3]
    assert spread(list(range(101)), 3) == [0, 50, 100]


# --- functions ---


def test_containers_are_rebuilt() -> None:
    point = __import__("collections").namedtuple("point", "x y")
    double = lambda v: rebuilt(v, double) if not isinstance(v, int) else 2 * v  # noqa: E731
    made = double((1, [2], {"a": 3}, slice(1, 2, None), point(4, 5), "text"))
    assert made == (2, [4], {"a": 6}, slice(2, 4, None), point(8, 10), "text")
    assert type(made[4]) is point


def library(name: str, factor: int) -> Any:
    """Return a library with the function `scale`, a module `nn` and the attributes that a Translator reads."""
    made = types.ModuleType(name)
    for path in (
        "nn",
        "nn.functional",
        "linalg",
        "special",
        "fft",
        "signal",
        "signal.windows",
        "masked",
        "sparse",
    ):
        holder = attribute(made, path.rpartition(".")[0])
        setattr(holder, path.rpartition(".")[2], types.ModuleType(f"{name}.{path}"))
    for kind in ("Tensor", "dtype", "layout", "memory_format", "device"):
        setattr(made, kind, type(kind, (), {"__module__": name}))
    made.nn.Module = type("Module", (), {"__module__": name})  # type: ignore[attr-defined]
    made.Size = type("Size", (tuple,), {"__module__": name})  # type: ignore[attr-defined]

    def scale(x: int) -> int:
        return factor * x

    scale.__module__ = name
    made.scale = made.nn.functional.scale = scale  # type: ignore[attr-defined]
    return made


@dataclass
class Entry:
    name: str
    op: Any
    kwargs: dict[str, Any] = field(default_factory=dict)


def test_a_function_is_found_by_its_name_or_by_the_name_of_what_it_is() -> None:
    theirs, ours = library("peer", 2), library("own", 3)
    translator = Translator(theirs, ours, inner="peer.testing")
    assert translator.function(Entry("scale", theirs.scale)) is ours.scale
    assert translator.function(Entry("scaled", theirs.scale)) is ours.scale
    del ours.scale
    with pytest.raises(AbsentError, match="scale"):
        translator.function(Entry("scale", theirs.scale))


def test_functions_of_the_database_are_made_anew_over_our_library() -> None:
    theirs, ours = library("peer", 2), library("own", 3)
    scope: dict[str, Any] = {"peer": theirs, "__name__": "peer.testing.samples", "__builtins__": __builtins__}
    program = """
def helper(x, function=peer.scale):
    return function(x) + 1
def wrapper_set_seed(function, *args):
    raise AssertionError
def make(n):
    return lambda x: [helper(peer.nn.functional.scale(x)) + n for _ in range(1)][0]
entry = make(100)
seeded = lambda x: wrapper_set_seed(peer.scale, x)
unknown = lambda x: peer.other(x)
"""
    exec(program, scope)
    translator = Translator(theirs, ours, inner="peer.testing")
    assert scope["entry"](1) == 2 * 2 + 1 + 100
    assert translator.callable(scope["entry"])(1) == 3 * 3 + 1 + 100
    assert translator.callable(scope["seeded"])(1) == 3
    with pytest.raises(AttributeError, match="other"):
        translator.callable(scope["unknown"])(1)


def test_options_and_modules_become_ours() -> None:
    theirs, ours = library("peer", 2), library("own", 3)
    for root in (theirs, ours):
        root.nn.Options = dataclass(
            type("Options", (), {"__module__": root.__name__, "__annotations__": {"size": int}})
        )
        module = type("Distance", (root.nn.Module,), {"__constants__": ["p"], "__module__": root.__name__})
        module.__init__ = lambda self, p: setattr(self, "p", p)  # type: ignore[misc]
        root.nn.Distance = module
    translator = Translator(theirs, ours, inner="peer.testing")
    made = translator.value({"options": theirs.nn.Options(3), "distance": theirs.nn.Distance(2.5)})
    assert type(made["options"]) is ours.nn.Options
    assert made["options"].size == 3
    assert type(made["distance"]) is ours.nn.Distance
    assert made["distance"].p == 2.5
    inner = dataclass(
        type("Entry", (), {"__module__": "peer.testing.core", "__annotations__": {"name": str}})
    )
    assert translator.value(inner("add")).name == "add"  # a function of the database itself is not changed
    del ours.nn.Distance
    with pytest.raises(AbsentError, match="Distance"):
        translator.value(theirs.nn.Distance(1))


# --- processes ---

WORKER = """
import os, sys, time
from pathlib import Path
from opinfo.isolation import work
def answer(name, note):
    print("noise")
    note(f"working on {name}")
    if name == "dies":
        os.abort()
    if name == "hangs":
        time.sleep(60)
    if name == "leaves":
        os._exit(3)
    return {"name": name, "pid": os.getpid()}
work(answer, Path(sys.argv[1]))
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_crash_ends_its_item_and_no_other(
    tmp_path: Path, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", str(TOOLS))
    names = ["a", "dies", "b", "hangs", "leaves", "c"]
    found = dict(isolation.run(names, [sys.executable, str(script)], jobs=jobs, seconds=3.0))
    assert set(found) == set(names)
    assert [found[name]["name"] for name in "abc"] == ["a", "b", "c"]
    assert "SIGABRT" in found["dies"]["crash"]
    assert "working on dies" in found["dies"]["crash"]
    assert "more than 3 s" in found["hangs"]["crash"]
    assert "status 3" in found["leaves"]["crash"]
    if jobs == 1:
        assert found["a"]["pid"] != found["b"]["pid"] != found["c"]["pid"]
