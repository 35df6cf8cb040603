"""Adafactor and Muon compared with their definitions, and L-BFGS with complex parameters."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
import rushlight_nn as nn
from rushlight_nn import optim


def steps(optimizer, params, grads):
    for several in grads:
        for param, grad in zip(params, several, strict=True):
            param.grad = core.from_numpy(grad.copy())
        optimizer.step()


def root_mean_square(x):
    return math.sqrt(float(np.mean(x * x)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight_decay": 0.1, "maximize": True},
        {"lr": 0.3, "eps": (1e-3, 0.1), "d": 2.0, "beta2_decay": -0.5},
    ],
)
def test_adafactor(rng, options):
    shapes = ((4, 3), (5,), (2, 3, 4))
    values = [rng.normal(size=shape) for shape in shapes]
    grads = [[rng.normal(size=shape) for shape in shapes] for _ in range(4)]
    params = [core.from_numpy(v.copy()) for v in values]
    optimizer = optim.Adafactor(params, **options)
    steps(optimizer, params, grads)
    settings = optimizer.param_groups[0]
    lr, decay, limit, power = (settings[k] for k in ("lr", "weight_decay", "d", "beta2_decay"))
    eps1, eps2 = settings["eps"]
    eps1 = np.finfo(np.float64).eps if eps1 is None else eps1
    sign = -1.0 if settings["maximize"] else 1.0
    for i, x in enumerate(values):
        rows = columns = full = 0.0
        for t in range(1, 5):
            g, w = sign * grads[t - 1][i], t**power
            length = max(eps2, root_mean_square(x)) * min(lr, t**-0.5)
            x = x * (1 - lr * decay)
            if g.ndim > 1:
                rows = rows + w * ((g * g).mean(-1, keepdims=True) - rows)
                columns = columns + w * ((g * g).mean(-2, keepdims=True) - columns)
                variance = rows * columns / np.maximum(rows.mean(-2, keepdims=True), eps1)
            else:
                variance = full = full + w * (g * g - full)
            update = g / np.sqrt(np.maximum(variance, eps1**2))
            x = x - length * update / max(1.0, root_mean_square(update) / limit)
        np.testing.assert_allclose(params[i].numpy(), x, rtol=1e-10)
    assert [sorted(s) for s in optimizer.state_dict()["state"].values()] == [
        ["col_var", "row_var", "step"],
        ["step", "variance"],
        ["col_var", "row_var", "step"],
    ]
    assert optimizer.state[params[2]]["col_var"].shape == (2, 1, 4)


def test_settings_that_an_optimizer_does_not_have_change_nothing(rng):
    grads = [[rng.normal(size=3)] for _ in range(3)]
    params = [core.ones(3, dtype=core.float64) for _ in range(2)]
    steps(optim.Rprop([{"params": params[:1], "weight_decay": 0.5}]), params[:1], grads)
    steps(optim.Rprop(params[1:]), params[1:], grads)
    assert core.equal(params[0], params[1])


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_state_goes_through_a_state_dict(rng, name):
    grads = [[rng.normal(size=(3, 2))] for _ in range(4)]
    params = [core.ones(3, 2, dtype=core.float64) for _ in range(2)]
    first, second = (getattr(optim, name)([p], lr=0.1) for p in params)
    steps(first, params[:1], grads[:2])
    params[1].copy_(params[0])
    second.load_state_dict(first.state_dict())
    steps(first, params[:1], grads[2:])
    steps(second, params[1:], grads[2:])
    assert core.equal(params[0], params[1])


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
@pytest.mark.parametrize("how", [None, "original", "match_rms_adamw"])
def test_muon_steps_are_about_orthogonal(rng, shape, how):
    param = core.zeros(shape, dtype=core.float64)
    optimizer = optim.Muon([param], lr=1.0, weight_decay=0.0, adjust_lr_fn=how)
    grad = rng.normal(size=shape)
    steps(optimizer, [param], [[grad]])
    u, s, vh = np.linalg.svd(grad, full_matrices=False)
    rows, columns = shape
    factor = 0.2 * math.sqrt(max(shape)) if how == "match_rms_adamw" else math.sqrt(max(1, rows / columns))
    # Iterate the polynomial on the singular values alone.
    a, b, c = 3.4445, -4.7750, 2.0315
    x = s / np.linalg.norm(grad)
    for _ in range(5):
        x = a * x + b * x**3 + c * x**5
    np.testing.assert_allclose(param.numpy(), -factor * (u * x) @ vh, atol=1e-9)
    assert (x > 0.3).all()


def test_momentum_and_decay_of_muon(rng):
    grads = [[rng.normal(size=(3, 3))] for _ in range(3)]
    for nesterov in (True, False):
        param = core.from_numpy(np.eye(3))
        optimizer = optim.Muon(
            [param], lr=0.5, weight_decay=0.2, momentum=0.75, nesterov=nesterov, ns_steps=0
        )
        steps(optimizer, [param], grads)
        x, mean = np.eye(3), 0.0
        for (g,) in grads:
            mean = 0.75 * mean + 0.25 * g
            update = 0.25 * g + 0.75 * mean if nesterov else mean
            x = x * (1 - 0.5 * 0.2) - 0.5 * update / np.linalg.norm(update)
        np.testing.assert_allclose(param.numpy(), x, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: optim.Muon([core.ones(3)]), ValueError, r"shape \(3,\).*\nhint"),
        (lambda: optim.Muon([core.ones(2, 2)], adjust_lr_fn="other"), ValueError, "adjust_lr_fn"),
        (lambda: optim.Muon([core.ones(2, 2)], ns_steps=100), ValueError, "ns_steps"),
        (lambda: optim.Muon([core.ones(2, 2)], momentum=-0.1), ValueError, "momentum"),
        (lambda: optim.Adafactor([core.ones(2)], beta2_decay=0.1), ValueError, "beta2_decay"),
        (lambda: optim.Adafactor([core.ones(2)], d=0.5), ValueError, r"\(d\)"),
        (lambda: optim.Adafactor([core.ones(2)], eps=(-1.0, 0.1)), ValueError, "eps"),
        (lambda: optim.Adafactor([core.ones(2, dtype=core.complex64)]), RuntimeError, "complex"),
    ],
)
def test_settings(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_of_complex_parameters_is_that_of_their_parts(rng, search):
    start, matrix = rng.normal(size=(4, 2)), rng.normal(size=(8, 8))
    matrix = matrix @ matrix.T + np.eye(8)
    found = []
    for whole in (True, False):
        x = core.from_numpy(start.copy())
        param = nn.Parameter(core.view_as_complex(x).clone() if whole else x)
        real = nn.Parameter(core.ones(3, dtype=core.float64))
        optimizer = optim.LBFGS([param, real], line_search_fn=search, max_iter=30, lr=1.0 if search else 0.1)

        def closure(param=param, real=real, whole=whole):
            values = param.detach()
            values = core.view_as_real(values) if whole else values
            slope = core.from_numpy(matrix) @ values.reshape(-1)
            grad = slope.reshape(4, 2)
            param.grad = core.view_as_complex(grad) if whole else grad
            real.grad = real.detach() * 3
            return 0.5 * slope.dot(values.reshape(-1)) + 1.5 * real.detach().square().sum()

        for _ in range(3):
            loss = optimizer.step(closure)
        values = core.view_as_real(param.detach()) if whole else param.detach()
        found.append(np.append(values.numpy().ravel(), float(loss)))
        assert param.is_complex() == whole
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12, atol=1e-14)
    assert not search or found[0][-1] < 1e-6


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, 0.1),
        lambda p: optim.SGD(p, 0.1, momentum=0.9),
        lambda p: optim.Adam(p, 0.1, amsgrad=True),
        lambda p: optim.AdamW(p, 0.1),
        lambda p: optim.RMSprop(p, weight_decay=0.1),
        lambda p: optim.Adagrad(p, 0.1, maximize=True),
        lambda p: optim.Adadelta(p),
        lambda p: optim.Adamax(p, weight_decay=0.1),
        lambda p: optim.NAdam(p),
        lambda p: optim.RAdam(p, maximize=True),
        lambda p: optim.Rprop(p),
        lambda p: optim.ASGD(p, weight_decay=0.1),
    ],
)
def test_steps_only_read_the_gradients(make: Any) -> None:
    """Gradients may be expanded or read-only, may share the parameter's memory, and keep their version."""
    rows = np.arange(4, dtype=np.float32)
    rows.flags.writeable = False
    plain = core.tensor([[1.0, 2.0], [3.0, 4.0]])
    for gradient in (core.ones(1).expand(2, 2), core.from_numpy(rows.reshape(2, 2)), None):
        given, wanted = nn.Parameter(plain.clone()), nn.Parameter(plain.clone())
        given.grad = given.detach().t() if gradient is None else gradient
        wanted.grad = given.grad.clone()
        version = given.grad._version
        make([given]).step()
        make([wanted]).step()
        assert core.equal(given, wanted)
        assert gradient is None or given.grad._version == version


