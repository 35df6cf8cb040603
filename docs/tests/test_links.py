"""Links between the repository's pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+)(?:#[^)]*)?\)")


def pages() -> list[Path]:
    folders = [
        ROOT,
        ROOT / "docs",
        ROOT / "docs" / "decisions",
        ROOT / "benchmarks",
        *ROOT.glob("packages/*"),
    ]
    return sorted(page for folder in folders for page in folder.glob("*.md"))


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    # Skip code, in which `[...](...)` is an index and a call.
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    targets = [
        target for target in LINK.findall(text) if "://" not in target and not target.startswith("mailto:")
    ]
    broken = [target for target in targets if not (page.parent / target).exists()]
    assert broken == []


def test_there_are_pages_and_links() -> None:
    assert len(pages()) > 20
    assert LINK.findall("see [a](b.md#c) and [d](e)") == ["b.md", "e"]
