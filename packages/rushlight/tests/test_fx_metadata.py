"""fx: what nodes state about their calls. Normal forms of arguments, types, readable code and inherited data."""

from __future__ import annotations

import collections
import pickle
import typing
from typing import Any

import pytest

import rushlight as torch
import rushlight_core as core
from rushlight import fx, nn
from rushlight.fx import operator_schemas, traceback
from rushlight.fx.annotate import annotate
from rushlight.fx.passes.shape_prop import ShapeProp
from rushlight.nn import functional as F

X = torch.ones(2, 3)


def node_of(function: Any) -> Any:
    """Return the first call of a traced function."""
    return next(node for node in fx.symbolic_trace(function).graph.nodes if node.op.startswith("call"))


# Normal forms of arguments ---------------------------------------------------------------------------------------------


def test_defaults_are_added() -> None:
    node = node_of(lambda x: torch.sum(x, 1))
    x = node.args[0]
    assert node.normalized_arguments(None) == ((x, 1), {"keepdim": False, "dtype": None})
    only_names = {"input": x, "dim": 1, "keepdim": False, "dtype": None}
    assert node.normalized_arguments(None, normalize_to_only_use_kwargs=True) == ((), only_names)
    node = node_of(lambda x: F.relu(x))  # written in Python
    assert node.normalized_arguments(None).kwargs == {"inplace": False}
    node = node_of(lambda x: torch.arcsin(x))  # another name of asin
    assert node.normalized_arguments(None) == ((node.args[0],), {})
    node = node_of(lambda x: x + 1)
    assert node.normalized_arguments(None) is None  # of the module `operator`
    assert node_of(lambda x: x.sum(1)).normalized_arguments(None) is None


def test_a_normal_form_computes_the_same() -> None:
    calls = [
        lambda x: torch.flatten(x, 0),
        lambda x: F.conv1d(x[None], torch.ones(4, 2, 1)),
        lambda x: torch.cat([x, x], dim=1),
        lambda x: F.softmax(x, -1),
        lambda x: torch.max(x, 1),
        lambda x: torch.clamp(x, max=0.5),
        lambda x: torch.where(x > 0, x, 2.0),
        lambda x: torch.fft.fft2(x),
        lambda x: torch.linalg.norm(x, 1),
        lambda x: torch.split(x, [1, 2], 1),
        lambda x: torch.logit(x, eps=1e-6),
        lambda x: F.interpolate(x[None], scale_factor=2),
        lambda x: torch.add(x, 1, alpha=2),
        lambda x: F.max_pool1d(x, 2, ceil_mode=True),
    ]
    for call in calls:
        traced = fx.symbolic_trace(call)
        expected = traced(X)
        changed = 0
        for node in traced.graph.nodes:
            found = node.normalized_arguments(traced, normalize_to_only_use_kwargs=True)
            if found is not None:
                node.args, node.kwargs = found
                changed += 1
        traced.recompile()
        assert changed > 0
        torch.testing.assert_close(traced(X), expected, rtol=0, atol=0)


def test_overloads_are_selected() -> None:
    normalize = operator_schemas.normalize_function
    x, y = (fx.Graph().placeholder(name) for name in "xy")
    with pytest.raises(RuntimeError, match=r"max fits several overloads(.|\n)*max\.other(.|\n)*hint"):
        normalize(torch.max, (x, y))
    assert normalize(torch.max, (x, y), arg_types=(torch.Tensor, torch.Tensor)) == ((x, y), {})
    assert normalize(torch.max, (x, y), arg_types=(torch.Tensor, int)) == ((x, y), {"keepdim": False})
    assert normalize(torch.max, (x, y), arg_types=(str, str)) is None
    assert normalize(torch.max, (x, 1)) == ((x, 1), {"keepdim": False})  # the int selects it
    assert normalize(F.conv2d, (x, y), {"padding": "same"}).kwargs["padding"] == "same"  # type: ignore[union-attr]
    assert normalize(torch.max, (x, 1, 2, 3, 4)) is None


