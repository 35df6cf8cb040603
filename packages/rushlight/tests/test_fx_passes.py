"""Passes over graphs of fx: patterns with filters, shapes, splitting, and modules that are written as folders."""

from __future__ import annotations

import importlib
import math
import operator
import random
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.experimental.optimization import fuse, remove_dropout
from rushlight.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from rushlight.fx.passes.infra.pass_base import PassBase, PassResult
from rushlight.fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from rushlight.fx.passes.operator_support import (
    OperatorSupport,
    OpSupports,
    any_chain,
    chain,
    create_op_support,
)
from rushlight.fx.passes.shape_prop import ShapeProp
from rushlight.fx.passes.split_module import split_module
from rushlight.fx.passes.split_utils import getattr_recursive, setattr_recursive, split_by_tags
from rushlight.fx.passes.tools_common import get_node_target, legalize_graph, stable_topological_sort
from rushlight.fx.passes.utils import compare_graphs
from rushlight.fx.passes.utils.fuser_utils import fuse_as_graphmodule, insert_subgm
from rushlight.fx.passes.utils.matcher_utils import SubgraphMatcher
from rushlight.fx.subgraph_rewriter import replace_pattern_with_filters

X = torch.tensor([1.0, 2.0])


# Patterns -------------------------------------------------------------------------------------------------------------


def test_arguments_of_patterns_match_numbers() -> None:
    traced = fx.symbolic_trace(lambda x: torch.add(x, 2) * torch.add(x, x))
    (match,) = fx.replace_pattern(traced, lambda a, b: torch.add(a, b), lambda a, b: torch.sub(a, b))
    assert list(match.nodes_map.values())[1] == 2
    assert torch.equal(traced(X), (X - 2) * (X + X))  # different arguments match different nodes
    traced = fx.symbolic_trace(lambda x: torch.add(x, 2))
    fx.replace_pattern(traced, lambda a, b: torch.add(a, b), lambda a, b: b)
    assert traced(X) == 2


def test_matches_are_filtered() -> None:
    traced = fx.symbolic_trace(lambda x: (x + 1).relu() * (x + 2).relu())
    seen: list[Any] = []

    def adds_two(match: Any, graph: fx.Graph, pattern: fx.Graph) -> bool:
        seen.append(
            (graph is traced.graph, pattern.find_nodes(op="call_method", target="relu") == match.anchors)
        )
        return match.placeholder_nodes[0].args[1] == 2

    replaced = replace_pattern_with_filters(traced, lambda a: a.relu(), lambda a: a.neg().exp(), [adds_two])
    assert seen == [(True, True)] * 2
    (found,) = replaced
    assert [node.name for node in found.replacements] == ["neg", "exp"]
    assert found.anchor.name == "relu_1"
    assert torch.equal(traced(X), (X + 1).relu() * (-(X + 2)).exp())


def test_literals_are_ignored_on_request() -> None:
    for ignore, count in ((False, 1), (True, 2)):
        traced = fx.symbolic_trace(lambda x: x.sum(0) + x.sum(1))
        found = replace_pattern_with_filters(
            traced, lambda a: a.sum(1), lambda a: a.mean(), ignore_literals=ignore
        )
        assert len(found) == count


def test_replacements_are_made_for_each_match() -> None:
    traced = fx.symbolic_trace(lambda x: (x * 2) + (x * 3))

    def square(match: Any, graph: fx.Graph, pattern: fx.Graph) -> fx.Graph:
        (_, factor) = match.returning_nodes[0].args
        return fx.symbolic_trace(lambda a: a - factor).graph

    pattern = fx.symbolic_trace(lambda a: a * 0).graph
    found = replace_pattern_with_filters(traced, pattern, None, None, True, square)
    assert len(found) == 2
    assert torch.equal(traced(X), (X - 2) + (X - 3))
    with pytest.raises(TypeError, match="needs replacement or replacement_callback"):
        replace_pattern_with_filters(traced, pattern)
    with pytest.raises(ValueError, match="must have 1 arguments and 1 results"):
        replace_pattern_with_filters(
            fx.symbolic_trace(lambda x: x * 0),
            pattern,
            replacement_callback=lambda *_: fx.symbolic_trace(lambda a, b: a).graph,
        )


