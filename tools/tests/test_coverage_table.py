"""The table of coverage, from known counts."""

from __future__ import annotations

from coverage_table import counts, page


def entry(run: int, count: int) -> dict[str, dict[str, int]]:
    return {"summary": {"covered_lines": run, "num_statements": count}}


def test_the_table_counts() -> None:
    files = {
        "/env/lib/site-packages/rushlight_core/a.py": entry(9, 10),
        "packages/core/python/rushlight_core/b/c.py": entry(10, 30),
        "/home/rushlight/packages/rushlight/src/rushlight/__init__.py": entry(5, 5),
    }
    packages = counts(files)
    assert packages == {
        "rushlight": {"__init__.py": (5, 5)},
        "rushlight_core": {"a.py": (9, 10), "b/c.py": (10, 30)},
    }
    text = page(packages)
    assert "| `rushlight` | 5 | 5 | 100.0 |" in text
    assert "| `rushlight_core` | 40 | 19 | 47.5 |" in text
    assert "| together | 45 | 24 | 53.3 |" in text
    assert "not run: `rushlight_core/b/c.py` (20 of 30), `rushlight_core/a.py` (1 of 10)." in text
    assert "__init__.py" not in text


def test_files_of_no_package_do_not_count() -> None:
    assert counts({"/tmp/pytest-0/train.py": entry(1, 2)}) == {}
