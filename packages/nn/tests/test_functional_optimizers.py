"""Steps of optimizers as functions, compared with the optimizers. Other tests compare the optimizers with PyTorch."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import rushlight_core as core
from rushlight_nn import Parameter, optim
from rushlight_nn.optim import functional

BETAS = {"beta1": 0.8, "beta2": 0.9}
ADAM = {**BETAS, "lr": 0.1, "weight_decay": 0.05, "eps": 1e-6}
# For each function: the optimizer, the settings, and the names of the function's lists in the optimizer's state.
CASES: dict[str, tuple[type[optim.Optimizer], dict[str, Any], list[str]]] = {
    "adam": (optim.Adam, {**ADAM, "amsgrad": True, "maximize": True}, ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"]),
    "adamw": (optim.AdamW, {**ADAM, "amsgrad": False, "maximize": False}, ["exp_avg", "exp_avg_sq", "", "step"]),
    "adagrad": (
        optim.Adagrad, {"lr": 0.1, "weight_decay": 0.05, "lr_decay": 0.1, "eps": 1e-6, "maximize": True}, ["sum", "step"],
    ),
    "adadelta": (
        optim.Adadelta, {"lr": 0.1, "rho": 0.7, "eps": 1e-6, "weight_decay": 0.05, "maximize": False},
        ["square_avg", "acc_delta", "step"],
    ),
    "adamax": (optim.Adamax, ADAM, ["exp_avg", "exp_inf", "step"]),
    "nadam": (
        optim.NAdam, {**ADAM, "momentum_decay": 0.01, "decoupled_weight_decay": True},
        ["exp_avg", "exp_avg_sq", "mu_product", "step"],
    ),
    "radam": (optim.RAdam, {**ADAM, "decoupled_weight_decay": False}, ["exp_avg", "exp_avg_sq", "step"]),
    "rmsprop": (
        optim.RMSprop,
        {"lr": 0.1, "alpha": 0.7, "eps": 1e-6, "weight_decay": 0.05, "momentum": 0.8, "centered": True},
        ["square_avg", "grad_avg", "momentum_buffer", "step"],
    ),
    "rprop": (
        optim.Rprop, {"step_size_min": 1e-3, "step_size_max": 1.0, "etaminus": 0.4, "etaplus": 1.3},
        ["prev", "step_size", "step"],
    ),
    "asgd": (
        optim.ASGD, {"lambd": 0.01, "lr": 0.1, "t0": 1.0, "alpha": 0.6, "weight_decay": 0.05}, ["ax", "mu", "eta", "step"],
    ),
}  # fmt: skip


def of_class(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings in the form that the optimizer accepts."""
    settings = dict(settings)
    if "beta1" in settings:
        settings["betas"] = settings.pop("beta1"), settings.pop("beta2")
    if "step_size_min" in settings:
        settings["step_sizes"] = settings.pop("step_size_min"), settings.pop("step_size_max")
        settings["etas"] = settings.pop("etaminus"), settings.pop("etaplus")
    return settings


def parameters() -> list[Parameter]:
    generator = core.Generator().manual_seed(0)
    first, second = core.randn(3, 2, generator=generator), core.randn(4, generator=generator).to(core.float64)
    return [Parameter(first), Parameter(second), Parameter(core.complex(second, second + 1))]


def give_grads(params: list[Parameter], step: int) -> None:
    for param in params:
        param.grad = (param.detach() * (step + 1)).cos()


@pytest.mark.parametrize("name", CASES)
def test_function_takes_the_step_of_its_optimizer(name: str) -> None:
    kind, settings, lists = CASES[name]
    ours, theirs = parameters(), parameters()
    optimizer = kind(theirs, **of_class(settings))
    give_grads(theirs, 0)
    optimizer.step()
    for param, stepped in zip(ours, theirs, strict=True):  # both continue from the same first step
        param.data.copy_(stepped)
    states = [[optimizer.state[p][key].clone() for p in theirs] if key else [] for key in lists]
    for step in (1, 2):
        give_grads(ours, step)
        give_grads(theirs, step)
        with core.no_grad():
            getattr(functional, name)(ours, [p.grad for p in ours], *states, **settings)
        optimizer.step()
    for param, expected in zip(ours, theirs, strict=True):
        assert core.equal(param, expected)
    for key, values in zip(lists, states, strict=True):
        for param, value in zip(theirs, values, strict=False):
            assert core.equal(value, optimizer.state[param][key]), key


@pytest.mark.parametrize("momentum", [0, 0.9])
def test_sgd_makes_the_buffers_that_are_not_there(momentum: float) -> None:
    settings = {
        "weight_decay": 0.1,
        "momentum": momentum,
        "lr": 0.1,
        "dampening": 0.2,
        "nesterov": False,
        "maximize": True,
    }
    ours, theirs = parameters(), parameters()
    buffers: list[Any] = [None] * len(ours)
    optimizer = optim.SGD(theirs, **settings)
    for step in range(3):
        give_grads(ours, step)
        give_grads(theirs, step)
        with core.no_grad():
            functional.sgd(ours, [p.grad for p in ours], buffers, **settings)
        optimizer.step()
        for param, expected, buffer in zip(ours, theirs, buffers, strict=True):
            assert core.equal(param, expected)
            assert (buffer is None) == (momentum == 0)


