from __future__ import annotations

from collections import OrderedDict

import pytest

import rushlight_core as core
from rushlight_nn import (
    Identity,
    Linear,
    ModuleDict,
    ModuleList,
    Parameter,
    ParameterDict,
    ParameterList,
    ReLU,
    Sequential,
    Tanh,
)


def test_sequential_runs_in_order():
    first, second = Linear(2, 3), Linear(3, 1)
    net = Sequential(first, ReLU(), second)
    x = core.randn(4, 2)
    assert core.equal(net(x), second(core.relu(first(x))))
    named = Sequential(OrderedDict(a=first, b=second))
    assert [name for name, _ in named.named_children()] == ["a", "b"]
    assert named[1] is second


def test_sequential_is_a_sequence():
    layers = [Linear(1, 1) for _ in range(4)]
    net = Sequential(*layers)
    assert len(net) == 4
    assert list(net) == layers
    assert net[-1] is layers[3]
    assert list(net[1:3]) == layers[1:3]
    assert isinstance(net[1:3], Sequential)
    net[0] = new = Tanh()
    assert net[0] is new
    del net[0]
    assert list(net._modules) == ["0", "1", "2"]
    assert list(net) == layers[1:]
    net.insert(1, new)
    assert list(net) == [layers[1], new, layers[2], layers[3]]
    assert net.pop(1) is new
    net.append(new).extend([layers[0]])
    assert list(net)[-2:] == [new, layers[0]]
    assert len(net + net) == 2 * len(net)
    assert len(net * 3) == len(3 * net) == 3 * len(net)
    del net[1:3]
    assert list(net._modules) == [str(i) for i in range(len(net))]
    for call in (lambda: net[99], lambda: net[-99], lambda: net.insert(99, new)):
        with pytest.raises(IndexError):
            call()
    with pytest.raises(TypeError):
        net.append(3)


def test_module_list():
    layers = ModuleList(Linear(i + 1, 1) for i in range(3))
    assert len(list(layers.parameters())) == 6
    assert layers[-1].in_features == 3
    assert [m.in_features for m in layers[::-1]] == [3, 2, 1]
    layers += [Linear(9, 1)]
    assert len(layers) == 4
    assert len(layers + [Identity()]) == 5
    assert layers[0] in layers
    assert Identity() not in layers
    del layers[0]
    assert [m.in_features for m in layers] == [2, 3, 9]
    with pytest.raises(TypeError):
        layers.extend(3)


def test_module_dict():
    d = ModuleDict({"a": Linear(1, 1), "b": ReLU()})
    d["c"] = Tanh()
    d.update([("d", Identity())])
    assert list(d) == list(d.keys()) == ["a", "b", "c", "d"]
    assert d["a"] is d.a
    assert "b" in d
    assert [type(m).__name__ for m in d.values()] == ["Linear", "ReLU", "Tanh", "Identity"]
    popped = d.pop("b")
    assert isinstance(popped, ReLU)
    assert not hasattr(d, "b")
    with pytest.raises(KeyError):
        d["keys"] = Tanh()  # the entry would hide the method
    with pytest.raises(TypeError):
        d["x"] = 3
    with pytest.raises(ValueError, match="pair"):
        d.update([("a", ReLU(), 3)])
    d.clear()
    assert len(d) == 0


def test_parameter_list():
    values = ParameterList([Parameter(core.ones(1)), core.zeros(2), "text"])
    assert isinstance(values[1], Parameter)
    assert values[2] == "text"
    assert len(list(values.parameters())) == 2
    values.append(core.ones(3))
    assert tuple(values[-1].shape) == (3,)
    values[0] = core.full((1,), 5.0)
    assert float(values[0].detach()) == 5.0
    assert len(values[1:]) == 3
    assert list(values.state_dict()) == ["0", "1", "3"]
    with pytest.raises(IndexError):
        values[4]
    with pytest.raises(TypeError):
        values.extend(core.ones(2))
    assert "Parameter containing" in repr(values)
    assert repr(ParameterList([1])) == "ParameterList(  (0): Object of type: int)"
    assert (
        repr(ParameterList([1, "a"]))
        == "ParameterList(\n    (0): Object of type: int\n    (1): Object of type: str\n)"
    )


def test_parameter_dict():
    d = ParameterDict({"a": core.ones(1), "b": 3})
    assert isinstance(d["a"], Parameter)
    assert d["b"] == 3
    assert list(d.keys()) == ["a", "b"]
    assert d.get("z", 1) == 1
    assert d.setdefault("c", core.zeros(1)) is d["c"]
    merged = d | {"e": core.ones(2)}
    assert list(merged) == ["a", "b", "c", "e"]
    assert "e" not in d
    assert d.popitem()[0] == "c"
    assert d.pop("b") == 3
    with pytest.raises(KeyError):
        d["b"]
    with pytest.raises(KeyError, match="name of another attribute"):
        d["forward"] = core.ones(1)
    with pytest.raises(TypeError):
        d[3] = core.ones(1)
    assert len(list(d.parameters())) == 1
    assert repr(d) == "ParameterDict(  (a): Parameter containing: [torch.FloatTensor of size 1])"
    d.clear()
    assert len(d) == 0


@pytest.mark.parametrize("make", [ModuleDict, ParameterDict])
def test_what_update_refuses(make):
    target = make()
    for entries, error in (
        (1, TypeError),
        ([1], TypeError),
        (["ab"], TypeError),
        ([("a",)], ValueError),
        ([("a", Tanh(), 2)], ValueError),
    ):
        with pytest.raises(error, match=r"update"):
            target.update(entries)
    assert len(target) == 0


def test_lists_print_what_is_alike_once():
    alike = [Linear(2, 2) for _ in range(3)]
    assert (
        repr(ModuleList([*alike, ReLU(), ReLU(), Sequential(ReLU())]))
        == """ModuleList(
  (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
  (3-4): 2 x ReLU()
  (5): Sequential(
    (0): ReLU()
  )
)"""
    )
    assert repr(ModuleList()) == "ModuleList()"
    assert "(0-11): 12 x" in repr(ModuleList([Linear(2, 2) for _ in range(12)]))


def test_indices_by_pytorchs_name() -> None:
    layers = ModuleList([Identity(), Identity()])
    assert (layers._get_abs_string_index(1), layers._get_abs_string_index(-2)) == ("1", "0")
    with pytest.raises(IndexError):
        layers._get_abs_string_index(2)


def test_a_parameter_dict_sorts_the_names_of_a_plain_dict():
    """As in PyTorch, whose optimizers number parameters in this order. Other sources keep their order."""
    values = {"b": core.ones(1), "a": core.ones(1)}
    assert list(ParameterDict(values)) == ["a", "b"]
    for source in (OrderedDict(values), list(values.items()), ParameterDict(list(values.items()))):
        assert list(ParameterDict(source)) == ["b", "a"]
    kept = ParameterDict(list(values.items()))
    assert list(kept.copy()) == ["b", "a"]
    assert list(kept | {"d": 1, "c": 1}) == ["b", "a", "c", "d"]
    assert list(kept.fromkeys(["z", "y"])) == ["z", "y"]
    d = ParameterDict({"m": core.ones(1)})
    d.update(values)
    assert [name for name, _ in d.named_parameters()] == ["m", "a", "b"]
