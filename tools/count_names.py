"""Count the uses of names for which the field has better terms, in two revisions: `python tools/count_names.py OLD NEW`.

The count covers the sources of the packages without their tests: in Python, the names that the tokenizer finds, and modules;
in C++ and CUDA, words outside of comments and strings, with or without a trailing underscore. docs/readability.md shows the
table.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import tokenize
from collections import Counter
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
NAMES = [
    "Crew",
    "Member",
    "Desk",
    "Inbox",
    "_hear",
    "_answers",
    "Aside",
    "Cargo",
    "Delivery",
    "parcel",
    "chances",
    "over_choices",
    "_questions",
    "_legacy",
    "_methods",
    "_control",
    "amounts",
    "turned",
    "watched",
    "lines",
    "places",
    "slope",
    "running",
    "edges",
    "lanes",
    "direct",
    "written",
]
NATIVE = {".cpp", ".h", ".cu", ".cuh", ".c"}
_WORD = re.compile(r"\b(" + "|".join(NAMES) + r")_?\b")
_UNCOUNTED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def count(revision: str) -> Counter[tuple[str, str]]:
    """Return the number of uses by name and language, "Python" or "C++"."""
    found: Counter[tuple[str, str]] = Counter()
    for path, text in _sources(revision):
        if path.suffix == ".py":
            found["Python", path.stem] += path.stem in NAMES
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                found["Python", token.string] += token.type == tokenize.NAME and token.string in NAMES
        else:
            for match in _WORD.finditer(_UNCOUNTED.sub("", text)):
                found["C++", match[1]] += 1
    return found


def _sources(revision: str) -> list[tuple[PurePosixPath, str]]:
    listed = _git("ls-tree", "-r", "--name-only", revision, "packages").decode().split()
    paths = [
        path
        for path in map(PurePosixPath, listed)
        if path.suffix in NATIVE | {".py"} and not {"tests", "third_party"} & set(path.parts)
    ]
    return [(path, _git("show", f"{revision}:{path}").decode()) for path in paths]


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", help="a revision, such as a commit")
    parser.add_argument("new", nargs="?", default="HEAD", help="another one; HEAD by default")
    arguments = parser.parse_args()
    old, new = count(arguments.old), count(arguments.new)
    print("| name | Python | C++ |\n|---|--:|--:|")
    for name in NAMES:
        cells = [f"{old[kind, name]} → {new[kind, name]}" for kind in ("Python", "C++")]
        print(f"| `{name}` | {' | '.join(cells)} |")
    print(f"\nIn all {sum(old.values())} before and {sum(new.values())} now.")


if __name__ == "__main__":
    main()
