"""fx: tracing with proxies, and graphs and their uses. Expected names and code are from PyTorch."""

from __future__ import annotations

import copy
import math
import operator
import pickle
import threading
from typing import Any

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.proxy import TraceError
from rushlight.nn import functional as F


def half(x: Any, n: int) -> Any:
    """A function with a condition, which a trace cannot enter."""
    return x[:n] if n > 1 else x


fx.wrap("half")
fx.wrap("len")


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.weight = nn.Parameter(torch.randn(4))
        self.register_buffer("shift", torch.ones(4))
        self.rest = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x: Any, *, scale: int = 2) -> Any:
        a, b = self.first(x).chunk(2, dim=-1)
        y = torch.cat([a, b], dim=-1) * self.weight + self.shift - torch.tensor([1.0, 2.0, 3.0, 4.0])
        y = F.relu(self.rest(y))
        return {"y": y.view(y.shape[0], -1)[:, 1:3] * scale, "n": (-y.T).sum(dtype=torch.float64)}


CODE = """\
def forward(self, x : 'Any', scale : 'int' = 2) -> 'Any':
    first = self.first(x);  x = None
    chunk = first.chunk(2, dim = -1);  first = None
    getitem = chunk[0]
    getitem_1 = chunk[1];  chunk = None
    cat = torch.cat([getitem, getitem_1], dim = -1);  getitem = getitem_1 = None
    weight = self.weight
    mul = cat * weight;  cat = weight = None
    shift = self.shift
    add = mul + shift;  mul = shift = None
    _tensor_constant0 = self._tensor_constant0
    sub = add - _tensor_constant0;  add = _tensor_constant0 = None
    rest_0 = getattr(self.rest, "0")(sub);  sub = None
    rest_1 = getattr(self.rest, "1")(rest_0);  rest_0 = None
    relu = torch.nn.functional.relu(rest_1);  rest_1 = None
    getattr_1 = relu.shape
    getitem_2 = getattr_1[0];  getattr_1 = None
    view = relu.view(getitem_2, -1);  getitem_2 = None
    getitem_3 = view[(slice(None, None, None), slice(1, 3, None))];  view = None
    mul_1 = getitem_3 * scale;  getitem_3 = scale = None
    getattr_2 = relu.T;  relu = None
    neg = -getattr_2;  getattr_2 = None
    sum_1 = neg.sum(dtype = torch.float64);  neg = None
    return {'y': mul_1, 'n': sum_1}
"""


def same(a: Any, b: Any) -> bool:
    return set(a) == set(b) and all(torch.equal(a[key], b[key]) for key in a)


def test_the_code_of_a_traced_module() -> None:
    model = Model()
    traced = fx.symbolic_trace(model)
    assert traced.code == CODE
    assert type(traced).__name__ == "Model"
    assert set(dict(traced.named_parameters())) == set(dict(model.named_parameters()))
    assert traced.weight is model.weight


@pytest.mark.parametrize(
    "way",
    [
        lambda traced: traced,
        lambda traced: fx.Interpreter(traced).run,
        lambda traced: fx.Interpreter(traced, garbage_collect_values=False).run,
        lambda traced: fx.Transformer(traced).transform(),
        copy.deepcopy,
        copy.copy,
        fx.symbolic_trace,
    ],
    ids=["module", "interpreter", "keeping", "transformer", "deepcopy", "copy", "again"],
)
def test_all_ways_to_run_a_graph_give_what_the_module_gives(way: Any) -> None:
    model, x = Model(), torch.randn(5, 3)
    run = way(fx.symbolic_trace(model))
    assert same(run(x), model(x))
    x = torch.randn(2, 3)  # works for another size, because sizes are nodes
    assert same(run(x), model(x))


def test_gradients_and_training_go_through() -> None:
    model, x = Model(), torch.randn(5, 3)
    traced = fx.symbolic_trace(model)
    model(x)["y"].sum().backward()
    grads = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    traced(x)["y"].sum().backward()
    assert all(
        torch.equal(a, b)
        for a, b in zip(grads, [p.grad for p in traced.parameters() if p.grad is not None], strict=True)
    )
    assert traced.training
    assert not fx.symbolic_trace(model.eval()).training


def test_a_traced_module_is_exported() -> None:
    model, x = Model().eval(), torch.randn(5, 3)
    program = torch.export.export(fx.symbolic_trace(model), (x,))
    assert same(program.module()(x), model(x))


