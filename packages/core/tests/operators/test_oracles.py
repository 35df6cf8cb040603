"""Law: results have the shapes and values of the entry's oracle, and bad arguments raise typed errors."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample, laws, oracles, samples_of
from rushlight_testing.operators import (
    TOLERANCES,
    TYPED_ERRORS,
    all_samples,
    call,
    dtype_name,
    flat,
    law_holds,
    map_tensors,
    operators,
    to_numpy,
)
from rushlight_testing.samples import arguments_of, evaluated
from rushlight_testing.variants import SIZES, one_element

OPS = operators()
OTHER_DTYPES = (
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "uint8",
    "bool",
    "complex64",
    "complex128",
)


def ops_with(condition: Callable[[Op], Any]) -> list[Any]:
    """Return parameters of a test for all operators for which `condition` is true."""
    return [pytest.param(op, id=op.name) for op in OPS if condition(op)]


# Operators whose differences wrap around in uint8, as in PyTorch.
WRAP_UINT8 = ("kl_div", "l1_loss", "margin_ranking_loss", "triplet_margin_loss")
# Operators that discard the imaginary part if they convert to a real dtype.
DROP_IMAGINARY = ("to", "type_as", "sum")


# --- expectations ---


def expectation(op: Op, sample: Sample) -> Any:
    """Return the result of the oracle, computed in the widest types."""
    names = {name: getattr(oracles, name) for name in dir(oracles) if not name.startswith("_")}
    names |= {"np": np, "scipy": scipy, "builtins": builtins, "itertools": itertools}
    names |= {name: to_numpy(value, wide=True) for name, value in arguments_of(op, sample).items()}
    for name, value in names.items():
        if isinstance(value, core.dtype):
            names[name] = np.dtype(dtype_name(value)) if value is not core.bfloat16 else np.float32
    with np.errstate(all="ignore"):
        return eval(op.oracle, names)


def check(op: Op, sample: Sample, got: Any, wanted: Any, dtype: str = "") -> None:
    """Raise AssertionError unless results equal the oracle's, within the precision of the operands' dtype."""
    results, expected = flat(got), flat(wanted) if isinstance(wanted, (tuple, list)) else [wanted]
    # An oracle may give only the first result.
    for result, value in zip(results, expected, strict=len(expected) > 1):
        if not isinstance(result, core.Tensor):
            assert result == value, f"{op.name}({sample.text}): {result} is not {value}"
            continue
        value = np.asarray(value)
        assert tuple(result.shape) == value.shape, (
            f"{op.name}({sample.text}): shape {tuple(result.shape)}, not {value.shape}"
        )
        values = to_numpy(result, wide=True)
        name = dtype_name(result.dtype)
        if value.dtype.kind == "c" and not result.is_complex() and op.base in DROP_IMAGINARY:
            value = value.real
        if name == "bool":
            value = value != 0
        elif name in ("uint8", "int32", "int64") and value.dtype.kind == "f":
            continue  # the floating-point result of an oracle is not exact for integers
        elif name in ("uint8", "int32"):
            value = value.astype(name).astype(np.int64)
        tolerance = max(
            TOLERANCES.get(name, 0.0), TOLERANCES.get(dtype, 0.0) if result.is_floating_point() else 0.0
        )
        if value.dtype == np.float16:  # NumPy computes with bools in float16
            tolerance = TOLERANCES["float16"]
        if name in ("float16", "bfloat16"):
            finite = np.abs(value) < 6e4  # larger numbers may overflow to infinity
            values, value = values[finite], value[finite]
        # Complex infinities are compared part by part, because NumPy requires both parts of infinite numbers to be equal.
        by_parts = value.dtype.kind == "c" and result.is_complex() and np.isinf(value).any()
        pairs = [(values.real, value.real), (values.imag, value.imag)] if by_parts else [(values, value)]
        for actual, desired in pairs:
            np.testing.assert_allclose(
                actual, desired, rtol=tolerance, atol=tolerance, equal_nan=True,
                err_msg=f"{op.name}({sample.text})",
            )  # fmt: skip


# --- the tests ---


@pytest.mark.parametrize("op", ops_with(lambda op: op.oracle and op.samples))
def test_values(op: Op) -> None:
    """Results have the shapes and values of the oracle."""
    for sample in all_samples(op):
        wanted = expectation(op, sample)
        check(op, sample, call(op, sample), wanted)


@pytest.mark.parametrize("op", ops_with(lambda op: op.oracle and op.samples))
def test_dtypes(op: Op) -> None:
    """For every dtype, an operator gives the oracle's values or raises a typed error."""
    for dtype in OTHER_DTYPES:
        if dtype == "uint8" and op.name in WRAP_UINT8:
            continue
        for sample in all_samples(op, dtype):
            try:
                wanted = expectation(op, sample)
            except (TypeError, ValueError, ZeroDivisionError, IndexError):
                wanted = None  # NumPy cannot compute it
            try:
                got = call(op, sample)
            except TYPED_ERRORS:
                continue
            if wanted is not None:
                check(op, sample, got, wanted, dtype)


