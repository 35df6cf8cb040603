"""cond, while_loop and scan while no program is captured: they run like Python's control flow, with PyTorch's errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight_core as core
from rushlight_core._control_flow import scan, while_loop

X = core.tensor([1.0, -2.0])


def test_one_of_two_functions() -> None:
    assert core.cond(X.sum() < 0, lambda a: a + 1, lambda a: a - 1, (X,)).tolist() == [2, -1]
    assert core.cond(X.sum() > 0, lambda a: a + 1, lambda a: a - 1, (X,)).tolist() == [0, -3]
    assert core.cond(core.tensor([[2]]), lambda: 1, lambda: 2) == 1
    assert core.cond(False, lambda: 1, lambda: 2) == 2
    assert core.cond(0.5, lambda: 1, lambda: 2) == 1
    nested = core.cond(core.tensor(True), lambda a, b: {"sum": a + b["x"]}, lambda a, b: {}, (X, {"x": X}))
    assert nested["sum"].tolist() == [2, -4]


def test_only_the_chosen_function_is_called() -> None:
    called: list[str] = []
    core.cond(core.tensor(True), lambda: called.append("true"), lambda: called.append("false"))
    assert called == ["true"]


def test_results_share_no_memory_with_operands() -> None:
    x, y = core.zeros(2, 2), core.zeros(2)
    for result in (
        core.cond(core.tensor(True), lambda a: a, lambda a: -a, (x,)),
        core.cond(core.tensor(True), lambda a: a[0], lambda a: -a, (x,)),
        *core.cond(core.tensor(True), lambda a: (a + 1, a.t()), lambda a: (a, a), (x,)),
        *while_loop(lambda a: core.tensor(False), lambda a: (a,), (x,)),
        scan(lambda c, row: (row, c), y, x)[0],
    ):
        result.fill_(7)
    assert x.tolist() == [[0, 0], [0, 0]]
    once = x + 1
    a, b = core.cond(core.tensor(True), lambda: (once.view(4), once.view(4)), lambda: (once, once))
    a.fill_(7)
    assert b.tolist() == [1, 1, 1, 1]


def test_loops_while_a_condition_holds() -> None:
    i, x = while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (core.tensor(0), X))
    assert (i.item(), x.tolist()) == (3, [8, -16])
    count, tree = while_loop(
        lambda n, t: n < 2, lambda n, t: (n + 1, {"a": [t["a"][0] + n]}), (0, {"a": [core.zeros(1)]})
    )
    assert count == 2
    assert tree["a"][0].tolist() == [1]
    (never,) = while_loop(lambda x: core.tensor(False), lambda x: (x + 1,), [X])
    assert never is not X
    assert core.equal(never, X)


def test_scans_of_slices() -> None:
    xs = core.arange(6.0).reshape(3, 2)
    carry, sums = scan(lambda c, x: (c + x, c + x), core.zeros(2), xs)
    assert core.equal(sums, xs.cumsum(0))
    assert core.equal(carry, xs.sum(0))
    carry, sums = scan(lambda c, x: (c + x, c + x), core.zeros(3), xs, dim=-1, reverse=True)
    assert core.equal(sums, xs.flip(1).cumsum(1).flip(1))
    assert core.equal(carry, xs.sum(1))
    carry, (nothing, rows) = scan(
        lambda c, x: ({"n": c["n"] + 1}, (None, x["a"] * x["b"])),
        {"n": core.tensor(0)},
        {"a": xs, "b": core.arange(3.0)},
    )
    assert (carry["n"].item(), nothing) == (3, None)
    assert core.equal(rows, xs * core.arange(3.0)[:, None])
    assert scan(lambda c, x: (c, x), X, []) == (X, [])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: core.cond("yes", lambda: 1, lambda: 2), RuntimeError, "bool or tensor, but got yes"),
        (lambda: core.cond(X, lambda: 1, lambda: 2), RuntimeError, "bool or single-element tensor"),
        (lambda: core.cond(core.tensor(True), 1, lambda: 2), RuntimeError, "branches to be callable"),
        (lambda: core.cond(core.tensor(True), abs, abs, X), RuntimeError, "only consists of tensor leaves"),
        (
            lambda: core.cond(core.tensor(True), abs, abs, (3,)),
            RuntimeError,
            "only consists of tensor leaves",
        ),
        (lambda: core.cond(True, 1, lambda: 2), TypeError, "not callable"),
        (lambda: while_loop(1, lambda x: x, (X,)), RuntimeError, "cond_fn and body_fn to be callable"),
        (lambda: while_loop(abs, abs, X), RuntimeError, "carried_inputs must be a tuple or list"),
        (lambda: while_loop(abs, abs, (X, 1.5)), RuntimeError, "tensor or int leaves"),
        (lambda: while_loop(lambda x: x > 0, abs, (X,)), RuntimeError, "must return a boolean scalar tensor"),
        (lambda: while_loop(lambda x: x.sum(), abs, (X,)), RuntimeError, "must return a boolean scalar"),
        (lambda: while_loop(lambda x: True, lambda x: x, (X,)), RuntimeError, "should return a tuple"),
        (lambda: while_loop(lambda x: True, lambda x: (x, x), (X,)), RuntimeError, "structure of carried"),
        (
            lambda: while_loop(lambda x: True, lambda x: (x.long(),), (X,)),
            RuntimeError,
            r"body_fn must .*: leaf 0 is torch.int64 of shape \(2,\) on cpu, carried_inputs has .*float32",
        ),
        (lambda: while_loop(lambda x: True, lambda x: (x[0],), (X,)), RuntimeError, r"of shape \(\) on cpu"),
        (lambda: while_loop(lambda x: True, lambda x: (X,), (1,)), RuntimeError, "carried_inputs has int"),
        (lambda: scan(1, X, X), RuntimeError, "Combine_fn must be a callable"),
        (lambda: scan(abs, X, X, dim="0"), RuntimeError, "Dim must be an int"),
        (lambda: scan(abs, X, X, reverse=1), RuntimeError, "Reverse must be a bool"),
        (lambda: scan(abs, [], X), RuntimeError, "requires init leaves"),
        (lambda: scan(abs, 1, X), RuntimeError, "All init leaves must be a Tensor"),
        (lambda: scan(abs, X, [1]), RuntimeError, "All xs leaves must be a Tensor"),
        (lambda: scan(abs, X, core.zeros(0)), RuntimeError, "scan dimension > 0"),
        (lambda: scan(abs, X, [core.zeros(2, 2), X], dim=1), RuntimeError, "scan dimension > 0"),
        (lambda: scan(abs, X, [core.zeros(3), X]), RuntimeError, "the same size in dimension"),
        (lambda: scan(abs, X, X, dim=1), IndexError, "scan"),
        (lambda: scan(lambda c, x: c, X, X), RuntimeError, "the carried value and a result"),
        (lambda: scan(lambda c, x: ((c,), x), X, X), RuntimeError, "the structure of init"),
        (lambda: scan(lambda c, x: (c[0], x), X, X), RuntimeError, "the same dtype, shape and device"),
        (lambda: scan(lambda c, x: (c, 1), X, X), RuntimeError, "must return tensors, but got 1"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
