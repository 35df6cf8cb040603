"""Backward hooks of modules with rushlight-autograd."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn


def test_backward_hook_sees_the_modules_own_gradients():
    layer = nn.Linear(2, 3)
    x = torch.randn(4, 2, requires_grad=True)
    seen = []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((m, gi, go)))
    # x is used elsewhere, too. The module's hook does not get this part of the gradient.
    (layer(x).sum() + (x * 5).sum()).backward()
    ((module, grad_input, grad_output),) = seen
    assert module is layer
    assert torch.allclose(grad_output[0], torch.ones(4, 3))
    assert torch.allclose(grad_input[0], torch.ones(4, 3) @ layer.weight.detach())
    assert torch.allclose(x.grad, grad_input[0] + 5)


def test_backward_hooks_replace_gradients():
    layer = nn.Linear(2, 2)
    x = torch.randn(1, 2, requires_grad=True)
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    layer(x).sum().backward()
    assert torch.allclose(layer.bias.grad, torch.full((2,), 2.0))
    assert torch.allclose(x.grad, 20 * layer.weight.detach().sum(0, keepdim=True))


def test_backward_hook_with_several_inputs_and_outputs():
    class Mix(nn.Module):
        def forward(self, a, flag, b):
            return a * 2, b * 3

    module, seen = Mix(), []
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    a, b = torch.ones(2, requires_grad=True), torch.ones(2)
    out = module(a, "flag", b)
    out[0].sum().backward()
    ((grad_input, grad_output),) = seen
    assert float(grad_input[0].sum()) == 4.0
    assert grad_input[1] is None
    assert len(grad_output) == 2


def test_backward_hook_where_no_input_needs_a_gradient():
    layer, seen = nn.Linear(2, 2), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(gi))
    layer(torch.ones(1, 2)).sum().backward()
    assert seen == [(None,)]


def test_backward_hook_that_returns_too_much():
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="2 gradients for grad_input from the hook, needs 1"):
        layer(torch.ones(1, 2, requires_grad=True)).sum().backward()


def test_backward_hooks_of_a_network_run_from_its_last_layer_to_its_first():
    net, seen = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True), nn.Linear(3, 1)), []
    for name, module in net.named_modules():
        module.register_full_backward_hook(lambda m, gi, go, name=name: seen.append(name))
    net(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == ["2", "1", "0", ""]


def test_backward_hooks_of_all_modules():
    from rushlight.nn.modules.module import (
        register_module_full_backward_hook,
        register_module_full_backward_pre_hook,
    )

    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    order = []
    model[0].register_full_backward_hook(lambda m, gi, go: order.append("own"))
    with (
        register_module_full_backward_pre_hook(lambda m, go: order.append(f"before {type(m).__name__}")),
        register_module_full_backward_hook(lambda m, gi, go: order.append(f"after {type(m).__name__}")),
    ):
        model(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert order == [
        "before Sequential", "before ReLU", "after ReLU", "before Linear", "after Linear", "own", "after Sequential",
    ]  # fmt: skip
    order.clear()
    model(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert order == ["own"]