# --- sizes of 1 and 0, and no dimensions ---

CUTS = ("one element", "first dimension of 0", "last dimension of 0")
# Operators for which NumPy or the oracle treats these sizes differently, and how.
OTHER_SIZES = {
    "argsort": "of a tensor without dimensions NumPy's has one",
    "contiguous": "of a tensor without dimensions NumPy's has one",
    "cosine_embedding_loss": "the cosine of no elements is 0, not NaN",
    "cross_entropy_loss": "the mean of no losses is NaN, also of probabilities",
    "cumprod": "of a tensor without dimensions NumPy's has one",
    "hash_tensor.dim": "keepdim adds no dimension to a tensor without any",
    "kthvalue": "keepdim adds no dimension to a tensor without any",
    "linalg_lu": "SciPy's permutation of a matrix without columns is empty",
    "linalg_lu_solve": "the oracle broadcasts a matrix without rows",
    "linalg_tensorsolve": "NumPy's has a dimension of size 1",
    "logsumexp": "keepdim adds no dimension to a tensor without any",
}


def of_small_sizes(op: Op) -> Iterator[tuple[str, Sample]]:
    for sample in all_samples(op):
        for cut in CUTS:
            yield f"{sample.text}, {cut}", map_tensors(SIZES[cut], sample)
        yield f"{sample.text}, no dimension", one_element(op, sample, 0)


