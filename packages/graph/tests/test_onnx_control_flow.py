"""cond, while_loop and scan as If, Loop and Scan in ONNX, and their results in onnxruntime."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from control_flow_cases import CASES, flat, nested

import rushlight_core as core
from rushlight_core._control_flow import scan, while_loop
from rushlight_graph import Dim, onnx

checker = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def session_of(module: Any, x: Any, **options: Any) -> Any:
    file = io.BytesIO()
    onnx.export(module, (x,), file, **options)
    model = checker.load_model_from_string(file.getvalue())
    checker.checker.check_model(model, full_check=True)
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    return runtime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])


def agree(session: Any, x: Any, wanted: Any) -> None:
    results = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    for got, other in zip(results, flat(wanted), strict=True):
        np.testing.assert_allclose(got, other.numpy(), 1e-4, 1e-5)


@pytest.mark.parametrize("name", [name for name in CASES if name != "random numbers"])
@pytest.mark.parametrize("optimize", [True, False])
def test_onnxruntime_agrees(name: str, optimize: bool, function_module: Any) -> None:
    function, inputs = CASES[name]
    session = session_of(function_module(function), inputs[0], optimize=optimize)
    for x in inputs:
        agree(session, x, function(x))


def test_sizes_that_change(function_module: Any) -> None:
    def function(x: Any) -> Any:
        shifted = x + core.arange(x.shape[1])
        carry, rows = scan(
            lambda h, row: ((h + row).tanh(), row * h + core.arange(x.shape[1])), x[0], shifted
        )
        return carry, rows, core.cond(carry.sum() > 0, lambda: core.zeros(x.shape) + 1, lambda: x.t().t() * 2)

    shapes = {"x": {0: Dim("length"), 1: Dim("width")}}
    session = session_of(function_module(function), core.rand(4, 3), dynamic_shapes=shapes)
    for shape in ((2, 2), (9, 5)):
        for sign in (1, -1):
            x = core.rand(shape) * sign * 9
            agree(session, x, function(x))


def test_what_cannot_be_exported_is_named(function_module: Any) -> None:
    def function(x: Any) -> Any:
        return while_loop(lambda a: a.sum() < 9, lambda a: (a + core.rand(3),), (x,))

    with pytest.raises(
        onnx.OnnxExporterError, match=r"test_onnx_control_flow.py:\d+: draws random"
    ) as caught:
        onnx.export(function_module(function), (core.ones(3),))
    assert str(caught.value).count("\n  ") == 1


def test_load_refuses_control_flow(function_module: Any) -> None:
    file = io.BytesIO()
    onnx.export(function_module(nested), (core.ones(3),), file)
    with pytest.raises(onnx.OnnxLoadError, match=r"operators that are not supported: .*Loop"):
        onnx.load(io.BytesIO(file.getvalue()))
