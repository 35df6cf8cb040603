"""Gradients of convolutions in all layouts."""

from __future__ import annotations

import pytest

import rushlight_autograd as autograd
import rushlight_core as core


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2), (5, 1)])
@pytest.mark.parametrize("memory_format", ["contiguous", "channels_last"])
def test_gradients_of_biases_are_sums_without_lost_digits(
    groups: int, kernel: int, stride: int, memory_format: str
) -> None:
    """A sum of many equal numbers in single precision, one after another, would lose three digits."""
    side = 150
    x = core.zeros(4, 8, side, side).contiguous(memory_format=memory_format)
    weight = core.zeros(8, 8 // groups, kernel, kernel).contiguous(memory_format=memory_format)
    bias = core.zeros(8, requires_grad=True)
    y = core.conv2d(x, weight.requires_grad_(), bias, stride, 0, 1, groups)
    gradient = core.full(y.shape, 0.7).contiguous(memory_format=memory_format)
    _, sums = autograd.grad(y, [weight, bias], gradient)
    wanted = float(core.tensor(0.7)) * y.numel() / 8
    assert abs(sums.double() / wanted - 1).max() < 2e-6
