"""`onnx.export`: names, arguments, in-place writes, sizes that change, errors, and the results of onnxruntime."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_graph import Dim, export, onnx

checker = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def model_of(*args: Any, **options: Any) -> Any:
    """Return the exported model, read and checked by the package onnx."""
    file = io.BytesIO()
    onnx.export(*args, f=file, **options)
    model = checker.load_model_from_string(file.getvalue())
    checker.checker.check_model(model, full_check=True)
    return model


def run(model: Any, *inputs: Any) -> list[Any]:
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return session.run(None, {name: t.detach().numpy() for name, t in zip(names, inputs, strict=True)})


def same(got: list[Any], *expected: Any) -> None:
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other.detach().numpy(), 1e-4, 1e-5)


def operators(model: Any) -> list[str]:
    return [node.op_type for node in model.graph.node]


# --- names and arguments ---


def test_weights_names_and_source_lines_are_in_the_model(linear: Any) -> None:
    x = core.randn(4, 3)
    model = model_of(linear, (x,))
    assert operators(model) == ["Gemm"]
    assert [value.name for value in model.graph.input] == ["x"]
    assert [value.name for value in model.graph.output] == ["output_0"]
    weights = {item.name: checker.numpy_helper.to_array(item) for item in model.graph.initializer}
    assert set(weights) == {"weight", "bias"}
    assert (weights["weight"] == linear.members["weight"].numpy()).all()
    assert model.graph.node[0].doc_string.startswith("linear at ")
    assert "conftest.py:" in model.graph.node[0].doc_string
    assert (model.producer_name, model.opset_import[0].version, model.ir_version) == ("rushlight", 18, 8)
    same(run(model, x), linear(x))


def test_names_are_given(linear: Any) -> None:
    model = model_of(linear, (core.randn(4, 3),), input_names=["images"], output_names=["labels"])
    assert [value.name for value in model.graph.input] == ["images"]
    assert [value.name for value in model.graph.output] == ["labels"]
    with pytest.raises(ValueError, match=r"input_names.*2 names are given for 1 tensors"):
        onnx.export(linear, (core.randn(4, 3),), input_names=["a", "b"])
    with pytest.raises(ValueError, match="a name is repeated"):
        onnx.export(linear, (core.randn(4, 3),), input_names=["a"], output_names=["a"])


def test_an_input_may_have_the_name_of_a_weight(linear: Any) -> None:
    x = core.randn(4, 3)
    same(run(model_of(linear, (x,), input_names=["weight"], output_names=["bias"]), x), linear(x))


@pytest.mark.parametrize(("version", "ir"), [(17, 8), (19, 9), (21, 10)])
def test_the_opset_is_chosen(linear: Any, version: int, ir: int) -> None:
    model = model_of(linear, (core.randn(4, 3),), opset_version=version)
    assert (model.opset_import[0].version, model.ir_version) == (version, ir)


@pytest.mark.parametrize("version", [16, 22, "18"])
def test_other_opsets_are_refused(linear: Any, version: Any) -> None:
    with pytest.raises(ValueError, match=r"opset_version.*from 17 to 21"):
        onnx.export(linear, (core.randn(4, 3),), opset_version=version)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("verbose", True),
        ("dynamo", False),
        ("custom_translation_table", {1: 2}),
        ("report", True),
        ("profile", True),
        ("dump_exported_program", True),
        ("artifacts_dir", "/tmp"),
        ("export_params", False),
        ("training", onnx.TrainingMode.TRAINING),
        ("operator_export_type", onnx.OperatorExportTypes.ONNX_ATEN),
        ("do_constant_folding", False),
        ("custom_opsets", {"custom": 1}),
        ("export_modules_as_functions", True),
        ("autograd_inlining", False),
    ],
)
def test_arguments_without_meaning_are_refused(linear: Any, name: str, value: Any) -> None:
    with pytest.raises(NotImplementedError, match=rf"onnx.export\({name}\)"):
        onnx.export(linear, (core.randn(4, 3),), **{name: value})


def test_dynamic_axes_are_dynamic_shapes(function_module: Callable[..., Any]) -> None:
    module = function_module(lambda x, parts: x @ parts["y"][0])
    arguments = (core.randn(1, 4), {"y": [core.randn(4, 3)]})
    names: dict[str, Any] = {"input_names": ["x", "y"], "output_names": ["z"]}
    axes = {"x": {0: "batch size"}, "y": [-1], "z": {0: "batch size"}}
    model = model_of(module, arguments, dynamic_axes=axes, **names)
    sizes = [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input]
    assert sizes == [["batch_size", 4], [4, "y_dynamic_axes_1"]]
    for batch in (1, 5):  # the example has size 1, so the model is captured with other sizes, too
        x, y = core.randn(batch, 4), core.randn(4, 9)
        same(run(model, x, y), x @ y)
    for wrong, message in (
        ({"w": {0: "n"}}, "'w' is neither an input nor one of the output_names; the inputs are x, y"),
        ({"x": {2: "n"}}, "'x' has no dimension 2"),
    ):
        with pytest.raises(ValueError, match=message):
            onnx.export(module, arguments, dynamic_axes=wrong, **names)
    with pytest.raises(ValueError, match="must be None if dynamic_shapes is given"):
        onnx.export(module, arguments, dynamic_axes={"x": [0]}, dynamic_shapes=({}, None))
    with pytest.raises(ValueError, match="for an ExportedProgram"):
        onnx.export(export(module, arguments), arguments, dynamic_axes={"x": [0]})


def test_initializers_are_inputs_where_asked(linear: Any) -> None:
    model = model_of(linear, (core.randn(4, 3),), keep_initializers_as_inputs=True)
    assert {value.name for value in model.graph.input} == {"x", "weight", "bias"}


def test_structures_of_arguments_and_results(function_module: Callable[..., Any]) -> None:
    module = function_module(
        lambda pair, scale: {"sum": pair[0] + pair[1], "scaled": (pair[0] * scale, pair[1])}
    )
    x, y = core.randn(2), core.randn(2)
    model = model_of(module, ([x, y],), kwargs={"scale": 2.0})
    assert [value.name for value in model.graph.input] == ["pair.0", "pair.1"]
    same(run(model, x, y), x + y, x * 2, y)


def test_a_result_may_come_twice_or_be_a_weight(function_module: Callable[..., Any]) -> None:
    module = function_module(lambda x: (x, module.w, x.exp()), w=core.randn(3))
    x = core.randn(2)
    same(run(model_of(module, (x,)), x), x, module.w, x.exp())


def test_exported_programs_are_exported(linear: Any) -> None:
    x = core.randn(4, 3)
    same(run(model_of(export(linear, (x,))), x), linear(x))
    with pytest.raises(ValueError, match="for an ExportedProgram, whose sizes"):
        onnx.export(export(linear, (x,)), dynamic_shapes=({0: Dim("n")},))


def test_gradients_and_the_flag_of_export_are_left_alone(function_module: Callable[..., Any]) -> None:
    seen = []
    module = function_module(
        lambda x: seen.append((onnx.is_in_onnx_export(), core.is_grad_enabled())) or x.exp()
    )
    onnx.export(module, (core.randn(2),))
    assert seen == [(True, False)]
    assert not onnx.is_in_onnx_export()
    assert core.is_grad_enabled()


def test_programs_call_onnxruntime(linear: Any) -> None:
    x = core.randn(4, 3)
    program = onnx.export(linear, (x,), verify=True)
    same([t.numpy() for t in program(x)], linear(x))
    assert program.model_proto.graph.node[0].op_type == "Gemm"
    assert repr(program) == "ONNXProgram(opset 18: 1 Gemm)"
    with pytest.raises(TypeError, match="needs 1 tensors, got 2"):
        program(x, x)
    with pytest.raises(ImportError, match="needs the package no_such_package"):
        onnx.export.__globals__["_package"]("no_such_package")


def test_verify_compares(linear: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx.ONNXProgram, "__call__", lambda self, *args: [core.zeros(4, 2)])
    with pytest.raises(onnx.OnnxExporterError, match="of onnxruntime differs from the result of the program"):
        onnx.export(linear, (core.randn(4, 3),), verify=True)


# --- exported operators ---


def test_what_is_computed_of_constants_is_folded(function_module: Callable[..., Any]) -> None:
    module = function_module(lambda x: x + (module.w.exp() + 1), w=core.randn(3))
    x = core.randn(3)
    assert operators(model_of(module, (x,))) == ["Add"]
    assert operators(model_of(module, (x,), optimize=False)) == ["Exp", "Add", "Add"]


def test_composites_are_taken_apart(function_module: Callable[..., Any]) -> None:
    module = function_module(lambda x: core.pairwise_distance(x, module.w), w=core.randn(4, 3))
    x = core.randn(4, 3)
    same(run(model_of(module, (x,)), x), core.pairwise_distance(x, module.w))


def writes_through_views(x: Any) -> Any:
    y = x + 0
    row, column = y[1], y[:, 2]
    row.mul_(2)
    column += 10
    y[0, :2] = 5.0
    flat = y.view(-1)
    flat[3:5].zero_()
    return y, row, column.clone(), flat.sum()


def writes_in_order(x: Any) -> Any:
    y = x.clone()
    before = y * 1
    y.relu_().add_(1)
    z = y.t()
    y.sub_(x)
    return before, y, z.contiguous()


def changes_shapes(x: Any) -> Any:
    y = x.clone()
    y.unsqueeze_(0).transpose_(1, 2)
    y.add_(1)
    return y.squeeze(0)


def writes_out(x: Any) -> Any:
    return core.exp(x, out=core.empty(3, 4)) + core.zeros(3, 4).copy_(x)


def assigns(x: Any) -> Any:
    y = x.clone()
    y[core.tensor([0, 2])] = core.ones(4)
    y[:, core.tensor([1, 1])] += 1
    y[y > 0.5] = 0.25
    y[:, core.tensor([True, False, False, True])] = 3.0
    return y.masked_fill_(y > 1, -1.0)


@pytest.mark.parametrize(
    "function", [writes_through_views, writes_in_order, changes_shapes, writes_out, assigns]
)
def test_writes_in_place_have_new_definitions(function_module: Callable[..., Any], function: Any) -> None:
    x = core.randn(3, 4)
    expected = function(x)
    expected = expected if isinstance(expected, tuple) else (expected,)
    same(run(model_of(function_module(lambda x: function(x)), (x,)), x), *expected)


def test_views_that_nobody_reads_again_cost_nothing(function_module: Callable[..., Any]) -> None:
    x = core.randn(2, 3)
    assert operators(model_of(function_module(lambda x: (x + 1).view(6).relu_()), (x,))) == [
        "Add",
        "Reshape",
        "Relu",
    ]


def test_attention_that_attends_to_nothing_gives_zeros(function_module: Callable[..., Any]) -> None:
    q, k, v = core.randn(1, 2, 3, 4), core.randn(1, 2, 5, 4), core.randn(1, 2, 5, 4)
    mask = core.ones(3, 5, dtype=core.bool)
    mask[1] = False
    module = function_module(
        lambda q, k, v: core.scaled_dot_product_attention(q, k, v, module.mask), mask=mask
    )
    module.buffer_names = {"mask"}
    got = run(model_of(module, (q, k, v)), q, k, v)
    same(got, module(q, k, v))
    assert (got[0][:, :, 1] == 0).all()


# --- sizes that change ---


def test_sizes_that_change_have_names(function_module: Callable[..., Any]) -> None:
    def forward(x: Any, w: Any) -> Any:
        rows = x.reshape(-1, x.shape[2])
        mask = core.ones(x.shape[1], x.shape[1]).tril().bool()
        scores = (x @ x.transpose(1, 2)).masked_fill(mask.logical_not(), 0.0)
        return rows @ w, scores, core.arange(x.shape[0]), x[:, 1:].mean((0, 1)), core.cat([x, x], 1)

    module = function_module(forward, w=core.randn(4, 2))
    module.forward = lambda x: forward(x, module.w)
    batch, length = Dim("batch"), Dim("length", max=64)
    model = model_of(module, (core.randn(3, 5, 4),), dynamic_shapes={"x": {0: batch, 1: length}})

    def sizes(value: Any) -> list[Any]:
        return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]

    assert sizes(model.graph.input[0]) == ["batch", "length", 4]
    assert [sizes(value) for value in model.graph.output] == [
        ["batch*length", 2],
        ["batch", "length", "length"],
        ["batch"],
        [4],
        ["batch", "2*length", 4],
    ]
    for shape in ((2, 2, 4), (7, 64, 4), (5, 3, 4)):
        x = core.randn(*shape)
        same(run(model, x), *module(x))
        file = io.BytesIO(model.SerializeToString())
        same([t.numpy() for t in onnx.load(file).module()(x)], *module(x))


def test_sizes_are_found_in_inputs_of_other_forms(function_module: Callable[..., Any]) -> None:
    n = Dim("n")
    module = function_module(lambda x: x.reshape(2, -1, 3).sum(0))
    model = model_of(module, (core.randn(8, 3),), dynamic_shapes=({0: 2 * n},))
    for rows in (4, 12):
        x = core.randn(rows, 3)
        same(run(model, x), module(x))


def test_windows_that_depend_on_a_size_are_refused(function_module: Callable[..., Any]) -> None:
    module = function_module(lambda x: core.adaptive_avg_pool2d(x, [3, 3]))
    with pytest.raises(
        onnx.OnnxExporterError, match="windows that depend on a dynamic size are not supported"
    ):
        onnx.export(module, (core.randn(1, 2, 9, 9),), dynamic_shapes=({2: Dim("h", min=4)},))


# --- errors ---


def test_all_calls_without_equivalent_are_listed_with_their_lines(
    function_module: Callable[..., Any],
) -> None:
    def forward(x: Any) -> Any:
        a = core.special_i0(x) if hasattr(core, "special_i0") else core.i0(x)
        b = core.digamma(x)
        return a + b + core.lgamma(x)

    with pytest.raises(onnx.OnnxExporterError) as caught:
        onnx.export(function_module(forward), (core.randn(3),))
    lines = str(caught.value).splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["i0", "digamma", "lgamma"]
    assert all("test_onnx.py:" in line and line.endswith("has no equivalent in ONNX") for line in lines)


def test_state_that_is_written_is_refused(counting: Any) -> None:
    with pytest.raises(onnx.OnnxExporterError, match="modifies its buffer 'calls'"):
        onnx.export(counting, (core.randn(2, 3),))


def test_inputs_that_are_written_are_refused(function_module: Callable[..., Any]) -> None:
    with pytest.raises(onnx.OnnxExporterError, match="modifies its input 'x'"):
        onnx.export(function_module(lambda x: x.add_(1)), (core.randn(2),))


def test_training_is_refused(function_module: Callable[..., Any]) -> None:
    with pytest.raises(onnx.OnnxExporterError, match=r"draws random numbers(.|\n)*call eval\(\)"):
        onnx.export(function_module(lambda x: core.dropout(x, 0.5, True)), (core.randn(3),))
    module = function_module(
        lambda x: core.batch_norm(x, None, None, module.mean, module.var, True, 0.1, 1e-5),
        mean=core.zeros(3),
        var=core.ones(3),
    )
    module.buffer_names = {"mean", "var"}
    with pytest.raises(onnx.OnnxExporterError, match=r"modifies its buffer 'mean'(.|\n)*call eval\(\)"):
        onnx.export(module, (core.randn(4, 3),))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: core.nonzero(x), "the size of its result depends on values"),
        (
            lambda x: core.index_put(x, [core.tensor([True, False, True])], core.ones(2)),
            "the number of elements to write depends on values",
        ),
        (lambda x: core.rand(3) + x, "draws random numbers"),
        (lambda x: core.fft_fft(x), "dtype complex64"),
        (lambda x: core.elu(x, 1, 1, 2).to(core.complex64), "dtype complex64"),
        (lambda x: core.isclose(x, x, equal_nan=True), "the argument equal_nan=True"),
    ],
)
def test_calls_that_cannot_be_exported(
    function_module: Callable[..., Any], function: Any, message: str
) -> None:
    with pytest.raises(onnx.OnnxExporterError, match=message):
        onnx.export(function_module(lambda x: function(x)), (core.randn(3),))


def test_operators_of_later_opsets_name_it(function_module: Callable[..., Any]) -> None:
    module = function_module(lambda x: core.bitwise_and(x, 3))
    x = core.arange(4)
    with pytest.raises(
        onnx.OnnxExporterError, match="needs BitwiseAnd, which exists from opset_version 18 on"
    ):
        onnx.export(module, (x,), opset_version=17)
    assert run(model_of(module, (x,)), x)[0].tolist() == [0, 1, 2, 3]
