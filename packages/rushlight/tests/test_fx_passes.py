"""Passes over graphs of fx: patterns with filters, shapes, splitting, and modules that are written as folders."""

from __future__ import annotations

import importlib
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.passes.infra.pass_base import PassBase, PassResult
from rushlight.fx.passes.shape_prop import ShapeProp
from rushlight.fx.passes.split_module import split_module
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