_ORDERS = list(itertools.permutations(range(3)))


def _laid_out(values: Any, order: tuple[int, ...]) -> Any:
    """Return the same tensor, with its dimensions in the order `order` in memory."""
    inverse = [order.index(d) for d in range(len(order))]
    return values.permute(order).contiguous().permute(inverse)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (optim.SGD, {"momentum": 0.9}),
        (optim.Adam, {"amsgrad": True}),
        (optim.RMSprop, {"momentum": 0.9, "centered": True, "eps": 0.1}),
        (optim.NAdam, {}),
        (optim.ASGD, {"t0": 1}),
    ],
)
@pytest.mark.parametrize("order", _ORDERS, ids=str)
def test_layouts_do_not_change_steps(kind: Any, settings: dict[str, Any], order: tuple[int, ...]) -> None:
    start = core.randn(3, 4, 5)
    gradients = [core.randn(3, 4, 5) for _ in range(3)]
    plain = start.clone().requires_grad_()
    others = [_laid_out(start.clone(), order).requires_grad_() for _ in _ORDERS]
    steps = [kind([p], lr=0.1, **settings) for p in (plain, *others)]
    for gradient in gradients:
        plain.grad = gradient
        for other, layout in zip(others, _ORDERS, strict=True):
            other.grad = _laid_out(gradient, layout)
        for optimizer in steps:
            optimizer.step()
        assert all(core.equal(other, plain) for other in others)
    # States of another layout than the parameter's, as after loading.
    state = steps[-1].state[others[-1]]
    for key, value in state.items():
        if value.dim() == 3:
            state[key] = _laid_out(value, (2, 1, 0))
    plain.grad = others[-1].grad = gradients[0]
    steps[0].step()
    steps[-1].step()
    assert core.equal(others[-1], plain)