def test_results_match_by_name_on_request() -> None:
    traced = fx.symbolic_trace(lambda x: x.sin() + x.cos())
    found = replace_pattern_with_filters(traced, lambda a: a.relu(), lambda a: a.exp(), node_name_match="sin")
    assert [match.anchor.name for match in found] == ["sin"]
    assert torch.equal(traced(X), X.exp() + X.cos())


def test_results_that_are_used_between_the_calls_of_a_match() -> None:
    def used_between(x: Any) -> Any:
        a = x.sin()
        b = a + 1
        return b, x.cos()

    def needed_later(x: Any) -> Any:
        a = x.sin()
        return a, (a + 1).cos()

    traced = fx.symbolic_trace(used_between)
    assert len(fx.replace_pattern(traced, lambda x: (x.sin(), x.cos()), lambda x: (x.exp(), x))) == 1
    assert torch.equal(traced(X)[0], X.exp() + 1)
    traced = fx.symbolic_trace(needed_later)
    pattern, other = (lambda x, y: (x.sin(), y.cos())), (lambda x, y: (x, y))
    assert fx.replace_pattern(traced, pattern, other) == []
    traced.graph.lint()
    assert torch.equal(traced(X)[1], (X.sin() + 1).cos())


def test_matchers_refuse_what_they_cannot_find() -> None:
    graph = fx.symbolic_trace(lambda a: a.relu()).graph
    for name in ("match_output", "match_placeholder"):
        with pytest.raises(NotImplementedError, match=name):
            SubgraphMatcher(graph, **{name: True})
    both = fx.symbolic_trace(lambda x: x.relu().relu().relu()).graph
    pattern = fx.symbolic_trace(lambda x: x.relu().relu()).graph
    assert len(SubgraphMatcher(pattern).match(both)) == 1
    assert len(SubgraphMatcher(pattern, remove_overlapping_matches=False).match(both)) == 2


# Passes ---------------------------------------------------------------------------------------------------------------


def test_shapes_are_stored() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x: Any) -> Any:
            y = self.conv(x)
            return {"y": y.to(torch.float64), "size": y.shape, "parts": y.chunk(2)}

    traced = fx.symbolic_trace(Model())
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    result = ShapeProp(traced).propagate(x)
    meta = {node.name: node.meta for node in traced.graph.nodes}
    assert meta["x"]["tensor_meta"].memory_format is torch.channels_last
    conv = meta["conv"]["tensor_meta"]
    assert (conv.shape, conv.dtype, conv.requires_grad) == (torch.Size([2, 4, 6, 6]), torch.float32, True)
    assert meta["to"]["tensor_meta"].dtype is torch.float64
    assert "tensor_meta" not in meta["getattr_1"]
    assert meta["getattr_1"]["type"] is torch.Size
    assert [part.shape for part in meta["chunk"]["tensor_meta"]] == [(1, 4, 6, 6), (1, 4, 6, 6)]
    assert meta["output"]["tensor_meta"]["y"].stride == result["y"].stride()
    with pytest.raises(RuntimeError, match="ShapeProp error for: node=%conv"):
        ShapeProp(traced).propagate(torch.randn(2, 2, 8, 8))
    with pytest.raises(NotImplementedError, match="fake_mode"):
        ShapeProp(traced, fake_mode=object())


