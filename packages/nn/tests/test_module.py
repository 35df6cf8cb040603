from __future__ import annotations

import copy
import gc
import pickle
import weakref

import pytest

import rushlight_core as core
from rushlight_nn import Buffer, Linear, Module, ModuleList, Parameter, Sequential


class Net(Module):
    def __init__(self):
        super().__init__()
        self.first = Linear(3, 4)
        self.second = Linear(4, 2, bias=False)
        self.scale = Parameter(core.ones(2))
        self.register_buffer("count", core.zeros(()))
        self.register_buffer("scratch", core.zeros(2), persistent=False)
        self.note = "plain"

    def forward(self, x):
        return self.second(self.first(x)) * self.scale


def names(pairs):
    return [name for name, _ in pairs]


# Attributes -------------------------------------------------------------------------------------------------


def test_assigned_attributes_are_registered_by_kind():
    net = Net()
    assert list(net._parameters) == ["scale"]
    assert list(net._buffers) == ["count", "scratch"]
    assert list(net._modules) == ["first", "second"]
    assert net.scale is net._parameters["scale"]
    assert net.note == "plain"
    assert "note" not in net._parameters


def test_attributes_are_ordinary_instance_attributes():
    # Access to `self.weight` is as fast as to any attribute, because it does not call __getattr__.
    net = Net()
    assert net.__dict__["scale"] is net.scale
    assert net.__dict__["first"] is net.first
    assert "__getattr__" not in {name for cls in Net.__mro__ for name in cls.__dict__}


def test_a_module_is_freed_without_the_garbage_collector():
    gc.disable()
    try:
        net = Net()
        module, parameter = weakref.ref(net), weakref.ref(net.first)
        del net
        assert module() is None
        assert parameter() is None
    finally:
        gc.enable()


def test_replacing_a_parameter_keeps_its_position():
    net = Net()
    new = Parameter(core.zeros(2))
    net.scale = new
    assert net._parameters["scale"] is new
    assert net.scale is new


def test_a_parameter_can_become_none_but_nothing_else():
    net = Net()
    net.scale = None
    assert net.scale is None
    assert "scale" in net._parameters
    net.scale = Parameter(core.ones(2))
    with pytest.raises(TypeError, match=r"Net\.scale: got Tensor, needs a Parameter or None"):
        net.scale = core.ones(2)
    with pytest.raises(TypeError, match=r"Net\.first: got int, needs a Module or None"):
        net.first = 3
    with pytest.raises(TypeError, match=r"Net\.count: got str, needs a tensor or None"):
        net.count = "x"
    assert net.scale is net._parameters["scale"]


def test_a_name_moves_between_tables():
    net = Net()
    net.note = Parameter(core.ones(1))
    assert "note" in net._parameters
    net.note = Linear(1, 1)
    assert "note" not in net._parameters
    assert "note" in net._modules
    net.scratch = Parameter(core.ones(1))
    assert "scratch" not in net._buffers
    assert "scratch" in net.state_dict()


def test_deleting_an_attribute_deletes_the_entry():
    net = Net()
    del net.scale, net.first, net.scratch, net.note
    assert "scale" not in net._parameters
    assert "first" not in net._modules
    assert "scratch" not in net._buffers
    for name in ("scale", "first", "scratch", "note"):
        assert not hasattr(net, name)
    with pytest.raises(AttributeError):
        del net.scale


def test_editing_a_table_shows_in_the_attributes():
    net = Net()
    new = Parameter(core.zeros(2))
    net._parameters["scale"] = new
    assert net.scale is new
    net._parameters["extra"] = new
    assert net.extra is new
    del net._parameters["extra"]
    assert not hasattr(net, "extra")
    assert net._parameters.pop("scale") is new
    assert not hasattr(net, "scale")
    net._buffers.update(a=core.ones(1), b=core.ones(1))
    assert net.b is net._buffers["b"]
    net._buffers.clear()
    assert not hasattr(net, "a")
    net._modules = {"only": Linear(1, 1)}
    assert names(net.named_children()) == ["only"]
    assert not hasattr(net, "first")
    assert net._modules.setdefault("only") is net.only
    assert net._modules.popitem()[0] == "only"
    assert not hasattr(net, "only")
    net._modules |= {"again": Linear(1, 1)}
    assert net.again is net._modules["again"]


