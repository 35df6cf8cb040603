"""Arguments of `fx.symbolic_trace` that are containers or have fixed values, and the code that takes them."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, namedtuple
from typing import Any

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx._symbolic_trace import PHBase, PHWithMeta

PH = fx.PH
Pair = namedtuple("Pair", ["left", "right"])


def traced_copies(traced: Any) -> list[Any]:
    """Return the module with copies that were made in each way, which must behave alike."""
    return [traced, copy.deepcopy(traced), copy.copy(traced), pickle.loads(pickle.dumps(traced))]


def test_leaves_of_containers_become_placeholders() -> None:
    def function(x: Any, n: Any, *more: Any, scale: Any = 3) -> Any:
        return {"sum": x["a"] + x["b"][0] * n, "rest": Pair(more[0], [scale])}

    traced = fx.symbolic_trace(function, {"x": {"a": PH, "b": [PH, 2]}})
    for module in traced_copies(traced):
        result = module({"b": [5, 2], "a": 1}, 10, 4, "more")  # keyword-only arguments come before *more
        assert result == {"sum": 51, "rest": Pair("more", [4])}
        assert isinstance(result["rest"], Pair)
        assert fx.Interpreter(module).run({"b": [5, 2], "a": 1}, 10, 4, "more") == result
    names = [node.target for node in traced.graph.find_nodes(op="placeholder")]
    assert names == ["x_1", "x_2", "x_3", "n", "scale", "more"]
    assert traced.graph.process_inputs({"b": [5, 2], "a": 1}, 10) == [1, 5, 2, 10, 3, ()]
    assert fx.Interpreter(traced).boxed_run([1, 5, 2, 10, 4, ("more",)]) == [51, "more", 4]


def test_containers_of_every_kind() -> None:
    for structure, value, other in (
        ((PH, [PH]), (1, [2]), (1, 2)),
        (Pair(PH, PH), Pair(1, 2), (1, 2)),
        (OrderedDict(a=PH, b=PH), OrderedDict(a=1, b=2), {"a": 1, "b": 2}),
    ):
        traced = fx.symbolic_trace(lambda x: x, {"x": structure})
        assert traced(value) == value
        assert type(traced(value)) is type(value)
        with pytest.raises(ValueError, match=r"fx: x.* must .*as in the trace, got"):
            traced(other)
    empty = fx.symbolic_trace(lambda x, y: y + 1, {"x": {}})
    assert empty({}, 1) == 2
    with pytest.raises(ValueError, match=r"x must have the keys \[\] as in the trace, got \['a'\]"):
        empty({"a": 1}, 1)


def test_structures_that_differ_name_the_argument() -> None:
    traced = fx.symbolic_trace(lambda x: x["a"][0], {"x": {"a": [PH, PH]}})
    for value, message in (
        ({}, r"x must have the keys \['a'\] as in the trace, got \[\]"),
        ({"a": [1, 2], "b": 3}, r"x must have the keys"),
        ({"a": (1, 2)}, r"x\['a'\] must be a list as in the trace, got tuple"),
        ({"a": [1]}, r"x\['a'\] must have the structure"),
        ([1], r"x must be a dict as in the trace, got list"),
    ):
        with pytest.raises(ValueError, match=message):
            traced(value)
        with pytest.raises(ValueError, match=message):
            fx.Interpreter(traced).run(value)


def test_values_in_containers_are_checked() -> None:
    traced = fx.symbolic_trace(
        lambda x: x["t"] * 2 if x["flag"] and x["none"] is None else x["t"],
        {"x": {"t": PH, "flag": True, "none": None}},
    )
    assert traced({"t": 2, "flag": True, "none": None}) == 4
    with pytest.raises(AssertionError, match=r"x \(leaf 2\) has been specialized to have value True"):
        traced({"t": 2, "flag": False, "none": None})
    with pytest.raises(AssertionError, match=r"x \(leaf 3\) has been specialized to have value None"):
        traced({"t": 2, "flag": True, "none": 1})
    with pytest.warns(
        UserWarning, match="does not check that the argument shift is the value of type Tensor"
    ):
        fx.symbolic_trace(lambda x, shift: x + shift, {"shift": torch.ones(2)})


def test_concrete_arguments_as_a_tuple() -> None:
    class Model(nn.Module):
        def forward(self, x: Any, flag: bool, y: Any = 2) -> Any:
            return x + y if flag else x

    traced = fx.symbolic_trace(Model(), (PH, True, PH))
    assert traced(1, True) == 3
    assert traced(1, True, 5) == 6
    with pytest.raises(RuntimeError, match="Tracing expected 3 arguments but got 2 concrete arguments"):
        fx.symbolic_trace(Model(), (PH, True))

    class Starred(nn.Module):
        def forward(self, *args: Any) -> Any:
            return args[0] + args[1] + len(args)

    traced = fx.symbolic_trace(Starred(), (PH, PH, 7))
    assert [node.target for node in traced.graph.find_nodes(op="placeholder")] == [
        "input_0",
        "input_1",
        "input_2",
    ]
    assert traced(1, 2, 7) == 6
    with pytest.raises(AssertionError, match="input_2 has been specialized to have value 7"):
        traced(1, 2, 8)


def test_attributes_of_placeholders_are_kept() -> None:
    class Named(PHBase):
        def __init__(self, unit: str) -> None:
            self.unit, self.name = unit, "another"

    graph = fx.Tracer().trace(lambda x, y: x[0] + y, {"x": [PHWithMeta("key")], "y": Named("m")})
    x, y = graph.find_nodes(op="placeholder")
    assert (x.ph_key, y.unit, y.name) == ("key", "m", "y")


def test_transformers_keep_containers() -> None:
    traced = fx.symbolic_trace(lambda x: [x["a"] + 1], {"x": {"a": PH}})
    assert fx.Transformer(traced).transform()({"a": 2}) == [3]
    outer = fx.symbolic_trace(nn.Sequential(traced), {"input": {"a": PH}})
    assert outer({"a": 2}) == [3]


def test_code_generators_are_replaced() -> None:
    class OneList(fx.CodeGen):
        def gen_fn_def(self, free_vars: Any, maybe_return_annotation: str) -> str:
            return f"def forward(self, values: Sequence){maybe_return_annotation}:\n    {', '.join(free_vars)}, = values"

        def generate_output(self, output_args: Any) -> str:
            return f"return {{'result': {output_args!r}}}"

        def process_inputs(self, *inputs: Any) -> Any:
            return inputs[0]

        def process_outputs(self, outputs: Any) -> Any:
            return {"result": outputs}

        def additional_globals(self) -> Any:
            return [("Sequence", list)]

    traced = fx.symbolic_trace(lambda x, y: x - y)
    traced.graph.set_codegen(OneList())
    traced.recompile()
    assert traced([5, 3]) == {"result": 2}
    assert fx.Interpreter(traced).run([5, 3]) == {"result": 2}
    assert fx.Interpreter(traced).run(5, 3, enable_io_processing=False) == 2
    assert copy.deepcopy(traced)([5, 3]) == {"result": 2}


def test_the_body_of_the_code_is_transformed() -> None:
    traced, seen = fx.symbolic_trace(lambda x: x + 1), []
    with traced.graph.on_generate_code(
        lambda before: lambda body: [*(before or list)(body)[:-1], "return 7\n"]
    ):
        with traced.graph.on_generate_code(lambda before: lambda body: seen.append(body) or before(body)):
            traced.recompile()
        assert traced(1) == 7
    assert seen[0][-1] == "return add\n"
    traced.recompile()
    assert traced(1) == 2


class Both(metaclass=fx.ProxyableClassMeta):
    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right

    def add(self, other: Both) -> Both:
        return Both(self.left + other.left, self.right + other.right)


def test_classes_are_constructed_by_a_node() -> None:
    traced = fx.symbolic_trace(lambda x, y: x.add(Both(y, y)).add(Both(1, 2)))
    assert [node.name for node in traced.graph.nodes] == [
        "x", "y", "both", "add", "_both_constant_0", "add_1", "output",
    ]  # fmt: skip
    result = traced(Both(1, 2), 10)
    assert (result.left, result.right) == (12, 14)
    proxy = fx.Proxy(fx.Graph().placeholder("x"))
    assert Both(proxy, 1).left is proxy  # no trace runs


# Compiled here, because pytest changes the assertions of a test.
ASSERTS = """
def function(x):
    assert x.sum() > 0
    assert not x.isnan().any(), "a message"
    return x + 1
