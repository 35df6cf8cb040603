"""A pytest plug-in that runs a part of the parametrized tests: `pytest -p rushlight_testing.sampling --every-case 2 tests`.

The plug-in runs about one in N cases of the parametrized tests, always the same cases. It runs all tests
without parameters.
"""

from __future__ import annotations

import zlib

import pytest


def is_chosen(item: pytest.Item, every: int) -> bool:
    """Return whether a test is among the cases that are run."""
    return zlib.crc32(item.nodeid.encode()) % every == 0


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--every-case`."""
    parser.addoption(
        "--every-case", type=int, default=1, metavar="N", help="run one case in N of parametrized tests"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the cases that are not run."""
    every = config.getoption("--every-case")
    chosen = [item for item in items if not hasattr(item, "callspec") or is_chosen(item, every)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen
