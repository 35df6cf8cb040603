"""Compare recurrent layers that one kernel computes with loops over their cells: results, gradients and second gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight_autograd as autograd
import rushlight_core as core

Layer = Callable[[Any, list[Any], list[Any], bool], tuple[Any, Any, Any]]


def by_layer(x: Any, states: list[Any], weights: list[Any], both: bool) -> tuple[Any, Any, Any]:
    return core.lstm(x, states, weights, True, 1, 0.0, False, both, False)


def by_cells(x: Any, states: list[Any], weights: list[Any], both: bool) -> tuple[Any, Any, Any]:
    outputs, h, c = [], [], []
    for direction in range(2 if both else 1):
        state = [s[direction] for s in states]
        steps = []
        for t in range(len(x)) if direction == 0 else reversed(range(len(x))):
            state = list(core.lstm_cell(x[t], state, *weights[4 * direction : 4 * direction + 4]))
            steps.append(state[0])
        outputs.append(core.stack(steps if direction == 0 else steps[::-1]))
        h.append(state[0])
        c.append(state[1])
    return core.cat(outputs, 2), core.stack(h), core.stack(c)


def arguments(
    steps: int, batch: int, features: int, hidden: int, both: bool, dtype: Any
) -> tuple[Any, list[Any], list[Any]]:
    rng = np.random.default_rng(steps)
    directions = 2 if both else 1

    def numbers(*shape: int) -> Any:
        return core.from_numpy(rng.uniform(-0.5, 0.5, shape)).to(dtype).requires_grad_()

    weights = [
        numbers(4 * hidden, *columns)
        for _ in range(directions)
        for columns in ((features,), (hidden,), (), ())
    ]
    states = [numbers(directions, batch, hidden) for _ in range(2)]
    return numbers(steps, batch, features), states, weights


def loss(layer: Layer, x: Any, states: list[Any], weights: list[Any], both: bool) -> Any:
    output, h, c = layer(x, states, weights, both)
    return (output * output.sin()).sum() + (h * h).sum() + c.sin().sum()


# Cases: rows and columns that do not fill a vector, one row, more rows than a block, one unit, several blocks of
# units.
SIZES = [(5, 8, 3, 4), (4, 9, 3, 7), (32, 1, 6, 19), (3, 150, 4, 33), (2, 16, 3, 1), (2, 17, 5, 130)]


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_layer_of_an_lstm_is_its_cell_step_by_step(sizes: tuple[int, int, int, int], both: bool) -> None:
    x, states, weights = arguments(*sizes, both, core.float64)
    results = [layer(x, states, weights, both) for layer in (by_layer, by_cells)]
    assert all(core.allclose(a, b, rtol=1e-12, atol=1e-14) for a, b in zip(*results, strict=True))
    inputs = [x, *states, *weights]
    ours, expected = (
        autograd.grad(loss(layer, x, states, weights, both), inputs) for layer in (by_layer, by_cells)
    )
    for a, b in zip(ours, expected, strict=True):
        assert core.allclose(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("both", [False, True])
def test_gradients_of_an_lstm_are_differentiated(both: bool) -> None:
    x, states, weights = arguments(4, 9, 3, 5, both, core.float64)
    inputs = [x, *states, *weights]
    seconds = []
    for layer in (by_layer, by_cells):
        firsts = autograd.grad(loss(layer, x, states, weights, both), inputs, create_graph=True)
        seconds.append(autograd.grad(sum((g * g).sum() for g in firsts), inputs))
    for a, b in zip(*seconds, strict=True):
        assert core.allclose(a, b, rtol=1e-10, atol=1e-11)


def test_a_strided_sequence_gives_the_same_lstm() -> None:
    x, states, weights = arguments(4, 9, 6, 5, False, core.float32)
    transposed = x.detach().transpose(0, 1).contiguous().transpose(0, 1)
    halves = [core.cat((s, s), 2)[:, :, ::2][:, :, : s.shape[2]] for s in states]
    for a, b in zip(
        by_layer(x, halves, weights, False),
        by_layer(transposed, [h.contiguous() for h in halves], weights, False),
        strict=True,
    ):
        assert core.equal(a, b)


def test_an_lstm_gives_the_same_bits_with_any_number_of_threads() -> None:
    x, states, weights = arguments(3, 33, 20, 150, True, core.float32)
    before, results = core.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 8):
            core.set_num_threads(threads)
            output, h, c = by_layer(x, states, weights, True)
            grads = autograd.grad(
                loss(by_layer, x, states, weights, True), [x, *states, weights[1], weights[5]]
            )
            results.append([output, h, c, *grads])
    finally:
        core.set_num_threads(before)
    for others in results[1:]:
        assert all(core.equal(a, b) for a, b in zip(results[0], others, strict=True))