def test_what_is_no_leaf_is_the_tracers_choice() -> None:
    class Inner(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.sin().cos()

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()
            self.linear = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.linear(self.inner(x))

    class Leaves(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return module_qualified_name == "inner"

    model = Outer()
    assert [n.name for n in fx.symbolic_trace(model).graph.nodes] == ["x", "sin", "cos", "linear", "output"]
    tracer = Leaves()
    graph = tracer.trace(model)
    assert [(n.op, n.name) for n in graph.nodes] == [
        ("placeholder", "x"),
        ("call_module", "inner"),
        ("get_attr", "linear_weight"),
        ("get_attr", "linear_bias"),
        ("call_function", "linear"),
        ("output", "output"),
    ]
    x = torch.randn(3, 2)
    assert torch.equal(fx.GraphModule(tracer.root, graph)(x), model(x))


def test_wrapped_functions_are_one_node() -> None:
    def function(x: Any) -> Any:
        return half(x, 2) * math.sqrt(x.shape[0]) + len(x)

    traced = fx.symbolic_trace(function)
    assert next(n.name for n in traced.graph.nodes if n.op == "call_function") == "half"
    assert {n.target for n in traced.graph.nodes if n.op == "call_function"} >= {half, math.sqrt, len}
    x = torch.randn(4)
    assert torch.equal(traced(x), function(x))
    assert "__fx_wrapped__" not in vars(half)
    assert len([1]) == 1
    assert "len" not in globals()
    assert not hasattr(math.sqrt, "__wrapped__")
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("half")
    again = fx.symbolic_trace(traced)  # wrapped functions stay one node, also in a part of another module
    assert [n.target for n in again.graph.nodes] == [n.target for n in traced.graph.nodes]
    nested = fx.symbolic_trace(nn.Sequential(traced))
    assert half in {n.target for n in nested.graph.nodes}


def test_a_tracer_traces_another_method() -> None:
    class Two(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

        def minus(self, x: torch.Tensor) -> torch.Tensor:
            return x - 1

    module, tracer, x = Two(), fx.Tracer(), torch.randn(3)
    tracer.traced_func_name = "minus"
    assert torch.equal(fx.GraphModule(module, tracer.trace(module))(x), x - 1)
    tracer.traced_func_name = "times"
    with pytest.raises(AttributeError, match="has no method 'times'"):
        tracer.trace(module)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: x if x.sum() > 0 else -x, TraceError, "'gt' is used in control flow"),
        (lambda x: list(x), TraceError, "'x' has no length in a trace"),
        (lambda x: float(x), TypeError, "Proxy"),
        (lambda x: math.floor(x) + object(), NotImplementedError, "type object"),
        (lambda x: copy.deepcopy(x), TraceError, "is copied"),
        (lambda x: nn.Linear(2, 2)(x), NameError, "Linear"),
        (lambda x: x + nn.Parameter(torch.ones(1)), NameError, "Parameter"),
        (lambda x: operator.setitem(x, 0, 1), TypeError, "item assignment"),
        (lambda x: range(x.shape[0]), TypeError, "Attribute|Proxy"),
        (lambda x: torch.exp(x).__len__(), RuntimeError, "len"),
    ],
)
def test_what_a_trace_cannot_see_is_refused(function: Any, error: type[Exception], text: str) -> None:
    before = nn.Module.__call__
    with pytest.raises(error, match=text):
        fx.symbolic_trace(function)
    # The trace has restored everything.
    assert nn.Module.__call__ is before
    assert "__getattribute__" not in vars(nn.Module)
    assert type(math.sqrt) is type(len)


def test_concrete_arguments_are_checked_when_the_graph_runs() -> None:
    def function(x: Any, flag: bool, other: Any = None) -> Any:
        return x + 1 if flag else x - (0 if other is None else other)

    traced = fx.symbolic_trace(function, concrete_args={"flag": False, "other": None})
    x = torch.ones(2)
    assert torch.equal(traced(x, False), x)
    assert torch.equal(traced(x, False, None), x)
    with pytest.raises(AssertionError, match="flag has been specialized to have value False"):
        traced(x, True)
    with pytest.raises(AssertionError, match="other has been specialized"):
        traced(x, False, 3)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    with pytest.raises(AssertionError):
        traced(x, True)
    with pytest.raises(ValueError, match="no argument 'flog'"):
        fx.symbolic_trace(function, concrete_args={"flog": 1})


def test_variable_arguments() -> None:
    def function(x: Any, *rest: Any, k: Any = 1, **named: Any) -> Any:
        return x * k + rest[0] - named["z"]

    traced = fx.symbolic_trace(function)
    targets = [n.target for n in traced.graph.nodes if n.op == "placeholder"]
    assert targets == ["x", "k", "*rest", "**named"]
    assert torch.equal(traced(torch.ones(2), 3, 4, z=5), torch.ones(2) * 3 + 4 - 5)


