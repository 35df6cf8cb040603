"""The comparison of names on two small libraries with known differences."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest
from compare_names import signatures
from compare_names.binding import compare
from compare_names.documented import Entry
from compare_names.page import page
from compare_names.presence import absences


def signature(text: str) -> inspect.Signature:
    node = ast.parse(f"def f{text}: ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    return signatures.signature_of_arguments(node.args)


def verdict(theirs: list[str], ours: list[str]) -> tuple[str, str]:
    left = {"f": Entry("f", [signature(text) for text in theirs])}
    right = {"f": Entry("f", [signature(text) for text in ours])} if ours else {}
    (row,) = compare(left, right)
    return row.verdict, row.how


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (["(input, dim=None)"], ["(input, dim=None)"]),
        (["(self, other)"], ["(input, other)"]),
        (["(x, axis)"], ["(input, dim)"]),  # NumPy's names, which all operators take
        (["(input, dim=None, keepdim=False)"], ["(input)", "(input, dim, keepdim=False)"]),  # two for one
        (["(input)", "(input, dim)"], ["(input, dim=None)"]),  # one signature for two
        (["(input, *, out=None)"], ["(input, more=0, *, out=None)"]),  # more may be optional
        (["(x, p=1.)"], ["(x, p=1)"]),
        (["(x, size=1)"], ["(x, size=(1, 1))"]),  # one int is equal to a tuple of it
        (["(x, mode='constant')"], ["(x, mode='constant')"]),
        (["(*size, dtype=None)"], ["(*size, dtype=None)"]),
        (["(array, /)"], ["(ndarray, /)"]),  # parameters without names
        (["(input, *, layout=None, pin_memory=None)"], ["(input)"]),
    ],
)
def test_what_is_present(theirs: list[str], ours: list[str]) -> None:
    assert verdict(theirs, ours) == ("present", "")


@pytest.mark.parametrize(
    ("theirs", "ours", "how"),
    [
        ("(input, place)", "(input, dim)", "lacks `place`; requires `dim`"),
        ("(a, b)", "(b, a)", "the order of arguments differs"),
        ("(a, b=1)", "(a, b=2)", "`b` is `2` by default, not `1`"),
        ("(a, b=1)", "(a, b)", "`b` is required"),
        ("(a, b=1)", "(a, *, b=1)", "`b` by name only"),
        ("(a)", "(a, /)", "`a` by position only"),
        ("(a, *, out=None)", "(a)", "lacks `out`"),
        ("(a, b=True)", "(a, c, b=True)", "requires `c`"),
        ("(a, b='one')", "(a, b='two')", "`b` is `'two'` by default, not `'one'`"),
    ],
)
def test_what_is_different(theirs: str, ours: str, how: str) -> None:
    assert verdict([theirs], [ours]) == ("different", how)


def test_a_function_may_refuse_what_its_stub_says() -> None:
    theirs = Entry("f", [signature("(a, b=1)")], refuses=lambda positions, names: len(positions) > 1)
    (row,) = compare({"f": theirs}, {"f": Entry("f", [signature("(a, *, b=1)")])})
    assert row.verdict == "present"
    assert signatures.refusal(str.upper, str)([], ["a"])
    assert not signatures.refusal(str.join, str)(["a"], [])


def test_other_names_of_arguments_count() -> None:
    theirs, ours = (
        Entry("f", [signature("(src)")]),
        Entry("f", [signature("(other)")], aliases={"src": "other"}),
    )
    (row,) = compare({"f": theirs}, {"f": ours})
    assert row.verdict == "present"


def test_what_is_missing() -> None:
    assert verdict(["(a)"], []) == ("missing", "")


def test_signatures_come_from_stubs_and_docstrings(tmp_path: Path) -> None:
    stub = tmp_path / "a.pyi"
    stub.write_text(
        "def f(x: Tensor, dim: int = -1) -> Tensor: ...\n"
        "def f(x: Tensor, dim: str | EllipsisType | None) -> Tensor: ...\n"
        "def g(beta: Number, input: Tensor, mat: Tensor) -> Tensor: ...\n"
        "class TensorBase:\n    def f(self, dim: int) -> Tensor: ...\n    @property\n    def p(self) -> int: ...\n"
    )
    stubs = signatures.Stubs(stub)
    assert [str(s) for s in stubs.functions["f"]] == ["(x, dim=-1)"]  # rushlight has no named dimensions
    assert "g" not in stubs.functions  # deprecated
    assert set(stubs.methods) == {"f"}
    found = signatures.signatures_of_docstring(
        "det", "\nlinalg.det(A, *, out=None) -> Tensor\n\nThe determinant."
    )
    assert [str(s) for s in found] == ["(A, *, out=None)"]


def test_the_page_counts() -> None:
    rows = {"": compare({n: Entry(n) for n in "abc"}, {n: Entry(n) for n in "ab"})}
    text = page(rows, "2.13.0")
    assert "| `torch` | 3 | 2 | 0 | 1 |" in text
    assert "**Missing**: `c`." in text
    assert text == page(rows, "2.13.0")


def library(tmp_path: Path, name: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for path, text in files.items():
        file = tmp_path / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module(name)


def test_modules_and_members_are_compared_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = "class Base:\n    def one(self): ...\n    def two(self): ...\n    def _private(self): ...\n"
    theirs = library(
        tmp_path,
        "their_library",
        {
            "__init__.py": "",
            "nn/__init__.py": f"import os\n{base}class Layer(Base):\n    def three(self): ...\n    def four(self): ...\n",
            "nn/files.py": "from their_library.nn import Layer\n__all__ = ['Layer', 'function']\ndef function(): ...\n",
            "nn/old.py": "def gone(): ...\n",
            "nn/_private.py": "def hidden(): ...\n",
            "nn/quantized.py": "def outside(): ...\n",
        },
        monkeypatch,
    )
    ours = library(
        tmp_path,
        "our_library",
        {
            "__init__.py": "",
            "nn/__init__.py": "class Base:\n    def one(self): ...\nclass Layer(Base):\n"
            "    def __init__(self):\n        self.three = 3\n",
            "nn/files.py": "from our_library.nn import Layer\n",
        },
        monkeypatch,
    )
    found = absences(theirs, ours, ["nn", "none"], re.compile(r"nn\.quantized"))
    assert set(found) == {"nn", "nn.files", "nn.old"}
    assert (found["nn"].names, found["nn"].whole) == ([], False)
    assert found["nn"].members == ["Base.two", "Layer.four"]  # an inherited member counts once
    assert (found["nn.files"].names, found["nn.files"].members) == (["function"], [])
    assert found["nn.old"].whole
    text = page({}, "2.13.0", found)
    assert "**Modules that rushlight lacks**: `torch.nn.old`." in text
    assert "| `torch.nn.files` | `function` |  |" in text
    assert "| `torch.nn` |  | `Base.two`, `Layer.four` |" in text
