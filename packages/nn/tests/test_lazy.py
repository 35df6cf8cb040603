"""Layers that determine their sizes from the first input."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import rushlight_core as core
import rushlight_nn as nn
from rushlight_nn import optim
from rushlight_nn.lazy import LazyModuleMixin
from rushlight_nn.parameter import is_lazy

# For each lazy layer: its arguments, an input shape, and the arguments of the ordinary layer that it becomes.
LAYERS = {
    "Linear": ((5,), (2, 3), (3, 5)),
    "Conv1d": ((4, 3), (2, 3, 8), (3, 4, 3)),
    "Conv2d": ((4, 3, 2, 1), (2, 3, 8, 8), (3, 4, 3, 2, 1)),
    "Conv3d": ((4, 2), (3, 4, 4, 4), (3, 4, 2)),
    "ConvTranspose1d": ((4, 3), (2, 3, 8), (3, 4, 3)),
    "ConvTranspose2d": ((4, 3, 2, 1, 1), (3, 4, 4), (3, 4, 3, 2, 1, 1)),
    "ConvTranspose3d": ((4, 2), (1, 3, 2, 2, 2), (3, 4, 2)),
    "BatchNorm1d": ((1e-3,), (4, 3), (3, 1e-3)),
    "BatchNorm2d": ((), (2, 3, 4, 4), (3,)),
    "BatchNorm3d": ((), (2, 3, 2, 2, 2), (3,)),
    "InstanceNorm1d": ((), (3, 4), (3, 1e-5, 0.1, True, True)),
    "InstanceNorm2d": ((), (2, 3, 4, 4), (3, 1e-5, 0.1, True, True)),
    "InstanceNorm3d": ((), (2, 3, 2, 2, 2), (3, 1e-5, 0.1, True, True)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_first_call_makes_the_layer(name):
    arguments, shape, becomes = LAYERS[name]
    lazy = getattr(nn, "Lazy" + name)(*arguments)
    names = list(lazy.state_dict())
    parameters = list(lazy.parameters())
    assert lazy.has_uninitialized_params()
    assert all(type(p) is nn.UninitializedParameter for p in parameters)
    result = lazy(core.randn(shape))
    kind = getattr(nn, name)
    eager = kind(*becomes)
    assert type(lazy) is kind
    assert repr(lazy) == repr(eager)
    assert names == list(lazy.state_dict()) == list(eager.state_dict())
    assert all(lazy.state_dict()[key].shape == value.shape for key, value in eager.state_dict().items())
    assert [id(p) for p in lazy.parameters()] == [id(p) for p in parameters]
    assert all(type(p) is nn.Parameter and p.requires_grad for p in parameters)
    assert result.shape == eager(core.randn(shape)).shape
    assert not lazy._forward_pre_hooks
    assert not lazy._hooked


def test_starting_values_are_those_of_the_layer():
    lazy = nn.LazyLinear(200)
    lazy(core.zeros(1, 400))
    for p in lazy.parameters():
        assert 0.04 < float(p.abs().max()) <= 0.05
    norm = nn.LazyBatchNorm1d()
    norm.eval()(core.zeros(2, 3))
    assert norm.weight.tolist() == [1.0] * 3
    assert norm.running_var.tolist() == [1.0] * 3
    assert norm.running_mean.tolist() == [0.0] * 3


def test_without_bias_and_with_groups():
    assert list(nn.LazyLinear(3, bias=False).state_dict()) == ["weight"]
    layer = nn.LazyConv1d(4, 3, groups=2)
    with pytest.raises(ValueError, match="3 channels"):
        layer(core.zeros(1, 3, 8))
    assert layer.in_channels == 0
    assert layer.has_uninitialized_params()
    layer(core.zeros(1, 6, 8))
    assert layer.weight.shape == (4, 3, 3)
    assert list(nn.LazyBatchNorm1d(affine=False, track_running_stats=False).state_dict()) == []
    with pytest.raises(RuntimeError, match="needs 3 or 4"):
        nn.LazyConv2d(4, 3)(core.zeros(3, 4))


def test_states_are_loaded_into_lazy_layers():
    def net():
        return nn.Sequential(
            nn.LazyConv2d(4, 3, groups=2), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(5)
        )

    x = core.randn(2, 2, 8, 8)
    first, second, assigned = net(), net(), net()
    expected = first.eval()(x)
    second.load_state_dict(first.state_dict())
    assert not any(is_lazy(p) for p in second.parameters())
    np.testing.assert_array_equal(second.eval()(x).detach().numpy(), expected.detach().numpy())
    assert repr(second) == repr(first)
    assigned.load_state_dict(first.state_dict(), assign=True)
    assert type(assigned[0].weight) is nn.Parameter
    assert assigned[0].weight.data_ptr() == first[0].weight.data_ptr()
    # Loading the state of a lazy network into a lazy network determines no shapes.
    third = net()
    third.load_state_dict(net().state_dict())
    assert third[0].has_uninitialized_params()


def test_a_state_that_does_not_fit_leaves_the_layer_lazy():
    lazy = nn.LazyLinear(5)
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "bias"'):
        lazy.load_state_dict({"weight": core.zeros(5, 3)})
    assert lazy.has_uninitialized_params()
    with pytest.raises(
        RuntimeError, match=r"weight: is uninitialized .* in the state, but has shape \(5, 3\)"
    ):
        nn.Linear(3, 5).load_state_dict(lazy.state_dict())


def test_optimizers_hold_what_the_parameters_become():
    layer = nn.LazyLinear(2)
    optimizer = optim.SGD(layer.parameters(), lr=1.0)
    layer(core.ones(1, 3))
    layer.weight.grad = core.ones(2, 3)
    before = layer.weight.detach().clone()
    optimizer.step()
    np.testing.assert_allclose(layer.weight.detach().numpy(), before.numpy() - 1, rtol=1e-6)


def test_conversion_before_the_shape_is_known():
    layer = nn.LazyBatchNorm1d().double()
    assert layer.weight.dtype == layer.running_mean.dtype == core.float64
    layer.to("meta")
    layer.to(memory_format=core.channels_last)
    assert layer(core.zeros(2, 3, device="meta", dtype=core.float64)).device.type == "meta"
    assert layer.running_mean.device.type == "meta"
    assert layer.running_mean.shape == (3,)


def test_copies_and_pickles():
    layer = nn.LazyLinear(2, dtype=core.float64)
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert copied.weight is not layer.weight
        copied(core.ones(1, 3, dtype=core.float64))
        assert type(copied) is nn.Linear
        assert copied.weight.dtype == core.float64
    assert layer.has_uninitialized_params()


def test_a_lazy_layer_is_dropped_without_the_collector():
    layer = nn.LazyLinear(2)
    reference = weakref.ref(layer)
    gc.disable()
    try:
        del layer
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda p: p + 1, ValueError),
        (lambda p: core.zeros_like(p), ValueError),
        (lambda p: p.fill_(1), ValueError),
        (lambda p: nn.init.normal_(p), ValueError),
        (lambda p: p.numel(), ValueError),
        (lambda p: p.dim(), ValueError),
        (lambda p: len(p), ValueError),
        (lambda p: p.shape, RuntimeError),
        (lambda p: p.share_memory_(), RuntimeError),
    ],
)
def test_what_has_no_shape_cannot_be_used(use, error):
    for tensor in (nn.UninitializedParameter(), nn.UninitializedBuffer()):
        with pytest.raises(error, match=f"{type(tensor).__name__}.*no shape.*\nhint: call the model once"):
            use(tensor)
    assert repr(nn.UninitializedParameter()) == "<UninitializedParameter>"


def test_uninitialized_tensors():
    p = nn.UninitializedParameter(requires_grad=False, dtype=core.float64)
    p.materialize((2, 3))
    assert (type(p), p.shape, p.dtype, p.requires_grad) == (nn.Parameter, (2, 3), core.float64, False)
    b = nn.UninitializedBuffer(persistent=False)
    module = nn.Module()
    module.b = b
    assert list(module.state_dict()) == []
    b.materialize((4,), dtype=core.int32)
    assert (type(b), module.b.shape, b.dtype) == (nn.Buffer, (4,), core.int32)


class Scale(LazyModuleMixin, nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.UninitializedParameter()

    def initialize_parameters(self, input, *, wanted=True):
        if wanted:
            self.factor.materialize(input.shape[-1:])
            nn.init.ones_(self.factor)

    def forward(self, input, *, wanted=True):
        return input * self.factor


def test_a_lazy_layer_of_a_user():
    layer = Scale()
    with pytest.raises(RuntimeError, match="still has no shape"):
        layer(core.ones(2), wanted=False)
    assert layer(core.ones(2, 3), wanted=True).tolist() == [[1.0] * 3] * 2
    assert type(layer) is Scale  # the class has no `cls_to_become`
    with pytest.raises(NotImplementedError, match="initialize_parameters"):
        type("Bare", (LazyModuleMixin, nn.Module), {})()(core.ones(1))


def test_hooks_of_users_stay():
    layer = nn.LazyLinear(2)
    seen = []
    layer.register_forward_hook(lambda module, args, output: seen.append(type(module)))
    layer(core.ones(1, 3))
    layer(core.ones(1, 3))
    assert seen == [nn.Linear, nn.Linear]


def test_a_lazy_parameter_takes_a_number_as_its_shape():
    for shape, wanted in ((3, (3,)), ([2, 3], (2, 3)), ((), ())):
        parameter = nn.UninitializedParameter()
        parameter.materialize(shape, dtype=core.float64)
        assert type(parameter) is nn.Parameter
        assert (parameter.shape, parameter.dtype) == (wanted, core.float64)