def test_calls_of_layers_are_normalized() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU()))
    traced = fx.symbolic_trace(model)
    first, second = traced.graph.find_nodes(op="call_module")
    for node in (first, second):
        assert node.normalized_arguments(traced, normalize_to_only_use_kwargs=True).kwargs == {
            "input": node.args[0]
        }

    class Own(nn.Module):
        def forward(self, x: Any) -> Any:
            return x

    assert operator_schemas.normalize_module(nn.Sequential(Own()), "0", (X,)) is None
    with pytest.raises(RuntimeError, match="has no submodule 'missing'"):
        operator_schemas.normalize_module(model, "missing", (X,))


def test_every_schema_has_a_signature() -> None:
    """The parameters and defaults of the signatures are those with which the functions are called."""
    counts: collections.Counter[bool] = collections.Counter()
    for name in sorted({name.partition(".")[0] for name, _ in core._C._operators()}):
        found = operator_schemas._schemas_of(name)
        assert found
        for schema in found:
            assert all(f" {parameter}" in schema.text for parameter in schema.signature.parameters), (
                schema.text
            )
            counts[schema.is_mutable] += 1
    assert counts[True] > 100
    assert counts[False] > 500
    (flatten,) = operator_schemas.get_signature_for_torch_op(torch.flatten)
    assert str(flatten) == (
        "(input: rushlight_core.Tensor, start_dim: int = 0, end_dim: int = -1) -> rushlight_core.Tensor"
    )
    (first, *_) = operator_schemas.get_signature_for_torch_op(torch.fft.fft2)
    assert first.parameters["dim"].default == [-2, -1]
    assert first.parameters["s"].annotation == list[int] | None
    assert operator_schemas.get_signature_for_torch_op(torch.ops.aten.relu.default) is not None
    assert operator_schemas.get_signature_for_torch_op(len) is None


def test_types_of_arguments() -> None:
    matches, hint = operator_schemas.type_matches, operator_schemas.create_type_hint
    assert matches(list[int], int)
    assert matches(list[int], tuple[int, int])
    assert matches(list[torch.Tensor], list[nn.Parameter])
    assert matches(torch.Tensor | int, int)
    assert matches(int | None, type(None))
    assert not matches(int, float)
    assert not matches(list[int], list[str])
    assert not matches(list[int], str)
    assert hint([int, bool]) == list[int]
    assert hint((int, str)) == tuple[typing.Any, ...]
    assert hint(int) is int
    assert hint([]) == list[typing.Any]


# Calls that write ------------------------------------------------------------------------------------------------------


def test_a_tracer_can_refuse_calls_that_write() -> None:
    class Functional(fx.Tracer):
        check_mutable_operations = True

    assert len(Functional().trace(lambda x: torch.relu(x) + 1).nodes) == 4
    for function in (lambda x: torch.relu_(x), lambda x: torch.relu(x, out=x)):
        with pytest.raises(RuntimeError, match="writes to an argument"):
            Functional().trace(function)
        assert len(fx.Tracer().trace(function).nodes) == 3


# Types -----------------------------------------------------------------------------------------------------------------


def test_types_are_read_from_annotations() -> None:
    space: dict[str, Any] = {"torch": torch, "typing": typing}
    source = (
        "def f(x: torch.Tensor, y: torch.Tensor | None, z: typing.Optional[int] = None, *a: typing.Tuple[int, ...], "
        "w: typing.Dict[str, typing.Any] = {}) -> list[int]:\n    return x + 1"
    )
    exec(compile(source, "user", "exec", dont_inherit=True), space)
    traced = fx.symbolic_trace(space["f"])
    x, *_, output = traced.graph.nodes
    assert x.type is torch.Tensor
    assert output.type == list[int]
    head = traced.code.splitlines()[0]
    assert head.startswith(
        "def forward(self, x : torch.Tensor, y : torch.Tensor | None, z : int | None = None, "
    )
    assert head.endswith("*a : tuple[int, ...]) -> list[int]:")
    assert x.format_node() == "%x : torch.Tensor [num_users=1] = placeholder[target=x]"
    assert pickle.loads(pickle.dumps(traced)).code == traced.code
    again = fx.symbolic_trace(traced)
    assert again.code == traced.code
    assert next(iter(again.graph.nodes)).type is torch.Tensor
    assert torch.equal(again(X, None), X + 1)


def test_values_can_be_annotated() -> None:
    traced = fx.symbolic_trace(lambda x: annotate(x + 1, "a sum"))
    assert "add : 'a sum' = x + 1" in traced.code
    assert torch.equal(traced(X), X + 1)
    assert annotate(3, int) == 3
    with pytest.raises(RuntimeError, match="'add' already has the type"):
        fx.symbolic_trace(lambda x: annotate(annotate(x + 1, int), int))


