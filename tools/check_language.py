"""Find idioms that docs/style.md advises against: `python tools/check_language.py`.

An idiom is added to the list when readers have misread it and no occurrence is left.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from check_conflicts import ROOT, tracked_files

# Regular expression of an idiom, and what to write instead.
IDIOMS = {
    r"\bone's own\b": "custom, or user-defined",
    r"\banew\b": "again, or a verb with re-",
    r"\bfor ever\b": "without end, or permanently",
    r"\bfor good\b(?! in\b)": "permanently, or never freed",
    r"\bput aside\b": "saved, or replaced for the duration",
    r"\bby an older door\b": "deprecated alias of",
    r"\bof another make\b": "of another type",
    r"\b(?:go|goes) round in\b": "reuse",
    r"\bwho waits for whom\b": "waiting times",
    r"\b(?:its|their) kin\b": "similar functions, or their names",
    r"\bturned round\b": "reversed, flipped or rotated",
}
PATTERN = re.compile("|".join(f"({idiom})" for idiom in IDIOMS), re.IGNORECASE)
SUFFIXES = {".py", ".pyi", ".md", ".yaml", ".toml", ".cpp", ".h", ".cu", ".cuh", ".cmake", ".tmpl", ".txt"}
SKIPPED = (
    "tools/check_language.py",
    "tools/tests/test_check_language.py",
    "packages/core/third_party/",
)


def idioms(text: str) -> list[tuple[int, str, str]]:
    """Return the line, the words and the replacement of each idiom in a text."""
    replacements = list(IDIOMS.values())
    return [
        (
            text.count("\n", 0, match.start()) + 1,
            match.group(),
            replacements[int(match.lastindex or 1) - 1],
        )
        for match in PATTERN.finditer(text)
    ]


def is_checked(path: Path) -> bool:
    return path.suffix in SUFFIXES and not str(path.relative_to(ROOT)).startswith(SKIPPED)


def main() -> int:
    status = 0
    for path in tracked_files(ROOT):
        if not path.is_file() or not is_checked(path):
            continue
        for line, words, instead in idioms(path.read_text(encoding="utf-8", errors="replace")):
            print(f"{path.relative_to(ROOT)}:{line}: {words!r}: write {instead}; see docs/style.md")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
