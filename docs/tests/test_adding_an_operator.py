"""The operator that adding-an-operator.md adds, put through the generator beside the real ones."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from rushlight_core.codegen.derivatives import load_derivatives
from rushlight_core.codegen.emit_derivatives import emit_derivatives
from rushlight_core.codegen.emit_kernels import emit_kernels
from rushlight_core.codegen.emit_stubs import emit_stubs
from rushlight_core.codegen.loader import load_ops
from rushlight_core.codegen.model import Op

DOCS = Path(__file__).resolve().parents[1]
PACKAGES = DOCS.parent / "packages"
OPS = PACKAGES / "core" / "ops"
DERIVATIVES = PACKAGES / "autograd" / "derivatives"


@pytest.fixture(scope="module")
def blocks() -> dict[str, list[str]]:
    """The page's blocks by language."""
    found: dict[str, list[str]] = {}
    text = (DOCS / "adding-an-operator.md").read_text()
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        found.setdefault(language, []).append(block)
    return found


def extended(folder: Path, block: str, to: Path) -> Path:
    """A copy of a folder of entries with one more."""
    shutil.copytree(folder, to)
    with open(to / "activation.yaml", "a") as file:
        file.write("\n" + block)
    return to


@pytest.fixture(scope="module")
def ops(blocks: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> list[Op]:
    return load_ops(extended(OPS, blocks["yaml"][0], tmp_path_factory.mktemp("core") / "ops"))


def test_the_page_has_three_pieces(blocks: dict[str, list[str]]) -> None:
    assert {language: len(found) for language, found in blocks.items()} == {"yaml": 2, "cpp": 1}


def test_the_entry_adds_one_operator(ops: list[Op], blocks: dict[str, list[str]]) -> None:
    (added,) = {op.name for op in ops} - {op.name for op in load_ops(OPS)}
    text = emit_stubs(ops)["python/_C.pyi"]
    for form in (f"def {added}(input: Tensor, *, out", f"def {added}(self, *, out", f"def {added}_(self)"):
        assert form in text


def test_the_functor_is_the_one_that_is_called(ops: list[Op], blocks: dict[str, list[str]]) -> None:
    functor = re.search(r"^struct (\w+) {", blocks["cpp"][0], re.MULTILINE)
    assert functor is not None
    kernels = "".join(emit_kernels(ops).values())
    assert f"functors::{functor[1]}" in kernels
    assert f"functors::{functor[1]}" not in "".join(emit_kernels(load_ops(OPS)).values())


def test_the_formula_becomes_a_node(ops: list[Op], blocks: dict[str, list[str]], tmp_path: Path) -> None:
    folder = extended(DERIVATIVES, blocks["yaml"][1], tmp_path / "derivatives")
    sources = "".join(emit_derivatives(load_derivatives(folder, ops), ops).values())
    assert "SquareplusBackward" in sources