class Split(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.param, self.linear = nn.Parameter(torch.rand(3, 4)), nn.Linear(4, 5)
        self.block = nn.Sequential(nn.ReLU(), nn.Tanh())

    def forward(self, x: Any, y: Any = None, *, scale: float = 2.0) -> Any:
        z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
        w = self.block(self.linear(y)) * scale
        return {"sum": z + w, "z": z, "param": self.param}


@pytest.mark.parametrize("parts", [1, 2, 3, 20])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("returns_tuple", [False, True])
def test_modules_are_split(parts: int, keep: bool, returns_tuple: bool) -> None:
    traced = fx.symbolic_trace(Split().eval())
    numbers = {
        node: number * parts // len(traced.graph.nodes) for number, node in enumerate(traced.graph.nodes)
    }
    names: dict[str, str] = {}
    split = split_module(
        traced,
        None,
        numbers.__getitem__,
        names,
        keep,
        keep,
        not keep,
        partition_affix="p",
        tuple_return=returns_tuple,
    )
    split.graph.lint()
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    expected, got = traced(x, y, scale=3.0), split(x, y, scale=3.0)
    assert all(torch.equal(got[key], expected[key]) for key in expected)
    assert split.training is False
    assert split.meta["partition_names"] == {path for path, _ in split.named_children()}
    for path, module in split.named_children():
        assert path.startswith("submod_p_")
        module.graph.lint()
    for new, old in names.items():
        assert split.get_submodule(new) is traced.get_submodule(old)
    assert set(names.values()) == {"linear", "block.0", "block.1"}


def test_parts_that_need_each_other() -> None:
    traced = fx.symbolic_trace(lambda x: x.sin().cos().exp())
    numbers = {"sin": 0, "cos": 1, "exp": 0}
    with pytest.raises(RuntimeError, match="cycle exists between partitions! submod_0, submod_1"):
        split_module(traced, None, lambda node: numbers[node.name])


def test_parts_run_after_what_they_use() -> None:
    traced = fx.symbolic_trace(lambda x: (x.sin() + x.cos().exp(), x["a"]))
    numbers = {"sin": 1, "cos": 0, "exp": 0, "add": 1, "getitem": 2}
    split = split_module(traced, None, lambda node: numbers[node.name])
    assert [node.target for node in split.graph.find_nodes(op="call_module")] == [
        "submod_0",
        "submod_1",
        "submod_2",
    ]


def test_passes_are_checked_before_and_after() -> None:
    order: list[str] = []

    class Pass(PassBase):
        def requires(self, graph_module: Any) -> None:
            order.append("requires")

        def call(self, graph_module: Any) -> PassResult:
            order.append("call")
            return PassResult(graph_module, True)

        def ensures(self, graph_module: Any) -> None:
            order.append("ensures")

    traced = fx.symbolic_trace(lambda x: x)
    assert Pass()(traced) == (traced, True)
    assert order == ["requires", "call", "ensures"]


# Folders --------------------------------------------------------------------------------------------------------------


class Everything(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2).eval()
        self.block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.tied, self.double = nn.Linear(4, 4), nn.Linear(4, 4, dtype=torch.float64)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.weight = nn.Parameter(torch.randn(4), requires_grad=False)
        self.scale = nn.Parameter(torch.randn(4, 4).to(torch.float64))
        self.alias = self.tied.weight
        self.register_buffer("passing", torch.randn(4), persistent=False)
        self.register_buffer("kept", torch.randn(4))

    def forward(self, x: Any) -> Any:
        y = (
            self.block(self.norm(self.conv(x))) * self.weight
            + torch.add(x, self.passing)
            + torch.add(x, self.kept)
        )
        y = self.frozen(self.tied(y) @ self.alias)
        return {
            "y": y,
            "z": self.double(y.double()) @ self.scale,
            "s": math.sqrt(y.shape[0]),
            "f": float("inf"),
        }


def imported(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(folder.parent))
    importlib.invalidate_caches()
    return getattr(importlib.import_module(folder.name), name)


def test_modules_are_written_as_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = fx.symbolic_trace(Everything())
    traced.train()
    traced.norm.eval()
    traced.to_folder(tmp_path / "first_folder", "Mine")
    (tmp_path / "first_folder").rename(tmp_path / "moved_folder")
    loaded, second = (imported(tmp_path / "moved_folder", "Mine", monkeypatch)() for _ in range(2))
    x = torch.randn(2, 1, 4, 4)
    expected = traced(x)
    for module in (loaded, second):
        result = module(x)
        assert all(torch.equal(result[key], expected[key]) for key in "yz")
        assert (result["s"], result["f"]) == (expected["s"], expected["f"])
    flags = {path: module.training for path, module in traced.named_modules()}
    assert {path: module.training for path, module in loaded.named_modules()} == flags
    assert list(loaded.state_dict()) == list(traced.state_dict())
    kinds = {path: (value.dtype, value.requires_grad) for path, value in traced.named_parameters()}
    assert {path: (value.dtype, value.requires_grad) for path, value in loaded.named_parameters()} == kinds
    assert loaded.alias is loaded.tied.weight
    assert not any(a is b for a, b in zip(loaded.parameters(), second.parameters(), strict=True))
    source = (tmp_path / "moved_folder" / "module.py").read_text()
    assert "torch.nn.BatchNorm2d(2," in source
    assert "objects['frozen']" in source


def test_folders_keep_containers_and_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from test_fx_containers import Both

    fixed = Both(torch.ones(2), 3)

    class Model(nn.Module):
        def forward(self, x: Any) -> Any:
            return [Both(x["a"], 1).add(fixed)]

    traced = fx.symbolic_trace(Model(), {"x": {"a": fx.PH}}).eval()
    traced.to_folder(str(tmp_path / "with_containers"))
    loaded = imported(tmp_path / "with_containers", "FxModule", monkeypatch)()
    (result,) = loaded({"a": torch.ones(2)})
    assert torch.equal(result.left, torch.full((2,), 2.0))
    assert result.right == 4
    assert loaded.training is False


def test_folders_are_read_by_another_process(tmp_path: Path) -> None:
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.GELU()))
    traced.to_folder(tmp_path / "small")
    program = (
        "import rushlight as torch; from small import FxModule; print(FxModule()(torch.ones(2)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == str(traced(torch.ones(2)).tolist()), done.stderr


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    traced = fx.symbolic_trace(lambda x: x + 1)
    with pytest.raises(ValueError, match=r"to_folder\(module_name\): must be a name of a class, got 'a b'"):
        traced.to_folder(tmp_path / "no", "a b")
    graph = fx.Graph()
    graph.output(graph.call_function(lambda x: x, (graph.placeholder("x"),)))
    with pytest.raises(ValueError, match="which cannot be imported by a name"):
        fx.GraphModule(nn.Module(), graph).to_folder(tmp_path / "no")
    traced = fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    traced.get_submodule("0").handle = lambda: None
    with pytest.raises(TypeError, match="the attribute '0' of type ReLU cannot be pickled"):
        traced.to_folder(tmp_path / "no")
    assert not (tmp_path / "no").exists()


# Groups of calls ------------------------------------------------------------------------------------------------------


def supports(*names: str) -> Any:
    return create_op_support(
        lambda modules, node: node.op != "call_module" and node.name.partition("_")[0] in names
    )


def parts_of(function: Any, *names: str, **options: Any) -> tuple[list[list[str]], Any]:
    traced = fx.symbolic_trace(function)
    expected = traced(X)
    partitioner = CapabilityBasedPartitioner(traced, supports(*names), **options)
    found = partitioner.propose_partitions()
    fused = partitioner.fuse_partitions(found)
    fused.graph.lint()
    assert torch.equal(fused(X), expected)
    return [[node.name for node in part.nodes] for part in found], fused


def test_supported_calls_are_grouped() -> None:
    groups, fused = parts_of(lambda x: ((x + 1) * 2).relu() + 1, "add", "mul")
    assert groups == [["add", "mul"]]
    assert [node.name for node in fused.graph.nodes] == ["x", "fused_0", "relu", "add_1", "output"]
    groups, _ = parts_of(lambda x: ((x + 1) * 2).relu() + 1, "add", "mul", allows_single_node_partition=True)
    assert groups == [["add", "mul"], ["add_1"]]
    # A group must not contain calls on both sides of a call that is outside.
    groups, _ = parts_of(lambda x: (lambda a: (a + 2) * a.relu())(x + 1), "add", "mul")
    assert groups == [["add", "add_1"]]

    # Groups that do not use each other's results become one, unless this is switched off.
    def two(x: Any) -> Any:
        return ((x + 1) * 2).relu() - ((x * 3) + 4).neg()

    assert parts_of(two, "add", "mul")[0] == [["add", "mul", "mul_1", "add_1"]]
    assert parts_of(two, "add", "mul", skip_horizontal_fusion=True)[0] == [["add", "mul"], ["mul_1", "add_1"]]
    allowed = {"non_compute_ops": ["operator.add"], "allowed_single_node_partition_ops": ["operator.add"]}
    assert parts_of(lambda x: (x + 1).relu(), "add", **allowed)[0] == [["add"]]
    assert parts_of(lambda x: (x + 1 + 2).relu(), "add", non_compute_ops=["operator.add"])[0] == []


def test_groups_of_random_graphs_compute_the_same() -> None:
    """Whatever calls are supported, a module of groups has an order and computes the same."""
    generator = random.Random(0)
    grouped = 0
    for _ in range(150):
        graph = fx.Graph()
        nodes = [graph.placeholder("x")]
        for _ in range(generator.randrange(2, 14)):
            function = generator.choice((operator.add, operator.mul, torch.maximum))
            nodes.append(graph.call_function(function, tuple(generator.choices(nodes, k=2))))
        graph.output(tuple(generator.choices(nodes, k=2)))
        traced = fx.GraphModule(nn.Module(), graph)
        expected = traced(X)
        chosen = {node for node in nodes[1:] if generator.random() < 0.6}
        partitioner = CapabilityBasedPartitioner(
            traced,
            create_op_support(lambda modules, node: node in chosen),  # noqa: B023 - called in this iteration
            allows_single_node_partition=True,
            skip_horizontal_fusion=generator.random() < 0.5,
        )
        found = partitioner.propose_partitions()
        assert {node for part in found for node in part.nodes} == chosen
        grouped += sum(part.size() > 1 for part in found)
        fused = partitioner.fuse_partitions(found)
        fused.graph.lint()
        assert all(torch.equal(*pair) for pair in zip(fused(X), expected, strict=True))
    assert grouped > 100


def test_support_depends_on_names_and_dtypes() -> None:
    traced = fx.symbolic_trace(lambda x: torch.relu(torch.add(x, other=x)))
    ShapeProp(traced).propagate(X)
    _, add, relu, _ = traced.graph.nodes

    def supported(table: Any, node: Any) -> bool:
        return OperatorSupport(table).is_node_supported({}, node)

    assert supported({"torch.relu": None}, relu)
    assert not supported({"torch.relu": None}, add)
    assert supported({"torch.relu": (([torch.float32],), {})}, relu)
    assert not supported({"torch.relu": (([torch.int64],), {})}, relu)
    assert supported({"torch.add": ((None,), {"other": [torch.float32]})}, add)
    assert not supported({"torch.add": ((None,), {"other": [torch.int64]})}, add)
    assert supported({}, traced.graph.output_node())
    float32 = OpSupports.decline_if_input_dtype(torch.float32)
    assert not float32.is_node_supported({}, add)
    assert any_chain(float32, OperatorSupport({"torch.add": None})).is_node_supported({}, add)
    assert not chain(float32, OperatorSupport({"torch.add": None})).is_node_supported({}, add)
    with pytest.raises(AssertionError, match="must be a call"):
        get_node_target({}, traced.graph.output_node())


def test_parts_that_one_call_cannot_replace_are_refused() -> None:
    traced = fx.symbolic_trace(lambda x: (x + 1).relu() * 2)
    x, add, relu, mul, _ = traced.graph.nodes
    with pytest.raises(AssertionError, match="a node outside"):
        fuse_as_graphmodule(traced, [add, mul], "Part")
    with pytest.raises(AssertionError, match="does not belong"):
        fuse_as_graphmodule(fx.symbolic_trace(lambda x: x), [add], "Part")
    part, inputs, outputs = fuse_as_graphmodule(traced, [add, relu], "Part", always_return_tuple=True)
    assert type(part).__name__ == "Part"
    assert (inputs, outputs) == ((x,), (relu,))
    assert torch.equal(part(X)[0], (X + 1).relu())
    insert_subgm(traced, part, inputs, outputs)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    assert torch.equal(traced(X), (X + 1).relu() * 2)
    assert "self.Part(x)" in traced.code


# Tags -----------------------------------------------------------------------------------------------------------------


class Tagged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0]))

    def forward(self, x: Any, y: Any = 2) -> Any:
        a = self.inner(x) * self.weight
        return {"a": a - y, "sum": a.sum(0) + self.weight}