def small_cases() -> Iterator[Any]:
    for op in OPS:
        # An oracle that uses strides would read beyond the memory of a small tensor.
        if op.oracle and op.samples and "as_strided" not in op.oracle and op.name not in OTHER_SIZES:
            yield pytest.param(op, id=op.name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", small_cases())
def test_values_of_small_sizes(op: Op) -> None:
    """The operator and the oracle agree for sizes of 1 and 0 and for 0-d tensors, if both accept them."""
    for text, sample in of_small_sizes(op):
        try:
            wanted = expectation(op, sample)
        except Exception:  # NumPy cannot compute it
            continue
        try:
            got = call(op, sample)
        except TYPED_ERRORS:
            continue
        check(op, replace(sample, text=text), got, wanted)


# --- laws ---


def holds(op: Op, text: str, sample: Sample | None) -> bool:
    """Return whether a law of the entry is true, for the result of a sample or without a sample."""
    if sample:
        return law_holds(op, text, sample, call(op, sample))
    core.manual_seed(7)
    return bool(
        evaluated(text, core, {name: getattr(laws, name) for name in dir(laws) if not name.startswith("_")})
    )


@pytest.mark.parametrize("op", ops_with(lambda op: op.law))
def test_laws(op: Op) -> None:
    """Properties that the entry declares for results that no oracle can compute."""
    for text in op.law:
        for sample in list(all_samples(op)) or [None]:
            assert holds(op, text, sample), f"{op.name}({sample.text if sample else ''}): {text}"


def written_elsewhere(op: Op) -> Op | None:
    """Return the functional form of an in-place operator, whose samples test_forms.py uses for the in-place form."""
    base, _, overload = op.name.partition(".")
    plain = base.removesuffix("_") + ("." + overload if overload else "")
    return next((other for other in OPS if op.is_inplace and other.name == plain), None)


def test_every_public_operator_has_an_oracle_or_a_law() -> None:
    """Results of all public operators are checked by an oracle, a law, or comparison with the functional form."""
    without = []
    for op in OPS:
        plain = written_elsewhere(op) or op
        if "hidden" not in op.variants and not op.law and not (plain.oracle and plain.samples):
            without.append(op.name)
    assert without == [], "operators without `oracle` and samples, and without `law`"


def test_a_law_that_is_broken_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    by_name = {op.name: op for op in OPS}
    svd, rand = by_name["linalg_svd"], by_name["rand"]
    sample = next(all_samples(svd))
    real = core.linalg_svd if hasattr(core, "linalg_svd") else core._C.linalg_svd
    assert all(holds(svd, text, sample) for text in svd.law)

    def too_large(*args: Any, **kwargs: Any) -> Any:
        u, s, vh = real(*args, **kwargs)
        return u, s * 1.01, vh

    monkeypatch.setattr(core, "linalg_svd", too_large, raising=False)
    assert not all(holds(svd, text, sample) for text in svd.law)
    assert holds(rand, rand.law[0], None)
    for skewed in (lambda n: core.ones(n) * 0.5, lambda n: core.randn(n), lambda n: core.linspace(0, 0.9, n)):
        monkeypatch.setattr(core, "rand", skewed)
        assert not holds(rand, rand.law[0], None)


@pytest.mark.parametrize("op", ops_with(lambda op: op.errors))
def test_errors(op: Op) -> None:
    """Bad arguments raise typed errors with a description of the problem."""
    for text in op.errors:
        for sample in samples_of(text.text, core):
            with pytest.raises(TYPED_ERRORS) as caught:
                call(op, sample)
            assert len(str(caught.value).split("\n")[0]) > 12, f"{op.name}({text.text}): {caught.value}"


def test_a_wrong_result_is_noticed() -> None:
    """These tests fail if a value, a shape or a dtype differs from the oracle's."""
    add = next(op for op in OPS if op.name == "add")
    sample = Sample("made here", (core.ones(2), core.ones(2)))
    wanted = expectation(add, sample)
    check(add, sample, core.full((2,), 2.0), wanted)
    for wrong in (core.full((2,), 2.001), core.full((1, 2), 2.0), core.full((2,), float("nan"))):
        with pytest.raises(AssertionError):
            check(add, sample, wrong, wanted)


def test_entries_are_complete() -> None:
    """Every operator has documentation."""
    for op in OPS:
        assert op.doc.strip(), op.name


def _is_a_function_of_numbers(op: Op) -> bool:
    """Return whether an operator computes elements one by one from one tensor and optional numbers."""
    pointwise = op.kind == "pointwise" or op.base.startswith("special_")
    return bool(op.oracle) and pointwise and sum(a.required for a in op.schema.arguments) == 1


@pytest.mark.parametrize("op", ops_with(_is_a_function_of_numbers))
def test_no_large_argument_loses_a_finite_result(op: Op) -> None:
    """Results for large arguments are finite if the oracle's are, because no intermediate result overflows."""
    large = [sign * x for x in (2e4, 3e12, 2.475e33, 1.7e308) for sign in (1, -1)]
    sample = Sample("large numbers", (core.tensor(large, dtype=core.float64),), {})
    try:
        result = call(op, sample).to(core.complex128).numpy()
    except TYPED_ERRORS:
        return  # the operator does not accept floating-point numbers
    expected = np.asarray(expectation(op, sample))
    finite = np.isfinite(expected)
    assert np.isfinite(result[finite]).all(), (result, expected)
