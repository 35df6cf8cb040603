"""Bad input for every operator, made from its entry (`rushlight_testing.bad_input`).

A call must raise a typed error that names the operator, belongs to a documented class and leaves arguments unchanged, or
return the correct result. It must never end the process, hang, or allocate more memory than the machine has.

The calls run in separate processes, which may die. By default, a fixed part of the calls is tried. RUSHLIGHT_BAD_INPUT=all,
which is used every night under the sanitizers, tries all calls.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.loader import load_ops
from rushlight_core.codegen.model import Op
from rushlight_testing.bad_input import Call, Case, Report, hunt, judge

OPS = load_ops()  # includes hidden operators, which can be called by name, too
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
EVERY = 1 if os.environ.get("RUSHLIGHT_BAD_INPUT") == "all" else 8
MEMORY = 512 << 20


@pytest.fixture(scope="module")
def reports(request: pytest.FixtureRequest) -> dict[str, Report]:
    """Return the reports of the operators whose tests run."""
    asked = [item.callspec.params.get("op") for item in request.session.items if hasattr(item, "callspec")]
    names = {op.name for op in asked if isinstance(op, Op) and item_is_here(request, op)}
    options = os.environ.get("ASAN_OPTIONS", "")
    return hunt(
        [op for op in OPS if op.name in names],
        every=EVERY,
        # A sanitizer reserves the whole address space, so its own limit is used.
        memory=0 if SANITIZED else MEMORY,
        environment={"ASAN_OPTIONS": f"{options}:max_allocation_size_mb={MEMORY >> 20}"} if SANITIZED else {},
        patience=600 if SANITIZED else 120,
        processes=min(len(os.sched_getaffinity(0)), 4),
    )


def item_is_here(request: pytest.FixtureRequest, op: Op) -> bool:
    return any(item.name == f"test_bad_input[{op.name}]" for item in request.session.items)


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_bad_input(op: Op, reports: dict[str, Report]) -> None:
    report = reports[op.name]
    assert report.tried
    shown = "\n".join(report.faults[:20])
    assert not report.faults, f"{op.name}: {len(report.faults)} of {report.tried} cases:\n{shown}"


# --- the judge ---


def of(name: str) -> Op:
    return next(op for op in OPS if op.name == name)


def verdict(name: str, **given: Any) -> str | None:
    return judge(of(name), core, Case("made here", lambda: Call(**given)))


class Pretender:
    """The library, with one operator replaced by another function."""

    def __init__(self, name: str, does: Any) -> None:
        self.name, self.does = name, does

    def __getattr__(self, name: str) -> Any:
        return self.does if name == self.name else getattr(core, name)


@pytest.mark.parametrize(
    ("does", "what"),
    [
        (lambda input, index: (_ for _ in ()).throw(ValueError("no")), "does not name the operator"),
        (lambda input, index: (_ for _ in ()).throw(KeyError("take")), "not a typed error"),
        (lambda input, index: (_ for _ in ()).throw(BufferError("take")), "does not name: take"),
        (lambda input, index: input.zero_() and None, "changed"),
        (lambda input, index: [input.add_(1), core.take(core.ones(1), index)], "changed"),
        (lambda input, index: input.new_zeros(2), "other values"),
        (lambda input, index: input.new_zeros(3), "shape"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_noticed(does: Any, what: str) -> None:
    """Errors that do not name the operator or are not typed, changed arguments and wrong results are reported."""
    take = of("take")
    arguments = {"input": core.ones(4), "index": core.tensor([1, 2])}
    made = Call(arguments, safe={"input": core.ones(4), "index": core.tensor([1, 2])})
    assert judge(take, core, Case("made here", lambda: made)) is None
    pretender = Pretender("take", does)
    before = {"input": core.ones(4), "index": core.tensor([1, 2])}
    wrong = Call(before, safe={"input": core.ones(4), "index": core.tensor([1, 2])})
    calls = iter([does, core.take])
    pretender.does = lambda *args: next(calls)(*args)
    said = judge(take, pretender, Case("made here", lambda: wrong))
    assert said is not None
    assert what in said
