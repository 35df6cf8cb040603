"""Comparisons with PyTorch for the same numbers, if PyTorch is installed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
import rushlight_nn as nn
from rushlight_nn import optim

torch = pytest.importorskip("torch")
same_version = pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="names of PyTorch 2.13")


def pair(rng, *shape):
    x = rng.normal(size=shape).astype(np.float32)
    return core.from_numpy(x), torch.from_numpy(x.copy())


def same_values(ours, theirs):
    """Copy the state of the module `theirs` into `ours`, after checking that both states have the same keys."""
    state = {key: core.from_numpy(value.numpy().copy()) for key, value in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)


LAYERS = {
    "Linear": ((3, 4), (5, 3)),
    "Conv1d": ((3, 4, 3, 1, "same"), (2, 3, 7)),
    "Conv2d": ((4, 6, 3, 2, 1, 1, 2), (2, 4, 9, 9)),
    "MaxPool2d": ((3, 2, 1), (2, 3, 8, 8)),
    "AvgPool2d": ((2, None, 1, True, False), (2, 3, 7, 7)),
    "AdaptiveAvgPool2d": ((3,), (2, 3, 7, 8)),
    "BatchNorm1d": ((3,), (6, 3)),
    "BatchNorm2d": ((3, 1e-3, None), (2, 3, 4, 4)),
    "LayerNorm": ((5,), (2, 5)),
    "RMSNorm": ((5,), (2, 5)),
    "GroupNorm": ((2, 4), (2, 4, 3)),
    "GELU": ((), (10,)),
    "SiLU": ((), (10,)),
    "Hardswish": ((), (10,)),
    "Softplus": ((), (10,)),
    "TransformerEncoderLayer": ((8, 2, 16, 0.0), (4, 3, 8)),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(rng, name, training):
    arguments, shape = LAYERS[name]
    ours, theirs = getattr(nn, name)(*arguments), getattr(torch.nn, name)(*arguments)
    same_values(ours, theirs)
    ours.train(training)
    theirs.train(training)
    for _ in range(2):
        x, y = pair(rng, *shape)
        result, expected = ours(x).detach().numpy(), theirs(y).detach().numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    for key, value in ours.state_dict().items():
        np.testing.assert_allclose(value.numpy(), theirs.state_dict()[key].numpy(), rtol=1e-5, atol=1e-6)


@same_version
def test_the_same_names_and_defaults():
    import inspect

    for name in nn.__all__:
        ours, theirs = getattr(nn, name), getattr(torch.nn, name)
        if not isinstance(ours, type) or name in ("Module", "Parameter", "Buffer"):
            continue
        mine = inspect.signature(ours).parameters
        expected = {k: p.default for k, p in inspect.signature(theirs).parameters.items()}
        if list(expected) == ["args", "kwargs"] and (not mine or issubclass(ours, nn.RNNBase)):
            continue  # a layer without settings, or with settings that torch takes as *args
        assert list(mine) == list(expected), name
        for key, default in expected.items():
            if callable(default) and not isinstance(default, type):
                continue  # a function of the other library
            assert mine[key].default == default, (name, key)


@same_version
def test_reprs():
    for make in (
        lambda n: n.Linear(2, 3),
        lambda n: n.Conv2d(3, 6, 3, 2, 1, 2, 3, bias=False, padding_mode="circular"),
        lambda n: n.Sequential(n.BatchNorm2d(3), n.ReLU(inplace=True), n.MaxPool2d(2), n.Dropout(0.1)),
        lambda n: n.ModuleDict({"a": n.LayerNorm(3), "b": n.Embedding(4, 2, padding_idx=1)}),
        lambda n: n.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2, bias=False, dilation=2),
        lambda n: n.ConvTranspose1d(4, 6, 3, output_padding=0),
        lambda n: n.ConvTranspose1d(4, 6, 3, 2, output_padding=1),
        lambda n: n.Sequential(n.MaxPool1d(2), n.AvgPool1d(2), n.AvgPool3d(2), n.MaxPool3d(2, 1)),
        lambda n: n.Sequential(
            n.AdaptiveAvgPool1d(2), n.AdaptiveMaxPool2d((2, None)), n.AdaptiveMaxPool3d(1)
        ),
        lambda n: n.Sequential(n.GELU(), n.Softmax(1), n.Flatten(), n.AvgPool2d(2), n.GroupNorm(1, 2)),
        lambda n: n.MultiheadAttention(8, 2, kdim=3, batch_first=True),
        lambda n: n.Transformer(8, 2, 2, 1, 16, batch_first=True, bias=False),
    ):
        with warnings.catch_warnings(action="ignore"):
            assert repr(make(nn)) == repr(make(torch.nn))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
        ("Adam", {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True}),
        ("AdamW", {"lr": 0.1, "betas": (0.8, 0.9)}),
        ("RMSprop", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
        ("RMSprop", {"lr": 0.1, "centered": True, "eps": 0.1, "maximize": True}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2}),
        ("Adadelta", {"rho": 0.8, "weight_decay": 0.1}),
        ("Adamax", {"lr": 0.1, "betas": (0.8, 0.9)}),
        ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
        ("RAdam", {"lr": 0.1, "betas": (0.8, 0.7), "weight_decay": 0.1}),
        ("RAdam", {"lr": 0.1, "betas": (0.8, 0.99)}),
        ("Rprop", {"lr": 0.1, "step_sizes": (0.08, 0.13)}),
        ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 1, "alpha": 0.6}),
    ],
)
def test_optimizers_and_their_states(rng, name, options):
    start = [pair(rng, 3, 4), pair(rng, 5)]
    ours = [nn.Parameter(a.clone()) for a, _ in start]
    theirs = [torch.nn.Parameter(b.clone()) for _, b in start]
    mine, peer = getattr(optim, name)(ours, **options), getattr(torch.optim, name)(theirs, **options)
    assert list(mine.param_groups[0]) == list(peer.param_groups[0])
    for _ in range(4):
        for p, q in zip(ours, theirs, strict=True):
            p.grad, q.grad = pair(rng, *p.shape)
        mine.step()
        peer.step()
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-5, atol=1e-6)
    state, expected = mine.state_dict(), peer.state_dict()
    assert state["param_groups"] == expected["param_groups"]
    for number, values in expected["state"].items():
        for key, value in values.items():
            mine_value = state["state"][number][key]
            np.testing.assert_allclose(mine_value.numpy(), value.numpy(), rtol=1e-5, atol=1e-6)


SCHEDULES = {
    "StepLR": (3, 0.5),
    "MultiStepLR": ([2, 5],),
    "ConstantLR": (0.5, 3),
    "LinearLR": (0.25, 0.75, 6),
    "ExponentialLR": (0.9,),
    "PolynomialLR": (7, 2.0),
    "CosineAnnealingLR": (4, 0.01),
    "CosineAnnealingWarmRestarts": (3, 2),
    "OneCycleLR": (0.5, 20),
    "CyclicLR": (0.1, 0.5, 3, 2, "triangular2"),
    "LambdaLR": (lambda epoch: 0.95**epoch,),
    "MultiplicativeLR": (lambda epoch: 0.95,),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    results = []
    for library, parameter in (
        (optim, nn.Parameter(core.ones(1))),
        (torch.optim, torch.nn.Parameter(torch.ones(1))),
    ):
        optimizer = library.SGD([parameter], lr=0.3, momentum=0.9)
        scheduler = getattr(library.lr_scheduler, name)(optimizer, *SCHEDULES[name])
        rates = []
        for _ in range(18):
            group = optimizer.param_groups[0]
            rates.append((float(group["lr"]), group["momentum"]))
            optimizer.step()
            scheduler.step()
        results.append(rates)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-7)


# Arguments of the scheduler that loads a state. The arguments are those in SCHEDULES where none are given here.
OTHERS = {
    "StepLR": (5, 0.1),
    "ConstantLR": (0.1, 5),
    "CosineAnnealingLR": (7, 0.2),
    "CosineAnnealingWarmRestarts": (5, 1),
    "OneCycleLR": (0.7, 30, None, None, 0.5, "linear"),
    "ExponentialLR": (0.5,),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("from_torch", [True, False])
def test_states_of_schedulers_are_exchanged(name: str, from_torch: bool) -> None:
    """A scheduler that loads the other library's state continues its schedule, whatever its own arguments were."""

    def made(library: Any, arguments: Any) -> tuple[Any, Any]:
        parameter = (
            torch.nn.Parameter(torch.ones(1)) if library is torch.optim else nn.Parameter(core.ones(1))
        )
        optimizer = library.SGD([parameter], lr=0.3, momentum=0.9)
        return optimizer, getattr(library.lr_scheduler, name)(optimizer, *arguments)

    def rates(optimizer: Any, scheduler: Any, steps: int) -> list[float]:
        found = []
        for _ in range(steps):
            optimizer.step()
            scheduler.step()
            found.append(float(optimizer.param_groups[0]["lr"]))
        return found

    first, second = (torch.optim, optim) if from_torch else (optim, torch.optim)
    saved = made(first, SCHEDULES[name])
    rates(*saved, 4)
    loaded = made(second, OTHERS.get(name, SCHEDULES[name]))
    settings = {k: v for k, v in saved[0].param_groups[0].items() if k != "params"}
    loaded[0].param_groups[0].update(settings)
    loaded[1].load_state_dict(saved[1].state_dict())
    np.testing.assert_allclose(rates(*loaded, 6), rates(*saved, 6), rtol=1e-7)


