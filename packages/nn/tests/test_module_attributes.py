"""Modules whose classes define `__getattr__`, `__setattr__` or `__delattr__` themselves."""

from __future__ import annotations

import copy
import pickle

import pytest

import rushlight_core as core
from rushlight_nn import Buffer, Linear, Module, Parameter, ParameterDict, Sequential
from rushlight_nn.utils.stateless import functional_call


class Recording(Module):
    """A module that records the names that ordinary lookup did not find."""

    def __init__(self):
        super().__init__()
        object.__setattr__(self, "asked", [])
        self.scale = Parameter(core.ones(2))
        self.layer = Linear(2, 2)
        self.register_buffer("count", core.zeros(()))

    def __getattr__(self, name):
        asked = self.__dict__.get("asked")
        if asked is not None:
            asked.append(name)
        return super().__getattr__(name)

    def forward(self, x):
        return self.layer(x) * self.scale


class Mixin:
    def __getattr__(self, name):
        if name == "answer":
            return 42
        return super().__getattr__(name)


class Mixed(Mixin, Recording):
    pass


@pytest.mark.parametrize("cls", [Recording, Mixed])
def test_own_getattr_is_called_for_parameters_buffers_and_children(cls):
    module = cls()
    module.asked.clear()
    assert module.scale is module._parameters["scale"]
    assert module.count is module._buffers["count"]
    assert module.layer is module._modules["layer"]
    assert module.asked == ["scale", "count", "layer"]
    assert not {"scale", "count", "layer"} & set(module.__dict__)
    assert {"scale", "count", "layer"} <= set(dir(module))
    assert not module._mirrored


def test_what_getattr_returns_is_what_forward_sees():
    # As in Pyro, where `__getattr__` returns a sample or a registered parameter instead of the assigned value.
    class Doubling(Module):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(core.ones(1))

        def __getattr__(self, name):
            value = super().__getattr__(name)
            return 2 * value if isinstance(value, Parameter) else value

        def forward(self):
            return self.weight

    assert Doubling()().tolist() == [2.0]
    assert [p.tolist() for p in Doubling().parameters()] == [[1.0]]


@pytest.mark.parametrize("method", ["__setattr__", "__delattr__"])
def test_one_overridden_method_is_enough(method):
    calls = []

    def override(self, name, *value):
        calls.append(name)
        getattr(Module, method)(self, name, *value)

    cls = type("Overriding", (Linear,), {method: override})
    module = cls(2, 3)
    assert "weight" not in module.__dict__
    assert module.weight is module._parameters["weight"]
    module.weight = None
    assert module.weight is None
    del module.weight
    assert not hasattr(module, "weight")
    assert "weight" in calls


def test_a_class_that_overrides_nothing_keeps_ordinary_attributes():
    class Plain(Linear):
        pass

    assert Plain._mirrored
    assert Plain(1, 1).__dict__["weight"] is not None


def test_assignment_moves_a_name():
    module = Recording()
    module.note = 3
    module.note = Parameter(core.ones(1))
    assert "note" not in module.__dict__
    assert "note" in module._parameters
    module.note = Linear(1, 1)
    assert "note" in module._modules
    assert "note" not in module._parameters
    module.note = None
    assert module.note is None
    module.other = Buffer(core.ones(1))
    assert module.other is module._buffers["other"]
    with pytest.raises(TypeError, match="needs a Parameter or None"):
        module.scale = 3
    del module.note, module.scale, module.other
    with pytest.raises(AttributeError, match="scale"):
        _ = module.scale


def test_assigned_tables_are_kept_as_they_are():
    module = Recording()
    table = dict(module._parameters)
    module._parameters = table
    assert module._parameters is table
    table["extra"] = Parameter(core.zeros(1))
    assert module.extra is table["extra"]


def test_a_getattr_that_always_answers():
    class Eager(Module):
        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return None

    module = Eager()
    module.child = Linear(1, 1)
    assert isinstance(module.child, Linear)
    with pytest.raises(KeyError, match="already has an attribute 'weight'"):
        module.weight = Parameter(core.ones(1))  # as in PyTorch, whose register_parameter calls hasattr


@pytest.mark.parametrize(
    "clone",
    [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))],
    ids=["copy", "deep", "pickle"],
)
def test_copies(clone):
    module = Recording()
    other = clone(module)
    assert list(other.state_dict()) == list(module.state_dict())
    assert "scale" not in other.__dict__
    other.scale = None
    assert module.scale is not None
    assert other.scale is None


def test_what_reads_modules_works():
    module = Recording()
    x = core.randn(3, 2)
    expected = module(x)
    assert list(dict(module.named_parameters())) == ["scale", "layer.weight", "layer.bias"]
    zeros = {"scale": core.zeros(2)}
    assert functional_call(module, zeros, (x,)).abs().sum() == 0
    assert core.equal(module(x), expected)
    other = Recording()
    other.load_state_dict(module.state_dict())
    assert core.equal(other(x), expected)
    assert module.double().scale.dtype == core.float64
    assert module.get_submodule("layer") is module.layer
    assert module.get_parameter("layer.weight") is module.layer.weight
    assert module.get_buffer("count") is module.count
    module.asked.clear()
    module.get_parameter("scale")
    assert module.asked == ["scale"]


def test_parameter_dict_of_a_subclass():
    class Watching(ParameterDict):
        def __getattr__(self, name):
            return super().__getattr__(name)

    values = Watching({"a": core.ones(1)})
    assert values["a"] is values._parameters["a"]
    assert values.get("a") is values["a"]


def test_changing_the_class_of_a_module():
    # As Pyro's to_pyro_module_ does.
    class Watching(Linear):
        def __getattr__(self, name):
            return super().__getattr__(name)

    net = Sequential(Linear(2, 3))
    weight = net[0].weight
    net[0].__class__ = Watching
    assert net[0].weight is weight
    assert "weight" not in net[0].__dict__
    assert type(net[0]._parameters) is dict
    net[0].__class__ = Linear
    assert net[0].__dict__["weight"] is weight
    net[0].weight = None
    assert net[0].weight is None


@pytest.mark.parametrize("inherited", [False, True])
def test_getattr_that_a_class_gets_later(inherited):
    class Base(Linear):
        pass

    class Layer(Base):
        pass

    before, asked = Layer(1, 1), []

    def find(self, name):
        asked.append(name)
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(table, {}):
                return self.__dict__[table][name]
        raise AttributeError(name)

    (Base if inherited else Layer).__getattr__ = find
    after = Layer(1, 1)
    asked.clear()
    assert after.weight is after._parameters["weight"]
    assert asked == ["weight"]
    assert "weight" not in after.__dict__
    # Objects that were created before keep their attributes, which are updated with their tables.
    weight = before.weight = Parameter(core.ones(1, 1))
    assert before.weight is before._parameters["weight"] is weight
    assert [name for name, _ in before.named_parameters()] == ["weight", "bias"]
    before.to(core.float64)
    assert before.weight.dtype == core.float64
    copied = copy.deepcopy(before)
    asked.clear()
    assert core.equal(copied.weight, before.weight)
    assert asked == ["weight"]


def test_a_module_made_before_init_ran():
    class Early(Module):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)

        def __init__(self):
            self.layer = Linear(1, 1)

    with pytest.raises(AttributeError, match=r"Early.*before Module.__init__"):
        Early()