"""


def test_assertions_are_recorded_on_request() -> None:
    tracer = fx.Tracer()
    tracer.trace_asserts = True
    names: dict[str, Any] = {}
    exec(ASSERTS, names)
    function = names["function"]
    graph = tracer.trace(function)
    traced = fx.GraphModule(tracer.root, graph)
    assert torch.equal(traced(torch.ones(2)), torch.full((2,), 2.0))
    for values in ([-1.0, 0.0], [1.0, float("nan")]):
        with pytest.raises(AssertionError):
            traced(torch.tensor(values))
    with pytest.raises(fx.proxy.TraceError, match="control flow"):
        tracer.trace(lambda x: 1 if x else 2)
    with pytest.raises(fx.proxy.TraceError, match="control flow"):
        fx.symbolic_trace(function)


def test_shapes_of_parameters_are_known_on_request() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2, 3))

        def forward(self, x: Any) -> Any:
            sizes = self.weight.shape, self.weight.size(), (self.weight.size(0), self.weight.size(1))
            assert all(tuple(size) == (2, 3) for size in sizes)
            assert self.weight.dim() == self.weight.ndim == 2
            assert self.weight.numel() == self.weight.nelement() == 6
            return x * self.weight

    graph = fx.Tracer(param_shapes_constant=True).trace(Model())
    assert [node.name for node in graph.nodes] == ["x", "weight", "mul", "output"]
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(Model())


def test_nodes_have_the_modules_that_made_them() -> None:
    class Inner(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.relu()

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.linear = Inner(), nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.inner(self.linear(self.inner(x))) + 1

    graph = fx.symbolic_trace(Outer()).graph
    stacks = {node.name: node.meta.get("nn_module_stack") for node in graph.nodes}
    assert stacks == {
        "x": None,
        "relu": {"inner": ("inner", Inner)},
        "linear": {"linear": ("linear", nn.Linear)},
        "relu_1": {"inner@1": ("inner", Inner)},
        "add": None,
        "output": None,
    }


def test_nodes_are_ordered() -> None:
    x, y, _ = fx.symbolic_trace(lambda x: x.relu()).graph.nodes
    assert x < y
    assert [x <= y, x <= x, y >= x, y >= y, x >= y] == [True] * 4 + [False]


def test_immutable_containers_are_containers_of_pytree() -> None:
    """An interpreter returns the lists and dicts of the graph's output, which are immutable."""
    tree = torch.utils._pytree

    class Model(nn.Module):
        def forward(self, x: Any) -> Any:
            return {"a": [x, (x + 1,)], "b": x}

    result = fx.Interpreter(fx.symbolic_trace(Model())).run(torch.ones(2))
    assert [leaf.tolist() for leaf in tree.tree_leaves(result)] == [[1, 1], [2, 2], [1, 1]]
    doubled = tree.tree_map(lambda t: t * 2, result)
    assert type(doubled) is type(result)
    assert type(doubled["a"]) is type(result["a"])
    assert doubled["a"][1][0].tolist() == [4, 4]
