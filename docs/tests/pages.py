"""Documentation as programs: the Python blocks of a page, in order, are one script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+)\s*(?P<info>.*?)\s*$")


def pages() -> Iterator[Path]:
    """Every page of the documentation that holds a Python block, and the READMEs. A decision is a record, not an example."""
    readmes = [ROOT / "README.md", *ROOT.glob("packages/*/README.md")]
    for page in sorted([*DOCS.rglob("*.md"), *readmes]):
        if "decisions" not in page.parts and script(page.read_text()).strip():
            yield page


def script(text: str) -> str:
    """The blocks marked exactly ``python``; every other line is blank, so that line numbers are the page's.

    Raises ValueError for a block that is never closed: its examples would silently not run.
    """
    lines: list[str] = []
    opened: re.Match[str] | None = None
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if opened is None:
            opened = fence
            lines.append("")
        elif fence and fence["fence"] == opened["fence"] and not fence["info"]:
            opened = None
            lines.append("")
        else:
            lines.append(line.removeprefix(opened["indent"]) if opened["info"] == "python" else "")
    if opened is not None:
        raise ValueError(f"a block opened with {opened[0].strip()!r} is never closed")
    return "\n".join(lines) + "\n"
