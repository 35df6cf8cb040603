"""Functions with control flow, each with inputs that lead to different branches or numbers of iterations."""

from __future__ import annotations

from typing import Any

import rushlight_core as core
from rushlight_core._control_flow import scan, while_loop

X = core.tensor([1.0, -2.0, 3.0])
WEIGHT = core.tensor([[0.5, 0.25, -0.5], [1.0, -1.0, 0.5], [0.0, 0.5, 0.25]])


def chosen(x: Any) -> Any:
    return core.cond(
        x.sum() > 0, lambda a: {"y": a @ WEIGHT, "n": (a + 1)[0]}, lambda a: {"y": a.sin(), "n": a[1]}, (x,)
    )


def doubled(x: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        a = a + 1
        a.mul_(2)  # writes memory that this iteration has allocated
        return i + 1, a

    return while_loop(lambda i, a: (i < 5).logical_and(a.sum() < 100), body, (core.tensor(0), x))


def recurrent(x: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = (row @ WEIGHT + h).tanh()
        return h, (h, row * 2)

    return scan(step, core.zeros(3), x, reverse=True)


def nested(x: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        def odd() -> Any:
            return scan(lambda c, row: (c + row, None), core.zeros(()), a)[0].expand(3) + 1

        return i + 1, core.cond(i % 2 == 1, odd, lambda: a * WEIGHT[0] + x)

    return while_loop(lambda i, a: i < 4, body, (core.tensor(0), x))


CASES = {
    "cond": (chosen, [X, -X]),
    "while_loop": (doubled, [X, X * 100, -X]),
    "scan": (recurrent, [core.stack([X, -X]), core.stack([X * 2, X])]),
    "nested": (nested, [X, X / 3]),
    "a branch that returns what it is given": (
        lambda x: core.cond(x[0] > 0, lambda a: (a, a, WEIGHT), lambda a: (a + 1, a[:], WEIGHT * 2), (x,)),
        [X, -X],
    ),
    "a loop that does not run": (lambda x: while_loop(lambda a: a[0] < 0, lambda a: (a + 5,), (x,)), [X, -X]),
    "a loop that hands on": (
        lambda x: while_loop(lambda a, b, k: b[0] < 3, lambda a, b, k: (b, a + k, k), (x, x * 0, x * 0 + 1)),
        [X, -X],
    ),
    "a condition that is carried": (
        lambda x: while_loop(
            lambda go, a: go, lambda go, a: (a.sum() < 20, a + 1), (core.ones((), dtype=core.bool), x)
        ),
        [X, X * 9],
    ),
    "a tensor of Python's data in the body": (
        lambda x: while_loop(lambda a: a.sum() < 9, lambda a: (a + core.tensor([1.0, 2.0, 3.0]).mul_(2),), (x,)),
        [X, -X],
    ),
    "views of what is outside": (
        lambda x: (core.cond(x[0] > 0, lambda: x.view(3, 1) * 2, lambda: x[:, None]), x * 2),
        [X, -X],
    ),
    "random numbers": (
        lambda x: while_loop(lambda a: a.sum() < 9, lambda a: (a + core.rand(3),), (x,)),
        [X, -X],
    ),
}  # fmt: skip


def flat(tree: Any) -> list[Any]:
    if isinstance(tree, core.Tensor):
        return [tree]
    values = tree.values() if isinstance(tree, dict) else tree
    return [] if tree is None else [leaf for value in values for leaf in flat(value)]
