"""Law: an ONNX model of one call gives the results of the call, in onnxruntime and as a program that `load` returns."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_graph import ExportedProgram, onnx
from rushlight_graph._C import Capture
from rushlight_graph.onnx._operators import COMPOSITES, RULES
from rushlight_testing import Sample
from rushlight_testing.operators import (
    TYPED_ERRORS,
    all_samples,
    boxed,
    flat,
    is_random,
    map_tensors,
    operators,
    tensors_in,
)

checker = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

#: Operators for which no sample with elements can be exported. For all others, at least one sample is exported.
MISSING = set((Path(__file__).parent / "onnx_missing.txt").read_text().split())
# For these operators, onnxruntime gives other results if there are NaNs.
ORDERS = {"amax", "amin", "max", "max.dim", "min", "min.dim", "argmax", "argmin", "aminmax", "median.dim"}
OPS = [
    op
    for op in operators()
    if op.samples
    and not is_random(op)
    and not op.base.endswith("_backward")
    and not op.name.startswith("_fused")
]
VERSIONS = (17, 18, 19, 20, 21)


def copied(sample: Sample) -> Sample:
    copies: dict[int, Any] = {}
    return map_tensors(lambda t: copies.setdefault(id(t), t.clone()), sample)


def works(op: Op, sample: Sample) -> bool:
    """Return whether the operator accepts the sample by position, and NumPy has all of its dtypes."""
    try:
        made = flat(boxed(op, copied(sample)))
    except TYPED_ERRORS:
        return False
    tensors = [t for t in (*made, *tensors_in(sample)) if isinstance(t, core.Tensor)]
    return all(t.dtype != core.bfloat16 for t in tensors)


def captured(
    op: Op, sample: Sample, name: str | None = None, expanded: list[str] | None = None
) -> tuple[ExportedProgram, list[Any], list[Any]]:
    """Return the program of a call, its inputs and its results. Operators that write their input get a copy of it."""
    inputs = list({id(t): t for t in tensors_in(sample)}.values())
    region = Capture([(f"x{i}", "constant", t) for i, t in enumerate(inputs)], [], expanded or COMPOSITES)
    with core.no_grad():
        region.start()
        try:
            writes = name is not None or op.is_inplace
            result = boxed(op, copied(sample) if writes else sample, name)
        finally:
            region.stop()
    results = [t for t in flat(result) if isinstance(t, core.Tensor)]
    return ExportedProgram(region.finish(results, {})), inputs, results


def check(got: Any, expected: Any, text: str) -> None:
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), text
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(got, expected, 1e-4, 1e-5, equal_nan=True, err_msg=text)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=text)


def compare(program: ExportedProgram, inputs: list[Any], results: list[Any], version: int, text: str) -> None:
    file = io.BytesIO()
    onnx.export(program, f=file, opset_version=version)
    checker.checker.check_model(checker.load_model_from_string(file.getvalue()), full_check=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # starting threads would take longer than the call
    session = runtime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    given = [t.detach().numpy() for t in inputs]
    expected = [t.detach().numpy() for t in results]
    names = [value.name for value in session.get_inputs()]
    for got, want in zip(session.run(None, dict(zip(names, given, strict=True))), expected, strict=True):
        check(got, want, text)
    loaded = onnx.load(io.BytesIO(file.getvalue())).module()(*inputs)
    tensors = [t for t in flat(loaded) if isinstance(t, core.Tensor)]
    for made, want in zip(tensors, expected, strict=True):
        check(made.numpy(), want, f"{text}, loaded")


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_models_do_what_the_call_does(op: Op) -> None:
    samples = [s for s in all_samples(op) if works(op, s)]
    samples = [s for s in samples if op.name not in ORDERS or "special" not in s.text]
    exported, refused = 0, []
    for number, sample in enumerate(samples):
        version = VERSIONS[(OPS.index(op) + number) % len(VERSIONS)] if number else VERSIONS[-1]
        try:
            program, inputs, results = captured(op, sample)
            compare(program, inputs, results, version, f"{sample.text}, opset {version}")
            exported += any(t.numel() for t in results)  # results without elements are not counted
        except (onnx.OnnxExporterError, NotImplementedError) as error:
            refused.append(str(error))
        except RuntimeError as error:
            if "reads the values" not in str(error):  # operators that read values cannot be captured
                raise
            refused.append(str(error))
    assert (exported == 0) == (op.name in MISSING), refused[:1]


def in_place(name: str) -> str:
    base, _, overload = name.partition(".")
    return f"{base}_" + (f".{overload}" if overload else "")


# Simplified programs contain these composites in place of their in-place forms, whose results nobody else sees.
REPLACING = [
    op for op in OPS if op.name in COMPOSITES and in_place(op.name) in RULES and op.name not in RULES
]


@pytest.mark.parametrize("op", REPLACING, ids=lambda op: op.name)
def test_composites_that_replace_in_place_forms(op: Op) -> None:
    expanded = [name for name in COMPOSITES if name != op.name]
    exported = 0
    for sample in all_samples(op):
        if works(op, sample):
            try:
                program, inputs, results = captured(op, sample, None, expanded)
                compare(program, inputs, results, 21, sample.text)
                exported += f" = {op.name}(" in str(program)
            except (
                onnx.OnnxExporterError
            ):  # other dtypes, or a result of another shape than the first argument
                continue
    assert exported


def test_one_tensor_is_scattered_into_twice() -> None:
    def both(x: Any, index: Any) -> Any:
        zeros = [core.zeros_like(x).index_add_(0, index, x * factor) for factor in (1, 2)]
        return [*zeros, x.scatter(0, index[:, None], 0.0), x.scatter(0, index[:, None], 1.0)]

    x, index = core.randn(3, 4), core.tensor([2, 0, 2])
    region = Capture([("x", "constant", x), ("index", "constant", index)], [], COMPOSITES)
    region.start()
    results = both(x, index)
    region.stop()
    compare(ExportedProgram(region.finish(results, {})), [x, index], results, 18, "both")


@pytest.mark.parametrize("op", [op for op in OPS if "inplace" in op.variants], ids=lambda op: op.name)
def test_in_place_forms_do_what_they_do(op: Op) -> None:
    name = in_place(op.name)
    for sample in all_samples(op):
        if not works(op, sample) or op.name in MISSING:
            continue
        try:
            boxed(op, copied(sample), name)
        except TYPED_ERRORS:  # the result has another shape or dtype
            continue
        try:
            program, inputs, results = captured(op, sample, name)
            compare(program, inputs, results, 21, sample.text)
        except onnx.OnnxExporterError:
            continue
        return