ALL = sorted(
    name for name, one in vars(optim).items() if isinstance(one, type) and issubclass(one, optim.Optimizer)
)


# Muon has had all its options from the start.
@pytest.mark.parametrize("name", [name for name in ALL if name not in ("Optimizer", "Muon")])
def test_states_of_older_versions_lack_options(name):
    """An option that is not in the state has the value that does what the version without it did."""
    param = nn.Parameter(core.ones(3, 3))
    optimizer = getattr(optim, name)([param], lr=0.1)

    def closure():
        grad = 2 * param.detach()
        param.grad = grad.to_sparse(1) if name == "SparseAdam" else grad
        return (param.detach() ** 2).sum()

    def step():
        if name != "LBFGS":
            closure()
        optimizer.step(closure if name == "LBFGS" else None)

    step()
    state, start = copy.deepcopy(optimizer.state_dict()), param.detach().clone()
    step()
    expected = param.detach().clone()
    for key, value in state["param_groups"][0].items():
        if not (isinstance(value, bool) or value is None):
            continue
        older = copy.deepcopy(state)
        del older["param_groups"][0][key]
        with core.no_grad():
            param.copy_(start)
        optimizer.load_state_dict(older)
        step()
        assert core.equal(param.detach(), expected), key


@pytest.mark.parametrize("kind", ["mean", "moving"])
def test_averages_of_buffers_of_every_dtype(kind: str) -> None:
    swa = nn.optim.swa_utils
    averages = {
        "mean": [swa.get_swa_multi_avg_fn(), swa.get_swa_avg_fn()],
        "moving": [swa.get_ema_multi_avg_fn(0.75), swa.get_ema_avg_fn(0.75)],
    }[kind]
    share = {"mean": 1 / 3, "moving": 0.25}[kind]
    for dtype in (core.int64, core.int16, core.float32, core.float64, core.complex64):
        old, new = core.tensor([3, 8]).to(dtype), core.tensor([12, 0]).to(dtype)
        want = (old * (1 - share) + new * share).to(dtype)  # averages of ints are truncated
        in_place = old.clone()
        averages[0]([in_place], [new], 2)
        assert core.allclose(in_place, want)
        assert core.allclose(averages[1](old, new, 2).to(dtype), want)
    flags = core.tensor([True, False])
    averages[0]([flags], [core.tensor([False, False])], 2)
    assert flags.tolist() == [False, False]


def test_sgd_without_momentum_has_no_state_of_sparse_gradients() -> None:
    layer = nn.Embedding(4, 2, sparse=True)
    optimizer = optim.SGD(layer.parameters(), lr=0.1)
    layer.weight.grad = core.sparse_coo_tensor(core.tensor([[1]]), core.ones(1, 2), (4, 2))
    optimizer.step()
    assert not optimizer.state
    assert optimizer.state_dict()["state"] == {}