def test_modules_are_split_by_tags() -> None:
    model = Tagged()
    traced = fx.symbolic_trace(model)
    calls = [node for node in traced.graph.nodes if node.op.startswith("call")]
    for node, tag in zip(calls, ["first", "first", "middle", "last", "middle", "last"], strict=True):
        node.tag = tag
    split, paths = split_by_tags(traced, ["first", "middle", "last"], return_fqn_mapping=True)
    assert paths == {"inner.0": "first.inner.0", "inner.1": "first.inner.1", "weight": "last.weight"}
    x = torch.randn(3, 2)
    expected = model(x, 3)
    for result in (
        split(x, 3),
        split_by_tags(traced, ["first", "middle", "last"], return_tuple=True)(x, y=3),
    ):
        assert result.keys() == expected.keys()
        assert all(torch.equal(result[key], expected[key]) for key in expected)
    assert torch.equal(split(x)["a"], model(x)["a"])
    assert split.first.inner._modules["0"] is model.inner[0]
    assert split.middle.weight is model.weight
    with pytest.raises(
        ValueError, match=r"'mul' with the tag 'middle' uses 'inner_1' with the later tag 'first'"
    ):
        split_by_tags(traced, ["middle", "first", "last"])
    with pytest.raises(ValueError, match="has the tag 'last', which is not one of"):
        split_by_tags(traced, ["first", "middle"])