def test_a_plain_tensor_is_an_ordinary_attribute():
    net = Net()
    net.mask = core.ones(2)
    assert "mask" not in net._buffers
    net.buffer = Buffer(core.ones(2), persistent=False)
    assert "buffer" in net._buffers
    assert "buffer" not in net.state_dict()


def test_a_buffer_registered_again_is_persistent_or_not_anew():
    net = Net()
    net.register_buffer("scratch", core.ones(2))
    net.register_buffer("count", core.ones(()), persistent=False)
    assert "scratch" in net.state_dict()
    assert "count" not in net.state_dict()


def test_assigning_before_init_says_what_to_do():
    class Early(Module):
        def __init__(self):
            self.layer = Linear(1, 1)

    with pytest.raises(AttributeError, match=r"Early.*before Module.__init__.*\n.*super\(\).__init__\(\)"):
        Early()


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("a.b", None, KeyError),
        ("", None, KeyError),
        ("forward", None, KeyError),
        (3, None, TypeError),
        ("fine", 3, TypeError),
    ],
)
def test_registration_refuses(name, value, error):
    module = Module()
    for register in (module.register_parameter, module.register_buffer, module.add_module):
        with pytest.raises(error):
            register(name, value)
    assert not module._parameters
    assert not module._buffers
    assert not module._modules


def test_an_overridden_getattr_can_fall_back():
    class Wrapper(Module):
        def __init__(self):
            super().__init__()
            self.inner = Linear(2, 3)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("inner"), name)

    class Further(Wrapper):
        def __getattr__(self, name):
            return 7 if name == "seven" else super().__getattr__(name)

    assert Wrapper().in_features == 2
    assert Further().out_features == 3
    assert Further().seven == 7
    with pytest.raises(AttributeError, match="nothing"):
        _ = Further().nothing


def test_an_error_inside_a_property_is_not_hidden():
    class Broken(Module):
        @property
        def value(self):
            return self.missing

    with pytest.raises(AttributeError, match="missing"):
        _ = Broken().value


# Copies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_independent_and_whole(clone):
    net = Net()
    other = clone(net)
    assert names(other.named_parameters()) == names(net.named_parameters())
    x = core.randn(5, 3)
    assert core.equal(other(x), net(x))
    with core.no_grad():
        net.scale.fill_(3.0)
    assert float(other.scale[0].detach()) == 1.0
    assert other.scale is other._parameters["scale"]
    assert isinstance(other.scale, Parameter)
    other._parameters["scale"] = new = Parameter(core.zeros(2))
    assert other.scale is new
    assert net.scale is not new


def test_deepcopy_keeps_shared_parameters_shared():
    net = Sequential(Linear(2, 2), Linear(2, 2))
    net[1].weight = net[0].weight
    other = copy.deepcopy(net)
    assert other[1].weight is other[0].weight
    assert other[0].weight is not net[0].weight


def test_a_shallow_copy_has_tables_of_its_own():
    net = Net()
    other = copy.copy(net)
    assert other.scale is net.scale
    other.scale = None
    assert net.scale is not None


def test_setstate_of_the_users_own():
    class Careless(Module):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(core.ones(1))

        def __setstate__(self, state):
            self.__dict__.update(state)

    other = copy.deepcopy(Careless())
    new = Parameter(core.zeros(1))
    other.weight = new
    assert next(other.parameters()) is new
    assert other.weight is new


# Traversal --------------------------------------------------------------------------------------------------


