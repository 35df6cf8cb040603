"""The counts of public names with incomplete documentation, on a small tree."""

from __future__ import annotations

from pathlib import Path

import count_docstrings
import pytest
from count_docstrings import Count, count, grown, table, with_table

EMIT = """
def emit_docs(ops):
    bare = "# bare\\n\\nAdds."
    full = "# full\\n\\nShapes: (N).\\n\\n```python\\nfull()\\n```\\n\\nRaises ValueError for others."
    return {"bare.md": bare, "full.md": full, "index.md": "# Operators"}
"""
MODULE = '''
__all__ = ["Layer", "scale", "version"]


class Layer:
    """Multiply by a weight.

    Shape: (N, *).

    Example::

        Layer(2)
    """

    def __init__(self, size: int) -> None:
        """Raises ValueError for a negative size."""
        if size < 0:
            raise ValueError(size)

    def forward(self, input: Tensor) -> Tensor:
        return input


@overload
def scale(input: Tensor, by: int) -> Tensor: ...
@overload
def scale(input: Tensor, by: float) -> Tensor: ...
def scale(input: Tensor, by: float) -> Tensor:
    """Return the input times `by`."""
    if not by:
        raise ValueError("by: must not be 0")
    return input * by


def version() -> str:
    """Return the version."""
    return "1"


def not_exported() -> None:
    pass
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "core/codegen/__init__.py": "",
        "core/codegen/emit_docs.py": EMIT,
        "core/codegen/loader.py": "def load_ops(): return []\n",
        "layers/src/layers.py": MODULE,
        "layers/tests/test_layers.py": "__all__ = ['test']\ndef test(): raise ValueError\n",
    }
    for name, text in files.items():
        path = tmp_path / "packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_what_lacks_is_counted_of_what_is_expected(tree: Path) -> None:
    assert count(tree) == {
        "operators": {"example": Count(2, 1), "shapes": Count(2, 1), "errors": Count(2, 1)},
        "layers": {"example": Count(3, 2), "shapes": Count(2, 1), "errors": Count(2, 1)},
    }


def test_stubs_the_table_of_modules_and_other_packages_export_too(tree: Path) -> None:
    layers, meta = tree / "packages/layers/src", tree / "packages/meta/src/meta"
    meta.mkdir(parents=True)
    for path, text in {
        layers / "layers.pyi.tmpl": "from .layers import not_exported as not_exported\n",
        meta / "_table.py": 'MODULES = {"m": {"layers.deep": "other not_exported:alias"}}\n',
        meta / "__init__.py": "from layers import not_exported\n\n__all__ = ['not_exported']\n",
    }.items():
        path.write_text(text)
        assert count(tree)["layers"]["example"] == Count(4, 3)
        path.unlink()
    assert count(tree)["layers"]["example"] == Count(3, 2)


def test_a_name_of_another_package_is_another_name(tree: Path) -> None:
    other = tree / "packages/other/src/other"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("__all__ = ['not_exported']\n\ndef not_exported(): pass\n")
    (other / "_table.py").write_text('MODULES = {"layers": {"other": "not_exported"}}\n')
    assert count(tree)["layers"]["example"] == Count(3, 2)
    assert count(tree)["other"]["example"] == Count(1, 1)


def test_a_count_above_the_page_is_reported(tree: Path) -> None:
    page = with_table("# Page\n\n| before |\n\n## Now\n\n| a |\n|---|\n\nEnd.\n", table(count(tree)))
    assert page.startswith("# Page\n\n| before |\n\n## Now\n\n| part | without example")
    assert page.endswith("| layers | 2 of 3 | 1 of 2 | 1 of 2 |\n\nEnd.\n")
    assert grown(count(tree), page) == []
    module = tree / "packages/layers/src/layers.py"
    module.write_text(
        MODULE.replace("Raises ValueError for", "For").replace('"version"', '"version", "not_exported"')
    )
    assert grown(count(tree), page) == [
        "layers: 3 public names are documented without example, 2 in the page",
        "layers: 2 public names are documented without errors, 1 in the page",
    ]


def test_a_page_without_the_table_fails(tree: Path) -> None:
    assert grown(count(tree), "# Page\n") == ["the page has no heading '## Now'"]
    assert len(grown(count(tree), "# Page\n\n## Now\n")) == 6


def test_the_page_of_this_repository_has_a_row_for_every_package() -> None:
    page = count_docstrings.PAGE.read_text()
    rows = page.partition("## Now\n")[2]
    packages = [
        path.name
        for path in (count_docstrings.ROOT / "packages").iterdir()
        if (path / "pyproject.toml").exists()
    ]
    assert [name for name in ["operators", *packages] if f"| {name} |" not in rows] == []
