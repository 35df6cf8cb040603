"""Runs the documentation: each page's Python blocks as one program, in a process and a folder of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # this folder is not a package

from pages import ROOT, pages, script


@pytest.mark.parametrize("page", list(pages()), ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page: Path, tmp_path: Path) -> None:
    program = tmp_path / f"{page.stem}.py"
    program.write_text(script(page.read_text()))
    ended = subprocess.run(
        [sys.executable, "-P", program.name], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, f"{page.name} (line numbers are the page's):\n{ended.stderr}"


def test_the_listings_are_among_the_pages() -> None:
    found = {str(page.relative_to(ROOT)) for page in pages()}
    assert {"docs/listing1.md", "docs/listing2.md", "README.md", "packages/core/README.md"} <= found


def test_lines_keep_their_numbers() -> None:
    page = "# Title\n\n```python\na = 1\n```\n\ntext\n\n```text\nb = 2\n```\n```python\nassert a\n```\n"
    lines = script(page).splitlines()
    assert [(number, line) for number, line in enumerate(lines, 1) if line] == [
        (4, "a = 1"),
        (13, "assert a"),
    ]
    assert len(lines) == len(page.splitlines())


def test_blocks_in_lists_lose_their_indent() -> None:
    assert script("* item\n\n  ```python\n  if True:\n      a = 1\n  ```\n").split() == [
        "if",
        "True:",
        "a",
        "=",
        "1",
    ]
    assert compile(script("* item\n\n  ```python\n  if True:\n      a = 1\n  ```\n"), "page", "exec")


def test_longer_fences_hold_shorter_ones() -> None:
    assert script("````markdown\n```python\na = 1\n```\n````\n").strip() == ""


def test_open_block_is_an_error() -> None:
    with pytest.raises(ValueError, match="never closed"):
        script("```python\na = 1\n")