def test_named_members_as_libraries_call_it():
    net = Net()
    found = net._named_members(lambda module: module._parameters.items())
    assert names(found) == ["scale", "first.weight", "first.bias", "second.weight"]
    found = net._named_members(lambda module: module._buffers.items(), prefix="net", recurse=False)
    assert names(found) == ["net.count", "net.scratch"]


def test_named_traversal():
    net = Sequential(Net(), Linear(2, 1))
    assert names(net.named_modules()) == ["", "0", "0.first", "0.second", "1"]
    assert names(net.named_parameters()) == [
        "0.scale",
        "0.first.weight",
        "0.first.bias",
        "0.second.weight",
        "1.weight",
        "1.bias",
    ]
    assert names(net.named_parameters(prefix="p", recurse=False)) == []
    assert names(net[0].named_parameters(prefix="p", recurse=False)) == ["p.scale"]
    assert names(net.named_buffers()) == ["0.count", "0.scratch"]
    assert [id(p) for p in net.parameters()] == [id(p) for _, p in net.named_parameters()]
    assert len(list(net.modules())) == 5
    assert len(list(net.children())) == 2
    assert len(list(net.buffers())) == 2


def test_what_is_shared_is_visited_once():
    layer = Linear(2, 2)
    net = Sequential(layer, layer)
    assert len(list(net.parameters())) == 2
    assert len(list(net.children())) == 1
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    assert names(net.named_modules(remove_duplicate=False)) == ["", "0", "1"]


def test_access_by_path():
    net = Sequential(Net())
    assert net.get_submodule("0.first") is net[0].first
    assert net.get_submodule("") is net
    assert net.get_parameter("0.first.weight") is net[0].first.weight
    assert net.get_buffer("0.count") is net[0].count
    for get, target in (
        (net.get_submodule, "0.nothing"),
        (net.get_submodule, "0.note"),
        (net.get_parameter, "0.count"),
        (net.get_buffer, "0.first.weight"),
    ):
        with pytest.raises(AttributeError, match=target.rpartition(".")[2]):
            get(target)
    net.set_submodule("0.first", new := Linear(3, 4))
    assert net[0].first is new
    with pytest.raises(AttributeError):
        net.set_submodule("0.third", new, strict=True)
    with pytest.raises(ValueError, match="path"):
        net.set_submodule("", new)


def test_apply_visits_children_first():
    seen = []
    net = Net()
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "Linear", "Net"]


# Modes and conversions --------------------------------------------------------------------------------------


def test_train_and_eval_reach_every_descendant():
    net = Sequential(Net())
    assert net.eval() is net
    assert not any(m.training for m in net.modules())
    net.train()
    assert all(m.training for m in net.modules())
    with pytest.raises(ValueError, match="bool"):
        net.train("yes")


def test_conversion_keeps_parameters_the_same_objects():
    net = Net()
    net.register_buffer("index", core.arange(3))
    before = list(net.parameters())
    assert net.double() is net
    assert [id(p) for p in net.parameters()] == [id(p) for p in before]
    assert all(p.dtype == core.float64 for p in net.parameters())
    assert net.count.dtype == core.float64
    assert net.index.dtype == core.int64
    assert net.count is net._buffers["count"]
    for method, dtype in (("half", core.float16), ("bfloat16", core.bfloat16), ("float", core.float32)):
        getattr(net, method)()
        assert all(p.dtype == dtype and p.requires_grad for p in net.parameters())


def test_conversion_converts_gradients():
    net = Linear(2, 2)
    net.weight.grad = core.ones(2, 2)
    net.to(core.float64)
    assert net.weight.grad.dtype == core.float64
    assert net.bias.grad is None


