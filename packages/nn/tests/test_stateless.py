"""functional_call and stack_module_state."""

import pytest

import rushlight_core as core
import rushlight_nn as nn
from rushlight_nn.utils.stateless import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)


def test_a_module_with_other_parameters():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    mine = {name: core.ones_like(p) for name, p in net.named_parameters()}
    before = list(net.parameters())
    assert functional_call(net, mine, (core.ones(1, 2),)).tolist() == [[10.0]]
    assert all(a is b for a, b in zip(before, net.parameters(), strict=True))
    assert functional_call(net, {}, core.ones(1, 2)).tolist() == net(core.ones(1, 2)).tolist()


def test_the_module_is_as_it_was_after_an_error():
    net = nn.Linear(2, 2)
    weight = net.weight
    with pytest.raises(RuntimeError):
        functional_call(net, {"weight": core.ones(5, 5)}, (core.ones(1, 2),))
    assert net.weight is weight
    assert net._parameters["weight"] is weight


def test_buffers_are_written_where_they_are_given():
    norm = nn.BatchNorm1d(2)
    mine = {name: b.clone() for name, b in norm.named_buffers()}
    functional_call(norm, mine, (core.tensor([[1.0, 2.0], [3.0, 6.0]]),))
    assert mine["running_mean"].tolist() == pytest.approx([0.2, 0.4])
    assert norm.running_mean.tolist() == [0, 0]
    assert int(mine["num_batches_tracked"]) == 1


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(core.ones(1))
        self.b = self.a

    def forward(self, x):
        return self.a + 10 * self.b + x


def test_tied_parameters():
    two = core.full((1,), 2.0)
    assert functional_call(Tied(), {"a": two}, (0,)).item() == 22
    assert functional_call(Tied(), {"a": two}, (0,), tie_weights=False).item() == 12
    with pytest.raises(ValueError, match="'a' and 'b' are names of one parameter"):
        functional_call(Tied(), {"a": two, "b": core.ones(1)}, (0,))


def test_errors():
    net = nn.Linear(2, 2)
    with pytest.raises(AttributeError, match="wieght"):
        functional_call(net, {"wieght.x": core.ones(2, 2)}, (core.ones(2),))
    with pytest.raises(TypeError, match="in_features"):
        functional_call(net, {"in_features": core.ones(2, 2)}, (core.ones(2),))
    with pytest.raises(TypeError, match="needs a tensor"):
        functional_call(net, {"scale": 3.0}, (core.ones(2),))
    with pytest.raises(KeyError, match="empty name"):
        functional_call(net, {"": core.ones(2)}, (core.ones(2),))
    with pytest.raises(RuntimeError, match=r"unknown \['scale'\]"):
        functional_call(
            net, {**dict(net.named_parameters()), "scale": core.ones(2)}, (core.ones(2),), strict=True
        )
    with pytest.raises(RuntimeError, match=r"missing \['bias'\]"):
        functional_call(net, {"weight": core.ones(2, 2)}, (core.ones(2),), strict=True)
    with pytest.raises(ValueError, match="'bias' is in two"):
        functional_call(net, [{"bias": core.ones(2)}, {"bias": core.ones(2)}], (core.ones(2),))


def test_names_that_the_module_does_not_have_are_attributes_during_the_call():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2, bias=False)

        def forward(self, x):
            return (
                x * getattr(self, "scale", 1)
                + getattr(self.inner, "shift", 0)
                + (0 if self.inner.bias is None else self.inner.bias)
            )

    net = Scaled()
    named = {"scale": core.tensor(3.0), "inner.shift": core.tensor(4.0), "inner.bias": core.tensor(5.0)}
    assert functional_call(net, named, (core.ones(1),)).item() == 12.0
    assert net(core.ones(1)).item() == 1.0
    assert not hasattr(net, "scale")
    assert not hasattr(net.inner, "shift")
    assert net.inner.bias is None


def test_stacked_state():
    nets = [nn.Linear(2, 3) for _ in range(4)]
    parameters, buffers = stack_module_state(nets)
    assert tuple(parameters["weight"].shape) == (4, 3, 2)
    assert parameters["weight"].requires_grad
    assert parameters["weight"].is_leaf
    assert buffers == {}
    x = core.randn(2)
    for i, net in enumerate(nets):
        assert functional_call(net, {k: v[i] for k, v in parameters.items()}, x).tolist() == net(x).tolist()
    with pytest.raises(RuntimeError, match="at least one"):
        stack_module_state([])
    with pytest.raises(RuntimeError, match="one class"):
        stack_module_state([nn.Linear(2, 2), nn.ReLU()])
    with pytest.raises(RuntimeError, match="training mode"):
        stack_module_state([nn.Linear(2, 2), nn.Linear(2, 2).eval()])


def test_batch_normalisation_without_running_statistics():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert replace_all_batch_norm_modules_(net) is net
    assert dict(net.named_buffers()) == {}
    x = core.tensor([[1.0, 2.0], [3.0, 5.0], [0.0, 1.0]])
    assert net(x).mean(0).abs().amax().item() < 1e-6
    assert net.eval()(x).tolist() == net.train()(x).tolist()