def test_another_thread_is_not_traced() -> None:
    layer, x = nn.Linear(2, 2), torch.ones(1, 2)
    seen: list[Any] = []

    def function(y: Any) -> Any:
        thread = threading.Thread(target=lambda: seen.append((layer(x), layer.weight)))
        thread.start()
        thread.join()
        return y + 1

    fx.symbolic_trace(function)
    assert torch.equal(seen[0][0], layer(x))
    assert seen[0][1] is layer.weight


def test_graphs_are_changed() -> None:
    traced = fx.symbolic_trace(lambda x, y: torch.add(x, y).relu())
    for node in traced.graph.nodes:
        if node.target is torch.add:
            with traced.graph.inserting_after(node):
                new = traced.graph.call_function(torch.mul, node.args, node.kwargs)
            node.replace_all_uses_with(new)
            traced.graph.erase_node(node)
    traced.graph.lint()
    traced.recompile()
    x, y = torch.randn(3), torch.randn(3)
    assert torch.equal(traced(x, y), (x * y).relu())
    assert "torch.mul(x, y)" in traced.code
    nodes = {n.name: n for n in traced.graph.nodes}
    assert nodes["x"].users == {nodes["mul"]: None}
    assert nodes["mul"].all_input_nodes == [nodes["x"], nodes["y"]]
    with pytest.raises(RuntimeError, match="'mul' is used by relu"):
        traced.graph.erase_node(nodes["mul"])
    nodes["relu"].append(nodes["mul"])
    with pytest.raises(RuntimeError, match="'relu' uses 'mul' before it is defined"):
        traced.graph.lint()


def test_a_graph_made_by_hand() -> None:
    graph = fx.Graph()
    x = graph.placeholder("input")
    y = graph.placeholder("y", default_value=-2)
    power = graph.call_function(operator.pow, (-1.5, y))
    out = graph.call_method("add", (graph.call_module("layers.act", (x,)), power))
    graph.output((out, [x, float("inf")], {"d": torch.float16, "w": graph.get_attr("layers.w")}))
    module = fx.GraphModule({"layers.act": nn.ReLU(), "layers.w": nn.Parameter(torch.ones(2))}, graph)
    assert "(-1.5) ** y" in module.code
    assert "input_1 = input" in module.code
    t = torch.tensor([-1.0, 1.0])
    first, second, third = module(t)
    assert torch.equal(first, t.relu() + (-1.5) ** -2)
    assert second == [t, math.inf]
    assert third["d"] is torch.float16
    assert third["w"] is module.layers.w
    with pytest.raises(RuntimeError, match=r"has no 'layers\.act'"):
        fx.GraphModule({}, graph)
    with pytest.raises(NotImplementedError, match="mutation"):
        x.graph.output_node().args[0][1].append(3)
    other = fx.Graph()
    with pytest.raises(ValueError, match="'input_1' belongs to another graph"):
        other.call_method("add", (x, 1))
    with pytest.raises(ValueError, match="call_function needs a function"):
        graph.create_node("call_function", "add")
    with pytest.raises(ValueError, match="'jump'"):
        graph.create_node("jump", "add")


def test_names_are_pythons() -> None:
    graph = fx.Graph()
    names = ["input", "input", "x", "x", "x_5", "x", "layer1.0.conv", "0", "for", "MaxPool", "x_5"]
    made = [graph.placeholder(name).name for name in names]
    assert made == [
        "input_1",
        "input_2",
        "x",
        "x_1",
        "x_5",
        "x_2",
        "layer1_0_conv",
        "_0",
        "for_1",
        "max_pool",
        "x_6",
    ]


def test_dead_code_is_what_nobody_sees() -> None:
    def function(x: Any, y: Any) -> Any:
        x.exp().add_(1)  # writes to a tensor that is not used
        y.mul_(2)  # writes to an argument
        z = x.sin()
        z.view(-1).neg_()  # writes to the memory of z
        z.cos()
        torch._assert(x.sum() < 100, "too large")
        return z

    traced = fx.symbolic_trace(function)
    assert traced.graph.eliminate_dead_code()
    assert not traced.graph.eliminate_dead_code()
    traced.recompile()
    names = [n.name for n in traced.graph.nodes if n.op.startswith("call")]
    assert names == ["mul_", "sin", "view", "neg_", "sum_1", "lt", "_assert"]
    x, y = torch.randn(3), torch.randn(3)
    expected = y * 2
    assert torch.equal(traced(x, y), -x.sin())
    assert torch.equal(y, expected)
    with pytest.raises(AssertionError, match="too large"):
        traced(torch.full((3,), 100.0), y)


