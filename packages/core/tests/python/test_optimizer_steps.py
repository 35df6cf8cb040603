"""Steps of optimizers that count themselves, compared with their formulas in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight_core as rl

# Each reference takes a parameter, its gradient (with the sign that `maximize` selects and with weight decay), its state,
# its numbers, and the settings. It returns the new parameter, state and numbers.
Step = Callable[..., tuple[Any, list[Any], list[Any]]]


def rmsprop(p, g, s, n, lr, alpha, eps, momentum, centered, **_):
    square, mean, buffer = s
    square = alpha * square + (1 - alpha) * g * g
    mean = mean + (1 - alpha) * (g - mean) if centered else mean
    root = np.sqrt(square - mean * mean if centered else square) + eps
    if momentum > 0:
        buffer = momentum * buffer + g / root
        return p - lr * buffer, [square, mean, buffer], [n[0] + 1]
    return p - lr * g / root, [square, mean, buffer], [n[0] + 1]


def adagrad(p, g, s, n, lr, lr_decay, eps, **_):
    total = s[0] + g * g
    return p - lr / (1 + n[0] * lr_decay) * g / (np.sqrt(total) + eps), [total], [n[0] + 1]


def adadelta(p, g, s, n, lr, rho, eps, **_):
    square = rho * s[0] + (1 - rho) * g * g
    change = np.sqrt(s[1] + eps) / np.sqrt(square + eps) * g
    return p - lr * change, [square, rho * s[1] + (1 - rho) * change * change], [n[0] + 1]


def adamax(p, g, s, n, lr, beta1, beta2, eps, **_):
    mean, largest = beta1 * s[0] + (1 - beta1) * g, np.maximum(beta2 * s[1], np.abs(g) + eps)
    return p - lr / (1 - beta1 ** (n[0] + 1)) * mean / largest, [mean, largest], [n[0] + 1]


def nadam(p, g, s, n, lr, beta1, beta2, eps, momentum_decay, decay, **_):
    step = n[1] + 1
    now, later = (beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (step, step + 1))
    product = n[0] * now
    mean, square = beta1 * s[0] + (1 - beta1) * g, beta2 * s[1] + (1 - beta2) * g * g
    root = np.sqrt(square / (1 - beta2**step)) + eps
    p = p * (1 - lr * decay) - lr * (1 - now) / (1 - product) * g / root
    return p - lr * later / (1 - product * later) * mean / root, [mean, square], [product, step]


def radam(p, g, s, n, lr, beta1, beta2, eps, decay, **_):
    step = n[0] + 1
    mean, square = beta1 * s[0] + (1 - beta1) * g, beta2 * s[1] + (1 - beta2) * g * g
    change = mean / (1 - beta1**step)
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * step * beta2**step / (1 - beta2**step)
    if length > 5:
        trust = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
        change = change * np.sqrt(trust * (1 - beta2**step)) / (np.sqrt(square) + eps)
    return p * (1 - lr * decay) - lr * change, [mean, square], [step]


def rprop(p, g, s, n, etaminus, etaplus, step_size_min, step_size_max, **_):
    agreement = np.sign(g * s[0])
    factor = np.choose((agreement + 1).astype(int), [etaminus, 1.0, etaplus])
    lengths = np.clip(s[1] * factor, step_size_min, step_size_max)
    g = np.where(agreement < 0, 0, g)
    return p - np.sign(g) * lengths, [g, lengths], [n[0] + 1]


def asgd(p, g, s, n, lr, lambd, alpha, t0, **_):
    share, rate, step = n[0], n[1], n[2] + 1
    p = p * (1 - lambd * rate) - rate * g
    average = s[0] + share * (p - s[0])
    return p, [average], [1 / max(1, step - t0), lr / (1 + lambd * lr * step) ** alpha, step]


ADAM = {"lr": 0.1, "beta1": 0.8, "beta2": 0.7, "eps": 1e-3, "weight_decay": 0.1}
CASES: list[tuple[Step, int, int, dict[str, Any]]] = [
    *[
        (rmsprop, 3, 1, {"lr": 0.1, "alpha": 0.8, "eps": 0.1, "weight_decay": d, "momentum": m, "centered": c})
        for d, m, c in [(0.0, 0.0, False), (0.1, 0.9, False), (0.1, 0.0, True), (0.0, 0.9, True)]
    ],
    (adagrad, 1, 1, {"lr": 0.1, "lr_decay": 0.3, "eps": 1e-3, "weight_decay": 0.1}),
    (adadelta, 2, 1, {"lr": 0.5, "rho": 0.8, "eps": 1e-2, "weight_decay": 0.1}),
    (adamax, 2, 1, ADAM),
    (nadam, 2, 2, {**ADAM, "momentum_decay": 0.3, "decoupled_weight_decay": False}),
    (nadam, 2, 2, {**ADAM, "momentum_decay": 0.0, "decoupled_weight_decay": True}),
    (radam, 2, 1, {**ADAM, "beta2": 0.99, "decoupled_weight_decay": False}),
    (radam, 2, 1, {**ADAM, "beta2": 0.99, "decoupled_weight_decay": True}),
    (rprop, 2, 1, {"etaminus": 0.5, "etaplus": 1.25, "step_size_min": 0.06, "step_size_max": 0.15}),
    (asgd, 1, 3, {"lr": 0.1, "lambd": 0.2, "alpha": 0.6, "t0": 2.0, "weight_decay": 0.1}),
]  # fmt: skip
START = {"rprop": [0.0, 0.1]}  # the states before the first step, if they are not zeros
NUMBERS = {"nadam": [1.0, 0.0], "asgd": [1.0, 0.1, 0.0]}
SHAPES = [
    (),
    (3, 5),
    (0, 4),
    (2500,),
    (4, 2, 3),
]  # without a whole cache line, without elements, several pieces


def identifier(value: Any) -> str:
    if isinstance(value, dict):
        return "-".join(f"{v:g}" if isinstance(v, float) else str(v) for v in value.values())
    return value.__name__ if callable(value) else ""


def operator(reference: Step) -> Callable[..., None]:
    return getattr(rl, f"_{reference.__name__}_step_")


def permuted(values: Any) -> Any:
    """Return a dense tensor with other strides than those of a row-major tensor."""
    order = tuple(reversed(range(values.dim())))
    return values.permute(order).contiguous().permute(order)


def spread(values: Any) -> Any:
    """Return a tensor with gaps between its elements."""
    wide = rl.zeros(*values.shape, 2, dtype=values.dtype)
    wide[..., 0] = values
    return wide[..., 0]


LAYOUTS = [lambda t: t, permuted, spread]


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(
    ("dtype", "places"), [("float64", 12), ("float32", 5), ("float16", 2), ("bfloat16", 1)]
)
@pytest.mark.parametrize(("reference", "states", "numbers", "settings"), CASES, ids=identifier)
def test_formula(reference, states, numbers, settings, dtype, places, maximize):
    kind = getattr(rl, dtype)
    generator = np.random.default_rng(0)
    rounded = lambda x: rl.tensor(x).to(kind)  # noqa: E731
    start = START.get(reference.__name__, [0.0] * states)
    params = [LAYOUTS[i % 3](rounded(generator.normal(size=shape))) for i, shape in enumerate(SHAPES)]
    own = [[rl.full_like(p, value) for p in params] for value in start]
    own[0] = [LAYOUTS[i % 2](t) for i, t in enumerate(own[0])]
    used = [True, settings.get("centered", True), settings.get("momentum", 1.0) > 0][:states]
    counts = [
        [rl.tensor(float(value), dtype=rl.float64 if dtype == "float64" else rl.float32) for _ in params]
        for value in NUMBERS.get(reference.__name__, [0.0])
    ]
    expected = [p.double().numpy().copy() for p in params]
    state = [[np.full(p.shape, value) for value in start] for p in expected]
    number = [[float(list_[0]) for list_ in counts] for _ in params]
    decoupled = settings.get("decoupled_weight_decay", False)
    decay = settings.get("weight_decay", 0.0)
    for _ in range(7):
        grads = [
            LAYOUTS[(i + 1) % 3](rounded(generator.normal(size=shape))) for i, shape in enumerate(SHAPES)
        ]
        operator(reference)(
            params, grads, *[list_ if use else [] for list_, use in zip(own, used, strict=True)], *counts,
            maximize=maximize, **settings,
        )  # fmt: skip
        for i, (p, grad) in enumerate(zip(expected, grads, strict=True)):
            g = grad.double().numpy() * (-1.0 if maximize else 1.0)
            g = g if decoupled else g + decay * p
            expected[i], state[i], number[i] = reference(
                p, g, state[i], number[i], decay=decay if decoupled else 0.0, **settings
            )
    tolerance = 10.0**-places
    for i, (param, wanted) in enumerate(zip(params, expected, strict=True)):
        np.testing.assert_allclose(param.double().numpy(), wanted, rtol=tolerance, atol=tolerance)
        for list_, values, use in zip(own, state[i], used, strict=True):
            values = values if use else 0 * values
            np.testing.assert_allclose(list_[i].double().numpy(), values, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose([float(list_[i]) for list_ in counts], number[i], rtol=1e-6)


def lists_of(reference: Step, states: int, numbers: int) -> list[list[Any]]:
    """Return the lists of a step of three parameters."""
    shapes = [(40,), (2, 3), (5,)]
    return [[rl.full(shape, 0.5) for shape in shapes] for _ in range(2 + states)] + [
        [rl.full((), 0.5) for _ in shapes] for _ in range(numbers)
    ]


@pytest.mark.parametrize(
    ("reference", "states", "numbers", "settings"),
    [CASES[3], *CASES[4:8], CASES[9], *CASES[11:]],
    ids=identifier,
)
def test_a_step_that_raises_changes_nothing(reference, states, numbers, settings):
    step = operator(reference)
    before = lists_of(reference, states, numbers)
    wrong_values = [rl.ones(7), rl.ones(5, dtype=rl.float64), None]
    wrong_numbers = [rl.ones(2), rl.ones((), dtype=rl.int64), None]
    for position in range(1, len(before)):
        for wrong in wrong_numbers if position >= 2 + states else wrong_values:
            given = lists_of(reference, states, numbers)
            if wrong is None:
                given[position].pop()  # one tensor too few
            else:
                given[position][2] = wrong
            with pytest.raises(RuntimeError, match=rf"_{reference.__name__}_step_\(\w+\): "):
                step(*given, maximize=False, **settings)
            for k, (list_, same) in enumerate(zip(given, before, strict=True)):
                for i, (a, b) in enumerate(zip(list_, same, strict=False)):
                    assert (k, i) == (position, 2) or rl.equal(a, b), (k, i)


@pytest.mark.parametrize(("reference", "states", "numbers", "settings"), CASES, ids=identifier)
def test_position_and_threads_do_not_change_values(reference, states, numbers, settings):
    """Elements in whole cache lines, in the rest of an array and in pieces of other threads have the same results."""
    size = 150_000
    generator = rl.Generator().manual_seed(0)
    values = [rl.randn(size, generator=generator).abs() for _ in range(2 + states)]
    whole = [[t.clone()] for t in values] + [[rl.full((), 0.25)] for _ in range(numbers)]
    operator(reference)(*whole, maximize=False, **settings)
    cuts = [0, 1, 18, 5000, 5003, size]
    parts = [[t[a:b].clone() for a, b in itertools.pairwise(cuts)] for t in values]
    counts = [[rl.full((), 0.25) for _ in cuts[1:]] for _ in range(numbers)]
    operator(reference)(*parts, *counts, maximize=False, **settings)
    for (one,), several in zip(whole, [*parts, *counts], strict=True):
        np.testing.assert_array_equal(
            one.numpy(), rl.cat(several).numpy() if one.dim() else several[0].numpy()
        )