# Readable code ---------------------------------------------------------------------------------------------------------


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.layer(x).relu().sum(1)


def test_readable_code_honours_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    traced = fx.symbolic_trace(Model())
    plain = traced.print_readable()
    assert capsys.readouterr().out == f"{plain}\n"
    assert plain.startswith(
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        layer = self.layer(x)"
    )
    ShapeProp(traced).propagate(X)
    assert 'layer: "f32[2, 4]" = self.layer(x)' in traced.print_readable(False)
    assert 'layer: "f32[2, 4][4, 1]" = self.layer(x)' in traced.print_readable(False, include_stride=True)
    node = traced.graph.find_nodes(op="call_module")[0]
    node.meta.update(
        val=torch.ones(2, 4, dtype=torch.int64), seq_nr=7, custom={"stage": 1}, stack_trace="line 3"
    )
    text = traced.print_readable(False, include_device=True, additional_meta=["seq_nr"])
    assert 'layer: "i64[2, 4]cpu"' in text
    assert "# seq_nr: 7, Annotation: {'stage': 1}, line 3\n" in text
    assert "seq_nr" not in traced.print_readable(False)
    assert "    x,\n" not in traced.print_readable(False)
    text = traced.print_readable(False, expanded_def=True)
    assert '    def forward(\n        self,\n        x: "f32[2, 3]",\n    ):\n' in text
    colored = traced.print_readable(False, colored=True)
    assert "\x1b[31mi64\x1b[0m" in colored
    assert capsys.readouterr().out == ""
    with pytest.raises(NotImplementedError, match="fast_sympy_print"):
        traced.print_readable(fast_sympy_print=True)
    with pytest.raises(NotImplementedError, match="record_func"):
        traced.graph.python_code(record_func=True)
    with pytest.raises(TypeError, match="unknown"):
        traced.print_readable(unknown=True)  # type: ignore[call-arg]


def test_readable_code_runs() -> None:
    traced = fx.symbolic_trace(Model())
    ShapeProp(traced).propagate(X)
    traced.graph.find_nodes(op="placeholder")[0].meta["desc"] = "the batch"
    traced.graph.output_node().meta["desc"] = ["the sum"]
    code = traced.graph.python_code(verbose=True, include_stride=True, include_device=True, expanded_def=True)
    assert 'x: "f32[2, 3][3, 1]",  # the batch' in code.src
    names = dict(code.globals)
    exec(compile(code.src, "code", "exec"), names)
    assert torch.equal(names["forward"](traced, X), traced(X))


def test_readable_code_contains_submodules() -> None:
    outer = fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    outer.add_submodule("inner", fx.symbolic_trace(Model()))
    assert "    class inner(torch.nn.Module):\n        def forward(self, x):\n" in outer.print_readable(False)


def test_nodes_are_formatted_with_tensors() -> None:
    node = node_of(lambda x: x.relu())
    node.meta["val"] = torch.ones(2, 3, dtype=torch.bfloat16).t()
    text = node.format_node(include_tensor_metadata=True)
    assert text.startswith('%relu : Tensor "bf16[3, 2][1, 3]cpu" [num_users=1] = call_method[target=relu]')
    assert '"bf16' not in node.format_node()


# Inherited data --------------------------------------------------------------------------------------------------------


def test_new_nodes_inherit_data() -> None:
    traced = fx.symbolic_trace(Model())
    for node in traced.graph.nodes:
        node.meta.update(custom={"name": node.name}, stack_trace=f"line of {node.name}", other=1)
    assert not traceback.has_preserved_node_meta()
    unchanged = fx.Transformer(traced).transform()
    assert all("custom" not in node.meta for node in unchanged.graph.nodes if node.op != "output")
    with traceback.preserve_node_meta():
        assert traceback.has_preserved_node_meta()
        made = fx.Transformer(traced).transform()
        with traceback.preserve_node_meta(False):
            assert not traceback.has_preserved_node_meta()
    for node in made.graph.nodes:
        if node.op.startswith("call"):
            assert node.meta["custom"] == {"name": node.name}
            assert node.stack_trace == f"line of {node.name}"
            (source,) = node.meta["from_node"]
            assert source.name == node.name
            assert source.pass_name == "Interpreter_Transformer"
            assert source.graph_id == id(traced.graph)
            assert "other" not in node.meta
    assert not traceback.has_preserved_node_meta()
    assert traceback.get_current_meta() == {}