@same_version
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "complex64"])
def test_reprs_of_parameters(dtype):
    texts = []
    for library, layers in ((core, nn), (torch, torch.nn)):
        values = {"a": layers.Parameter(library.ones(2, 3, dtype=getattr(library, dtype))), "b": 3}
        texts.append(repr(layers.ParameterDict(values)) + repr(layers.ParameterList(values.values())))
    assert texts[0] == texts[1]


def test_reprs_of_optimizers_and_of_keys() -> None:
    texts = []
    for optimizers, layers in ((optim, nn), (torch.optim, torch.nn)):
        layer = layers.Linear(2, 2)
        groups = [{"params": [layer.weight], "lr": 0.1}, {"params": [layer.bias], "lr": 0.2}]
        made = [optimizers.SGD(groups, momentum=0.5), optimizers.Adam(layer.named_parameters())]
        state = {"weight": layer.weight, "scale": layer.bias}
        texts.append([*map(repr, made), repr(layer.load_state_dict(state, strict=False))])
    assert texts[0] == texts[1]


class Height:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor / x


@same_version
@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("ours_first", [True, False])
@pytest.mark.parametrize("height", [None, Height])
def test_cyclic_schedules_go_on_in_the_other_library(name, ours_first, height):
    state = None
    sides = [(optim, core, nn), (torch.optim, torch, torch.nn)]
    for number, (library, tensors, layers) in enumerate(sides if ours_first else sides[::-1]):
        options = {"momentum": 0.9} if name == "SGD" else {}
        optimizer = getattr(library, name)([layers.Parameter(tensors.ones(1))], lr=0.3, **options)
        scale = height and height(1.0 + number)
        scheduler = library.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, 3, 2, scale_fn=scale)
        if state:
            optimizer.load_state_dict(state[0])
            scheduler.load_state_dict(state[1])
        for _ in range(4):
            optimizer.step()
            scheduler.step()
        state = optimizer.state_dict(), scheduler.state_dict()
        if not number:
            alone = scheduler, optimizer
    for _ in range(4):
        alone[1].step()
        alone[0].step()
    assert scheduler.get_last_lr() == pytest.approx(alone[0].get_last_lr(), rel=1e-12)
    assert (scale is None) or scale.factor == 1.0
