"""Law: the results of an operator have the dtypes that its entry declares (`kind` and `result`).

The declaration is evaluated with an independent implementation of the promotion rules, rushlight_testing.promotion.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.loader import EntryError, load_ops
from rushlight_core.codegen.model import Op
from rushlight_core.codegen.results import rule_of
from rushlight_testing import Sample
from rushlight_testing.operators import (
    TYPED_ERRORS,
    all_samples,
    call,
    dtype_name,
    flat,
    map_tensors,
    operators,
    tensors_in,
)
from rushlight_testing.promotion import promote, result_dtypes
from rushlight_testing.samples import arguments_of

OPS = operators()
DTYPES = ("float32", "bfloat16", "int32", "uint8", "bool", "complex64")
# Hidden operators are called by other operators, with floating-point tensors of one dtype.
DTYPES_OF_HIDDEN = ("float32", "bfloat16", "complex64")
# Operators whose results differ from the declaration, and why.
KNOWN = {
    "einsum": "integers that are summed in one operand become int64, as PyTorch's: no rule knows the equation",
}
# Operators that accept operands of different dtypes in some calls only, and why.
SOMETIMES = {
    "scaled_dot_product_attention": "the mask has its own dtypes",
    "inner": "a 0-d operand is multiplied with the other one, as in PyTorch",
    "mse_loss": "integers have no mean",
    "l1_loss": "integers have no mean",
    "cross_entropy_loss": "classes and probabilities have different requirements",
    "poisson_nll_loss": "with full=True, targets are compared with 1, and complex numbers have no order",
    "layer_norm": "weight and bias are different arguments, but they are at the same position if weight is None",
}
# Operands of each dtype are combined with operands of the dtypes on the right.
MIXED = {
    "float32": ("float64", "int64", "complex128"),
    "bfloat16": ("float32",),
    "int32": ("float16", "uint8"),
}


def with_one_of_another_dtype(sample: Sample, dtype: str) -> Iterator[Sample]:
    """Yield the sample with one tensor at a time converted to another dtype."""
    given = tensors_in([*sample.args, *sample.kwargs.values()])
    own = [i for i, t in enumerate(given) if dtype_name(t.dtype) == dtype]
    for other in MIXED.get(dtype, ()) if len(given) > 1 else ():
        for chosen in own:
            numbers = iter(range(len(given)))

            def convert(t: Any, other: str = other, chosen: int = chosen, numbers: Any = numbers) -> Any:
                return t.to(getattr(core, other)) if next(numbers) == chosen else t

            yield map_tensors(convert, sample)


def check(op: Op, sample: Sample, results: Any) -> None:
    got = [dtype_name(r.dtype) if isinstance(r, core.Tensor) else None for r in flat(results)]
    declared = result_dtypes(op, arguments_of(op, sample), len(got))
    kinds = [
        f"{dtype_name(t.dtype)}{list(t.shape)}" for t in tensors_in([*sample.args, *sample.kwargs.values()])
    ]
    for one, other in zip(got, declared, strict=True):
        assert one is None or one == other, (
            f"{op.name}({sample.text}) of {', '.join(kinds)}: {got}, declared {rule_of(op)}: {declared}"
        )


def cases() -> Iterator[Any]:
    for op in OPS:
        if op.samples and rule_of(op):
            known = [pytest.mark.xfail(strict=True, reason=KNOWN[op.name])] if op.name in KNOWN else []
            yield pytest.param(op, id=op.name, marks=known)


@pytest.mark.parametrize("op", cases())
def test_results_have_the_declared_dtypes(op: Op) -> None:
    hidden = "hidden" in op.variants
    for dtype in DTYPES_OF_HIDDEN if hidden else DTYPES:
        for sample in all_samples(op, dtype):
            for one in [sample, *([] if hidden else with_one_of_another_dtype(sample, dtype))]:
                arguments = map_tensors(lambda t: t.clone(), one) if op.is_inplace else one
                try:
                    results = call(op, arguments)
                except TYPED_ERRORS:
                    continue
                check(op, one, results)


def mixed_outcomes(op: Op) -> dict[Any, set[bool]]:
    """Return whether calls with one tensor of another dtype were accepted, by the dtypes and the tensor's position."""
    outcomes: dict[Any, set[bool]] = {}
    for dtype in MIXED:
        for sample in all_samples(op, dtype):
            given = tensors_in([*sample.args, *sample.kwargs.values()])
            own = [i for i, t in enumerate(given) if dtype_name(t.dtype) == dtype]
            keys = itertools.product(MIXED[dtype], own)
            for (other, chosen), one in zip(keys, with_one_of_another_dtype(sample, dtype), strict=False):
                try:
                    call(op, map_tensors(lambda t: t.clone(), one) if op.is_inplace else one)
                    accepted = True
                except TYPED_ERRORS as error:
                    if "dtype" not in str(error):
                        continue
                    accepted = False
                outcomes.setdefault((dtype, other, chosen, len(given)), set()).add(accepted)
    return outcomes