def test_attributes_at_paths() -> None:
    model = Tagged()
    assert getattr_recursive(model, "inner.0.weight") is model.inner[0].weight
    assert getattr_recursive(model, "inner.7.weight") is None
    setattr_recursive(model, "inner.1", nn.Tanh())
    assert isinstance(model.inner[1], nn.Tanh)


# Orders ---------------------------------------------------------------------------------------------------------------


def test_nodes_are_sorted() -> None:
    for sort in (legalize_graph, stable_topological_sort):
        traced = fx.symbolic_trace(lambda x: ((x + 1) * 2, x - 3)[0] + x.exp())
        expected = traced(X)
        _x, add, mul, _sub, _exp, last, _ = traced.graph.nodes
        add.prepend(mul)
        last.append(add)
        with pytest.raises(RuntimeError, match="before it is defined"):
            traced.graph.lint()
        assert sort(traced) is traced
        traced.graph.lint()
        assert torch.equal(traced(X), expected)
    assert [node.name for node in traced.graph.nodes] == ["x", "sub", "exp", "add", "mul", "add_1", "output"]
    left, right = list(traced.graph.nodes)[1:3]
    left.args, right.args = (right,), (left,)
    with pytest.raises(RuntimeError, match="use each other's results"):
        stable_topological_sort(traced)


