"""The check for marks of merge conflicts."""

from __future__ import annotations

from pathlib import Path

import check_conflicts

LEFT, MIDDLE, RIGHT = "<" * 7, "=" * 7, ">" * 7


def test_marks_are_found(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(f"one\n{LEFT} HEAD\ntwo\n{MIDDLE}\nthree\n{RIGHT} 0123456 (A subject)\n")
    assert check_conflicts.marks(path) == [2, 6]


def test_what_is_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.rst"
    path.write_text(f"A title\n{MIDDLE}\n    {LEFT} indented\n{LEFT}<\n{RIGHT}\n")
    assert check_conflicts.marks(path) == []
    path.write_bytes(b"\0\n" + f"{LEFT} HEAD\n".encode())  # not text
    assert check_conflicts.marks(path) == []