@pytest.mark.parametrize(
    "op", [op for op in OPS if op.samples and "hidden" not in op.variants], ids=lambda op: op.name
)
def test_whether_dtypes_may_differ_does_not_depend_on_the_sizes(op: Op) -> None:
    depends = {key: seen for key, seen in mixed_outcomes(op).items() if len(seen) > 1}
    assert bool(depends) == (op.name in SOMETIMES), depends


def test_every_operator_declares_its_result() -> None:
    """Every entry whose results are tensors has a rule."""
    returns = {op.name: [r.type for r in op.schema.returns] for op in OPS}
    missing = [op.name for op in OPS if not rule_of(op) and any("Tensor" in t for t in returns[op.name])]
    assert missing == [], "entries without `result`"


def test_a_wrong_dtype_is_noticed() -> None:
    add = next(op for op in OPS if op.name == "add")
    sample = Sample("made here", (core.ones(2), core.tensor(1, dtype=core.int64)))
    check(add, sample, core.ones(2))
    for wrong in (core.ones(2, dtype=core.float64), core.ones(2, dtype=core.int64)):
        with pytest.raises(AssertionError, match="declared promote"):
            check(add, sample, wrong)
    with pytest.raises(AssertionError, match="declared int64"):
        check(replace(add, kind="composite", result="int64"), sample, core.ones(2))


def test_promotion() -> None:
    """Tensors with dimensions take precedence over 0-d tensors, and these over numbers, within one category of dtypes."""

    def t(dtype: str, *shape: int) -> Any:
        return core.zeros(shape, dtype=getattr(core, dtype))

    cases: list[tuple[tuple[Any, ...], str]] = [
        ((t("float32", 2), t("float64", 2)), "float64"),
        ((t("float32", 2), t("float64")), "float32"),
        ((t("float32"), t("float64")), "float64"),
        ((t("int8", 2), t("int64")), "int8"),
        ((t("int8", 2), t("float64")), "float64"),
        ((t("int8", 2), 1.5), "float32"),
        ((t("int8", 2), 1), "int8"),
        ((t("bool", 2), 1), "int64"),
        ((t("float16", 2), t("bfloat16", 2)), "float32"),
        ((t("uint8", 2), t("int8", 2)), "int16"),
        ((t("uint32", 2), t("int8", 2)), "int64"),
        ((t("uint16", 2), t("uint8", 2)), "uint16"),
        ((t("float32", 2), t("complex128")), "complex64"),
        ((t("float64", 2), t("complex64")), "complex128"),
        ((t("float64", 2), 1j), "complex128"),
        ((t("int32", 2), 1j), "complex64"),
        ((1, 2.5), "float32"),
        (([t("int32", 2), t("float16")], None), "float16"),
    ]
    for operands, wanted in cases:
        assert promote(*operands) == wanted, operands
    with pytest.raises(TypeError):
        promote(t("uint64", 2), t("int8", 2))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("inptu", "'inptu' is not an argument"),
        ("input +", "is not an expression"),
        ("input.device", "can be used"),
        ("[input]", "not allowed here"),
        ("open('x')", "'open' is not an argument"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(tmp_path: Path, rule: str, message: str) -> None:
    entry = '- op: thing\n  doc: A thing.\n  signature: "(Tensor input) -> Tensor"\n  kind: composite\n'
    (tmp_path / "family.yaml").write_text(f'{entry}  result: "{rule}"\n')
    with pytest.raises(EntryError, match=re.escape(message)):
        load_ops(tmp_path)
    (tmp_path / "family.yaml").write_text(entry.replace("composite", "reduce") + "  result: Real32\n")
    with pytest.raises(EntryError, match="is not one of truth, real"):
        load_ops(tmp_path)
