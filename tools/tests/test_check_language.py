"""The check for idioms that docs/style.md advises against."""

from __future__ import annotations

import check_language


def test_idioms_are_found_with_their_lines() -> None:
    found = check_language.idioms("Operators\nof one's own,\nmade Anew.\n")
    assert [(line, words) for line, words, _ in found] == [(2, "one's own"), (3, "Anew")]
    assert found[1][2] == check_language.IDIOMS[r"\banew\b"]


def test_similar_words_are_allowed() -> None:
    assert check_language.idioms("for every row, for goods, renewal, an aside") == []


def test_what_is_skipped() -> None:
    assert check_language.is_checked(check_language.ROOT / "docs" / "style.md")
    assert not check_language.is_checked(
        check_language.ROOT / "packages" / "core" / "third_party" / "README.md"
    )
    assert not check_language.is_checked(check_language.ROOT / "docs" / "figure.svg")