def test_layers_in_place_are_dead_with_what_they_write() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.relu = nn.Linear(2, 2), nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            self.relu(self.linear(x))
            y = x.sin()
            self.relu(y)
            return y

    traced = fx.symbolic_trace(Two())
    traced.graph.eliminate_dead_code()
    assert [n.name for n in traced.graph.nodes] == ["x", "sin", "relu_1", "output"]


def test_modules_of_a_graph_module() -> None:
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert traced.add_submodule("extra.deep", nn.Tanh())
    assert isinstance(traced.extra.deep, nn.Tanh)
    for node in traced.graph.nodes:
        if node.op == "call_module" and node.target == "1":
            node.target = "extra.deep"
    traced.recompile()
    x = torch.randn(3, 2)
    assert torch.equal(traced(x), traced.get_submodule("0")(x).tanh())
    traced.delete_all_unused_submodules()
    assert {path for path, _ in traced.named_modules()} == {"", "0", "extra", "extra.deep"}
    assert traced.delete_submodule("extra.deep")
    assert not traced.delete_submodule("extra.deep")
    with pytest.raises(RuntimeError, match=r"'extra\.deep', which the module does not have"):
        traced.graph.lint()


def test_interpreters_and_transformers_are_overridden() -> None:
    class Swap(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(torch.mul if target is torch.add else target, args, kwargs)

    class Shapes(fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            result = super().run_node(n)
            n.meta["shape"] = tuple(result.shape)
            return result

    traced = fx.symbolic_trace(lambda x: torch.add(x, x).sum(0))
    x = torch.randn(2, 3)
    assert torch.equal(Swap(traced).transform()(x), (x * x).sum(0))
    Shapes(traced).run(x)
    assert [n.meta["shape"] for n in traced.graph.nodes] == [(2, 3), (2, 3), (3,), (3,)]
    with pytest.raises(RuntimeError, match="the argument 'x' is missing"):
        fx.Interpreter(traced).run()
    with pytest.raises(IndexError) as caught:
        fx.Interpreter(fx.symbolic_trace(lambda x: x.sum(7))).run(x)
    assert "%sum_1" in caught.value.__notes__[-1]


def test_errors_show_the_line_of_the_code() -> None:
    import traceback

    traced = fx.symbolic_trace(lambda x: x.sum(7))
    with pytest.raises(IndexError) as caught:
        traced(torch.ones(2))
    assert "sum_1 = x.sum(7)" in "".join(traceback.format_exception(caught.value))


def test_traces_are_not_mixed() -> None:
    kept: list[Any] = []
    fx.symbolic_trace(lambda x: kept.append(x) or x)
    with pytest.raises((RuntimeError, ValueError), match=r"different traces|another graph"):
        fx.symbolic_trace(lambda x: torch.add(x, kept[0]))


class Saved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers, self.scale = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.tensor([2.0, 3.0])
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x: Any, *more: Any) -> Any:
        return {"sum": self.layers(x) * self.scale + self.shift, "rest": [x[0:1], torch.cat([x, x])]}


def test_graphs_and_their_modules_are_pickled() -> None:
    traced, x = fx.symbolic_trace(Saved().eval()), torch.randn(3, 2)
    traced.meta["note"] = "a note"
    next(iter(traced.graph.nodes)).meta["number"] = 3
    copied = pickle.loads(pickle.dumps(traced))
    assert torch.equal(copied(x)["sum"], traced(x)["sum"])
    assert (copied.code, copied.training, copied.meta) == (traced.code, False, {"note": "a note"})
    assert isinstance(copied, fx.GraphModule)
    assert type(copied).__name__ == "Saved"
    copied.graph.lint()
    graph = pickle.loads(pickle.dumps(traced.graph))
    assert str(graph) == str(traced.graph)
    assert next(iter(graph.nodes)).meta == {"number": 3}
    assert [len(node.users) for node in graph.nodes] == [len(node.users) for node in traced.graph.nodes]


def test_plain_tensors_keep_their_names() -> None:
    model = nn.Sequential(Saved(), fx.symbolic_trace(nn.ReLU()))
    traced = fx.symbolic_trace(model[0])
    assert traced.scale is model[0].scale
    assert [node.target for node in traced.graph.nodes if node.op == "get_attr"] == ["scale", "shift"]


def test_names_of_nodes_may_be_keywords_or_equal() -> None:
    traced = fx.symbolic_trace(lambda x: (x + 1) * (x + 2))
    first, second = list(traced.graph.nodes)[1:3]
    x = torch.ones(2)
    first.name = "class"
    traced.recompile()
    assert torch.equal(traced(x), (x + 1) * (x + 2))
    first.name = second.name
    traced.recompile()
    assert torch.equal(traced(x), (x + 1) * (x + 2))


def test_lines_are_recorded_on_request() -> None:
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(lambda x: x.sin())
    (node,) = graph.find_nodes(op="call_method", target="sin")
    assert node.stack_trace is not None
    assert "test_fx.py" in node.stack_trace
    assert (
        str(graph).splitlines()[2].strip()
        == "%sin : [num_users=1] = call_method[target=sin](args = (%x,), kwargs = {})"
    )


X = torch.tensor([1.0, 2.0])


def replaced(function: Any, pattern: Any, replacement: Any) -> tuple[int, Any]:
    traced = fx.symbolic_trace(function)
    matches = fx.replace_pattern(traced, pattern, replacement)
    return len(matches), traced(X)


def test_patterns_are_replaced() -> None:
    def uses_the_first_call(x: Any) -> Any:
        first = x.relu()
        return (first + 1) * first

    for function, pattern, replacement, count, wanted in (
        (lambda x: x.relu() + x.relu(), lambda x: x.relu(), lambda x: x.tanh(), 2, 2 * X.tanh()),
        (lambda x: x.relu().relu().relu(), lambda x: x.relu().relu(), lambda x: x.tanh(), 1, X.tanh().relu()),
        (lambda x: torch.neg(torch.neg(x)), lambda x: torch.neg(x), lambda x: torch.neg(x.abs()), 2, -X),
        (lambda x: x.sin().sin(), lambda x: x.sin(), lambda x: x, 2, X),
        (lambda x: torch.cat([x, x + 1]), lambda a, b: torch.cat([a, b]), lambda a, b: a - b, 1, -torch.ones(2)),
        (lambda x: x + 1, lambda x: x + 2, lambda x: x.tanh(), 0, X + 1),
        (lambda x: x * x, lambda a, b: a * b, lambda a, b: a - b, 0, X * X),
        (uses_the_first_call, lambda x: x.relu() + 1, lambda x: x.tanh(), 0, (X + 1) * X),
        (lambda x: x.sin() - x.cos(), lambda x: (x.sin(), x.cos()), lambda x: (x, x.exp()), 1, X - X.exp()),
    ):  # fmt: skip
        found, result = replaced(function, pattern, replacement)
        assert found == count
        assert torch.equal(result, wanted)


def test_a_replacement_brings_its_modules() -> None:
    class Old(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.old = nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.old(x) + 1

    class New(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.new, self.scale = nn.Tanh(), nn.Parameter(torch.tensor([2.0, 3.0]))

        def forward(self, x: Any) -> Any:
            return self.new(x) * self.scale

    traced, new = fx.symbolic_trace(Old()), New()
    (match,) = fx.replace_pattern(traced, fx.symbolic_trace(Old()), fx.symbolic_trace(new))
    assert match.anchor.name == "add"
    assert torch.equal(traced(X), new(X))
    assert [name for name, _ in traced.named_parameters()] == ["scale"]


def test_patterns_that_cannot_be_replaced() -> None:
    for pattern, replacement, message in (
        (lambda x: x, lambda x: x, "must return the results of calls"),
        (lambda x, y: x.sin(), lambda x, y: y, "does not use its argument 'y'"),
        (lambda x: x.sin(), lambda x, y: x + y, "must have 1 arguments and 1 results .*, got 2 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            replaced(lambda x: x.sin(), pattern, replacement)


def test_keyword_only_arguments_may_follow_defaults() -> None:
    def one(x: Any, z: int = 2, *, w: Any) -> Any:
        return x + w * z

    def many(x: Any, z: int = 2, *rest: Any, w: Any, v: int = 3, **named: Any) -> Any:
        return x + w * z + v

    assert "(self, x : 'Any', z : 'int' = 2, *, w : 'Any')" in fx.symbolic_trace(one).code
    for function in (one, many):
        traced = fx.symbolic_trace(function)
        for copied in (traced, pickle.loads(pickle.dumps(traced)), fx.symbolic_trace(traced)):
            assert copied(1, w=5) == function(1, w=5)
            assert copied(1, 4, w=5) == function(1, 4, w=5)
        assert fx.Interpreter(traced).run(1, 4, 5, *([3] if function is many else [])) == function(1, 4, w=5)
    assert fx.symbolic_trace(many)(1, 4, 7, 8, w=5, u=2) == many(1, 4, 7, 8, w=5)
