"""Docstrings of operators are complete, agree between `help()`, stubs and pages, and agree with the samples."""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.docstrings import facts, help_text, raised
from rushlight_core.codegen.emit_docs import emit_docs
from rushlight_core.codegen.emit_stubs import emit_stubs
from rushlight_core.codegen.model import Op
from rushlight_core.codegen.python_signatures import names_of
from rushlight_testing.operators import TYPED_ERRORS, all_samples, call, operators
from rushlight_testing.samples import arguments_of, samples_of


def _visible() -> dict[str, list[Op]]:
    groups = {
        name: [op for op in group if "hidden" not in op.variants]
        for name, group in names_of(operators()).items()
    }
    return {name: group for name, group in groups.items() if group}


VISIBLE = _visible()


def _called(name: str, kind: str) -> list[Op]:
    return [op for op in VISIBLE[name] if kind in op.variants]


def test_every_argument_is_described() -> None:
    bare = [
        (name, line)
        for name, group in VISIBLE.items()
        for line in facts(name, group, False).get("Arguments", [])
        if not line.endswith(".")
    ]
    assert bare == []


def test_what_is_returned_is_said_of_every_operator() -> None:
    silent = [name for name, group in VISIBLE.items() if not facts(name, group, False).get("Returns")]
    assert [name for name in silent if VISIBLE[name][0].schema.returns] == []


def test_help_stubs_and_pages_agree() -> None:
    tree = ast.parse(emit_stubs(operators())["python/_C.pyi"])
    stub: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            stub.setdefault(node.name, ast.get_docstring(node) or "")
    pages = emit_docs(operators())
    for name in VISIBLE:
        if not (called := _called(name, "function")):
            continue
        text = help_text(name, name, called, False)
        assert getattr(core._C, name).__doc__ == text
        assert stub[name].split() == text.split()
        if f"{name}.md" in pages:
            for lines in facts(name, called, False).values():
                assert all(line in pages[f"{name}.md"] for line in lines if called == VISIBLE[name])
    for name in ("add", "add_", "random_", "multiply", "sub"):
        assert getattr(core.Tensor, name).__doc__


def test_a_method_says_where_the_rest_is() -> None:
    assert core.Tensor.add_.__doc__ == (
        "Add `alpha * other` to `input`, element by element.\n\n"
        "In place: the result is written to the tensor, which is returned.\n\n"
        "See `rushlight.add`."
    )


@pytest.mark.parametrize(
    "op",
    [
        pytest.param(op, id=op.name)
        for name, ops in VISIBLE.items()
        for op in ops
        if op.errors and not name.startswith("_")
    ],
)
def test_errors_of_samples_are_documented(op: Op) -> None:
    """The docstring lists every class of errors that bad samples raise."""
    listed = {word for key in raised([op]) for word in key.replace(" or ", ", ").split(", ")}
    for text in op.errors:
        for sample in samples_of(text.text, core):
            with pytest.raises(TYPED_ERRORS) as caught:
                call(op, sample)
            assert caught.type.__name__.lstrip("_") in listed, f"{op.name}({text.text}): {caught.value}"


@pytest.mark.parametrize(
    "op",
    [
        pytest.param(op, id=op.name)
        for ops in VISIBLE.values()
        for op in ops
        if op.kind in ("pointwise", "reduce") and not op.is_inplace
    ],
)
def test_shapes_are_those_that_are_said(op: Op) -> None:
    for sample in all_samples(op):
        arguments = arguments_of(op, sample)
        result: Any = call(op, sample)
        first = result[0] if isinstance(result, tuple) else result
        if op.kind == "pointwise":
            shapes = [v.shape for a in op.tensors if isinstance(v := arguments[a.name], core.Tensor)]
            assert first.shape == core.broadcast_shapes(*shapes)
            continue
        shape = arguments["input"].shape
        dim = arguments.get("dim")
        if op.base in ("all", "any") and dim == ():
            given = []  # an empty tuple reduces no dimension
        else:
            given = [dim] if isinstance(dim, int) else list(dim or range(len(shape)))
        reduced = {d % len(shape) for d in given} if shape else set()
        kept = arguments.get("keepdim")
        wanted = [1 if i in reduced else n for i, n in enumerate(shape) if kept or i not in reduced]
        assert list(first.shape) == wanted
        assert first.numel() == math.prod(wanted)


def test_errors_of_out_are_those_that_are_said() -> None:
    said = "The dtype of `out` cannot hold the result"
    tried = 0
    for op in (op for ops in VISIBLE.values() for op in ops if "function" in op.variants and op.samples):
        if said not in raised([op]).get("RuntimeError", "") or [r.type for r in op.schema.returns] != [
            "Tensor"
        ]:
            continue
        sample = next(all_samples(op))
        with pytest.raises(RuntimeError, match=r"out|dtype"):
            getattr(core, op.base)(*sample.args, **sample.kwargs, out=core.empty(0, dtype=core.bool))
        tried += 1
    assert tried > 200


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"device": "nowhere"}, RuntimeError),
        ({"requires_grad": True, "dtype": core.int64}, RuntimeError),
        ({"memory_format": "upside_down"}, ValueError),
    ],
    ids=["device", "requires_grad", "memory_format"],
)
def test_errors_of_common_arguments_are_those_that_are_said(given: dict[str, Any], error: type) -> None:
    tried = 0
    for op in (op for ops in VISIBLE.values() for op in ops if op.samples):
        sample = next(all_samples(op))
        names = [a.name for a in op.schema.arguments]
        if all(name in names[len(sample.args) :] for name in given):
            assert error.__name__ in raised([op])
            with pytest.raises(error):
                call(op, replace(sample, kwargs=sample.kwargs | given))
            tried += 1
    assert tried > 5
