"""Optimizers, compared with their formulas in NumPy."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight_core as core
from rushlight_nn import Linear, Parameter, optim

SHAPES = [(3, 4), (5,), ()]


def sgd(p, grads, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    buffer = None
    for g in grads:
        g = (-g if maximize else g) + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p = p - lr * g
    return p


def adam(
    p,
    grads,
    lr,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.0,
    amsgrad=False,
    maximize=False,
    decoupled=False,
):
    m = v = highest = 0.0
    for step, g in enumerate(grads, 1):
        g = -g if maximize else g
        if decoupled:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        highest = np.maximum(highest, v)
        root = np.sqrt((highest if amsgrad else v) / (1 - betas[1] ** step))
        p = p - lr * (m / (1 - betas[0] ** step)) / (root + eps)
    return p


def run(make, grads, start):
    """Take one step per row of `grads`. A parameter whose gradient is None skips the step."""
    params = [core.from_numpy(p.copy()).requires_grad_() for p in start]
    optimizer = make(params)
    for row in grads:
        for p, g in zip(params, row, strict=True):
            p.grad = None if g is None else core.from_numpy(g.copy())
        optimizer.step()
    return [p.detach().numpy() for p in params], optimizer


def check(make, reference, rng, steps=4, absent=()):
    start = [rng.normal(size=s) for s in SHAPES]
    grads = [[rng.normal(size=s) for s in SHAPES] for _ in range(steps)]
    given_grads = [
        [None if (t, i) in absent else g for i, g in enumerate(row)] for t, row in enumerate(grads)
    ]
    results, optimizer = run(make, given_grads, start)
    for i, (result, p) in enumerate(zip(results, start, strict=True)):
        expected = reference(p, [row[i] for row in given_grads if row[i] is not None])
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-9)
    return optimizer


SGD_OPTIONS = [
    {},
    {"momentum": 0.9},
    {"momentum": 0.9, "dampening": 0.5},
    {"momentum": 0.8, "nesterov": True, "weight_decay": 0.1},
    {"weight_decay": 0.1, "maximize": True},
]
ADAM_OPTIONS = [
    {},
    {"betas": (0.5, 0.6), "eps": 1e-2},
    {"weight_decay": 0.1},
    {"amsgrad": True},
    {"maximize": True, "weight_decay": 0.3, "amsgrad": True},
]
COUNTED_OPTIONS = [
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"centered": True, "eps": 0.1}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "eps": 0.1, "maximize": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {"weight_decay": 0.1, "maximize": True}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Rprop", {"lr": 0.1, "step_sizes": (0.05, 0.2)}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 2, "weight_decay": 0.1}),
]
ABSENT = [(), {(0, 1)}, {(1, 0), (1, 2), (3, 1)}, {(t, 0) for t in range(4)}]


@pytest.mark.parametrize("absent", ABSENT)
@pytest.mark.parametrize("options", SGD_OPTIONS)
def test_sgd(rng, options, absent):
    check(
        lambda ps: optim.SGD(ps, lr=0.1, **options),
        lambda p, grads: sgd(p, grads, 0.1, **options),
        rng,
        absent=absent,
    )


@pytest.mark.parametrize("absent", ABSENT)
@pytest.mark.parametrize("options", ADAM_OPTIONS)
def test_adam(rng, options, absent):
    check(
        lambda ps: optim.Adam(ps, lr=0.1, **options),
        lambda p, grads: adam(p, grads, 0.1, **options),
        rng,
        absent=absent,
    )


@pytest.mark.parametrize("options", ADAM_OPTIONS)
def test_adamw(rng, options):
    decay = {"weight_decay": 0.01, **options}
    check(
        lambda ps: optim.AdamW(ps, lr=0.1, **options),
        lambda p, grads: adam(p, grads, 0.1, decoupled=True, **decay),
        rng,
        absent={(2, 1)},
    )


@settings(max_examples=25, deadline=None)
@given(absent=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 2))), seed=st.integers(0, 1000))
def test_any_pattern_of_missing_gradients(absent, seed):
    rng = np.random.default_rng(seed)
    check(lambda ps: optim.Adam(ps, lr=0.05), lambda p, g: adam(p, g, 0.05), rng, steps=6, absent=absent)
    check(
        lambda ps: optim.SGD(ps, lr=0.05, momentum=0.5, dampening=0.3),
        lambda p, g: sgd(p, g, 0.05, 0.5, 0.3),
        rng,
        steps=6,
        absent=absent,
    )


def test_groups_have_settings_of_their_own(rng):
    start = [rng.normal(size=3) for _ in range(2)]
    grads = [[rng.normal(size=3) for _ in range(2)] for _ in range(3)]
    results, optimizer = run(
        lambda ps: optim.SGD([{"params": ps[0], "lr": 0.5}, {"params": [ps[1]], "momentum": 0.9}], lr=0.1),
        grads,
        start,
    )
    np.testing.assert_allclose(results[0], sgd(start[0], [g[0] for g in grads], 0.5))
    np.testing.assert_allclose(results[1], sgd(start[1], [g[1] for g in grads], 0.1, 0.9))
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1]
    assert optimizer.defaults["lr"] == 0.1


def test_changing_a_setting_between_steps(rng):
    p = Parameter(core.ones(2))
    optimizer = optim.SGD([p], lr=0.1)
    p.grad = core.ones(2)
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 1.0
    optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), [-0.1, -0.1], atol=1e-6)


@pytest.mark.parametrize(
    "make", [lambda ps: optim.SGD(ps, 0.1, momentum=0.9), lambda ps: optim.Adam(ps, 0.1)]
)
def test_parameters_of_several_dtypes_in_one_group(make):
    dtypes = (core.float32, core.float64, core.bfloat16, core.float32)
    params = [Parameter(core.ones(3).to(d)) for d in dtypes]
    optimizer = make(params)
    for _ in range(2):
        for p in params:
            p.grad = core.full_like(p, 0.5)
        optimizer.step()
    for p, dtype in zip(params, dtypes, strict=True):
        assert p.dtype == dtype
        np.testing.assert_allclose(p.detach().float().numpy(), params[1].detach().numpy(), rtol=2e-2)


def test_converting_the_model_between_steps():
    layer = Linear(2, 2)
    optimizer = optim.SGD(layer.parameters(), lr=0.5)
    for dtype in (core.float32, core.float64):
        layer.to(dtype)
        before = layer.bias.detach().clone()
        for p in layer.parameters():
            p.grad = core.ones_like(p)
        optimizer.step()
        assert core.allclose(layer.bias.detach(), before - 0.5)


def test_plain_tensors_and_one_leaf():
    x = core.zeros(3, requires_grad=True)
    optimizer = optim.Adam([x], lr=0.1)
    optimizer.step()  # no gradient yet: nothing happens
    assert len(optimizer.state) == 0
    x.grad = core.tensor([1.0, -1.0, 0.0])
    optimizer.step()
    np.testing.assert_allclose(x.detach().numpy(), [-0.1, 0.1, 0.0], atol=1e-6)
    assert x.requires_grad


def test_rates_can_be_tensors():
    p = Parameter(core.ones(1))
    optimizer = optim.SGD([p], lr=core.tensor(0.5))
    p.grad = core.ones(1)
    optimizer.step()
    assert float(p.detach()) == 0.5


def test_closure():
    p = Parameter(core.ones(1))
    optimizer = optim.SGD([p], lr=0.5)

    def closure():
        assert core.is_grad_enabled()
        p.grad = core.ones(1)
        return "loss"

    with core.no_grad():
        assert optimizer.step(closure) == "loss"
    assert float(p.detach()) == 0.5


def test_zero_grad():
    params = [Parameter(core.ones(2)) for _ in range(2)]
    optimizer = optim.SGD(params, lr=0.1)
    params[0].grad = core.ones(2)
    grad = params[0].grad
    optimizer.zero_grad(set_to_none=False)
    assert params[0].grad is grad
    assert float(grad.sum()) == 0.0
    assert params[1].grad is None
    optimizer.zero_grad()
    assert params[0].grad is None


def test_counters_are_shared_and_parted():
    params = [Parameter(core.ones(2)) for _ in range(3)]
    optimizer = optim.Adam(params, lr=0.1)

    def step(*present):
        for i, p in enumerate(params):
            p.grad = core.ones(2) if i in present else None
        optimizer.step()

    def counts():
        return [float(optimizer.state[p]["step"]) for p in params if p in optimizer.state]

    step(0, 1)
    step(0, 1, 2)
    assert counts() == [2.0, 2.0, 1.0]
    assert optimizer.state[params[0]]["step"] is optimizer.state[params[1]]["step"]
    step(1, 2)
    assert counts() == [2.0, 3.0, 2.0]
    step(0, 1, 2)
    assert counts() == [3.0, 4.0, 3.0]


@pytest.mark.parametrize("make", [optim.Adam, optim.AdamW])
def test_a_parameter_that_moves_to_another_group_takes_one_step_at_a_time(make):
    def trained(move, skip):
        a, b = params = [Parameter(core.ones(2)) for _ in range(2)]
        optimizer = make(params if move else [{"params": [a]}, {"params": [b]}], lr=0.1)
        for i in range(4):
            if move and i == 1:
                optimizer.param_groups[0]["params"] = [a]
                optimizer.add_param_group({"params": [b]})
            a.grad = core.tensor([0.5, -1.0]) * (i + 1)
            b.grad = None if i == skip else core.tensor([2.0, 3.0]) * (i + 1)
            optimizer.step()
        return [float(optimizer.state[p]["step"]) for p in params], [p.detach().tolist() for p in params]

    for skip in (0, 1, 2, None):
        result = trained(True, skip)
        assert result == trained(False, skip)
        assert result[0] == [4.0, 4.0 if skip is None else 3.0]


def test_parameters_of_different_groups_that_skip_steps_in_turn_count_their_own():
    params = [Parameter(core.ones(2)) for _ in range(6)]
    optimizer = optim.AdamW([{"params": params[:3]}, {"params": params[3:]}])
    counts = [0] * 6
    for i in range(12):
        for j, p in enumerate(params):
            present = (i + j) % 4 != 0 and (i % 5 != 0 or j < 3)
            p.grad = core.ones(2) if present else None
            counts[j] += present
        if i == 6:
            for group, some in zip(optimizer.param_groups, (params[::2], params[1::2]), strict=True):
                group["params"] = some
        optimizer.step()
    assert [float(optimizer.state[p]["step"]) for p in params] == counts


def test_a_parameter_without_a_group_keeps_its_count():
    params = [Parameter(core.ones(2)) for _ in range(2)]
    optimizer = optim.Adam(params)
    for i in range(4):
        optimizer.param_groups[0]["params"] = params[:1] if i in (1, 2) else params
        for p in params:
            p.grad = core.ones(2)
        optimizer.step()
    assert [float(optimizer.state[p]["step"]) for p in params] == [4.0, 2.0]


def test_a_step_counter_can_be_replaced():
    params = [Parameter(core.ones(2)) for _ in range(3)]
    optimizer = optim.Adam(params)
    for i in range(4):
        if i == 2:
            optimizer.state[params[1]]["step"] = core.tensor(0.0)
        for p in params:
            p.grad = core.ones(2)
        optimizer.step()
    assert [float(optimizer.state[p]["step"]) for p in params] == [4.0, 2.0, 4.0]


def mismatched():
    """Return a parameter whose gradient has another shape, so that a step raises an error."""
    param = Parameter(core.ones(2))
    param.grad = core.ones(2)
    param.data = core.ones(3)
    return param


def test_sgd_has_no_momentum_after_a_first_step_that_raised():
    good, bad = Parameter(core.zeros(4)), mismatched()
    good.grad = core.ones(4)
    optimizer = optim.SGD([good, bad], lr=0.1, momentum=0.9)
    with pytest.raises(RuntimeError, match="shape"):
        optimizer.step()
    assert "momentum_buffer" not in optimizer.state[good]
    bad.grad = None
    optimizer.step()
    assert core.equal(good.detach(), core.full((4,), -0.1))


EACH = ["RMSprop", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "ASGD", "Rprop", "Adafactor"]


def break_gradient(param):
    param.data = core.ones(4, 2)


def break_state(param):
    param.data = core.ones(4, 2)
    param.grad = core.ones(4, 2)


def make_gradient_sparse(param):
    param.grad = core.ones(3, 2).to_sparse()


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (
            break_gradient,
            r"gradient must have the shape and device of its parameter, \(4, 2\) on cpu, got \(3, 2\)",
        ),
        (break_state, r"in the state of a parameter of shape \(4, 2\) must have the shape \(4, .*, got \(3,"),
        (make_gradient_sparse, "sparse gradients"),
    ],
)
@pytest.mark.parametrize("name", [*EACH, "Adam"])
def test_a_step_that_raises_changes_nothing(name, spoil, error):
    good, bad = params = [Parameter(core.ones(3, 2)) for _ in range(2)]
    options = {"weight_decay": 0.1} if name == "Adagrad" else {}  # without, its gradients can be sparse
    optimizer = getattr(optim, name)(params, lr=0.1, **options)
    for p in params:
        p.grad = core.ones(3, 2)
    optimizer.step()
    spoil(bad)
    before = copy.deepcopy(optimizer.state_dict()["state"]), good.detach().clone(), bad.detach().clone()
    with pytest.raises(RuntimeError, match=None if name == "Adam" else error):
        optimizer.step()
    after = optimizer.state_dict()["state"]
    assert core.equal(good.detach(), before[1])
    assert core.equal(bad.detach(), before[2])
    for i, own in before[0].items():
        assert own.keys() == after[i].keys()
        assert all(core.equal(value, after[i][key]) for key, value in own.items()), after[i]


@pytest.mark.parametrize("name", EACH[:-1])
def test_a_first_step_that_raises_leaves_no_state(name):
    good, bad = Parameter(core.ones(2)), mismatched()
    good.grad = core.ones(2)
    optimizer = getattr(optim, name)([good, bad])
    before = optimizer.state_dict()["state"]  # that of Adagrad exists before the first step
    with pytest.raises(RuntimeError, match="gradient must have the shape"):
        optimizer.step()
    for number, own in optimizer.state_dict()["state"].items():
        assert all(value is before[number][key] for key, value in own.items())
    assert core.equal(good.detach(), core.ones(2))


@pytest.mark.parametrize("make", [lambda a, b: [a, b], lambda a, b: [{"params": [a]}, {"params": [b]}]])
@pytest.mark.parametrize("name", EACH[:-1])
def test_an_error_of_a_later_call_comes_before_the_first_call(name, make):
    good, bad = Parameter(core.ones(2, dtype=core.float64)), mismatched()
    good.grad = core.ones(2, dtype=core.float64)
    optimizer = getattr(optim, name)(make(good, bad))
    with pytest.raises(RuntimeError, match="gradient must have the shape"):
        optimizer.step()
    assert core.equal(good.detach(), core.ones(2, dtype=core.float64))
    assert float(optimizer.state[good].get("step", 0)) == 0


# Building ---------------------------------------------------------------------------------------------------


def test_refusals():
    p, q = Parameter(core.ones(1)), Parameter(core.ones(1))
    with pytest.raises(TypeError, match=r"got a tensor.*\n.*\[tensor\]"):
        optim.SGD(p)
    with pytest.raises(ValueError, match="no parameters"):
        optim.SGD([])
    with pytest.raises(TypeError, match="item 1 is int"):
        optim.SGD([p, 3])
    with pytest.raises(TypeError, match="set"):
        optim.SGD([{"params": {p}}])
    with pytest.raises(ValueError, match="more than one group"):
        optim.SGD([{"params": [p]}, {"params": [q, p]}])
    with pytest.warns(UserWarning, match="more than once"):
        optim.SGD([p, p])
    with pytest.raises(TypeError, match="needs a dict"):
        optim.SGD([p]).add_param_group([q])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda p: optim.SGD(p, lr=-1.0), r"SGD\(lr\): got -1.0"),
        (lambda p: optim.SGD(p, momentum=-1.0), r"SGD\(momentum\)"),
        (lambda p: optim.SGD(p, nesterov=True), "requires a positive momentum and zero dampening"),
        (lambda p: optim.Adam(p, betas=(0.9, 1.0)), r"Adam\(betas\): entry 1 must be .*, got 1.0"),
        (lambda p: optim.Adam(p, betas=(0.9,)), r"Adam\(betas\): needs two numbers, got \(0.9,\)"),
        (lambda p: optim.AdamW(p, eps=-1e-8), r"AdamW\(eps\)"),
        (lambda p: optim.Adam(p, lr=float("nan")), r"Adam\(lr\): got nan"),
        (
            lambda p: optim.Adam(p, lr=core.tensor(0.1), foreach=True),
            r"Adam\(lr\): a tensor with foreach=True",
        ),
        (
            lambda p: optim.AdamW(p, lr=core.tensor(0.1), foreach=True),
            r"AdamW\(lr\): a tensor with foreach=True",
        ),
    ],
)
def test_settings_are_checked(make, text):
    with pytest.raises(ValueError, match=text):
        make([Parameter(core.ones(1))])


def test_unsupported_options_say_so():
    with pytest.raises(NotImplementedError, match=r"NAdam\(differentiable=True\)"):
        optim.NAdam([Parameter(core.ones(1))], differentiable=True)
    with pytest.raises(NotImplementedError, match=r"SGD\(differentiable=True\)"):
        optim.SGD([Parameter(core.ones(1))], differentiable=True)
    optim.SGD([Parameter(core.ones(1))], foreach=True, fused=False)


def test_named_parameters():
    layer = Linear(2, 2)
    optimizer = optim.SGD(layer.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][0] is layer.weight
    with pytest.raises(ValueError, match="names in all parameter groups or in none"):
        optimizer.add_param_group({"params": [Parameter(core.ones(1))]})
    p, q = (Parameter(core.ones(2)) for _ in range(2))
    for params, position in (([("a", p), q], 1), ([p, ("b", q)], 0)):
        with pytest.raises(ValueError, match=f"item {position} has no name"):
            optim.SGD(params, lr=0.1)


def test_repr():
    groups = [{"params": [Parameter(core.ones(1))], "lr": lr} for lr in (0.5, 0.25)]
    text = repr(optim.SGD(groups))
    assert text.startswith("SGD (\nParameter Group 0\n")
    assert "    lr: 0.5\n" in text
    assert "\n\nParameter Group 1\n" in text
    assert text.endswith("    weight_decay: 0\n)")


# State ------------------------------------------------------------------------------------------------------


def trained(make, seed=0, steps=3):
    rng = np.random.default_rng(seed)
    params = [Parameter(core.from_numpy(rng.normal(size=s))) for s in SHAPES]
    optimizer = make(params)
    for _ in range(steps):
        step(params, optimizer, rng)
    return params, optimizer, rng


def step(params, optimizer, rng):
    for p in params:
        p.grad = core.from_numpy(np.asarray(rng.normal(size=tuple(p.shape))))
    optimizer.step()


MAKERS = {
    "sgd": lambda ps: optim.SGD(ps, 0.1, momentum=0.9),
    "adam": lambda ps: optim.Adam(ps, 0.1, amsgrad=True),
    "adamw": lambda ps: optim.AdamW(ps, 0.1),
    "rmsprop": lambda ps: optim.RMSprop(ps, 0.1, momentum=0.9, centered=True),
    "adagrad": lambda ps: optim.Adagrad(ps, 0.1, lr_decay=0.1),
    "adadelta": lambda ps: optim.Adadelta(ps, 0.1),
    "adamax": lambda ps: optim.Adamax(ps, 0.1),
    "nadam": lambda ps: optim.NAdam(ps, 0.1, momentum_decay=0.1),
    "radam": lambda ps: optim.RAdam(ps, 0.1, betas=(0.8, 0.9)),
    "rprop": lambda ps: optim.Rprop(ps, 0.1),
    "asgd": lambda ps: optim.ASGD(ps, 0.1, lambd=0.1, t0=2),
}


@pytest.mark.parametrize("name", MAKERS)
def test_going_on_from_a_state_is_going_on(name):
    make = MAKERS[name]
    params, optimizer, rng = trained(make)
    others = [Parameter(p.detach().clone()) for p in params]
    other = make(others)
    other.param_groups[0]["lr"] = 99.0
    state = optimizer.state_dict()
    other.load_state_dict(state)
    assert other.param_groups[0]["lr"] == 0.1
    other_rng = copy.deepcopy(rng)
    for _ in range(2):
        step(params, optimizer, rng)
        step(others, other, other_rng)
    for p, q in zip(params, others, strict=True):
        assert core.equal(p, q)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_of_optimizers(name, clone):
    params, optimizer, _ = trained(MAKERS[name])
    others, other = clone((params, optimizer))
    assert other.param_groups[0]["params"][0] is others[0]
    rng = np.random.default_rng(1)
    step(params, optimizer, copy.deepcopy(rng))
    step(others, other, rng)
    for p, q in zip(params, others, strict=True):
        assert core.equal(p, q)


def test_the_layout_of_a_state():
    params, optimizer, _ = trained(MAKERS["adam"])
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"]
    assert state["param_groups"][0]["params"] == [0, 1, 2]
    assert sorted(state["state"][0]) == ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"]
    assert float(state["state"][0]["step"]) == 3.0
    assert state["state"][0]["step"].dtype == core.float32
    assert state["state"][0]["exp_avg"] is optimizer.state[params[0]]["exp_avg"]


def test_a_loaded_state_is_independent_of_the_dictionary():
    params, optimizer, rng = trained(MAKERS["adam"])
    state = copy.deepcopy(optimizer.state_dict())
    other = MAKERS["adam"]([Parameter(p.detach().clone()) for p in params])
    other.load_state_dict(state)
    step(other.param_groups[0]["params"], other, rng)
    assert float(state["state"][0]["step"]) == 3.0
    assert core.equal(state["state"][0]["exp_avg"], optimizer.state[params[0]]["exp_avg"])


def test_state_follows_dtype_and_counters_may_be_numbers():
    params, optimizer, _ = trained(MAKERS["adam"])
    state = optimizer.state_dict()
    for own in state["state"].values():
        own["step"] = 3
    others = [Parameter(p.detach().float()) for p in params]
    other = MAKERS["adam"](others)
    other.load_state_dict(state)
    assert other.state[others[0]]["exp_avg"].dtype == core.float32
    assert float(other.state[others[0]]["step"]) == 3.0
    assert other.state[others[0]]["step"] is other.state[others[1]]["step"]


@pytest.mark.parametrize("name", ["nadam", "asgd", "rmsprop"])
def test_numbers_of_a_loaded_state_may_be_python_numbers(name):
    params, optimizer, rng = trained(MAKERS[name])
    state = optimizer.state_dict()
    for own in state["state"].values():
        own.update({key: float(own[key]) for key in ("step", "mu_product", "eta", "mu") if key in own})
    others = [Parameter(p.detach().clone()) for p in params]
    other = MAKERS[name](others)
    other.load_state_dict(state)
    step(params, optimizer, copy.deepcopy(rng))
    step(others, other, rng)
    for p, q in zip(params, others, strict=True):
        assert core.equal(p, q)
        assert other.state[q]["step"].dtype == core.float32
        assert float(other.state[q]["step"]) == 4.0


def test_parameters_that_skip_steps_count_their_own():
    params = [Parameter(core.ones(2)) for _ in range(3)]
    optimizer = optim.NAdam(params)
    for t in range(4):
        for i, param in enumerate(params):
            param.grad = None if (t + i) % 2 and i else core.ones(2)
        optimizer.step()
    assert [float(optimizer.state[p]["step"]) for p in params] == [4.0, 2.0, 2.0]
    products = [float(optimizer.state[p]["mu_product"]) for p in params]
    assert products[1] == products[2] > products[0]


def test_states_of_other_optimizers_are_refused():
    params, optimizer, _ = trained(MAKERS["sgd"])
    state = optimizer.state_dict()
    with pytest.raises(ValueError, match="got 3 parameters in group 0 of the state, needs 1"):
        MAKERS["sgd"](params[:1]).load_state_dict(state)
    two = optim.SGD([{"params": params[:1]}, {"params": params[1:]}], 0.1)
    with pytest.raises(ValueError, match="1 parameter groups, needs 2"):
        two.load_state_dict(state)
    assert len(two.state) == 0


def test_hooks():
    p = Parameter(core.ones(1))
    optimizer = optim.SGD([p], lr=0.1)
    p.grad = core.ones(1)
    calls = []
    seen = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(args))
    replace = optimizer.register_step_pre_hook(
        lambda o, args, kwargs: ((o, lambda: calls.append("closure")), {})
    )
    optimizer.step()
    assert seen == [(optimizer,)]
    assert calls == ["closure"]
    replace.remove()
    calls.clear()
    p.data.fill_(1)
    before = optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append("before"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append("after"))
    optimizer.step()
    assert calls == ["before", "after"]
    assert float(p.detach()) == pytest.approx(0.9)
    before.remove()
    optimizer.step()
    assert calls == ["before", "after", "after"]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="pair"):
        optimizer.step()
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "extra": 1})
    state = optimizer.state_dict()
    assert state["extra"] == 1
    optimizer.register_load_state_dict_pre_hook(lambda o, state: {**state, "param_groups": []})
    with pytest.raises(ValueError, match="0 parameter groups"):
        optimizer.load_state_dict(state)


def test_an_optimizer_of_the_users_own():
    class Constant(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.5})

        def step(self, closure=None):
            with core.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p.sub_(group["lr"])
                        self.state[p]["n"] = self.state[p].get("n", 0) + 1

    p = Parameter(core.ones(1))
    optimizer, calls = Constant([p]), []
    optimizer.register_step_post_hook(lambda *a: calls.append(1))
    optimizer.step()
    assert float(p.detach()) == 0.5
    assert calls == [1]
    assert optimizer.state_dict()["state"] == {0: {"n": 1}}
    with pytest.raises(NotImplementedError, match="step"):
        optim.Optimizer([p], {}).step()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {}),
        ("SGD", {"momentum": 0.9, "weight_decay": 0.1}),
        ("Adam", {"amsgrad": True, "maximize": True}),
        *[
            (name, {})
            for name in (
                "AdamW",
                "RMSprop",
                "Adagrad",
                "Adadelta",
                "NAdam",
                "RAdam",
                "Adamax",
                "Rprop",
                "ASGD",
            )
        ],
    ],
)
def test_a_complex_parameter_steps_as_its_parts(name, options) -> None:
    generator = np.random.default_rng(4)
    values, *gradients = generator.normal(size=(4, 3, 5, 2))
    pairs = core.tensor(values, requires_grad=True)
    whole = core.view_as_complex(core.tensor(values)).clone().requires_grad_()
    by_parts = getattr(optim, name)([pairs], lr=0.05, **options)
    at_once = getattr(optim, name)([whole], lr=0.05, **options)
    for gradient in gradients:
        pairs.grad = core.tensor(gradient)
        whole.grad = core.view_as_complex(core.tensor(gradient))
        by_parts.step()
        at_once.step()
    assert core.equal(core.view_as_real(whole.detach()), pairs.detach())
    assert not core.equal(pairs.detach(), core.tensor(values))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "RAdam", "Adamax"])
def test_infinite_parameters_stay_where_the_gradient_is_zero(name):
    p = Parameter(core.full((40,), float("-inf")))
    p.grad = core.zeros(40)
    getattr(optim, name)([p], lr=0.1, weight_decay=0.0).step()
    assert p.tolist() == [float("-inf")] * 40


# Optimizer itself has no learning rate. SparseAdam accepts only sparse gradients, and is tested in
# test_sparse_gradients.py.
WITH_RATE = sorted(
    {name for name in optim.__all__ if isinstance(getattr(optim, name), type)} - {"Optimizer", "SparseAdam"}
)


@pytest.mark.parametrize("name", WITH_RATE)
def test_a_rate_of_several_elements_is_refused(name):
    make = getattr(optim, name)
    parameter = Parameter(core.ones(2, 2))
    with pytest.raises(ValueError, match=rf"{name}\(lr\): got a tensor of shape \(2,\)"):
        make([parameter], lr=core.ones(2))
    make([parameter], lr=core.tensor([0.1]))


def test_what_lbfgs_remembers_serves_a_new_optimizer():
    def run(steps, state=None, start=None):
        p = Parameter(core.tensor([3.0, -2.0]) if start is None else start.clone())
        opt = optim.LBFGS([p], lr=0.5, max_iter=3, history_size=4)
        if state is not None:
            opt.load_state_dict(state)

        def closure():
            p.grad = (4 * p**3 + core.tensor([1.0, 6.0]) * p).detach()
            return (p**4).sum() + (core.tensor([0.5, 3.0]) * p**2).sum()

        for _ in range(steps):
            opt.step(closure)
        return p.detach(), opt.state_dict()

    whole, state = run(4)
    half, kept = run(2)
    again, _ = run(2, kept, half)
    np.testing.assert_array_equal(again.numpy(), whole.numpy())
    assert sorted(state["state"][0]) == [
        "H_diag", "al", "d", "func_evals", "n_iter", "old_dirs", "old_stps", "prev_flat_grad", "prev_loss", "ro", "t",
    ]  # fmt: skip
    assert len(state["state"][0]["al"]) == 4


def test_the_state_of_adam_has_a_counter_for_each_parameter():
    # PyTorch, which can load the state, increments each counter. A shared counter would be incremented several times.
    params = [Parameter(core.ones(2)), Parameter(core.ones(3))]
    optimizer = optim.Adam(params)
    for param in params:
        param.grad = core.ones_like(param)
    optimizer.step()
    first, second = (own["step"] for own in optimizer.state_dict()["state"].values())
    assert first is optimizer.state[params[0]]["step"]
    first.add_(5)
    assert float(second) == 1.0


@pytest.mark.parametrize("dtype", [core.float32, core.float64, core.float16, core.bfloat16])
@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", options) for options in SGD_OPTIONS]
    + [(name, options) for name in ("Adam", "AdamW") for options in ADAM_OPTIONS]
    + COUNTED_OPTIONS,
)
def test_a_step_does_not_depend_on_where_an_element_lies(rng, name, options, dtype):
    # Kernels compute whole cache lines in vectors, and the elements after the last whole line one by one.
    values, *grads = (core.tensor(rng.normal(size=77)).to(dtype) for _ in range(4))
    together = [Parameter(values.clone())]
    alone = [Parameter(value.clone()) for value in values]
    optimizers = [getattr(optim, name)(params, **options) for params in (together, alone)]
    for grad in grads:
        together[0].grad = grad
        for param, own in zip(alone, grad, strict=True):
            param.grad = own
        for optimizer in optimizers:
            optimizer.step()
    assert core.equal(together[0].detach(), core.stack(alone).detach())
    assert not core.equal(together[0].detach(), values)
