"""Law: an operator takes the dtypes that its entry declares (`dtypes`), and raises typed errors for all others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rushlight_core.codegen.dtypes import dtypes_of
from rushlight_core.codegen.loader import EntryError, load_ops
from rushlight_core.codegen.model import Op
from rushlight_testing.dtypes import accepted_dtypes
from rushlight_testing.operators import operators

OPS = operators()


def check(op: Op) -> None:
    declared = dtypes_of(op.dtypes)
    works = accepted_dtypes(op)
    if not works and op.dtypes in ("any", "any float8"):  # operators without a tensor argument, such as zeros
        return
    missing = sorted(declared - works)
    assert not missing, f"{op.name}: declared for {op.dtypes}, but no sample of {', '.join(missing)} works"
    more = sorted(accepted_dtypes(op, alone=True) - declared)
    assert not more, f"{op.name}: works for {', '.join(more)}, but is declared for {op.dtypes} alone"


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS if op.samples])
def test_operators_take_the_declared_dtypes(op: Op) -> None:
    check(op)


def test_a_wrong_declaration_is_noticed() -> None:
    erf = next(op for op in OPS if op.name == "erf")
    for wrong in ("any", "floating", "real -bool", "complex"):
        with pytest.raises(AssertionError):
            check(replace(erf, dtypes=wrong))


def test_a_set_of_dtypes_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    entry = (
        '- op: thing\n  doc: A thing.\n  signature: "(Tensor input) -> Tensor"\n  kind: {}\n  dtypes: {}\n'
    )
    for kind, dtypes, message in (
        ("custom", "floats", "'floats' is neither a dtype nor one of"),
        ("custom", "bool -bool", "is an empty set"),
        ("pointwise", "real -uint64", "ops/element_types.h has no list of the dtypes"),
    ):
        (tmp_path / "family.yaml").write_text(entry.format(kind, dtypes))
        with pytest.raises(EntryError, match=message):
            load_ops(tmp_path)


def test_a_kernel_without_an_in_place_form_overwrites_nothing(tmp_path: Path) -> None:
    entry = '- op: thing\n  doc: A thing.\n  signature: "(Tensor input) -> Tensor"\n  kind: {}\n  overwrites: true\n'
    for kind in ("composite", "custom"):
        (tmp_path / "family.yaml").write_text(entry.format(kind))
        with pytest.raises(EntryError, match="only allowed for custom kernels with the variant inplace"):
            load_ops(tmp_path)


def test_a_body_of_a_form_that_is_not_there_is_refused(tmp_path: Path) -> None:
    entry = '- op: thing\n  doc: A thing.\n  signature: "(Tensor input) -> Tensor"\n  kind: {}\n  inplace_body: true\n'
    for kind in ("composite", "custom"):
        (tmp_path / "family.yaml").write_text(entry.format(kind))
        with pytest.raises(EntryError, match="only allowed for composites with the variant inplace"):
            load_ops(tmp_path)