def test_graphs_are_compared() -> None:
    def graph(function: Any) -> fx.Graph:
        return fx.symbolic_trace(function).graph

    base = graph(lambda x, y: (x + y) * (x - y))
    assert compare_graphs(base, graph(lambda a, b: (a + b) * (a - b)))
    for other in (
        lambda x, y: (y + x) * (x - y),
        lambda x, y: (x + y) * (x + y),
        lambda x, y: (x + y) * (x - x),
        lambda y, x: (x + y) * (x - y),
        lambda x, y: (x + y) * (x - y) + 1,
    ):
        assert not compare_graphs(base, graph(other))
    assert not compare_graphs(graph(lambda x: x + 1), graph(lambda x: x + 1.0))


# Managers -------------------------------------------------------------------------------------------------------------


def test_a_manager_runs_passes_in_order() -> None:
    log: list[str] = []

    def named(name: str, changes: int) -> Any:
        def run(module: Any) -> PassResult:
            log.append(name)
            return PassResult(module, log.count(name) <= changes)

        run.__name__ = name
        return run

    first, second = named("first", 2), named("second", 0)
    manager = PassManager([second, first], [this_before_that_pass_constraint(first, second)], steps=5)
    with pytest.raises(RuntimeError, match="first must run before second"):
        manager.validate_constraints()
    module = fx.symbolic_trace(lambda x: x + 1)
    assert manager(module).modified
    assert log == ["first", "second"] * 3
    manager.add_constraint(this_before_that_pass_constraint(second, first))
    with pytest.raises(RuntimeError, match="no order of the passes first, second"):
        manager(module)
    checked: list[Any] = []
    manager = PassManager(run_checks_after_each_pass=True)
    manager.add_checks(checked.append)
    manager.add_pass(pass_result_wrapper(lambda module: None))
    assert manager(module).modified
    assert checked == [module, module]
    with pytest.raises(TypeError, match="must return a PassResult, got NoneType"):
        PassManager([lambda module: None])(module)
    with pytest.raises(RuntimeError, match="the pass <lambda> raised: division"):
        PassManager([lambda module: 1 / 0])(module)
    with pytest.raises(TypeError, match="one parameter"):
        manager.add_checks(lambda: None)  # type: ignore[arg-type, misc]
    with pytest.raises(NotImplementedError, match="suppress_check_failures"):
        PassManager(suppress_check_failures=True)


# Layers for inference -------------------------------------------------------------------------------------------------