def test_an_interpreter_knows_the_node_that_runs() -> None:
    seen: list[Any] = []

    class Watching(fx.Interpreter):
        def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
            seen.append(traceback.get_current_meta().get("custom"))
            return super().call_method(target, args, kwargs)

    traced = fx.symbolic_trace(lambda x: x.relu().neg())
    for node in traced.graph.nodes:
        node.meta["custom"] = node.name
    Watching(traced).run(X)
    with traceback.preserve_node_meta():
        Watching(traced).run(X)
    assert seen == [None, None, "relu", "neg"]


def test_regions_are_annotated() -> None:
    @traceback.annotate_fn({"inner": True})
    def inner(x: Any) -> Any:
        return x.neg()

    def model(x: Any) -> Any:
        with traceback.annotate({"stage": 1}):
            x = inner(x.relu())
            with traceback.annotate({"stage": 2}):
                x = x.exp()
        return x.abs()

    with traceback.preserve_node_meta():
        nodes = fx.symbolic_trace(model).graph.find_nodes(op="call_method")
    assert [node.meta.get("custom") for node in nodes] == [
        {"stage": 1}, {"stage": 1, "inner": True}, {"stage": 2}, None
    ]  # fmt: skip
    assert all("custom" not in node.meta for node in fx.symbolic_trace(model).graph.nodes)
    with pytest.raises(ValueError, match="stop"), traceback.annotate({"stage": 3}):
        raise ValueError("stop")
    assert traceback.get_current_meta() == {}


def test_sources_of_nodes() -> None:
    x = fx.Graph().placeholder("x")
    first = traceback.NodeSource(x, "split", traceback.NodeSourceAction.CREATE)
    x.meta["from_node"] = [first]
    second = traceback.NodeSource(
        x, "fuse", [traceback.NodeSourceAction.REPLACE, traceback.NodeSourceAction.CREATE]
    )
    assert second.to_dict()["from_node"] == [first.to_dict()]
    assert second.to_dict()["action"] == "replace+create"
    assert second.print_readable().splitlines()[1].startswith("    (name=x, pass_name=split, action=create")
    assert first.from_node == []
    assert first != second
    assert len({first, second}) == 2
    assert traceback.NodeSource(None).name == ""
    assert traceback.get_current_replay_node() is None


def test_the_text_of_a_graph_is_pytorch_s(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x, scale=2.0):
        return {"a": torch.cat([x * scale, x.mT], dim=0).pad((0, 1), mode="constant").sum(dim=-1)}

    f.__annotations__ = {"x": torch.Tensor}
    graph = fx.symbolic_trace(f).graph
    assert (
        str(graph)
        == """\
graph():
    %x : torch.Tensor [num_users=2] = placeholder[target=x]
    %scale : [num_users=1] = placeholder[target=scale](default=2.0)
    %mul : [num_users=1] = call_function[target=operator.mul](args = (%x, %scale), kwargs = {})
    %getattr_1 : [num_users=1] = call_function[target=builtins.getattr](args = (%x, mT), kwargs = {})
    %cat : [num_users=1] = call_function[target=torch.cat](args = ([%mul, %getattr_1],), kwargs = {dim: 0})
    %pad : [num_users=1] = call_method[target=pad](args = (%cat, (0, 1)), kwargs = {mode: constant})
    %sum_1 : [num_users=1] = call_method[target=sum](args = (%pad,), kwargs = {dim: -1})
    return {'a': sum_1}"""
    )
    names, types = ["self"], [""]
    first, *_, last = graph.nodes
    last.type = torch.Tensor
    assert first.format_node(names, types) is None
    assert last.format_node(names, types) == "return {'a': sum_1}"
    assert (names, types) == (["self", "x : torch.Tensor"], [" -> torch.Tensor"])
    graph.print_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert [len(part) for part in lines[1].split()] == [13, 9, 27, 19, 20]
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert lines[-1].split() == ["output", "output", "output", "({'a':", "sum_1},)", "{}"]
