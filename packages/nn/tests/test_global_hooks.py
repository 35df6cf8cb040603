"""Hooks of every module and of every optimizer."""

from __future__ import annotations

import pickle

import pytest

import rushlight_core as core
from rushlight_nn import LazyLinear, Linear, Module, Parameter, ReLU, Sequential, hooks
from rushlight_nn.optim import SGD
from rushlight_nn.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


def test_they_see_every_call_before_the_modules_own() -> None:
    model = Sequential(Linear(2, 2), ReLU())
    order: list[str] = []
    model[1].register_forward_pre_hook(lambda module, args: order.append("own before"))
    model[1].register_forward_hook(lambda module, args, result: order.append("own after"))
    with (
        hooks.register_module_forward_pre_hook(
            lambda module, args: order.append(f"before {type(module).__name__}")
        ),
        hooks.register_module_forward_hook(
            lambda module, args, result: order.append(f"after {type(module).__name__}")
        ),
    ):
        model(core.ones(1, 2))
    assert order == [
        "before Sequential", "before Linear", "after Linear", "before ReLU", "own before", "after ReLU", "own after",
        "after Sequential",
    ]  # fmt: skip
    order.clear()
    model(core.ones(1, 2))
    assert order == ["own before", "own after"]


def test_modules_pay_for_them_only_while_there_are_some() -> None:
    layer = Linear(2, 2)
    assert not layer._hooked
    first = hooks.register_module_forward_hook(lambda *_: None)
    second = hooks.register_module_forward_pre_hook(lambda *_: None)
    assert layer._hooked
    first.remove()
    first.remove()
    assert layer._hooked
    second.remove()
    assert not layer._hooked


def test_what_they_return_replaces() -> None:
    layer = Linear(2, 1, bias=False)
    x = core.ones(1, 2)
    with hooks.register_module_forward_pre_hook(lambda module, args: (2 * args[0],)):
        assert core.equal(layer(x), layer.forward(2 * x))
    with hooks.register_module_forward_hook(lambda module, args, result: -result):
        assert core.equal(layer(x), -layer.forward(x))
    with hooks.register_module_forward_hook(
        lambda module, args, kwargs, result: kwargs["input"], with_kwargs=True
    ):
        assert layer(input=x) is x


def test_one_that_is_always_called() -> None:
    class Broken(Module):
        def forward(self, x: core.Tensor) -> core.Tensor:
            raise ValueError("broken")

    results: list[object] = []
    with (
        hooks.register_module_forward_hook(
            lambda module, args, result: results.append(result), always_call=True
        ),
        pytest.raises(ValueError, match="broken"),
    ):
        Broken()(core.ones(1))
    assert results == [None]


def test_a_lazy_module_keeps_calling_them() -> None:
    layer = LazyLinear(1)
    seen: list[Module] = []
    with hooks.register_module_forward_pre_hook(lambda module, args: seen.append(module)):
        layer(core.ones(1, 2))
        layer(core.ones(1, 2))
    assert seen == [layer, layer]
    assert not layer._hooked


def test_they_see_what_becomes_a_modules() -> None:
    seen: list[tuple[str, str]] = []

    def note(kind: str):
        return lambda module, name, value: seen.append((kind, name))

    with (
        hooks.register_module_parameter_registration_hook(note("parameter")),
        hooks.register_module_buffer_registration_hook(note("buffer")),
        hooks.register_module_module_registration_hook(note("module")),
    ):
        model = Module()
        model.layer = Linear(2, 2, bias=False)
        model.add_module("other", ReLU())
        model.register_buffer("mean", core.zeros(1))
        model.mean = core.ones(1)
    model.weight = Parameter(core.ones(1))
    assert seen == [
        ("parameter", "weight"), ("module", "layer"), ("module", "other"), ("buffer", "mean"), ("buffer", "mean"),
    ]  # fmt: skip
    with hooks.register_module_parameter_registration_hook(lambda module, name, value: Parameter(value * 2)):
        model.weight = Parameter(core.ones(1))
    assert model.weight.tolist() == [2.0]


def test_hooks_of_every_optimizer() -> None:
    order: list[str] = []
    p = Parameter(core.ones(1))
    before = SGD([p], lr=0.1)
    before.register_step_pre_hook(lambda *_: order.append("own before"))
    before.register_step_post_hook(lambda *_: order.append("own after"))
    plain = SGD([p], lr=0.1)
    assert "step" not in vars(plain)
    with (
        register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: order.append("before")),
        register_optimizer_step_post_hook(lambda optimizer, args, kwargs: order.append("after")),
    ):
        before.step()
        assert order == ["before", "own before", "own after", "after"]
        for optimizer in (plain, SGD([p], lr=0.1), pickle.loads(pickle.dumps(SGD([p], lr=0.1)))):
            order.clear()
            optimizer.step()
            assert order == ["before", "after"]
    order.clear()
    plain.step()
    before.step()
    assert order == ["own before", "own after"]
    assert "step" not in vars(SGD([p], lr=0.1))


@pytest.mark.parametrize("first", ["register_module_backward_hook", "register_module_full_backward_hook"])
def test_two_kinds_of_backward_hooks_are_not_mixed(first: str) -> None:
    names = {"register_module_backward_hook", "register_module_full_backward_hook"}
    (second,) = names - {first}
    with (
        getattr(hooks, first)(lambda *_: None),
        pytest.raises(RuntimeError, match="backward hooks of all modules"),
    ):
        getattr(hooks, second)(lambda *_: None)
    getattr(hooks, second)(lambda *_: None).remove()

    layer = Linear(2, 2)
    first, second = first.replace("module_", ""), second.replace("module_", "")
    getattr(layer, first)(lambda *_: None)
    getattr(layer, first)(lambda *_: None)
    with pytest.raises(RuntimeError, match="backward hooks of this Linear"):
        getattr(layer, second)(lambda *_: None)
    layer.register_full_backward_pre_hook(lambda *_: None)
