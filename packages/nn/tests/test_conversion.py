"""Whether parameters remain the same objects when a module is converted or loaded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rushlight_core as core
from rushlight_nn import BatchNorm1d, Linear, Parameter, conversion, optim


@pytest.fixture(autouse=True)
def _defaults() -> Iterator[None]:
    yield
    conversion.set_overwrite_module_params_on_conversion(False)
    conversion.set_swap_module_params_on_conversion(False)


def with_gradient() -> Linear:
    layer = Linear(2, 2)
    layer.weight.grad = core.ones(2, 2)
    layer.bias.requires_grad_(False)
    return layer


def test_conversions_can_create_new_parameters() -> None:
    conversion.set_overwrite_module_params_on_conversion(True)
    assert conversion.get_overwrite_module_params_on_conversion()
    layer = with_gradient()
    before = layer.weight
    layer.double()
    assert layer.weight is not before
    assert type(layer.weight) is Parameter
    assert (before.dtype, before.grad.dtype) == (core.float32, core.float32)
    assert (layer.weight.dtype, layer.weight.grad.dtype) == (core.float64, core.float64)
    assert (layer.weight.requires_grad, layer.bias.requires_grad) == (True, False)
    assert core.equal(layer.weight.detach(), before.detach().double())


@pytest.mark.parametrize("swap", [False, True])
def test_conversions_keep_parameters(swap: bool) -> None:
    conversion.set_swap_module_params_on_conversion(swap)
    conversion.set_overwrite_module_params_on_conversion(swap)  # swapping takes precedence
    layer = with_gradient()
    before = layer.weight
    layer.double()
    assert layer.weight is before
    assert (before.dtype, before.grad.dtype) == (core.float64, core.float64)


def test_assigned_states_can_keep_parameters_and_buffers() -> None:
    conversion.set_swap_module_params_on_conversion(True)
    assert conversion.get_swap_module_params_on_conversion()
    layer, norm = with_gradient(), BatchNorm1d(2)
    weight, mean = layer.weight, norm.running_mean
    optimizer = optim.SGD(layer.parameters(), lr=1.0)
    state = Linear(2, 2).double().state_dict()
    start = state["weight"].clone()
    layer.load_state_dict(state, assign=True)
    norm.load_state_dict(BatchNorm1d(2).double().state_dict(), assign=True)
    assert (layer.weight is weight, norm.running_mean is mean) == (True, True)
    assert (weight.dtype, mean.dtype, weight.grad) == (core.float64, core.float64, None)
    assert weight.data_ptr() == state["weight"].data_ptr()
    assert (weight.requires_grad, layer.bias.requires_grad) == (True, False)
    weight.grad = core.ones(2, 2, dtype=core.float64)
    optimizer.step()
    assert core.equal(layer.weight.detach(), start - 1)


def test_loaded_values_are_converted_by_module_load() -> None:
    conversion.set_swap_module_params_on_conversion(True)
    layer, state = Linear(2, 2), Linear(2, 2).double().state_dict()
    weight, memory = layer.weight, layer.weight.data_ptr()
    layer.load_state_dict(state)
    assert (layer.weight is weight, weight.data_ptr() == memory, weight.dtype) == (True, True, core.float32)
    assert core.equal(weight.detach(), state["weight"].float())