def sparse_gradient() -> Any:
    return core.sparse_coo_tensor([[1, 3]], core.tensor([[1.0, -2.0], [0.5, 4.0]]), (5, 2))


def test_sparse_gradients() -> None:
    ours, theirs = core.ones(5, 2), Parameter(core.ones(5, 2))
    optimizer = optim.SparseAdam([theirs], lr=0.1)
    mean, square = core.zeros(5, 2), core.zeros(5, 2)
    for step in (1, 2):
        theirs.grad = sparse_gradient()
        optimizer.step()
        functional.sparse_adam(
            [ours], [sparse_gradient()], [mean], [square], [step],
            eps=1e-8, beta1=0.9, beta2=0.999, lr=0.1, maximize=False,
        )  # fmt: skip
    assert core.equal(ours, theirs)
    theirs = Parameter(core.ones(5, 2))
    ours = core.ones(5, 2)
    sgd = optim.SGD([theirs], lr=0.1, momentum=0.5)
    buffers: list[Any] = [None]
    for _ in range(2):
        theirs.grad = sparse_gradient()
        sgd.step()
        functional.sgd(
            [ours], [sparse_gradient()], buffers,
            weight_decay=0, momentum=0.5, lr=0.1, dampening=0, nesterov=False, maximize=False,
        )  # fmt: skip
    assert core.equal(ours, theirs)
    assert buffers[0].is_sparse


def test_adam_refuses_sparse_gradients_in_pytorchs_words() -> None:
    param = Parameter(core.ones(5, 2))
    param.grad = sparse_gradient()
    for kind in (optim.Adam, optim.AdamW):
        optimizer = kind([param])
        with pytest.raises(
            RuntimeError, match="does not support sparse gradients, please consider SparseAdam instead"
        ):
            optimizer.step()
        assert optimizer.state[param]["step"] == 0  # no step was taken
    assert core.equal(param, core.ones(5, 2))
    with pytest.raises(RuntimeError, match="please consider SparseAdam instead"), core.no_grad():
        functional.adam([param], [param.grad], [], [], [], [], **{**CASES["adam"][1], "amsgrad": False})


def arguments(name: str, param: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return lists and settings with which a function takes a step of one parameter."""
    taken = inspect.signature(getattr(functional, name)).parameters
    needed = [p.name for p in taken.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    lists = {key: [core.zeros(2)] for key in needed} | {"params": [param], "state_steps": [core.tensor(0.0)]}
    return [lists[key] for key in needed], CASES[name][1]


@pytest.mark.parametrize("name", CASES)
def test_numbers_of_steps_must_be_tensors(name: str) -> None:
    param = core.ones(2)
    lists, settings = arguments(name, param)
    lists[-1] = [1]
    with pytest.raises(
        RuntimeError, match=rf"{name}\(state_steps\): must contain a list of singleton tensors, got int"
    ):
        getattr(functional, name)(*lists, **settings)
    assert core.equal(param, core.ones(2))


@pytest.mark.parametrize("name", functional.__all__)
def test_leaves_that_require_gradients_are_written_only_in_no_grad(name: str) -> None:
    param = Parameter(core.ones(2))
    if name in CASES:
        lists, settings = arguments(name, param)
    else:
        lists = [[param], [core.ones(2)], [core.zeros(2)]]
        if name == "sparse_adam":
            lists = [[param], [core.ones(2).to_sparse()], [core.zeros(2)], [core.zeros(2)], [1]]
        taken = inspect.signature(getattr(functional, name)).parameters.values()
        settings = {p.name: 0.5 for p in taken if p.kind is p.KEYWORD_ONLY}
    with pytest.raises(
        RuntimeError, match=rf"{name}\(params\): a leaf that requires grad cannot be written in place"
    ):
        getattr(functional, name)(*lists, **settings)
    assert core.equal(param, core.ones(2))


def test_what_is_not_supported_is_refused() -> None:
    for name in functional.__all__:
        function = getattr(functional, name)
        taken = inspect.signature(function).parameters
        lists = [[] for p in taken.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        settings = {p.name: 0.5 for p in taken.values() if p.kind is p.KEYWORD_ONLY}
        for option, value in (
            ("differentiable", True),
            ("grad_scale", core.ones(())),
            ("found_inf", core.ones(())),
        ):
            if option in taken:
                with pytest.raises(NotImplementedError, match=option):
                    function(*lists, **settings, **{option: value})


def test_a_step_of_a_function_that_raises_changes_nothing() -> None:
    params = [core.ones(3), core.ones(4)]
    squares, deltas, steps = ([core.ones(shape) for _ in params] for shape in (3, 3, ()))
    with pytest.raises(RuntimeError, match=r"'square_avg' .* must have the shape \(4,\), got \(3,\)"):
        functional.adadelta(
            params, [core.ones(3), core.ones(4)], squares, deltas, steps,
            lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, maximize=False,
        )  # fmt: skip
    assert core.equal(params[0], core.ones(3))
    assert all(core.equal(t, core.ones_like(t)) for t in [*squares, *deltas, *steps])