def test_to_takes_what_tensor_to_takes():
    net = Linear(2, 2)
    assert net.to("cpu").weight.dtype == core.float32
    assert net.to("cpu", core.float64).weight.dtype == core.float64
    assert net.to(core.zeros(1)).weight.dtype == core.float32
    assert net.to(dtype=core.float16, device=core.device("cpu")).weight.dtype == core.float16
    assert net.to(core.float32, True).weight.dtype == core.float32
    with pytest.raises(TypeError, match="floating-point"):
        net.to(core.int64)
    with pytest.raises(TypeError):
        net.to(1.5)
    with pytest.raises(TypeError, match="colour"):
        net.to(colour="red")


def test_zero_grad():
    net = Linear(2, 2)
    for p in net.parameters():
        p.grad = core.ones_like(p)
    kept = net.weight.grad
    net.zero_grad(set_to_none=False)
    assert float(net.weight.grad.sum()) == 0.0
    assert float(kept.sum()) == 0.0
    net.zero_grad()
    assert net.weight.grad is None


def test_requires_grad():
    net = Net().requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


# Calls and text ---------------------------------------------------------------------------------------------


def test_calling_passes_every_argument():
    class Echo(Module):
        def forward(this, /, *args, **kwargs):
            return args, kwargs

    echo = Echo()
    for _ in range(2):
        assert echo() == ((), {})
        assert echo(None) == ((None,), {})
        assert echo(1, 2, key=3) == ((1, 2), {"key": 3})
        assert echo(first=1, self=2) == ((), {"first": 1, "self": 2})
        echo.register_forward_hook(lambda *_: None)  # the results are the same with hooks


def test_forward_can_be_replaced_on_an_instance():
    net = Linear(2, 2)
    net.forward = lambda x: "replaced"
    assert net(None) == "replaced"


def test_a_module_without_forward():
    with pytest.raises(NotImplementedError, match="Module does not define forward"):
        Module()(1)


def test_repr_shows_the_tree():
    class Tree(Module):
        def __init__(self):
            super().__init__()
            self.leaf = Linear(1, 2)
            self.list = ModuleList([Linear(2, 3, bias=False)])

        def extra_repr(self):
            return "depth=2"

    assert repr(Tree()) == (
        "Tree(\n"
        "  depth=2\n"
        "  (leaf): Linear(in_features=1, out_features=2, bias=True)\n"
        "  (list): ModuleList(\n"
        "    (0): Linear(in_features=2, out_features=3, bias=False)\n"
        "  )\n"
        ")"
    )
    assert repr(Module()) == "Module()"
    assert "0" not in dir(Sequential(Linear(1, 1)))
    assert "leaf" in dir(Tree())


def test_a_parameter_under_the_name_of_a_property() -> None:
    class Ball(Module):
        def __init__(self) -> None:
            super().__init__()
            self.k = Parameter(core.tensor(2.0))
            self.c = self._parameters.pop("k")

        @property
        def k(self) -> object:
            return -self.c

    ball = Ball()
    assert ball.k.item() == -2.0
    assert list(ball._parameters) == ["c"]


def test_a_class_with_tables_of_its_own() -> None:
    class Patched(Linear):
        def __init__(self) -> None:
            Module.__init__(self)
            object.__setattr__(self, "_parameters", {"weight": core.ones(1, 2), "bias": None})

        def __setattr__(self, name: str, value: object) -> None:
            if name in self.__dict__.get("_parameters", ()):
                self._parameters[name] = value
            else:
                object.__setattr__(self, name, value)

    patched = Patched()
    assert patched(core.ones(1, 2)).tolist() == [[2.0]]
    patched.weight = 2 * core.ones(1, 2)
    assert patched(core.ones(1, 2)).tolist() == [[4.0]]
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        patched.other


def test_a_class_that_calls_getattr_outright():
    class Asking(Linear):
        def ask(self, name):
            return self.__getattr__(name)

    asking = Asking(2, 1)
    assert asking.ask("weight") is asking.weight
    assert asking.ask("in_features") == 2
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        asking.ask("other")
    assert not hasattr(Linear, "__getattr__")  # it would slow down every other layer
