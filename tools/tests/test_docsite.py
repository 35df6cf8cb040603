"""The documentation site's conversion of docstrings, stubs and links, and its checks of built pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from docsite.checks import problems
from docsite.docstrings import first_sentence, markdown
from docsite.pages import GENERATED, PageError, Stage, navigation, page_names
from docsite.stubs import parse

ROOT = Path(__file__).resolve().parents[2]


def test_sections_become_lists() -> None:
    text = markdown(
        """Return the sum.

        Args:
            input, other: tensors of the
                same shape.
            alpha (float): a factor.

        Raises:
            ValueError: the shapes differ.
        """
    )
    assert text == (
        "Return the sum.\n\n**Parameters**\n\n* `input`, `other`: tensors of the same shape.\n"
        "* `alpha` (float): a factor.\n\n**Raises**\n\n* `ValueError`: the shapes differ."
    )


def test_examples_are_fenced() -> None:
    fenced = "```python\nadd(1, 2)  # 3\n```"
    assert markdown("Add.\n\nExample::\n\n    add(1, 2)  # 3") == f"Add.\n\n**Example**\n\n{fenced}"
    assert markdown("Add::\n\n    add(1, 2)  # 3") == f"Add:\n\n{fenced}"
    assert markdown("Add.\n\n>>> add(1, 2)\n3").endswith("```python\n>>> add(1, 2)\n3\n```")
    assert "```text\nnot python at all\n```" in markdown("Print.\n\nAs in::\n\n    not python at all")


def test_marks_of_markdown_are_escaped_outside_of_code() -> None:
    assert markdown("x_1 * y[0] is `x_1 * y[0]`.") == r"x\_1 \* y\[0\] is `x_1 * y[0]`."
    assert markdown("The name *is* the operator.") == "The name *is* the operator."
    assert markdown("``a_b`` and :func:`c_d`.") == "`a_b` and `c_d`."
    assert markdown("A span `over\ntwo_lines` ends.") == "A span `over\ntwo_lines` ends."


def test_lists_stay_lists() -> None:
    assert markdown("Two:\n\n* a_b\n* c") == "Two:\n\n* a\\_b\n* c"


def test_first_sentence() -> None:
    assert first_sentence("Return the\nsum. Or not.\n\nMore.") == "Return the sum."
    assert first_sentence(None) == ""


def test_signatures_of_stubs() -> None:
    stub = parse(
        "def add(input: Tensor, *, alpha: _int = 1) -> Tensor: ...\n"
        "class Tensor:\n"
        "    @overload\n"
        "    def max(self) -> Tensor: ...\n"
        "    @overload\n"
        "    def max(self, dim: _int) -> Pair: ...\n"
    )
    assert stub.signatures["add"] == ["(input: Tensor, *, alpha: int=1) -> Tensor"]
    assert stub.signatures["Tensor.max"] == ["() -> Tensor", "(dim: int) -> Pair"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one page of each section, and a source file."""
    root = tmp_path / "repository"
    (root / "docs" / "decisions").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("x = 1\n")
    (root / "docs" / "decisions" / "README.md").write_text("# Decisions\n")
    (root / "docs" / "decisions" / "0001-first.md").write_text("# First\n\nSee [how](../more.md#end).\n")
    for name in ("README", "getting-started", "tutorials", "development"):
        (root / "docs" / f"{name}.md").write_text(f"# {name}\n")
    (root / "docs" / "reference.md").write_text(f"# Reference\n\n{GENERATED}")
    (root / "docs" / "guide.md").write_text(
        "# Guide\n\nSee [this](#here).\n\n## Here\n\n* [More](more.md): text.\n"
    )
    (root / "docs" / "more.md").write_text(
        "# More\n\n[`a.py`](../src/a.py), [all](decisions/), `torch.add`, `torch.nothing`, `[a](b.md)`\n"
        "\n```python\n[a](gone.md)\n```\n"
    )
    return root


def staged(root: Path, folder: Path) -> Stage:
    stage = Stage(root, folder, {"rushlight.add": "api/sum"}, "## Sums\n\n* [Sum](api/sum.md): adds.\n")
    stage.write()
    return stage


def test_links_lead_to_pages_of_the_site(repository: Path, tmp_path: Path) -> None:
    stage = staged(repository, tmp_path / "stage")
    assert "[how](../more.md#end)" in (tmp_path / "stage/decisions/0001-first.md").read_text()
    more = (tmp_path / "stage/more.md").read_text()
    assert '<a href="source/src/a.py.html">`a.py`</a>, [all](decisions/index.md)' in more
    assert "{py:obj}`torch.add <rushlight.add>`, `torch.nothing`, `[a](b.md)`" in more
    assert "[a](gone.md)" in more
    assert stage.sources == {repository / "src/a.py"}


def test_the_navigation_is_what_section_pages_list(repository: Path, tmp_path: Path) -> None:
    staged(repository, tmp_path / "stage")
    guide = (tmp_path / "stage/guide.md").read_text()
    assert guide.endswith("```{toctree}\n:caption: Here\n:hidden:\n\nmore\n```\n")
    reference = (tmp_path / "stage/reference.md").read_text()
    assert "* [Sum](api/sum.md): adds." in reference
    assert ":caption: Sums\n:hidden:\n\napi/sum\n" in reference
    assert "0001-first" in (tmp_path / "stage/decisions/index.md").read_text()


def test_a_broken_link_is_an_error(repository: Path, tmp_path: Path) -> None:
    (repository / "docs" / "more.md").write_text("# More\n\nSee [it](gone.md).\n")
    with pytest.raises(PageError, match=r"docs/more.md: the link to gone.md leads nowhere"):
        staged(repository, tmp_path / "stage")


def test_every_page_is_in_the_navigation() -> None:
    names = page_names(ROOT)
    files = {name: path for path, name in names.items()}

    def target(name: str, link: str) -> str | None:
        found = (files[name].parent / link.partition("#")[0]).resolve()
        return names.get(found / "README.md" if found.is_dir() else found)

    texts = {name: path.read_text() for name, path in files.items()}
    groups = navigation(texts, target)
    listed = [page for group in groups.values() for pages in group.values() for page in pages]
    assert len(listed) == len(set(listed))
    assert {"index", *groups, *listed} | {name for name in files if name.startswith("decisions/0")} == set(
        files
    )


def test_problems_of_a_site(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="good.html#here">1</a><a href="good.html#gone">2</a><a href="gone.html">3</a>'
        '<a href="https://example.org/x">4</a><script src="https://example.org/a.js"></script>'
        '<link rel="canonical" href="https://example.org/"><img src="gone.png">'
    )
    (tmp_path / "good.html").write_text('<p id="here">text</p>')
    assert sorted(problems(tmp_path)) == [
        "index.html: loads https://example.org/a.js from another machine",
        "index.html: the link gone.html leads to no file",
        "index.html: the link gone.png leads to no file",
        "index.html: the link good.html#gone leads to no such place on the page",
    ]