class Folded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)
        self.shared, self.norms = nn.Conv2d(2, 2, 1), nn.ModuleList([nn.BatchNorm2d(2), nn.BatchNorm2d(2)])
        self.drop, self.linear, self.last = nn.Dropout(), nn.Linear(2, 3), nn.BatchNorm1d(3)

    def forward(self, x: Any) -> Any:
        y = self.norm(self.conv(x))
        for norm in self.norms:
            y = norm(self.shared(y))
        return self.last(self.linear(self.drop(y.mean((2, 3)))))


def test_batch_norms_are_folded() -> None:
    model = Folded()
    for _ in range(3):
        model(torch.randn(4, 1, 6, 6))  # moves the running statistics
    with pytest.raises(ValueError, match="'norm' is in training mode"):
        fuse(model)
    model.eval()
    x = torch.randn(4, 1, 6, 6)
    expected, before = model(x), model.conv.weight.clone()
    fused = fuse(model)
    targets = [node.target for node in fused.graph.find_nodes(op="call_module")]
    assert targets == ["conv", "shared", "norms.0", "shared", "norms.1", "drop", "linear"]
    torch.testing.assert_close(fused(x), expected)
    assert torch.equal(model.conv.weight, before)
    without = remove_dropout(model)
    assert "drop" not in [node.target for node in without.graph.nodes]
    assert torch.equal(without(x), expected)
    assert torch.equal(remove_dropout(model.train()).eval()(x), expected)


def test_make_fx_refuses() -> None:
    from rushlight.fx.experimental.proxy_tensor import make_fx

    with pytest.raises(NotImplementedError, match=r"(?s)operators.*hint: torch\.export\.export"):
        make_fx(lambda x: x)(X)


# Drawings -------------------------------------------------------------------------------------------------------------


class FakePydot(types.ModuleType):
    """Records what would be drawn."""

    class Dot:
        def __init__(self, name: str, **attributes: Any) -> None:
            self.name, self.nodes, self.edges = name, {}, []  # type: ignore[var-annotated]

        def add_node(self, node: Any) -> None:
            self.nodes[node[0]] = node[1]

        def add_edge(self, edge: Any) -> None:
            self.edges.append(edge)

    @staticmethod
    def Node(name: str, **attributes: Any) -> Any:
        return name, attributes

    @staticmethod
    def Edge(first: str, second: str) -> Any:
        return first, second


def test_graphs_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    from rushlight.fx.passes.graph_drawer import FxGraphDrawer

    monkeypatch.setitem(sys.modules, "pydot", None)
    traced = fx.symbolic_trace(Tagged())
    with pytest.raises(RuntimeError, match=r"needs the package pydot(.|\n)*hint: pip install"):
        FxGraphDrawer(traced, "tagged")
    monkeypatch.setitem(sys.modules, "pydot", FakePydot("pydot"))
    traced.add_submodule("part", fx.symbolic_trace(nn.Sequential(nn.ReLU())))
    ShapeProp(traced).propagate(torch.ones(3, 2))
    drawer = FxGraphDrawer(traced, "tagged")
    drawing = drawer.get_dot_graph()
    assert list(drawing.nodes) == [node.name for node in traced.graph.nodes]
    assert set(drawing.edges) == {(n.name, user.name) for n in traced.graph.nodes for user in n.users}
    label = drawing.nodes["inner_0"]["label"]
    assert label.startswith('"{name=%inner_0\\nop_code=call_module\\ntorch.nn.Linear')
    assert "weight: (2, 2)" in label
    assert "f32[3, 2][2, 1]" in label
    assert list(drawer.get_all_dot_graphs()) == ["tagged", "tagged_part"]
    assert list(drawer.get_dot_graph("part").nodes) == ["input_1", "_0", "output"]
    plain = FxGraphDrawer(traced, "tagged", ignore_parameters_and_buffers=True).get_dot_graph()
    assert "weight" not in plain.nodes
    assert "weight:" not in plain.nodes["inner_0"]["label"]
    assert not any("weight" in edge for edge in plain.edges)
    assert "args=2" not in plain.nodes["sub"]["label"]
    assert "sub" in plain.nodes
    named = FxGraphDrawer(traced, "tagged", skip_node_names_in_args=False).get_dot_graph()
    assert "args=x" in named.nodes["inner_0"]["label"]
